"""Two evaluations of the same cases, compared: is one better, or was it luck?"""

from __future__ import annotations

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
    """

    both: int
    neither: int
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()

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
    pairs = _pairs(first, second)
    return Comparison(
        both=sum(one.right and other.right for one, other in pairs),
        neither=sum(not one.right and not other.right for one, other in pairs),
        only_first=tuple(one.id for one, other in pairs if one.right and not other.right),
        only_second=tuple(one.id for one, other in pairs if other.right and not one.right),
    )


def _pairs(first: Evaluation, second: Evaluation) -> list[tuple[Score, Score]]:
    ones, others = ({score.id: score for score in evaluation.scores} for evaluation in (first, second))
    _check_same(_asked(first), _asked(second))
    return [(score, others[case_id]) for case_id, score in ones.items()]


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
    if different := [case_id for case_id, asked in first.items() if asked != second[case_id]]:
        query = shortened(first[different[0]][0], 60)
        raise InputError(
            f"The case {different[0]!r} ({query}) asks or expects something else in the other evaluation. Evaluate the"
            " other one again with these cases: from its results file that costs nothing."
        )
