"""Multiple choice: a list of tasks as GitHub writes it, of which those with a cross are right."""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING, Self

from code_chains.errors import InputError, brief
from code_chains.lessons.tasks.base import Ask, Form, Task, graded, neutral
from code_chains.lessons.texts import Texts

if TYPE_CHECKING:
    from code_chains.chains.base import Flow

_OPTION = re.compile(r"- \[([ xX])\] (\S.*)")
_TOLD = re.compile(r"\s+> ?(.*)")
_LETTERS = re.compile(r"[^\W\d_]+")
_MIN_OPTIONS, _MAX_OPTIONS = 2, 20


@dataclass(frozen=True)
class Option:
    """One of the answers to choose from.

    Attributes:
        text: What it says, as Markdown.
        is_right: Whether it is to be chosen.
        told: What a learner is told who chose it though it is wrong.
    """

    text: str
    is_right: bool
    told: str = ""


@dataclass(frozen=True)
class Choice(Task):
    """A question with answers to choose from: all right ones, and no other, must be chosen.

    Attributes:
        options: The answers; a learner names them by letters, A for the first.
    """

    options: tuple[Option, ...] = ()

    role = "choice"
    counts_first = True

    @classmethod
    def read(cls, language: str, code: str, *, is_released: bool) -> Self:
        """Read the lines of a list of tasks."""
        options = list[Option]()
        for line in filter(str.strip, code.splitlines()):
            if option := _OPTION.fullmatch(line.rstrip()):
                options.append(Option(option[2], option[1] != " "))
            elif options and (told := _TOLD.fullmatch(line)):
                last = options.pop()
                options.append(Option(last.text, last.is_right, f"{last.told} {told[1]}".strip()))
            else:
                raise InputError(
                    f"write `- [x] right`, `- [ ] wrong` or `  > why` in each line, not {brief(line)}"
                )
        if not _MIN_OPTIONS <= len(options) <= _MAX_OPTIONS:
            raise InputError(f"a choice has {_MIN_OPTIONS} to {_MAX_OPTIONS} answers, not {len(options)}")
        if not is_released and len({option.is_right for option in options}) == 1:
            raise InputError("a choice needs a right answer, `- [x] …`, and a wrong one, `- [ ] …`")
        return cls(language, tuple(options))

    @staticmethod
    def released(code: str) -> str:
        """Return the answers without crosses and reasons."""
        options = filter(None, map(_OPTION.fullmatch, map(str.rstrip, code.splitlines())))
        return "".join(f"- [ ] {option[2]}\n" for option in options)

    @property
    def form(self) -> Form:
        """Letters."""
        return "choice"

    @property
    def letters(self) -> str:
        """The letters of all answers."""
        return ascii_uppercase[: len(self.options)]

    @property
    def shown(self) -> str:
        """The answers with their letters."""
        return "\n".join(
            f"- **{letter}** {option.text}" for letter, option in zip(self.letters, self.options, strict=True)
        )

    @property
    def solution(self) -> str:
        """The letters of the right answers."""
        pairs = zip(self.letters, self.options, strict=True)
        return " ".join(letter for letter, option in pairs if option.is_right)

    def chosen(self, answer: str) -> str | None:
        """Return the letters that an answer names; None if it is none."""
        letters = set("".join(_LETTERS.findall(answer)).upper())
        return "".join(sorted(letters)) if letters <= set(self.letters) else None

    def grade(self, answer: str, texts: Texts, ask: Ask | None) -> Flow:
        """Grade the letters that were chosen."""
        yield from ()
        chosen = self.chosen(answer)
        if not chosen:
            return neutral(texts.choose.format(letters=", ".join(self.letters)), texts)
        right = self.solution.replace(" ", "")
        if not right:
            return neutral(texts.no_tests, texts)
        wrong = [
            (letter, self.options[self.letters.index(letter)]) for letter in chosen if letter not in right
        ]
        told = [f"- {letter}: {option.told}" for letter, option in wrong if option.told]
        return graded(is_right=chosen == right, texts=texts, told="\n".join(told))

    def is_told(self, hint: str) -> bool:
        """Return whether a hint names a right answer by its letter or in its words."""
        said = " ".join(hint.casefold().split())
        return any(
            re.search(rf"(?<!\w){letter}(?!\w)(?!\s+[a-z])", hint)
            or " ".join(option.text.casefold().split()) in said
            for letter, option in zip(self.letters, self.options, strict=True)
            if option.is_right
        )
