"""Loaders and splitters: from folders, files and source text to code snippets."""

from __future__ import annotations

import ast
import hashlib
import json
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from markdown_it import MarkdownIt
from markdown_it.token import Token

from code_chains.analysis.parsing import names_in, parse
from code_chains.errors import InputError
from code_chains.retrieval.prose import PROSE, Section, decode, markdown_of_html, markdown_of_rst, paragraphs
from code_chains.storage.foreign import open_file, parse_json

_ALL = "*"
MAX_IMPORTS = 200
"""Imports of a module that are considered for its functions."""
_log = logging.getLogger(__name__)

MAX_FILE_BYTES = 1_000_000
"""Larger files are data, not examples."""
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
"""Languages that LangChain's splitter supports, by file suffix."""
CHUNK_CHARS = 1500
"""Maximum length of a snippet in languages that are split by length."""
_COMMENT = re.compile(r"(?m)(?:^|\s)(?:#|//|--|;)[ \t]*([^\n]{3,200})")
_WORD = re.compile(r"[^\W\d_]\w{2,40}")
_MAX_WORDS = 40
"""Words of source without a docstring that are embedded."""
MAX_QUESTIONS, MAX_QUESTIONS_CHARS = 20, 4000
"""Questions that a docstring may have; a longer paragraph is a description."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_PYTHON_ALIASES = {"py", "py3", "python3", "ipython", "ipython3"}


def read_folder(folder: str | Path) -> list[Document]:
    """Read the snippets of all files under a folder, sorted by path.

    Python is split by function and class, documentation (Markdown, reStructuredText, HTML, text) by code block and
    section, notebooks by cell, other languages where their structure allows. Skipped are hidden and generated folders,
    binary files, and files larger than 1 MB: `unread_files` lists them. Symbolic links inside the folder are not
    followed, since they may lead to files that nobody meant to share; the folder itself may be a link. Unreadable files
    are skipped with a warning in the log.

    Raises:
        InputError: The folder does not exist, or holds no code.
    """
    root = Path(folder).expanduser()
    if root.is_file():
        raise InputError(f"{str(folder)!r} is a file. Pass the folder that it is in.")
    if not root.is_dir():
        raise InputError(f"The folder {str(folder)!r} does not exist. Relative paths start at {Path.cwd()}.")
    root = root.resolve()
    snippets = [snippet for path in sorted(_files(root)) for snippet in _read_or_skip(path, root)]
    if not snippets:
        raise InputError(
            f"The folder {str(folder)!r} holds no code or documentation: no Python, Markdown, notebook or other source."
        )
    return snippets


def read_file(path: str | Path, *, root: str | Path | None = None) -> list[Document]:
    """Read the snippets of one file; a file that is not source code has none.

    Args:
        path: The file.
        root: The folder to which the snippets' `source` is relative, and below which no symbolic link is
            followed. None uses the path as it is, and follows links.

    Raises:
        InputError: The file cannot be read.
    """
    path = Path(path).expanduser()
    below = Path(root).expanduser() if root else None
    name = path.relative_to(below).as_posix() if below else path.as_posix()
    split = _splitter(path.suffix.lower())
    if split is None:
        return []
    try:
        data = _content(path, below)
    except OSError as error:
        raise InputError(f"The file {str(path)!r} cannot be read: {error}.") from error
    text = decode(data, path.suffix.lower()) if len(data) <= MAX_FILE_BYTES else None
    return [] if text is None else split(text, name)


def _content(path: Path, below: Path | None) -> bytes:
    """Return the content of a file; of a larger one than is read, one byte too many."""
    with open_file(path, below=below) as file:
        return file.read(MAX_FILE_BYTES + 1) or b""


def unread_files(folder: str | Path) -> dict[str, str]:
    """Return the files under a folder that `read_folder` leaves out, with the reason; not those of hidden folders."""
    root = Path(folder).expanduser().resolve()
    paths = sorted(_files(root))
    return {path.relative_to(root).as_posix(): why for path in paths if (why := _why_unread(path, root))}


def _why_unread(path: Path, root: Path) -> str:
    """Return why a file is left out; empty if it is read."""
    if _splitter(path.suffix.lower()) is None:
        return f"{path.suffix} is not indexed" if path.suffix else "it has no ending"
    try:
        data = _content(path, root)
    except OSError as error:
        return error.strerror or "it cannot be read"
    if len(data) > MAX_FILE_BYTES:
        return f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB"
    return "it is binary" if decode(data, path.suffix.lower()) is None else ""


def split_python(source: str, name: str) -> list[Document]:
    """Split Python source: a script is one snippet; a module of definitions is one for each function and class.

    The docstring becomes `about`. If all lines of its last paragraph are questions, these are `questions` that the code
    answers: they are searched as well, and left out of the code. A function or class is preceded by the imports that it
    uses.
    """
    tree = parse(source)
    if tree is None:
        return split_text(source, name, "python")
    definitions = [node for node in tree.body if isinstance(node, _Definition)]
    if len(definitions) < 2 or any(isinstance(node, ast.Expr) and not _is_text(node) for node in tree.body):
        return [_module(source, name, tree, definitions)] if source.strip() else []
    # splitlines() would cut at form feeds, too, which Python does not.
    lines = re.split(r"\r\n|\r|\n", source)
    imports, about = _imports(tree), ast.get_docstring(tree) or ""
    return _numbered([_definition(node, lines, imports, about, name) for node in definitions])


def _module(source: str, name: str, tree: ast.Module, definitions: Sequence[_Definition]) -> Document:
    """Return a module as one snippet; without a docstring of its own, the names and words in it tell what it shows."""
    title, about = words(Path(name).stem), ast.get_docstring(tree) or ""
    if not about:
        title = " ".join(dict.fromkeys([title, *(words(node.name) for node in definitions)]))
        about = next(filter(None, map(ast.get_docstring, definitions)), "") or _words_of_text(source)
    return _snippet(source, name, title=title, about=about)


def _words_of_text(text: str) -> str:
    """Return the first words of source, those of its comments before those of its code."""
    comments = " ".join(_COMMENT.findall(text))
    found = dict.fromkeys(map(words, _WORD.findall(f"{comments} {text}")))
    return " ".join(islice(found, _MAX_WORDS))


def split_markdown(text: str, name: str) -> list[Document]:
    """Split Markdown into its code blocks and its prose.

    The headings and the paragraph before a block become its `about`. A section that says more is a snippet of its own.
    """
    section, paragraph = Section(), ""
    sections, snippets = [section], []
    # Inline markup is not parsed: hostile brackets take quadratic time.
    tokens = MarkdownIt("commonmark").disable("inline").parse(text)
    for token, inline in pairwise([*tokens, Token("", "", 0)]):
        line = token.map[0] + 1 if token.map else 1
        if token.type == "heading_open":
            section = Section([*section.headings[: int(token.tag[1]) - 1], inline.content], line)
            sections.append(section)
            paragraph = ""
        elif token.type == "paragraph_open":
            paragraph = inline.content
            section.paragraphs.append(paragraph)
        elif token.type in ("fence", "code_block") and token.content.strip():
            language = _language(token.info)
            about = ". ".join(filter(None, [*section.headings[-2:], paragraph]))
            section.has_code, section.told = True, section.told + len(paragraph)
            snippets.append(
                _snippet(token.content, name, about=about, language=language, line=line, part=f"L{line}")
            )
    return _numbered([*snippets, *_prose(sections, name)])


def split_prose(text: str, name: str) -> list[Document]:
    """Split a text without markup between its paragraphs."""
    return _numbered(list(_prose([Section([words(Path(name).stem)], 1, list(paragraphs(text)))], name)))


def _prose(sections: Sequence[Section], name: str) -> Iterator[Document]:
    for section in sections:
        for part in section.parts() if section.is_snippet else ():
            about = ". ".join(section.headings[-2:]) or words(Path(name).stem)
            metadata = {
                "source": name,
                "about": about,
                "language": "text",
                "line": section.line,
                "kind": PROSE,
            }
            yield Document(page_content=part, metadata=metadata, id=f"{name}#L{section.line}-text")


def split_notebook(text: str, name: str) -> list[Document]:
    """Split a notebook into its code cells; the Markdown cell before a code cell becomes its `about`.

    Raises:
        InputError: It is not a valid notebook.
    """
    try:
        notebook = parse_json(text)
        cells, language = notebook["cells"], _kernel_language(notebook)
        about, snippets = "", []
        for number, cell in enumerate(cells, 1):
            source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                about = re.sub(r"^#+\s*", "", source, flags=re.MULTILINE).strip()
            elif cell["cell_type"] == "code" and source.strip():
                part = f"cell{number}"
                snippets.append(
                    _snippet(source, name, about=about, language=language, line=number, part=part)
                )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"The file {name!r} is not a valid notebook ({error!r}). Save it again, or leave it out."
        ) from error
    return snippets


def _kernel_language(notebook: Mapping[str, Any]) -> str:
    metadata = notebook.get("metadata") or {}
    named = (metadata.get("language_info") or {}).get("name") or (metadata.get("kernelspec") or {}).get(
        "language"
    )
    return _language(str(named or "python"))


def split_text(text: str, name: str, language: str) -> list[Document]:
    """Split source in another language where LangChain's splitter recognizes functions and classes."""
    from langchain_text_splitters import Language, RecursiveCharacterTextSplitter

    options: Mapping[str, Any] = {"chunk_size": CHUNK_CHARS, "chunk_overlap": 0, "add_start_index": True}
    splitter = RecursiveCharacterTextSplitter.from_language(Language(language), **options)
    title, snippets = words(Path(name).stem), []
    for piece in splitter.create_documents([text]):
        code, about = piece.page_content, _words_of_text(piece.page_content)
        line = text.count("\n", 0, piece.metadata["start_index"]) + 1
        snippet = _snippet(
            code, name, title=title, about=about, language=language, line=line, part=f"L{line}"
        )
        snippets.append(snippet)
    return _numbered(snippets)


def digest(document: Document) -> str:
    """Return a checksum of a snippet's text and metadata."""
    content = json.dumps([document.page_content, document.metadata], sort_keys=True, default=str)
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()


def _files(root: Path) -> Iterator[Path]:
    def log_error(error: OSError) -> None:
        _log.warning("The folder %r is skipped: %s.", error.filename, error)

    for parent, folders, names in os.walk(root, onerror=log_error):
        folders[:] = filter(_is_wanted, folders)
        for name in folders:
            if Path(parent, name).is_symlink():
                _log.warning("The folder %r is skipped: it is a symbolic link.", str(Path(parent, name)))
        yield from (Path(parent, name) for name in filter(_is_wanted, names))


def _is_wanted(name: str) -> bool:
    return not name.startswith(".") and name not in _SKIPPED


def _read_or_skip(path: Path, root: Path) -> list[Document]:
    """Read the snippets of a file; log a warning if it cannot be read."""
    try:
        return read_file(path, root=root)
    except InputError as error:
        _log.warning("A file is skipped. %s", error)
        return []


def _numbered(snippets: list[Document]) -> list[Document]:
    """Make ids unique: the second occurrence of an id gets the suffix `~2`."""
    seen = Counter[str]()
    for snippet in snippets:
        seen[str(snippet.id)] += 1
        if seen[str(snippet.id)] > 1:
            snippet.id = f"{snippet.id}~{seen[str(snippet.id)]}"
    return snippets


def _language(info: str) -> str:
    """Return the language in the info string of a fence: `{python}`, `Python` and `py` are "python"."""
    match = re.match(r"[\s{.]*([\w+#-]+)", info)
    language = match[1].lower() if match else "text"
    return "python" if language in _PYTHON_ALIASES else language


def _splitter(suffix: str) -> Callable[[str, str], list[Document]] | None:
    if suffix in _LANGUAGES:
        return lambda text, name: split_text(text, name, _LANGUAGES[suffix])
    return {
        ".py": split_python,
        ".pyi": split_python,
        **dict.fromkeys((".md", ".markdown", ".mdx", ".qmd"), split_markdown),
        **dict.fromkeys((".html", ".htm"), lambda text, name: split_markdown(markdown_of_html(text), name)),
        ".rst": lambda text, name: split_markdown(markdown_of_rst(text), name),
        ".txt": split_prose,
        ".ipynb": split_notebook,
        ".sql": _split_sql,
    }.get(suffix)


def _split_sql(text: str, name: str) -> list[Document]:
    title = words(Path(name).stem)
    return [_snippet(text, name, title=title, about=_words_of_text(text), language="sql")]


def _definition(
    node: _Definition,
    lines: list[str],
    imports: Mapping[str, list[str]],
    about: str,
    name: str,
) -> Document:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    code = "\n".join(lines[first - 1 : node.end_lineno])
    needed = {text for used_name in names_in(node) for text in imports.get(used_name, ())}
    above = [text for text in imports[_ALL] if text in needed]
    whole = "\n\n\n".join(filter(None, ["\n".join(above), code]))
    about = ast.get_docstring(node) or about
    return _snippet(whole, name, title=words(node.name), about=about, line=first, part=node.name)


def _imports(tree: ast.Module) -> dict[str, list[str]]:
    """Return the imports of a module: under each name those that bind it, and under `_ALL` all in their order."""
    imports: dict[str, list[str]] = {_ALL: []}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and len(imports[_ALL]) < MAX_IMPORTS:
            text = ast.unparse(node)
            imports[_ALL].append(text)
            for alias in node.names:
                imports.setdefault((alias.asname or alias.name).partition(".")[0], []).append(text)
    imports[_ALL] = list(dict.fromkeys(imports[_ALL]))
    return imports


def _is_text(node: ast.Expr) -> bool:
    return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _snippet(
    code: str,
    name: str,
    *,
    title: str = "",
    about: str = "",
    language: str = "python",
    line: int = 1,
    part: str = "",
) -> Document:
    about, questions = _split_questions(about)
    subject = ". ".join(filter(None, [title, " ".join(about.split())]))
    metadata = {"source": name, "about": subject, "language": language, "line": line}
    if questions:
        metadata["questions"] = questions
        code = _without_questions(code, questions)
    return Document(
        page_content=code.strip("\n") + "\n", metadata=metadata, id=f"{name}#{part}" if part else name
    )


def _split_questions(about: str) -> tuple[str, list[str]]:
    """Split a description from its last paragraph, if all lines of that are questions."""
    first, _, last = about.rstrip().rpartition("\n\n")
    questions = list(map(str.strip, last.splitlines()))
    is_short = len(questions) <= MAX_QUESTIONS and len(last) <= MAX_QUESTIONS_CHARS
    if first.strip() and is_short and all(question.endswith(("?", "？")) for question in questions):
        return first, questions
    return about, []


def _without_questions(code: str, questions: list[str]) -> str:
    """Return code without the questions at the end of its docstring."""
    lines = r"\s*".join(map(re.escape, questions))
    return re.sub(rf"\s*{lines}\s*(?=[\"']{{3}})", "", code, count=1)


def words(name: str) -> str:
    """Split a name into words: `readCsv_file` is "read csv file"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.]+", " ", name).strip().lower()
