"""What a kind of step is: how it is read, shown, answered and graded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias

from code_chains.lessons.texts import Texts
from code_chains.state import Verdict

if TYPE_CHECKING:
    from code_chains.chains.base import Flow

Form = Literal["program", "choice", "text"]
"""How a learner answers: with a program, with letters of a choice, or in words."""
Ask: TypeAlias = "Callable[[str, str], Flow]"
"""Asks a model whether an explanation meets a criterion; its flow returns a verdict."""


@dataclass(frozen=True)
class Graded:
    """How an answer did.

    Attributes:
        verdict: What the learner is told.
        share: The share of the points, from 0 to 1; None if somebody has still to read it.
        is_gradable: Whether it counts as an attempt.
    """

    verdict: Verdict
    share: float | None = 0.0
    is_gradable: bool = True


@dataclass(frozen=True)
class Task(ABC):
    """A kind of step whose answer is not, or not only, decided by tests.

    Invariant: what is right is in no text that a learner, a browser or a model sees: neither in `shown` nor in `starter`,
    nor in what `released` leaves of the block.

    Attributes:
        language: The first word of its block.
    """

    language: str

    role: ClassVar[str]
    """The second word of its block."""
    has_tests: ClassVar[bool] = False
    """Whether tests may decide, too."""
    counts_first: ClassVar[bool] = False
    """Whether a teacher's table has the first attempt, as whoever tries all is right at last."""

    @classmethod
    @abstractmethod
    def read(cls, language: str, code: str, *, is_released: bool) -> Self:
        """Read a block.

        Args:
            language: Its first word.
            code: Its content.
            is_released: Whether it is of a learner's copy, which lacks what is right.

        Raises:
            InputError: It is none.
        """

    @staticmethod
    @abstractmethod
    def released(code: str) -> str:
        """Return the content of a block without what is right."""

    @property
    @abstractmethod
    def form(self) -> Form:
        """How a learner answers."""

    @property
    def shown(self) -> str:
        """What a learner reads in the place of the block, as Markdown."""
        return ""

    @property
    def starter(self) -> str:
        """What a learner begins with."""
        return ""

    @property
    def solution(self) -> str:
        """A right answer; empty if none is known."""
        return ""

    @abstractmethod
    def grade(self, answer: str, texts: Texts, ask: Ask | None) -> Flow:
        """Grade an answer; the flow returns it as `Graded`, or None where the tests of the step decide.

        Args:
            answer: What the learner wrote.
            texts: What is said, in the language of the lesson.
            ask: Asks a model; None if there is none.
        """

    def is_told(self, hint: str) -> bool:
        """Return whether a hint tells what is right."""
        return False


def graded(*, is_right: bool, texts: Texts, told: str = "") -> Graded:
    """Return how an answer did that is right or not, with what the learner is told of a wrong one."""
    if is_right:
        return Graded(Verdict("verified", "tests", texts.right), 1.0)
    return Graded(Verdict("failed", "tests", f"{texts.wrong}\n{told}".strip()))


def neutral(reason: str, texts: Texts) -> Graded:
    """Return that an answer counts as no attempt, and why."""
    return Graded(Verdict("unverified", "tests", f"{reason}\n{texts.uncounted}"), is_gradable=False)
