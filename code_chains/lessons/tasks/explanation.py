"""An explanation in words, which a model reads by the teacher's criteria, and a teacher where there is no model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from code_chains.errors import InputError, brief
from code_chains.lessons.tasks.base import Ask, Form, Graded, Task, neutral
from code_chains.lessons.texts import Texts
from code_chains.state import Verdict

if TYPE_CHECKING:
    from code_chains.chains.base import Flow

_CRITERION = re.compile(r"[-*] (\S.*)")
_MAX_CRITERIA, _MAX_CHARS = 8, 4000


@dataclass(frozen=True)
class Explanation(Task):
    """A question that is answered in words.

    A model is asked for each criterion whether the explanation meets it. Its word is an opinion: an explanation that meets
    all is `plausible`, never right.

    Attributes:
        criteria: What it must say.
    """

    criteria: tuple[str, ...] = ()

    role = "rubric"

    @classmethod
    def read(cls, language: str, code: str, *, is_released: bool) -> Self:
        """Read the criteria, a line each."""
        lines = [line.strip() for line in code.splitlines() if line.strip()]
        for line in lines:
            if not _CRITERION.fullmatch(line):
                raise InputError(f"write what an explanation must say as lines `- …`, not {brief(line)}")
        if not (is_released or 0 < len(lines) <= _MAX_CRITERIA):
            raise InputError(f"a rubric has 1 to {_MAX_CRITERIA} lines `- …`, not {len(lines)}")
        return cls(language, tuple(line[2:].strip() for line in lines))

    @staticmethod
    def released(code: str) -> str:
        """Return nothing."""
        return ""

    @property
    def form(self) -> Form:
        """Words."""
        return "text"

    def grade(self, answer: str, texts: Texts, ask: Ask | None) -> Flow:
        """Ask for each criterion whether the explanation meets it."""
        if len(answer) > _MAX_CHARS:
            return neutral(texts.too_long.format(chars=_MAX_CHARS), texts)
        if ask is None or not self.criteria:
            return Graded(Verdict("unverified", "none", texts.kept), None)
        met = 0
        for criterion in self.criteria:
            verdict: Verdict = yield from ask(criterion, answer)
            if verdict.status == "unverified":  # The model gave no opinion, so there is none.
                return Graded(Verdict("unverified", "none", texts.kept), None)
            met += verdict.status == "plausible"
        reason = texts.criteria.format(count=met, total=len(self.criteria))
        share = met / len(self.criteria)
        return Graded(Verdict("plausible" if share == 1 else "failed", "judge", reason), share)
