"""Two evaluations of the same cases, compared: is one better, or was it luck?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from code_chains.errors import InputError
from code_chains.evaluation.cases import Case, Expectation
from code_chains.evaluation.records import Evaluation, Score, stored_text
from code_chains.evaluation.statistics import mcnemar
from code_chains.inputs import shortened
from code_chains.records import Record

_LEVEL = 0.05
_MAX_LISTED = 10


@dataclass(frozen=True)
class Comparison(Record):
    """Where two evaluations of the same cases differ.

    Attributes:
        both: How many cases both got right.
        neither: How many neither got right.
        only_first: Ids of the cases that only the first got right.
        only_second: Ids of the cases that only the second got right.
        left_out: How many cases are not compared, as one of them has an error and no answer.
    """

    both: int
    neither: int
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()
    left_out: int = 0

    @property
    def p_value(self) -> float:
        """The exact two-sided p-value of McNemar's test: how likely such a difference is if both are equally good."""
        return mcnemar(len(self.only_first), len(self.only_second))

    @property
    def is_significant(self) -> bool:
        """Whether chance alone would make such a difference in less than one of twenty comparisons."""
        return self.p_value < _LEVEL

    def __str__(self) -> str:
        verdict = "significant" if self.is_significant else "may be chance"
        counts = f"only the first {len(self.only_first)}, only the second {len(self.only_second)}"
        lines = [f"right: both {self.both}, {counts}, neither {self.neither}"]
        lines += [f"left out, as one has no answer: {self.left_out}"] if self.left_out else []
        lines += [f"McNemar's exact test: p = {self.p_value:.3g} ({verdict})"]
        lines += [_listed("only the first", self.only_first), _listed("only the second", self.only_second)]
        return "\n".join(filter(None, lines))


def _listed(name: str, ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - _MAX_LISTED} more" if len(ids) > _MAX_LISTED else ""
    return f"{name}: {', '.join(ids[:_MAX_LISTED])}{more}" if ids else ""


def compare(first: Evaluation, second: Evaluation) -> Comparison:
    """Compare two evaluations of the same cases, pair by pair.

    Raises:
        InputError: They are not of the same cases, or some cases were not asked.
    """
    _check_same(_asked(first), _asked(second))
    ids: dict[tuple[bool, bool], list[str]] = defaultdict(list)
    second_scores, left_out = _by_id(second), 0
    for case_id, score in _by_id(first).items():
        if "error" in (score.status, second_scores[case_id].status):
            left_out += 1
            continue
        ids[score.right, second_scores[case_id].right].append(case_id)
    return Comparison(
        both=len(ids[True, True]),
        neither=len(ids[False, False]),
        only_first=tuple(ids[True, False]),
        only_second=tuple(ids[False, True]),
        left_out=left_out,
    )


def _by_id(evaluation: Evaluation) -> dict[str, Score]:
    return {score.id: score for score in evaluation.scores}


def check_comparable(cases: Iterable[Case], evaluation: Evaluation) -> None:
    """Raise if an evaluation of these cases could not be compared with another one.

    Raises:
        InputError: The other one is of other cases.
    """
    asked = {case.id: (stored_text(case.question.query), case.expectation) for case in cases}
    _check_same(asked, _asked(evaluation))


_Asked = Mapping[str, tuple[str, Expectation]]


def _asked(evaluation: Evaluation) -> _Asked:
    return {score.id: (score.query, score.expectation) for score in evaluation.scores}


def _check_same(first: _Asked, second: _Asked) -> None:
    if lonely := sorted(first.keys() ^ second.keys()):
        raise InputError(
            f"Only one of the evaluations has the case {lonely[0]!r}. Compare those of the same cases."
        )
    for case_id, asked in first.items():
        if asked != second[case_id]:
            raise InputError(
                f"The case {case_id!r} ({shortened(asked[0], 60)}) asks or expects something else in the other"
                " evaluation. Evaluate the other one again with these cases: from its results file that costs nothing."
            )
