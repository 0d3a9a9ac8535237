"""Fill-in: a program, or a text, with gaps; the tests of the step decide, or else the answers in the block."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from token import EXACT_TOKEN_TYPES
from typing import TYPE_CHECKING, Self

from code_chains.errors import InputError
from code_chains.lessons.tasks.base import Ask, Form, Task, graded, neutral
from code_chains.lessons.texts import Texts

if TYPE_CHECKING:
    from code_chains.chains.base import Flow

_OPEN = "____"
"""A gap as a learner sees it."""
_GAP = re.compile(r"\{\{([^{}\n]{0,200})\}\}")
_OPERATORS = "|".join(map(re.escape, sorted(EXACT_TOKEN_TYPES, key=len, reverse=True)))
_TOKEN = re.compile(
    r"""[A-Za-z]{0,2}(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')|\.?\d(?:[eE][+-](?=\d)|[\w.])*+|\w++"""
    rf"|{_OPERATORS}|[^\w \t]"
)
_MAX_WAYS, _MAX_LINE_CHARS, _MAX_CHARS = 200, 500, 20_000
"""Ways to fill a line, its characters, and those of all lines in each way."""


@dataclass(frozen=True)
class Gaps(Task):
    """A text with gaps, `{{answer}}` or `{{one|another}}`.

    Attributes:
        template: The text with the answers.
        has_answers: Whether the answers are there; a learner's copy has none.
    """

    template: str = ""
    has_answers: bool = True

    role = "gaps"
    has_tests = True

    @classmethod
    def read(cls, language: str, code: str, *, is_released: bool) -> Self:
        """Read a text with its answers."""
        if sum(len(line) * prod(map(len, _answers(line))) for line in code.splitlines()) > _MAX_CHARS:
            raise InputError(
                f"a text with gaps has at most {_MAX_CHARS:,} characters, in each way to fill its lines"
            )
        if not (_GAP.search(code) or (is_released and _OPEN in code)):
            raise InputError("there is no gap: write each as {{answer}}")
        for line in filter(_GAP.search, code.splitlines()):
            if prod(map(len, _answers(line))) > _MAX_WAYS or len(line) > _MAX_LINE_CHARS:
                limits = f"{_MAX_WAYS} ways to fill it and {_MAX_LINE_CHARS} characters"
                raise InputError(f"a line with gaps has at most {limits}")
        return cls(language, code, not is_released)

    @staticmethod
    def released(code: str) -> str:
        """Return the text with open gaps."""
        return _GAP.sub(_OPEN, code)

    @property
    def form(self) -> Form:
        """A program, or words."""
        return "program" if self.language == "python" else "text"

    @property
    def starter(self) -> str:
        """The text with open gaps."""
        return self.released(self.template)

    @property
    def solution(self) -> str:
        """The text with the first answer of each gap."""
        lines = self.template.splitlines(keepends=True)
        return "".join(next(_filled(line)) for line in lines) if self.has_answers else ""

    def grade(self, answer: str, texts: Texts, ask: Ask | None) -> Flow:
        """Grade a filled text by the answers; where the step has tests, they decide."""
        yield from ()
        lines, templates = answer.rstrip().splitlines(), self.template.rstrip().splitlines()
        if opened := [number for number, line in enumerate(lines, 1) if _OPEN in line]:
            return neutral(texts.gap_open.format(line=opened[0]), texts)
        pairs = [*enumerate(zip(lines, templates, strict=False), 1)]
        changed = [number for number, (line, template) in pairs if not _fits(line, template)]
        if changed or len(lines) != len(templates):
            return neutral(texts.gap_changed.format(line=changed[0] if changed else len(pairs) + 1), texts)
        if not self.has_answers:
            return neutral(texts.no_tests, texts)
        wrong = [str(number) for number, pair in pairs if not self._is_right(*pair)]
        return graded(is_right=not wrong, texts=texts, told=texts.gap_wrong.format(lines=", ".join(wrong)))

    def _is_right(self, line: str, template: str) -> bool:
        # Invariant: expressions read no line that is longer than it could be.
        if len(line) > 2 * _MAX_LINE_CHARS:
            return False
        if self.language != "python":
            return any(_words(line) == _words(way) for way in _filled(template))
        filled = (_indentation(line), _tokens(line))
        return any(filled == (_indentation(way), _tokens(way)) for way in _filled(template))

    def is_told(self, hint: str) -> bool:
        """Return whether a hint has a line with its gaps filled."""
        said = " ".join(_words(hint))
        lines = (line for line in self.template.splitlines() if _GAP.search(line))
        return any(" ".join(_words(filled)) in said for line in lines for filled in _filled(line))


def _answers(line: str) -> list[list[str]]:
    """Return the answers of each gap of a line."""
    return [gap[1].split("|") for gap in _GAP.finditer(line)]


def _filled(line: str) -> Iterator[str]:
    """Yield a line with its gaps filled, in each way."""
    parts = _GAP.sub("\0", line).split("\0")
    for answers in product(*_answers(line)):
        yield "".join(part + answer for part, answer in zip(parts, (*answers, ""), strict=True))


def _fits(line: str, template: str) -> bool:
    """Return whether a line is that of the template but for its gaps."""
    first, *parts = _GAP.sub(_OPEN, template.rstrip()).split(_OPEN)
    line, place = line.rstrip(), len(first)
    if not parts:
        return line == first
    for part in parts[:-1]:
        place = line.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return line.startswith(first) and line.endswith(parts[-1]) and len(line) - len(parts[-1]) >= place


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _tokens(line: str) -> list[str]:
    """Return what a line of a program is made of, whatever its blanks and the quotes around its texts.

    Invariant: the content of a text counts as it is. A line in which a text begins or ends is compared as a whole.
    """
    tokens = _TOKEN.findall(line)
    return [line.strip()] if {"'", '"'} & {*tokens} else [*map(_unquoted, tokens)]


def _unquoted(token: str) -> str:
    """Return a text by its value, and anything else as it is; a formatted text is compared with its quotes."""
    if token[-1] not in "'\"":
        return token
    try:
        return repr(ast.literal_eval(token))
    except (ValueError, SyntaxError):
        return token


def _words(line: str) -> list[str]:
    return line.casefold().split()
