"""Records of an evaluation: the scores of its cases, and what follows from them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from code_chains.errors import InputError
from code_chains.evaluation.cases import Expectation
from code_chains.evaluation.statistics import percentile, wilson
from code_chains.inputs import shortened
from code_chains.records import Record, Usage
from code_chains.records.printable import escape_invisible
from code_chains.storage.files import atomic_write
from code_chains.storage.foreign import parse_json, read_text

_STATUSES = ("verified", "plausible", "unverified", "failed", "error")


@dataclass(frozen=True)
class Score(Record):
    """How a case went.

    Attributes:
        id: The id of the case.
        query: Its question.
        expectation: What was expected.
        right: Whether the answer is right: what was expected, and its verdict is not `failed`.
        status: The status of the verdict, or `error` if the chain raised and there is none.
        reason: Why: of the verdict, of the judge who decided, or the error.
        output: The output of the program, shortened.
        answer: The answer, shortened.
        code: The program, shortened.
        seconds: How long the answer took.
        usage: What it spent on models.
        by: Who decided on the verdict.
        attempts: How many attempts the answer took.
    """

    id: str
    query: str
    expectation: Expectation
    right: bool
    status: Literal["verified", "plausible", "unverified", "failed", "error"]
    reason: str = ""
    output: str = ""
    answer: str = ""
    code: str = ""
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    by: str = ""
    attempts: int = 0


@dataclass(frozen=True)
class Share:
    """How many of some cases were right.

    Attributes:
        right: The number of those that were right.
        total: The number of all.
    """

    right: int
    total: int

    @classmethod
    def from_scores(cls, scores: Iterable[Score]) -> Share:
        """Count scores."""
        rights = list(map(attrgetter("right"), scores))
        return cls(sum(rights), len(rights))

    @property
    def value(self) -> float:
        """The share, from 0 to 1; 0 of no cases."""
        return self.right / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The Wilson interval: with a confidence of 95 % the share of many more such cases lies in it."""
        return wilson(self.right, self.total)

    def __str__(self) -> str:
        if not self.total:
            return "0/0  none has an answer"
        low, high = self.interval
        return f"{self.right}/{self.total}  {self.value:.1%}  [{low:.1%}, {high:.1%}]"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, the share and its interval as JSON values."""
        return {
            "right": self.right,
            "total": self.total,
            "share": self.value,
            "interval": list(self.interval),
        }


@dataclass(frozen=True)
class Evaluation(Record):
    """The scores of a chain on cases. `str(evaluation)` is a short table.

    Attributes:
        scores: The scores, in the order of the cases.
        missing: Ids of cases that were not asked, as the budget for all of them was spent before.
        model: The model that wrote the programs; empty if it has no name.
    """

    scores: tuple[Score, ...]
    missing: tuple[str, ...] = ()
    model: str = ""

    @property
    def accuracy(self) -> Share:
        """The share of right answers, with its interval; `accuracy.value` is the number. Errors are no answers."""
        return Share.from_scores(self.answered)

    @property
    def answered(self) -> tuple[Score, ...]:
        """The scores of cases that the chain came to an end with."""
        return tuple(score for score in self.scores if score.status != "error")

    @property
    def errors(self) -> tuple[Score, ...]:
        """The scores of cases for which the chain raised, such as for an outage; they are asked again on resumption."""
        return tuple(score for score in self.scores if score.status == "error")

    @property
    def by_status(self) -> dict[str, Share]:
        """The share of right answers for each status of verdicts that occurs: whether verdicts deserve trust."""
        shares = {}
        for status in _STATUSES[:-1]:
            if scores := [score for score in self.scores if score.status == status]:
                shares[status] = Share.from_scores(scores)
        return shares

    @property
    def wrong(self) -> tuple[Score, ...]:
        """The scores of answers that are not right."""
        return tuple(itertools.filterfalse(attrgetter("right"), self.answered))

    @property
    def is_complete(self) -> bool:
        """Whether the chain came to an end with each case, right or wrong: none is missing, none is an error."""
        return not self.missing and not self.errors

    @property
    def usage(self) -> Usage:
        """What all answers have cost."""
        return sum(map(attrgetter("usage"), self.scores), Usage())

    def latency(self, share: float = 0.5) -> float:
        """Return in how many seconds at least this share of the answers came: 0.5 for the median."""
        return percentile(list(map(attrgetter("seconds"), self.scores)), share)

    def summary(self) -> dict[str, Any]:
        """Return what follows from the scores as JSON values."""
        return {
            "accuracy": self.accuracy.to_dict(),
            "errors": len(self.errors),
            "by_status": {status: share.to_dict() for status, share in self.by_status.items()},
            "cost": {name: getattr(self.usage, name) for name in ("usd", "tokens", "model_calls")},
            "seconds": {"median": self.latency(), "p95": self.latency(0.95)},
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a dict of JSON values, with a `summary`."""
        return {"summary": self.summary(), **super().to_dict()}

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file, which is replaced as a whole; `load` reads it.

        Raises:
            InputError: The file cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False)
        try:
            atomic_write(Path(path), f"{escape_invisible(text)}\n".encode())
        except OSError as error:
            raise InputError(f"{str(path)!r} cannot be written: {error}.") from error

    @classmethod
    def load(cls, path: str | Path) -> Evaluation:
        """Read an evaluation that `save` wrote.

        Raises:
            InputError: The file cannot be read, or is no evaluation.
        """
        try:
            return cls.from_dict(parse_json(read_text(Path(path))))
        except (InputError, ValueError, TypeError) as error:
            problem = str(error).partition("\n")[0]
            raise InputError(f"{str(path)!r} is not an evaluation that was saved: {problem}.") from error

    def __str__(self) -> str:
        lines = [f"{'right':<14}{self.accuracy}"]
        lines += itertools.starmap("  {:<12}{}".format, self.by_status.items())
        lines.append(f"{'cost':<14}{self.usage.describe()}")
        lines.append(f"{'seconds':<14}median {self.latency():.1f}, 95 % within {self.latency(0.95):.1f}")
        if self.errors:
            lines.append(f"{'errors':<14}{len(self.errors)}, which are no answers: resume to ask again")
        lines += [f"{'not asked':<14}{len(self.missing)}, as the budget is spent"] if self.missing else []
        return "\n".join(lines)


_MAX_CHARS = 4_000


def stored_text(text: object) -> str:
    """Return text as a score stores it: shortened, and without halves of surrogate pairs, which JSON cannot hold."""
    return shortened(str(text or ""), _MAX_CHARS).encode(errors="replace").decode()
