"""From source to snippets."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.errors import InputError
from code_chains.sources import read_file, read_folder, split_markdown, split_notebook, split_python, split_text

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


def test_what_is_defined_twice_is_kept_twice() -> None:
    source = "def f(): return 1\n\ndef f(): return 2\n\ndef f(): return 3\n"
    assert [one.id for one in split_python(source, "m.py")] == ["m.py#f", "m.py#f~2", "m.py#f~3"]


def test_pieces_of_one_line_have_ids_of_their_own() -> None:
    ids = [one.id for one in split_text(" ".join(f"var a{n} = {n};" for n in range(500)), "m.js", "js")]
    assert ids[:2] == ["m.js#L1", "m.js#L1~2"]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("odd", ["\f", "\u2028", "\x1c", "\x85"])
def test_only_ends_of_lines_end_lines(odd: str) -> None:
    source = f"# a{odd}b\r\ndef f():\r\n    return '{odd}'.join('ab')\r\n\rdef g():\r    return 2\r"
    first, second = split_python(source, "m.py")
    assert first.page_content == f"def f():\n    return '{odd}'.join('ab')\n"
    assert second.page_content == "def g():\n    return 2\n"


def test_files_of_one_name_in_two_folders_are_both_kept(tmp_path: Path) -> None:
    paths = [tmp_path / "a" / "x.py", tmp_path / "b" / "x.py"]
    for path in paths:
        path.parent.mkdir()
        path.write_text("print(1)")
    assert len({read_file(path)[0].id for path in paths}) == 2


@pytest.mark.parametrize(
    ("info", "language"),
    [
        ("py", "python"),
        ("{python}", "python"),
        ("{.python .numbered}", "python"),
        ("Python", "python"),
        ("python3", "python"),
        ('python title="a"', "python"),
        ("{r, echo=FALSE}", "r"),
        ("C++", "c++"),
        ("", "text"),
    ],
)
def test_the_language_of_a_block_has_one_name(info: str, language: str) -> None:
    (snippet,) = split_markdown(f"```{info}\n1\n```\n", "a.md")
    assert snippet.metadata["language"] == language


def test_an_indented_block_of_markdown_is_found() -> None:
    (snippet,) = split_markdown("Add up:\n\n    print(1 + 1)\n", "a.md")
    assert (snippet.page_content, snippet.metadata["about"]) == ("print(1 + 1)\n", "Add up:")


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


@pytest.mark.parametrize(
    "text", ["{", "", '{"worksheets": []}', "[" * 100_000, '{"cells": [{"cell_type": "code"}]}', "3"]
)
def test_a_broken_notebook_is_named_alone_and_left_out_of_a_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    (tmp_path / "bad.ipynb").write_text(text)
    (tmp_path / "good.py").write_text("print(1)")
    with pytest.raises(InputError, match=r"bad\.ipynb"):
        read_file(tmp_path / "bad.ipynb")
    assert [one.id for one in read_folder(tmp_path)] == ["good.py"]
    assert "bad.ipynb" in caplog.text


def test_a_link_to_itself_and_a_pipe_are_left_out_of_a_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "good.py").write_text("print(1)")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    (tmp_path / "around").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.py")
    assert [one.id for one in read_folder(tmp_path)] == ["good.py"]
    assert "loop.py" in caplog.text


def test_what_cannot_be_read_is_left_out_of_a_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "secret.py":
            raise PermissionError("not yours")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    for name in ("good.py", "secret.py"):
        (tmp_path / name).write_text("print(1)")
    assert [one.id for one in read_folder(tmp_path)] == ["good.py"]
    assert "not yours" in caplog.text


def test_a_folder_that_cannot_be_entered_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if Path(path).name == "closed":
            raise PermissionError(13, "not yours", path)
        return scandir(path)

    (tmp_path / "good.py").write_text("print(1)")
    (tmp_path / "closed").mkdir()
    monkeypatch.setattr(os, "scandir", refuse)
    assert [one.id for one in read_folder(tmp_path)] == ["good.py"]
    assert "closed" in caplog.text


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
