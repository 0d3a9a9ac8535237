"""Pieces of code in a hint: whole blocks, and what stands within sentences."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from code_chains.analysis.parsing import parse
from code_chains.analysis.replies.extraction import extract_code
from code_chains.analysis.replies.fences import markdown_blocks, without_blocks
from code_chains.analysis.replies.repairs import repair
from code_chains.analysis.replies.syntax import Syntax
from code_chains.lessons.reading import read_fences
from code_chains.storage.foreign import parse_json

_INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)")
_QUOTE = re.compile(r"^[ \t]*> ?", re.MULTILINE)
_COMMENT = re.compile(r"^([ \t]*)# ?(?=.*\S)", re.MULTILINE)
_DIFF = re.compile(r"^[-+](?![-+])", re.MULTILINE)
_PROMPT = re.compile(r"^(?:>>>|\.\.\.) ?", re.MULTILINE)
_PLAIN = {"", "text", "txt", "plain", "plaintext", "output", "diff", "patch"}
_OTHER = re.compile(
    r"\b(function|return|for|while|if|let|var|const|def|end)\b.*\n?.*[{};(=]|^\w+ .*= .*\w+ \(", re.MULTILINE
)
_PSEUDO = re.compile(
    r"^\s*(?:set|return|for|while|if|else|repeat|add|let|call)\b", re.MULTILINE | re.IGNORECASE
)
_EMPHASIS = re.compile(r"(?<!\w)(\*{1,3}|_{1,3})(?=[^\s*_])([^\n]+?)(?<=[^\s*_])\1(?!\w)")
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,2}[.)])[ ]", re.MULTILINE)
_LOOKALIKES = str.maketrans("аеорсухіјѕԁһԛԝոցաοαευικνρτχ", "aeopcyxijsdhqwnguoaeuikvptx")
"""Letters of other scripts that look like Latin ones: a learner who types what is shown gets the answer."""
_JOINT = re.compile(r"\s(?:and|then|y|luego|und|dann)\s")
_SENTENCE = re.compile(r"(?<!`)\b(?:return|if|for|while)\b[^`\n]+|[\w.]+\([^`\n]+\)")


@dataclass(frozen=True)
class Fragments:
    """The code in some hints, in order.

    Attributes:
        blocks: Blocks of lines, as Python.
        inline: Pieces within sentences.
        diffs: Pairs of lines that a diff replaces, and the lines that replace them.
        foreign: Blocks that cannot be run here, as they are in another language.
    """

    blocks: tuple[str, ...] = ()
    inline: tuple[str, ...] = ()
    diffs: tuple[tuple[str, str], ...] = ()
    foreign: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """All lines and pieces, without their indentation, each once."""
        found = [line.strip() for block in self.blocks for line in block.splitlines()]
        return list(dict.fromkeys(filter(None, [*found, *(piece.strip() for piece in self.inline)])))


def read_fragments(hints: Iterable[str]) -> Fragments:
    """Return the code in hints: fences of any kind, prompts, diffs, quotes, comments, indented and inline code."""
    blocks, inline, diffs, foreign = list[str](), list[str](), list[tuple[str, str]](), list[str]()
    syntax = Syntax()
    for hint in map(_plain, hints):
        text = _QUOTE.sub("", hint)
        for token in read_fences(text):
            if token.type == "fence" and _DIFF.search(token.content):
                diffs.append(_sides(token.content))
        for block in markdown_blocks(text):
            if not block.is_python and not _parses(block.code) and _is_foreign(block.language, block.code):
                foreign.append(block.code)
            blocks += _variants(block.code)
            blocks += _variants(repair(block.code, syntax))
        prose = without_blocks(text)
        pieces = [match[2] for match in _INLINE.finditer(prose)]
        if not pieces:
            parts = [prose, *_JOINT.split(prose)]
            sentences = [found for part in parts for found in _SENTENCE.findall(part)]
            pieces = list(dict.fromkeys(filter(None, map(_statement_in, sentences))))
        inline += pieces
        blocks += filter(_defines, pieces)
        if len(pieces) > 1:
            blocks.append("\n".join(pieces))
            blocks += _nested(pieces)
        if len(_BULLET.findall(prose)) > 1:
            blocks.append(
                textwrap.dedent("\n".join(filter(_may_be_code, _BULLET.sub("", prose).splitlines())))
            )
        blocks += _unfenced(prose, hint)
    return Fragments(_once(blocks), _once(inline), tuple(dict.fromkeys(diffs)), _once(foreign))


def _plain(hint: str) -> str:
    """Return a hint as its reader would type it: without what cannot be seen, other forms of letters, JSON and emphasis."""
    text = unicodedata.normalize("NFKC", hint).translate(_LOOKALIKES)
    text = "".join(sign for sign in text if unicodedata.category(sign) != "Cf")
    with suppress(ValueError, TypeError, RecursionError):
        held = parse_json(text)
        texts = held.values() if isinstance(held, dict) else ["\n".join(map(str, held))]
        text = "\n".join(f"```\n{value}\n```" if "\n" in str(value) else str(value) for value in texts)
    return _EMPHASIS.sub(lambda match: f"`{match[2]}`" if _parses(match[2]) else match[0], text)


def _nested(pieces: list[str]) -> Iterator[str]:
    """Yield pieces as lines, each head of a block with what follows in it; `return` ends all blocks, or none."""
    if not any(piece.endswith(":") for piece in pieces):
        return
    for ends in (0, 1):
        lines, depth = list[str](), 0
        for piece in pieces:
            if piece.startswith("return") and not ends:
                depth = 0
            lines.append("    " * depth + piece)
            depth += piece.endswith(":")
        yield "\n".join(lines)


def _may_be_code(line: str) -> bool:
    text = line.strip()
    return text.endswith(":") or _parses(text)


def _once(texts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(str.strip, texts)))


def _variants(code: str) -> Iterator[str]:
    """Yield a block, and what it has commented out."""
    yield code
    if code.count("#") > 1:
        yield textwrap.dedent(_COMMENT.sub(r"\1", code))


def _unfenced(prose: str, hint: str) -> Iterator[str]:
    """Yield code that stands in a hint without a fence."""
    indented = [line for line in prose.split("\n") if line.startswith(("    ", "\t"))]
    if indented:
        yield textwrap.dedent("\n".join(indented))
    code = extract_code(hint)
    if code.count("\n") > 1:
        yield code


def _is_foreign(language: str, code: str) -> bool:
    """Return whether a block that is not Python looks like a program."""
    return language not in _PLAIN or bool(_OTHER.search(code)) or len(_PSEUDO.findall(code)) > 1


def _sides(code: str) -> tuple[str, str]:
    lines = list(filter(str.strip, code.splitlines()))
    old = [line[1:] for line in lines if not line.startswith("+")]
    new = [line[1:] for line in lines if not line.startswith("-")]
    return "\n".join(old), "\n".join(new)


def _defines(piece: str) -> bool:
    """Return whether a piece defines a function in one line."""
    return "lambda" in piece or piece.startswith("def ")


def _statement_in(sentence: str) -> str:
    """Return the statement that a sentence begins with; empty if it begins with none that computes something."""
    words = sentence.split(" ")
    for end in range(len(words), 1, -1):
        text = " ".join(words[:end]).rstrip(" .,;!?'\"“”»}")
        if re.search(r"[-+*/(\[=<>]", text) and _parses(text):
            return text
    return ""


def _parses(code: str) -> bool:
    code = _PROMPT.sub("", code)
    return parse(code) is not None or parse(f"def _f():\n{textwrap.indent(code, ' ')}") is not None
