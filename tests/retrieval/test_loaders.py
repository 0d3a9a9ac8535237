"""From source to snippets."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.errors import InputError
from code_chains.retrieval import loaders
from code_chains.retrieval.loaders import (
    read_file,
    read_folder,
    split_markdown,
    split_notebook,
    split_python,
    split_text,
)
from code_chains.retrieval.persistence import searched_text

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


def test_questions_at_the_end_of_a_docstring_are_searched_and_not_shown() -> None:
    source = '"""Say hello.\n\nHow do I greet?\nWhat is a welcome?\n"""\n\nprint("hello")\n'
    (snippet,) = split_python(source, "hello.py")
    assert snippet.page_content == '"""Say hello."""\n\nprint("hello")\n'
    assert snippet.metadata["questions"] == ["How do I greet?", "What is a welcome?"]
    assert (snippet.metadata["about"], searched_text(snippet)) == (
        "hello. Say hello.",
        "hello. Say hello. How do I greet? What is a welcome?",
    )


@pytest.mark.parametrize(
    "docstring", ["How do I greet?", "Say hello.\n\nAnd so on. Why?\nAs usual.", "Say hello.\nWhy?"]
)
def test_other_docstrings_stay_as_they_are(docstring: str) -> None:
    source = f'"""{docstring}"""\nprint("hello")\n'
    (snippet,) = split_python(source, "hello.py")
    assert (snippet.page_content, "questions" in snippet.metadata) == (source, False)


@pytest.mark.parametrize(
    ("name", "source", "words"),
    [
        ("utils.py", "def factorial(n):\n    return n and n * factorial(n - 1) or 1\n", ["factorial"]),
        ("utils.py", "import math\n\nclass BankAccount:\n    pass\n", ["bank account"]),
        ("a.py", "# Roman numerals of a year\nprint(toRoman(1994))\n", ["roman numerals", "to roman"]),
        ("a.py", "total_price = sum(prices)\nprint(total_price)\n", ["total price", "prices"]),
        (
            "f.js",
            "// Moving average of a series\nfunction movingAverage(xs) {}\n",
            ["moving average", "series"],
        ),
        (
            "q.sql",
            "-- revenue per region\nSELECT region, SUM(amount) FROM orders GROUP BY region\n",
            ["revenue", "orders"],
        ),
        ("m.rs", "fn is_prime(n: u64) -> bool { true }\n", ["is prime"]),
    ],
)
def test_a_file_without_a_docstring_is_found_by_what_is_in_it(
    name: str, source: str, words: list[str], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(source)
    about = " ".join(snippet.metadata["about"] for snippet in read_file(tmp_path / name))
    assert [word for word in words if word not in about.lower()] == []


def test_a_module_is_split_by_function_and_class() -> None:
    assert [one.id for one in split_python(MODULE, "m.py")] == ["m.py#area", "m.py#name", "m.py#Circle"]


def test_a_function_brings_the_imports_that_it_uses() -> None:
    assert split_python(MODULE, "m.py")[0].page_content.startswith("import math\n\n\ndef area(")


def test_a_decorator_belongs_to_its_function() -> None:
    assert "@staticmethod\ndef name" in split_python(MODULE, "m.py")[1].page_content


def test_python_that_does_not_parse_is_cut_as_text() -> None:
    assert "def broken(" in split_python("def broken(:\n    pass\n", "b.py")[0].page_content


def test_two_definitions_of_a_name_are_two_snippets() -> None:
    source = "def f(): return 1\n\ndef f(): return 2\n\ndef f(): return 3\n"
    assert [one.id for one in split_python(source, "m.py")] == ["m.py#f", "m.py#f~2", "m.py#f~3"]


def test_snippets_of_the_same_line_have_unique_ids() -> None:
    ids = [one.id for one in split_text(" ".join(f"var a{n} = {n};" for n in range(500)), "m.js", "js")]
    assert ids[:2] == ["m.js#L1", "m.js#L1~2"]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("odd", ["\f", "\u2028", "\x1c", "\x85"])
def test_only_ends_of_lines_end_lines(odd: str) -> None:
    source = f"# a{odd}b\r\ndef f():\r\n    return '{odd}'.join('ab')\r\n\rdef g():\r    return 2\r"
    first, second = split_python(source, "m.py")
    assert first.page_content == f"def f():\n    return '{odd}'.join('ab')\n"
    assert second.page_content == "def g():\n    return 2\n"


def test_files_with_the_same_name_in_two_folders_are_both_read(tmp_path: Path) -> None:
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
def test_aliases_of_a_language_are_unified(info: str, language: str) -> None:
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
def test_a_broken_notebook_is_reported_alone_and_skipped_in_a_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    (tmp_path / "bad.ipynb").write_text(text)
    (tmp_path / "good.py").write_text("print(1)")
    with pytest.raises(InputError, match=r"bad\.ipynb"):
        read_file(tmp_path / "bad.ipynb")
    assert [one.id for one in read_folder(tmp_path)] == ["good.py"]
    assert "bad.ipynb" in caplog.text


def test_a_link_to_itself_and_a_pipe_are_left_out_of_a_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "good.py").write_text("print(1)")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    (tmp_path / "around").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.py")
    assert [one.id for one in read_folder(tmp_path)] == ["good.py"]
    assert "loop.py" in caplog.text


@pytest.mark.parametrize("target", ["secret.py", "folder"])
@pytest.mark.parametrize("absolute", [True, False])
def test_no_link_leads_out_of_a_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, target: str, absolute: bool
) -> None:
    code, outside = tmp_path / "code", tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    for path in (outside / "secret.py", outside / "folder" / "secret.py"):
        path.write_text("KEY = 'secret'")
    code.mkdir()
    (code / "good.py").write_text("print(1)")
    (code / f"link{Path(target).suffix}").symlink_to((outside if absolute else Path("../outside")) / target)
    assert [one.id for one in read_folder(code)] == ["good.py"]
    assert "link" in caplog.text


def test_a_link_within_a_folder_makes_no_second_snippet(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("print(1)")
    (tmp_path / "same.py").symlink_to("good.py")
    assert [one.id for one in read_folder(tmp_path)] == ["good.py"]


def test_the_folder_itself_and_a_single_file_may_be_links(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "good.py").write_text("print(1)")
    (tmp_path / "link").symlink_to("code")
    (tmp_path / "one.py").symlink_to("code/good.py")
    assert [one.id for one in read_folder(tmp_path / "link")] == ["good.py"]
    assert [one.page_content for one in read_file(tmp_path / "one.py")] == ["print(1)\n"]


@pytest.mark.parametrize("swapped", ["file", "folder", "fifo"])
def test_a_file_replaced_by_a_link_before_it_is_opened_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    code, outside = tmp_path / "code", tmp_path / "outside"
    for folder in (code / "inner", outside):
        folder.mkdir(parents=True)
        (folder / "a.py").write_text(f"print({folder.name!r})")
    (code / "good.py").write_text("print(1)")
    found = loaders._files

    def then_swapped(root: Path) -> list[Path]:
        paths = list(found(root))
        (code / "inner").rename(tmp_path / "moved")
        if swapped == "folder":
            (code / "inner").symlink_to(outside)
        else:
            (code / "inner").mkdir()
            swap = (
                (code / "inner/a.py").symlink_to
                if swapped == "file"
                else lambda _: os.mkfifo(code / "inner/a.py")
            )
            swap(outside / "a.py")
        return paths

    monkeypatch.setattr(loaders, "_files", then_swapped)
    assert [one.id for one in read_folder(code)] == ["good.py"]


def test_what_cannot_be_read_is_left_out_of_a_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: str, *args: Any, **kwargs: Any) -> int:
        if Path(path).name == "secret.py":
            raise PermissionError("not yours")
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
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


HOSTILE = {
    "imports and functions": ("x.py", "import a\n" * 5000 + "def f(): a\n" * 5000),
    "brackets": ("x.md", "# T\n\n" + "[" * 100_000 + "\n\n```python\n1\n```\n"),
    "pictures": ("x.md", "![" * 50_000 + "\n\n```python\n1\n```\n"),
}


@pytest.mark.parametrize(("name", "text"), HOSTILE.values(), ids=HOSTILE)
def test_the_most_costly_source_is_read_in_moments(tmp_path: Path, name: str, text: str) -> None:
    path, began = tmp_path / name, time.process_time()
    path.write_text(text)
    assert read_file(path)
    assert time.process_time() - began < 5


def test_a_piece_of_a_module_comes_with_the_imports_that_it_uses() -> None:
    imports = "import b, a\nfrom c import d as e\nimport os.path\n"
    source = imports + "def one(): return a\ndef two(): return e, os\ndef three(): ...\n"
    one, two, three = split_python(source, "m.py")
    assert one.page_content.startswith("import b, a\n\n\ndef one")
    assert two.page_content.startswith("from c import d as e\nimport os.path\n\n\ndef two")
    assert three.page_content.startswith("def three")
