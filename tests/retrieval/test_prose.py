"""Documentation is indexed as what it is: sections with their headings, and the code in them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from langchain_core.documents import Document

from code_chains import SnippetStore
from code_chains.apps.terminal.cli import cli
from code_chains.chains import RetrieveChain
from code_chains.retrieval.loaders import read_file, read_folder, unread_files

REFUNDS = (
    "Refunds are paid within 14 days. Orders above 500 euros need the approval of a manager before that."
)
CODE = "refund(order, days=14)"
FILES = {
    "guide.md": f"# Shop\n\n## Refunds\n\n{REFUNDS}\n\n## Code\n\nCall it:\n\n```python\n{CODE}\n```\n",
    "guide.rst": f"Shop\n====\n\nRefunds\n-------\n\n{REFUNDS}\n\nCode\n----\n\nCall it::\n\n    {CODE}\n",
    "over.rst": f"====\nShop\n====\n\nRefunds\n-------\n\n{REFUNDS}\n\nCode\n----\n\n"
    f".. code-block:: python\n   :linenos:\n\n   {CODE}\n",
    "guide.html": f"<title>x</title><nav>Home</nav><h1>Shop</h1><h2>Refunds</h2><p>{REFUNDS}</p><h2>Code</h2><p>Call it:"
    f'<pre><code class="language-python">{CODE}</code></pre><script>evil()</script>',
}


@pytest.mark.parametrize("name", FILES)
def test_sections_and_code_are_snippets_with_their_headings(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FILES[name])
    code, prose = sorted(read_file(tmp_path / name), key=lambda one: "kind" in one.metadata)
    assert (code.page_content.strip(), code.metadata["language"]) == (CODE, "python")
    assert code.metadata["about"].startswith("Shop. Code")
    assert (prose.metadata["about"], prose.metadata["kind"]) == ("Shop. Refunds", "text")
    assert prose.page_content == f"Shop > Refunds\n\n{REFUNDS}"


def test_a_long_section_is_cut_between_paragraphs(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("\n\n".join(f"Paragraph {n}. {'word ' * 120}" for n in range(6)))
    parts = read_file(tmp_path / "long.txt")
    assert len(parts) == 3
    assert len({part.id for part in parts}) == 3
    assert [part.page_content.count("Paragraph") for part in parts] == [2, 2, 2]


def test_a_paragraph_that_only_introduces_code_is_no_snippet_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"# Code\n\nCall it:\n\n```python\n{CODE}\n```\n")
    assert len(read_file(tmp_path / "a.md")) == 1


ENCODED = {
    "umlaut.txt": (
        "Die Rückgabe dauert vierzehn Tage, für Großhändler länger als üblich.".encode("cp1252"),
        "Großhändler",
    ),
    "wide.txt": ("Rückgabe".encode("utf-16"), "Rückgabe"),
    "cookie.py": ("# coding: latin-1\ndef größe(): 'Länge.'\n".encode("latin-1"), "größe"),
    "bom.md": (b"\xef\xbb\xbf# Title\n\nText.", "Title"),
}


@pytest.mark.parametrize(("name", "content"), ENCODED.items())
def test_other_encodings_are_read(tmp_path: Path, name: str, content: tuple[bytes, str]) -> None:
    (tmp_path / name).write_bytes(content[0])
    assert content[1] in "".join(one.page_content for one in read_file(tmp_path / name))


def test_a_stub_is_python_and_a_notebook_has_its_language(tmp_path: Path) -> None:
    (tmp_path / "a.pyi").write_text("def f(x: int) -> str: ...\ndef g() -> None: ...\n")
    cells = [{"cell_type": "code", "source": "summary(x)"}]
    (tmp_path / "b.ipynb").write_text(
        json.dumps({"cells": cells, "metadata": {"language_info": {"name": "R"}}})
    )
    assert [one.metadata["language"] for one in read_folder(tmp_path)] == ["python", "python", "r"]


def test_what_is_not_read_is_listed_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)")
    (tmp_path / "b.pdf").write_bytes(b"%PDF")
    (tmp_path / "c.md").write_bytes(b"a\0b")
    (tmp_path / "d.txt").write_text("x" * 1_000_001)
    (tmp_path / "e").write_text("x")
    assert unread_files(tmp_path) == {
        "b.pdf": ".pdf is not indexed",
        "c.md": "it is binary",
        "d.txt": "it is larger than 1 MB",
        "e": "it has no ending",
    }
    done = CliRunner().invoke(cli, ["index", str(tmp_path), "--into", str(tmp_path / "index")])
    assert "Not read: b.pdf: .pdf is not indexed" in done.output


def test_prose_is_found_by_what_it_says_and_shown_as_help(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text(FILES["guide.md"] + "\n## Delivery\n\nParcels leave on Tuesdays.\n")
    result = RetrieveChain(SnippetStore.from_folder(tmp_path)).invoke({"query": "When are refunds paid?"})
    assert "approval of a manager" in result["context"]
    assert "This may help:" in result["context"]
    assert result["sources"][0].about == "Shop. Refunds"


@pytest.mark.parametrize(
    "text", ["", "#", "```", "<pre", "<" * 5000, "::\n\n  x", "====\n", "a\n---", "\x0c", "<h1>" * 500]
)
@pytest.mark.parametrize("suffix", ["md", "rst", "html", "txt"])
def test_any_text_is_read(tmp_path: Path, text: str, suffix: str) -> None:
    (tmp_path / f"a.{suffix}").write_text(text)
    assert all(isinstance(one, Document) for one in read_file(tmp_path / f"a.{suffix}"))


@pytest.mark.parametrize("piece", ['<a b="', "<a<a ", "<!--", "<!", "<?", "<a b='>", "&lt", "<![a b"])
def test_a_page_of_tags_that_do_not_end_is_read_once(tmp_path: Path, piece: str) -> None:
    (tmp_path / "a.html").write_text("<h1>Good</h1><p>Some words.</p>" + piece * (60_000 // len(piece)))
    (tmp_path / "b.html").write_text("<h1>Other</h1><p>Other words.</p>")
    start = time.process_time()
    read = [reference.page_content for reference in read_folder(tmp_path)]
    assert any("Some words." in text for text in read)
    assert any("Other words." in text for text in read)
    assert time.process_time() - start < 2
