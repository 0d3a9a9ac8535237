"""A session's turns as something to keep: a notebook, a script, or a text.

What is made of them runs by itself: variables that came with a question become assignments, failed turns are told and not
run. Names of what programs made are names from strangers; nothing is written outside the folder that was chosen.
"""

from __future__ import annotations

import ast
import base64
import filecmp
import os
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from math import isfinite
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import nbformat
from markdown_it import MarkdownIt
from pydantic import JsonValue

from code_chains.calls import words
from code_chains.errors import InputError
from code_chains.files import keep
from code_chains.inputs import check_name, check_variables, fenced
from code_chains.parsing import parse
from code_chains.state import Artifact, Turn

__all__ = ["export", "numbered", "plain_name", "safe_name", "to_markdown", "to_notebook", "to_script"]

_IMAGES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/svg+xml": ".svg",
}
_HEADING = 100
_KERNEL = {
    "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
}
_SURE = words(
    "abs all any bool bytes complex dict divmod enumerate float format frozenset hash hex int isinstance len list map ord"
    " pow range repr reversed round set sorted str sum tuple type zip"
)
"""Functions of Python that never return None."""
_SILENT = words("print show display append extend savefig close")
"""Last names of functions and methods whose None nobody wants to see."""


def export(turns: Sequence[Turn], path: str | os.PathLike[str]) -> list[Path]:
    """Write the turns of a session to a file, and beside it what that needs.

    The input files that the programs read are written beside it, as far as they are still there; for Markdown also the
    images. What is at `path` is replaced, as a whole or not at all; no other file is ever changed.

    Args:
        turns: The turns, e.g. `memory.turns(session_id)`.
        path: Ends with `.ipynb` for a notebook, `.py` for a script or `.md` for Markdown.

    Returns:
        The files that were written, this one first.

    Raises:
        InputError: There are no turns, the ending is another, the folder is missing or cannot be written to, or another
            file has the name of an input file.
    """
    target = Path(path)
    if not turns:
        raise InputError("There is nothing to export yet. Ask something first.")
    _check_target(target)
    files = _files_beside(turns, target)
    images = _Images(target.parent, reserved=set(files) | {target.name})
    content = _content(turns, target, images)
    beside: dict[str, Path | bytes] = {**files, **images.written}
    try:
        keep(target, content)
        written = [target]
        for name, source in beside.items():
            if not _is_there(target.parent / name, source):
                (target.parent / name).parent.mkdir(parents=True, exist_ok=True)
                keep(target.parent / name, source)
                written.append(target.parent / name)
    except OSError as error:
        raise InputError(f"{str(target)!r} cannot be written: {error}.") from error
    return written


def _check_target(target: Path) -> None:
    if target.suffix not in (".ipynb", ".py", ".md"):
        raise InputError(f"{str(target)!r} ends with none of .ipynb (a notebook), .py (a script) and .md (Markdown).")
    if not target.parent.is_dir():
        raise InputError(f"The folder {str(target.parent)!r} does not exist.")
    if target.is_dir():
        raise InputError(f"{str(target)!r} is a folder.")


def _content(turns: Sequence[Turn], target: Path, images: _Images) -> bytes:
    if target.suffix == ".ipynb":
        text = str(nbformat.writes(to_notebook(turns, title=target.stem))) + "\n"  # type: ignore[no-untyped-call]
    elif target.suffix == ".py":
        text = to_script(turns)
    else:
        text = _markdown(turns, images.name)
    return text.encode()


# -- a notebook --------------------------------------------------------------------------------------------------------


def to_notebook(turns: Sequence[Turn], *, title: str = "A conversation with code") -> nbformat.NotebookNode:
    """A notebook of the turns: each question as a heading, its program with what it showed, and the answer.

    Args:
        turns: The turns of a session.
        title: What stands above them.

    Raises:
        InputError: A variable of a turn has a name that is none.
    """
    cells = [_cell("markdown", "title", f"# {' '.join(_text(title).split())}")]
    for number, (turn, images) in enumerate(_with_images(turns), 1):
        cells += _cells(f"turn-{number}", turn, images)
    whole = {"nbformat": 4, "nbformat_minor": 5, "metadata": _KERNEL, "cells": cells}
    notebook: nbformat.NotebookNode = nbformat.from_dict(whole)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    return notebook


def _cells(name: str, turn: Turn, images: Sequence[Artifact]) -> Iterator[dict[str, Any]]:
    yield _cell("markdown", f"{name}-question", _asked(turn.query))
    if _runs(turn):
        stream = {"output_type": "stream", "name": "stdout", "text": f"{_text(turn.output)}\n"}
        outputs = [*([stream] if turn.output else []), *map(_display, images)]
        yield {**_cell("code", f"{name}-program", _program(turn)), "execution_count": None, "outputs": outputs}
    if turn.answer.strip():
        yield _cell("markdown", f"{name}-answer", _text(turn.answer))


def _cell(kind: str, name: str, source: str) -> dict[str, Any]:
    return {"cell_type": kind, "id": name, "metadata": {}, "source": source}


def _display(image: Artifact) -> dict[str, Any]:
    vector = image.media_type == "image/svg+xml"
    data = image.data.decode("utf-8", "replace") if vector else base64.b64encode(image.data).decode()
    return {"output_type": "display_data", "metadata": {}, "data": {image.media_type: data}}


# -- a script ----------------------------------------------------------------------------------------------------------


def to_script(turns: Sequence[Turn]) -> str:
    """One script of the turns, each question as a comment; run, it prints what the session showed.

    What a notebook shows of a last expression, a script prints. A program that only a notebook can run, such as one that
    awaits something outside of a function, is a comment too.

    Args:
        turns: The turns of a session.

    Raises:
        InputError: A variable of a turn has a name that is none.
    """
    parts, futures = [], set[str]()
    for turn in turns:
        said = turn.query if _runs(turn) or not turn.answer else f"{turn.query}\n\n{turn.answer}"
        parts.append(_comment(said))
        if _runs(turn):
            program, wanted = _without_futures(_showing(_program(turn), turn.output))
            futures |= wanted
            parts[-1] += program if _compiles(program) else _comment(program)
    # The first line also keeps a question from saying how the file is encoded.
    first = f"from __future__ import {', '.join(sorted(futures))}\n\n" if futures else ""
    return "\n".join([f"# -*- coding: utf-8 -*-\n{first}", *parts])


def _comment(text: str) -> str:
    lines = re.split(r"\r\n|\r|\n", _text(text).replace("\0", "\N{REPLACEMENT CHARACTER}").strip())
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _compiles(program: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(program, "<export>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _showing(program: str, output: str) -> str:
    """A program that prints the value of its last expression, if it showed one."""
    tree = parse(program)
    last = tree.body[-1] if tree and tree.body else None
    if not isinstance(last, ast.Expr) or not output.strip() or _called(last.value) in _SILENT:
        return program
    value = _segment(program, last)
    value = f"({value})" if isinstance(last.value, ast.Tuple) else value
    # Numbers, lists and the like look the same either way.
    shown = "print({})" if _is_literal(output.strip().splitlines()[-1]) else "print(repr({}))"
    if _may_be_none(last.value):
        line = "\n" if _before(program, last).strip() else ""  # It cannot follow a semicolon.
        return _replaced(program, last, f"{line}if (_ := {value}) is not None:\n    {shown.format('_')}")
    return _replaced(program, last, shown.format(value))


def _may_be_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and not (isinstance(value.func, ast.Name) and value.func.id in _SURE)


def _called(value: ast.expr) -> str:
    """What is called, by its last name; empty for what is no call."""
    function = value.func if isinstance(value, ast.Call) else None
    return getattr(function, "id", "") or getattr(function, "attr", "")


def _is_literal(text: str) -> bool:
    try:
        return not isinstance(ast.literal_eval(text), str | bytes)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def _without_futures(program: str) -> tuple[str, set[str]]:
    """A program without its imports from `__future__`, which belong at the beginning of a file, and their names."""
    tree, names = parse(program), set[str]()
    for node in reversed(tree.body if tree else []):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            program = _replaced(program, node, "pass")
            names |= {alias.name for alias in node.names}
    return program, names


def _span(program: str, node: ast.stmt) -> tuple[bytes, int, int]:
    """A program as bytes, in which columns are counted, and where a statement begins and ends there."""
    lines = program.encode().splitlines(keepends=True)
    starts = list(accumulate(map(len, lines), initial=0))
    end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
    return program.encode(), starts[node.lineno - 1] + node.col_offset, end


def _segment(program: str, node: ast.stmt) -> str:
    whole, start, end = _span(program, node)
    return whole[start:end].decode()


def _before(program: str, node: ast.stmt) -> str:
    """What stands before a statement on its line."""
    whole, start, _ = _span(program, node)
    return whole[:start].rpartition(b"\n")[2].decode()


def _replaced(program: str, node: ast.stmt, new: str) -> str:
    whole, start, end = _span(program, node)
    return f"{whole[:start].decode()}{new}{whole[end:].decode()}"


# -- Markdown ----------------------------------------------------------------------------------------------------------


def to_markdown(turns: Sequence[Turn]) -> str:
    """The turns as Markdown: question, program, output, images by the names that `export` gives their files, and answer.

    Nothing in one part can swallow the next, whatever it contains.

    Args:
        turns: The turns of a session.

    Raises:
        InputError: A variable of a turn has a name that is none, or an image the name of a file elsewhere.
    """
    return _markdown(turns, _Images().name)


def _markdown(turns: Sequence[Turn], name: Callable[[Artifact], str]) -> str:
    parts: list[str] = []
    for turn, images in _with_images(turns):
        parts.append(_asked(turn.query))
        if _runs(turn):
            parts.append(fenced(_program(turn), "python"))
            parts += [f"Output:\n\n{fenced(_text(turn.output))}"] if turn.output.strip() else []
            parts += [f"![{one}]({quote(one)})" for one in map(name, images)]
        if turn.answer.strip():
            parts.append(_contained(_text(turn.answer)))
    return "\n\n".join(parts) + "\n"


def _contained(text: str) -> str:
    """Markdown as it is, unless what comes after it would become a part of it."""
    last = MarkdownIt().parse(f"{text}\n\n# end\n")[-3:]
    ends = [token.type for token in last] == ["heading_open", "inline", "heading_close"] and last[0].level == 0
    return text if ends and last[1].content == "end" else fenced(text, "markdown")


# -- what all of them share --------------------------------------------------------------------------------------------


def _runs(turn: Turn) -> bool:
    return bool(turn.code.strip()) and turn.status != "failed"


def _program(turn: Turn) -> str:
    """The program of a turn, after assignments of the variables that it was given."""
    given = [f"{name} = {_literal(value)}\n" for name, value in check_variables(turn.variables).items()]
    return _text("".join([*given, *(["\n"] if given else []), turn.code.strip("\r\n"), "\n"]))


def _literal(value: JsonValue) -> str:
    """A JSON value as Python."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_literal(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value) if not isinstance(value, float) or isfinite(value) else f'float("{value}")'


def _text(text: str) -> str:
    """Text with one kind of line ends, and without half characters."""
    return re.sub(r"\r\n?", "\n", text.encode("utf-8", "replace").decode())


def _asked(query: str) -> str:
    """A question as a heading; a long one in full below it."""
    line = " ".join(_text(query).split()) or "?"
    if len(line) <= _HEADING and "\n" not in _text(query).strip():
        return f"## {line}"
    full = "\n".join(f"> {one}" for one in _text(query).strip().split("\n"))
    return f"## {textwrap.shorten(line, _HEADING, placeholder=' …')}\n\n{full}"


def _with_images(turns: Sequence[Turn]) -> Iterator[tuple[Turn, list[Artifact]]]:
    """Turns with their images. One that comes again unchanged is left out."""
    seen: set[bytes] = set()
    for turn in turns:
        images = [one for one in turn.artifacts if one.media_type in _IMAGES and one.data not in seen]
        seen |= {image.data for image in images}
        yield turn, images if _runs(turn) else []


# -- files -------------------------------------------------------------------------------------------------------------


def safe_name(name: str) -> str:
    """A name for a file that a program made, which stays in whatever folder it is put into, and is not hidden there.

    Raises:
        InputError: The name leads out of the folder.

    Example:
        >>> safe_name("plots/of 2024.png")
        'plots-of-2024.png'
        >>> safe_name("../plot.png")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        code_chains.errors.InputError: A file cannot be called '../plot.png': give a name relative to the working...
    """
    return plain_name(check_name(name))


def plain_name(text: str) -> str:
    """The name for a file or folder that any text makes: letters, digits, underscores, dots and dashes."""
    path = PurePosixPath(re.sub(r"[^\w.-]+", "-", text).strip(".-") or "file")
    return f"{_cut(path.stem, 150)}{_cut(path.suffix, 50)}"


def _cut(text: str, size: int) -> str:
    return text.encode()[:size].decode("utf-8", "ignore")


def numbered(name: str) -> Iterator[str]:
    """A name, and then others like it: `plot.png`, `plot-2.png`, `plot-3.png` and so on."""
    path = PurePosixPath(name)
    yield name
    yield from (f"{path.stem}-{number}{path.suffix}" for number in count(2))


@dataclass
class _Images:
    """Names for the files of images, each of which is nobody else's.

    Attributes:
        folder: Where they will be; other files there keep their names.
        reserved: Names that others will have there.
        written: The images by the names they got.
    """

    folder: Path | None = None
    reserved: set[str] = field(default_factory=set)
    written: dict[str, bytes] = field(default_factory=dict)

    def name(self, image: Artifact) -> str:
        """The name for an image; its ending says what it is, whatever its program called it."""
        wanted = PurePosixPath(safe_name(image.name)).stem + _IMAGES[image.media_type]
        name = next(name for name in numbered(wanted) if self._is_free(name, image.data))
        self.written[name] = image.data
        return name

    def _is_free(self, name: str, data: bytes) -> bool:
        place = self.folder / name if self.folder else None
        there = place is not None and os.path.lexists(place) and not _is_there(place, data)
        return name not in self.reserved and not there and self.written.get(name, data) == data


def _files_beside(turns: Sequence[Turn], target: Path) -> dict[str, Path]:
    """The input files that programs read and that are still there, by the names they had.

    Raises:
        InputError: Another file has such a name already, or it is the one that would be written.
    """
    files: dict[str, Path] = {}
    for name, path in [pair for turn in turns if _runs(turn) for pair in turn.files.items()]:
        name, source = check_name(name), Path(path)
        if not source.is_file():
            continue
        place = target.parent / name
        if place == target or (target.exists() and source.samefile(target)):
            raise InputError(f"{str(target)!r} is a file that a program read. Choose another name to export to.")
        other = files.setdefault(name, source)
        if not _is_there(other, source) or (os.path.lexists(place) and not _is_there(place, source)):
            raise InputError(f"{str(place)!r} must become a copy of {str(source)!r}, but is another file already.")
    return files


def _is_there(place: Path, content: Path | bytes) -> bool:
    """Whether a file holds this content, or is the same file."""
    if not place.is_file():
        return False
    if isinstance(content, bytes):
        return place.stat().st_size == len(content) and place.read_bytes() == content
    return place.samefile(content) or filecmp.cmp(place, content, shallow=False)
