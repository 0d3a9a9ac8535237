"""From folders, files and source to snippets: pieces of code that can be found again."""

from __future__ import annotations

import ast
import hashlib
import json
import logging
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from markdown_it import MarkdownIt
from markdown_it.token import Token

from code_chains.errors import InputError
from code_chains.parsing import parse

__all__ = ["digest", "read_file", "read_folder", "split_markdown", "split_notebook", "split_python", "split_text"]

_log = logging.getLogger(__name__)

_LARGEST = 1_000_000
"""Bytes of a file; larger ones are data, not examples."""
_SKIPPED = {"__pycache__", "node_modules", "venv", "site-packages", "build", "dist"}
_LANGUAGES = {
    suffix: language
    for language, suffixes in {
        "js": ".js .jsx",
        "ts": ".ts .tsx",
        "c": ".c .h",
        "cpp": ".cpp .cc .hpp",
        "csharp": ".cs",
        "elixir": ".ex .exs",
        "go": ".go",
        "haskell": ".hs",
        "java": ".java",
        "kotlin": ".kt",
        "lua": ".lua",
        "perl": ".pl",
        "php": ".php",
        "powershell": ".ps1",
        "ruby": ".rb",
        "rust": ".rs",
        "scala": ".scala",
        "swift": ".swift",
    }.items()
    for suffix in suffixes.split()
}
"""Languages that LangChain's splitter knows, by the ends of names."""
_PIECE = 1500
"""Characters of a piece where a text has to be cut."""
_PYTHONS = {"py", "py3", "python3", "ipython", "ipython3"}


def read_folder(folder: str | Path) -> list[Document]:
    """The snippets of all files under a folder, in the order of their names.

    Python is split by function and class, Markdown and notebooks by code block and cell, other languages where their
    structure allows. Hidden and generated folders are left out, and so are files that are no text or larger than 1 MB. What
    cannot be read is left out with a warning in the log.

    Raises:
        InputError: There is no such folder, or nothing in it.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise InputError(f"The folder {str(folder)!r} does not exist. Folders are looked for from {Path.cwd()}.")
    found = [snippet for path in sorted(_files(root)) for snippet in _readable(path, root)]
    if not found:
        raise InputError(f"The folder {str(folder)!r} holds no code: no Python, Markdown, notebook or other source.")
    return found


def read_file(path: str | Path, *, root: str | Path | None = None) -> list[Document]:
    """The snippets of one file; none where it is no source or no text.

    Args:
        path: The file.
        root: The folder that names are told from; None for the name as it is given.

    Raises:
        InputError: It cannot be read.
    """
    path = Path(path).expanduser()
    name = path.relative_to(root).as_posix() if root else path.as_posix()
    split = _splitter(path.suffix.lower())
    if split is None:
        return []
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is no regular file")
        data = path.read_bytes() if found.st_size <= _LARGEST else b"\0"
    except OSError as error:
        raise InputError(f"The file {str(path)!r} cannot be read: {error}.") from error
    try:
        return [] if b"\0" in data else split(data.decode("utf-8-sig"), name)
    except UnicodeDecodeError:
        return []


def split_python(source: str, name: str) -> list[Document]:
    """A script as one snippet; a module, which only defines things, as one snippet for each function and class.

    What a piece is about is its docstring. A function of a module comes with the module's imports that it uses.
    """
    tree = parse(source)
    if tree is None:
        return split_text(source, name, "python")
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    if len(defined) < 2 or any(isinstance(node, ast.Expr) and not _is_text(node) for node in tree.body):
        about = ast.get_docstring(tree) or next(filter(None, map(ast.get_docstring, defined)), "")
        return [_snippet(source, name, title=_words(Path(name).stem), about=about)] if source.strip() else []
    return _numbered([_definition(node, tree, source, name) for node in defined])


def split_markdown(text: str, name: str) -> list[Document]:
    """Each fenced or indented block of code, with the heading and the paragraph before it as what it is about."""
    headings: list[str] = []
    paragraph, found = "", []
    tokens = MarkdownIt("commonmark").parse(text)
    for token, inline in pairwise([*tokens, Token("", "", 0)]):
        if token.type == "heading_open":
            headings, paragraph = [*headings[: int(token.tag[1]) - 1], inline.content], ""
        elif token.type == "paragraph_open":
            paragraph = inline.content
        elif token.type in ("fence", "code_block") and token.content.strip():
            language = _language(token.info)
            line = token.map[0] + 1 if token.map else 1
            about = ". ".join(filter(None, [*headings[-2:], paragraph]))
            found.append(_snippet(token.content, name, about=about, language=language, line=line, part=f"L{line}"))
    return found


def split_notebook(text: str, name: str) -> list[Document]:
    """Each code cell of a notebook, with the Markdown cell before it as what it is about."""
    try:
        cells = json.loads(text)["cells"]
        told, found = "", []
        for number, cell in enumerate(cells, 1):
            source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                told = re.sub(r"^#+\s*", "", source, flags=re.MULTILINE).strip()
            elif cell["cell_type"] == "code" and source.strip():
                found.append(_snippet(source, name, about=told, line=number, part=f"cell{number}"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"The file {name!r} is no notebook that can be read ({error!r}). Save it again, or leave it out."
        ) from error
    return found


def split_text(text: str, name: str, language: str) -> list[Document]:
    """Source of another language, cut where LangChain's splitter sees its functions and classes end."""
    from langchain_text_splitters import Language, RecursiveCharacterTextSplitter

    options: Mapping[str, Any] = {"chunk_size": _PIECE, "chunk_overlap": 0, "add_start_index": True}
    splitter = RecursiveCharacterTextSplitter.from_language(Language(language), **options)
    pieces = splitter.create_documents([text])
    lines = [text.count("\n", 0, piece.metadata["start_index"]) + 1 for piece in pieces]
    snippets = [
        _snippet(piece.page_content, name, title=_words(Path(name).stem), language=language, line=line, part=f"L{line}")
        for piece, line in zip(pieces, lines, strict=True)
    ]
    return _numbered(snippets)


def digest(document: Document) -> str:
    """What tells one snippet's content from another's."""
    content = json.dumps([document.page_content, document.metadata], sort_keys=True, default=str)
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()


def _files(root: Path) -> Iterator[Path]:
    def left_out(error: OSError) -> None:
        _log.warning("The folder %r is left out: %s.", error.filename, error)

    for place, folders, names in os.walk(root, onerror=left_out):
        folders[:] = filter(_is_wanted, folders)
        yield from (Path(place, name) for name in filter(_is_wanted, names))


def _is_wanted(name: str) -> bool:
    return not name.startswith(".") and name not in _SKIPPED


def _readable(path: Path, root: Path) -> list[Document]:
    """The snippets of one file of a folder; none, and a line in the log, where it cannot be read."""
    try:
        return read_file(path, root=root)
    except InputError as error:
        _log.warning("A file is left out. %s", error)
        return []


def _numbered(snippets: list[Document]) -> list[Document]:
    """The same with ids of their own: the second of one id ends in `~2`."""
    seen = Counter[str]()
    for snippet in snippets:
        seen[str(snippet.id)] += 1
        if seen[str(snippet.id)] > 1:
            snippet.id = f"{snippet.id}~{seen[str(snippet.id)]}"
    return snippets


def _language(info: str) -> str:
    """The language that a fence names: `{python}`, `Python` and `py` are "python"."""
    named = re.match(r"[\s{.]*([\w+#-]+)", info)
    language = named[1].lower() if named else "text"
    return "python" if language in _PYTHONS else language


def _splitter(suffix: str) -> Callable[[str, str], list[Document]] | None:
    if suffix in _LANGUAGES:
        return lambda text, name: split_text(text, name, _LANGUAGES[suffix])
    return {
        ".py": split_python,
        ".md": split_markdown,
        ".markdown": split_markdown,
        ".ipynb": split_notebook,
        ".sql": lambda text, name: [_snippet(text, name, title=_words(Path(name).stem), language="sql")],
    }.get(suffix)


def _definition(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, tree: ast.Module, source: str, name: str
) -> Document:
    lines = re.split(r"\r\n|\r|\n", source)  # splitlines() would cut at form feeds, too, which Python does not.
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    code = "\n".join(lines[first - 1 : node.end_lineno])
    used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    imports = [ast.unparse(one) for one in tree.body if _binds(one) & used]
    whole = "\n\n\n".join(filter(None, ["\n".join(imports), code]))
    about = ast.get_docstring(node) or ast.get_docstring(tree) or ""
    return _snippet(whole, name, title=_words(node.name), about=about, line=first, part=node.name)


def _binds(node: ast.stmt) -> set[str]:
    """The names that an import makes."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return set()
    return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}


def _is_text(node: ast.Expr) -> bool:
    return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _snippet(
    code: str, name: str, *, title: str = "", about: str = "", language: str = "python", line: int = 1, part: str = ""
) -> Document:
    told = ". ".join(filter(None, [title, " ".join(about.split())]))
    metadata = {"source": name, "about": told, "language": language, "line": line}
    return Document(page_content=code.strip("\n") + "\n", metadata=metadata, id=f"{name}#{part}" if part else name)


def _words(name: str) -> str:
    """A name as words: `readCsv_file` is "read csv file"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.]+", " ", name).strip().lower()
