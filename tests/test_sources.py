"""From source to snippets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.errors import InputError
from code_chains.sources import read_file, read_folder, split_markdown, split_notebook, split_python

MODULE = '''"""Helpers."""
import math
import os

def area(radius):
    """Area of a circle."""
    return math.pi * radius**2

@staticmethod
def name():
    return "x"

class Circle:
    """A round thing."""
'''


def test_a_script_is_one_snippet_about_its_docstring() -> None:
    (snippet,) = split_python('"""Say hello\n   twice."""\nprint("hello")\n', "greetings/say_hello.py")
    assert snippet.metadata["about"] == "say hello. Say hello twice."


def test_a_module_is_split_by_function_and_class() -> None:
    assert [one.id for one in split_python(MODULE, "m.py")] == ["m.py#area", "m.py#name", "m.py#Circle"]


def test_a_function_brings_the_imports_that_it_uses() -> None:
    assert split_python(MODULE, "m.py")[0].page_content.startswith("import math\n\n\ndef area(")


def test_a_decorator_belongs_to_its_function() -> None:
    assert "@staticmethod\ndef name" in split_python(MODULE, "m.py")[1].page_content


def test_python_that_does_not_parse_is_cut_as_text() -> None:
    assert "def broken(" in split_python("def broken(:\n    pass\n", "b.py")[0].page_content


def test_a_block_of_markdown_is_about_what_stands_before_it() -> None:
    text = "# Tables\n\n## Sums\n\nSum a column.\n\n```python\nprint(sum(column))\n```\n\nNot code.\n"
    (snippet,) = split_markdown(text, "guide.md")
    assert (snippet.metadata["about"], snippet.metadata["line"]) == ("Tables. Sums. Sum a column.", 7)


def test_a_cell_of_a_notebook_is_about_the_text_before_it() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Sum\n", "Add it up."]},
        {"cell_type": "code", "source": ["sum([1, 2])"]},
    ]
    (snippet,) = split_notebook(json.dumps({"cells": cells}), "n.ipynb")
    assert (snippet.metadata["about"], snippet.page_content) == ("Sum Add it up.", "sum([1, 2])\n")


def test_a_broken_notebook_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.ipynb").write_text("{")
    with pytest.raises(InputError, match=r"bad\.ipynb"):
        read_folder(tmp_path)


def test_other_languages_are_cut_by_their_structure(tmp_path: Path) -> None:
    (tmp_path / "many.js").write_text("\n".join(f"function f{n}() {{\n  return {n};\n}}" for n in range(100)))
    snippets = read_folder(tmp_path)
    assert len(snippets) > 1
    assert all(one.page_content.startswith("function") for one in snippets)


def test_hidden_and_generated_folders_and_binaries_are_left_out(tmp_path: Path) -> None:
    for name in (".git/a.py", "__pycache__/b.py", "node_modules/c.js", "kept.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("print(1)")
    (tmp_path / "binary.py").write_bytes(b"\0\1")
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    assert [one.metadata["source"] for one in read_folder(tmp_path)] == ["kept.py"]


def test_a_folder_without_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no code"):
        read_folder(tmp_path)


def test_a_missing_folder_or_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_folder(tmp_path / "nowhere")
    with pytest.raises(InputError, match="cannot be read"):
        read_file(tmp_path / "nowhere.py")


@given(st.text(max_size=400))
def test_any_text_is_split_without_an_error(text: str) -> None:
    split_python(text, "a.py")
    split_markdown(text, "a.md")
