"""Export of a session: a notebook, a script, or Markdown.

Exports are self-contained: variables of a question become assignments, and failed turns are included as text
only. Names of artifacts are untrusted; nothing is written outside the chosen folder.
"""

from __future__ import annotations

import base64
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import nbformat
from markdown_it import MarkdownIt

from code_chains.conversations.export_inputs import (
    Companions,
    has_content,
    has_program,
    literal,
    with_inputs,
)
from code_chains.conversations.frames import framed
from code_chains.conversations.scripts import compiles, extract_futures, print_value
from code_chains.errors import InputError
from code_chains.executors.values import check_variables
from code_chains.inputs import fenced
from code_chains.records.filenames import safe_name
from code_chains.state import Artifact, DisplayData, Turn
from code_chains.storage.files import atomic_write

EXPORTS = (".ipynb", ".py", ".md")
"""Suffixes of the files that `export` writes."""
_IMAGES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/svg+xml": ".svg",
}
_MAX_HEADING_CHARS = 100
_KERNEL = {
    "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
}


def export(turns: Sequence[Turn], path: str | os.PathLike[str]) -> list[Path]:
    """Write the turns of a session to a file, and the files that it needs beside it.

    These are the input files of the programs, frames that they were given, and for Markdown also the images; a comment
    in the program says what was not kept. The file at `path` is replaced atomically; no other file is ever changed.

    Args:
        turns: The turns: `chain.turns(session_id)`, which knows what was kept. A list of turns knows only paths.
        path: Ends with `.ipynb` for a notebook, `.py` for a script or `.md` for Markdown.

    Returns:
        The paths of the files that were written, beginning with `path`.

    Raises:
        InputError: These are no turns, the suffix is not supported, the folder is missing or not writable, or
            another file has the name of an input file.
    """
    target = Path(path)
    _check_turns(turns)
    _check_target(target)
    companions = Companions(target)
    content = _content(with_inputs(turns, companions), target, companions)
    try:
        atomic_write(target, content)
        paths = [target]
        for name, source in companions.files.items():
            if not has_content(target.parent / name, source):
                (target.parent / name).parent.mkdir(parents=True, exist_ok=True)
                atomic_write(target.parent / name, source)
                paths.append(target.parent / name)
    except OSError as error:
        raise InputError(f"{str(target)!r} cannot be written: {error}.") from error
    return paths


def _check_turns(turns: object) -> None:
    if not isinstance(turns, list | tuple) or not all(isinstance(turn, Turn) for turn in turns):
        raise InputError(
            f'Pass the turns of a conversation, e.g. chain.turns("ann"), not {type(turns).__name__}.'
        )
    if not turns:
        raise InputError("There is nothing to export yet. Ask a question first.")


def _check_target(target: Path) -> None:
    if target.suffix not in EXPORTS:
        raise InputError(
            f"{str(target)!r} must end with .ipynb (a notebook), .py (a script) or .md (Markdown)."
        )
    if not target.parent.is_dir():
        raise InputError(f"The folder {str(target.parent)!r} does not exist. Create it, or choose another.")
    if target.is_dir():
        raise InputError(f"{str(target)!r} is a folder. Name a file.")


def _content(turns: Sequence[Turn], target: Path, companions: Companions) -> bytes:
    if target.suffix == ".ipynb":
        text = str(nbformat.writes(to_notebook(turns, title=target.stem))) + "\n"  # type: ignore[no-untyped-call]
    elif target.suffix == ".py":
        text = to_script(turns)
    else:
        text = _markdown(turns, companions)
    return text.encode()


# -- notebook ------------------------------------------------------------------------------------------------


def to_notebook(turns: Sequence[Turn], *, title: str = "A conversation with code") -> nbformat.NotebookNode:
    """Return a notebook: for each turn the question as a heading, the program with its output, and the answer.

    Args:
        turns: The turns of a session.
        title: The title of the notebook.

    Raises:
        InputError: A variable of a turn has an invalid name.
    """
    cells = [_cell("markdown", "title", f"# {' '.join(_text(title).split())}")]
    for number, (turn, images) in enumerate(_with_images(turns), 1):
        cells += _cells(f"turn-{number}", turn, images)
    return notebook_of(cells)


def notebook_of(cells: Sequence[Mapping[str, Any]]) -> nbformat.NotebookNode:
    """Return a notebook for Python with these cells, which are valid."""
    content = {"nbformat": 4, "nbformat_minor": 5, "metadata": _KERNEL, "cells": cells}
    notebook: nbformat.NotebookNode = nbformat.from_dict(content)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    return notebook


def _cells(name: str, turn: Turn, images: Sequence[Artifact]) -> Iterator[dict[str, Any]]:
    yield _cell("markdown", f"{name}-question", _question(turn.query))
    if has_program(turn):
        outputs = [*_text_and_value(turn), *map(_display_data, images)]
        yield {
            **_cell("code", f"{name}-program", _program(turn)),
            "execution_count": None,
            "outputs": outputs,
        }
    if turn.answer.strip():
        yield _cell("markdown", f"{name}-answer", _text(turn.answer))


def _text_and_value(turn: Turn) -> Iterator[dict[str, Any]]:
    """Yield what a program printed, and the value of its last expression if it displays itself as more than text."""
    # Jupyter shows no CSV beside a view.
    shown = [data for data in turn.display_data if data.media_type != "text/csv"]
    bundle = {data.media_type: _safe_markup(data) for data in shown}
    printed = _text(turn.output)
    if bundle:
        printed = printed.removesuffix(bundle.get("text/plain", "")).rstrip("\n")
    if printed:
        yield {"output_type": "stream", "name": "stdout", "text": f"{printed}\n"}
    if bundle:
        yield {"output_type": "display_data", "metadata": {}, "data": bundle}


def _safe_markup(data: DisplayData) -> str:
    """Return markup of a program so that no script of it runs where somebody trusts the notebook."""
    if data.media_type == "text/html":
        return framed(_text(data.data), "Table")
    return _text(data.data) if data.media_type == "text/plain" else _text(escape(data.data, quote=False))


def _cell(kind: str, name: str, source: str) -> dict[str, Any]:
    return {"cell_type": kind, "id": name, "metadata": {}, "source": source}


def _display_data(image: Artifact) -> dict[str, Any]:
    data = base64.b64encode(image.data).decode()
    shown = {image.media_type: data}
    if image.media_type == "image/svg+xml":  # As an image it runs no script.
        shown = {"text/html": f'<img alt="Figure" src="data:{image.media_type};base64,{data}">'}
    return {"output_type": "display_data", "metadata": {}, "data": shown}


# -- script --------------------------------------------------------------------------------------------------


def to_script(turns: Sequence[Turn]) -> str:
    """Return a script with the programs of the turns and the questions as comments, which prints their output.

    The value of a last expression, which a notebook displays, is printed. A program that only a notebook can
    run, e.g. with a top-level await, becomes a comment.

    Args:
        turns: The turns of a session.

    Raises:
        InputError: A variable of a turn has an invalid name.
    """
    parts, futures = [], set[str]()
    for turn in turns:
        if not has_program(turn):
            parts.append(_comment(f"{turn.query}\n\n{turn.answer}" if turn.answer else turn.query))
            continue
        program, features = extract_futures(print_value(_program(turn), turn.output))
        futures |= features
        parts.append(_comment(turn.query) + (program if compiles(program) else _comment(program)))
    # The declaration also prevents a question in the first lines from being read as one.
    header = "# -*- coding: utf-8 -*-\n"
    if futures:
        header += f"from __future__ import {', '.join(sorted(futures))}\n\n"
    return "\n".join([header, *parts])


def _comment(text: str) -> str:
    lines = re.split(r"\r\n|\r|\n", _text(text).replace("\0", "\N{REPLACEMENT CHARACTER}").strip())
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


# -- Markdown ------------------------------------------------------------------------------------------------


def to_markdown(turns: Sequence[Turn]) -> str:
    """Return Markdown: question, program, output, links to the images that `export` writes, and answer of each turn.

    No part can absorb the next one, whatever it contains.

    Args:
        turns: The turns of a session.

    Raises:
        InputError: A variable of a turn has an invalid name, or the name of an image points outside the
            folder.
    """
    return _markdown(turns, Companions())


def _markdown(turns: Sequence[Turn], companions: Companions) -> str:
    parts: list[str] = []
    for turn, images in _with_images(turns):
        parts.append(_question(turn.query))
        if has_program(turn):
            parts.append(fenced(_program(turn), "python"))
            if turn.output.strip():
                parts.append(f"Output:\n\n{fenced(_text(turn.output))}")
            names = [companions.add(_image_name(image), image.data) for image in images]
            parts += [f"![{name}]({quote(name)})" for name in names]
        if turn.answer.strip():
            parts.append(_isolate(_text(turn.answer)))
    return "\n\n".join(parts) + "\n"


def _isolate(text: str) -> str:
    """Return Markdown, fenced if a heading after it would become part of it."""
    last = MarkdownIt().parse(f"{text}\n\n# end\n")[-3:]
    is_heading = [token.type for token in last] == ["heading_open", "inline", "heading_close"]
    is_separate = is_heading and last[0].level == 0 and last[1].content == "end"
    return text if is_separate else fenced(text, "markdown")


# -- shared --------------------------------------------------------------------------------------------------


def _program(turn: Turn) -> str:
    """Return the program of a turn, preceded by assignments of its variables."""
    assignments = "".join(
        f"{name} = {literal(value)}\n" for name, value in check_variables(turn.variables).items()
    )
    if assignments:
        assignments += "\n"
    code = turn.code.strip("\r\n")
    return _text(f"{assignments}{code}\n")


def _text(text: str) -> str:
    """Return text with normalized line ends, and without lone surrogates."""
    return re.sub(r"\r\n?", "\n", text.encode("utf-8", "replace").decode())


def _question(query: str) -> str:
    """Return a question as a heading; a long question follows in full."""
    line = " ".join(_text(query).split()) or "?"
    if len(line) <= _MAX_HEADING_CHARS and "\n" not in _text(query).strip():
        return f"## {line}"
    full = "\n".join(f"> {paragraph}" for paragraph in _text(query).strip().split("\n"))
    return f"## {textwrap.shorten(line, _MAX_HEADING_CHARS, placeholder=' …')}\n\n{full}"


def _image_name(image: Artifact) -> str:
    """Return the name of an image with the suffix of its media type."""
    return PurePosixPath(safe_name(image.name)).stem + _IMAGES[image.media_type]


def _with_images(turns: Sequence[Turn]) -> Iterator[tuple[Turn, list[Artifact]]]:
    """Yield turns with their images, without those that an earlier turn has."""
    seen: set[bytes] = set()
    for turn in turns:
        images = [image for image in turn.artifacts if image.media_type in _IMAGES and image.data not in seen]
        seen |= {image.data for image in images}
        yield turn, images if has_program(turn) else []
