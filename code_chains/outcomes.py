"""Whether two outputs say the same: numbers by tolerance, words without labels, order where it matters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Outcome", "group", "ungrounded"]

_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w)|(?<![\w.])[-+]?\.\d+"
)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_LABEL = re.compile(r"^[^:=\n]*?[:=]\s+(?=\S)")
_TOLD = re.compile(r"^.*\b(?:is|are|was|were|equals|ist|sind|es|son|est|sont)\b\s+(?=\S)", re.IGNORECASE)
_FILLER = frozenset(
    _WORD.findall("a an and are as at by for from has have in is it its of on that the there to was were with")
)
_ITEM = re.compile(r"^\s*\d{1,2}[.)]\s", re.MULTILINE)
_COMMAS = str.maketrans(",.", ".,")
_MOST = 10_000


@dataclass(frozen=True)
class _Number:
    value: float
    decimals: int

    @classmethod
    def read(cls, text: str) -> _Number:
        mantissa = text.lower().partition("e")[0]
        return cls(float(text.replace(",", "")), len(mantissa.partition(".")[2]))

    def near(self, other: _Number) -> bool:
        """Equal, but for rounding to two decimals or more."""
        if self.value == other.value or abs(self.value - other.value) <= 1e-6 * max(abs(self.value), abs(other.value)):
            return True
        decimals = min(self.decimals, other.decimals)
        return decimals >= 2 and abs(self.value - other.value) <= 0.5000001 * 10.0**-decimals


def _numbers(text: str) -> list[_Number]:
    return [_Number.read(found) for found in _NUMBER.findall(text)[:_MOST]]


@dataclass(frozen=True)
class Outcome:
    """An output, reduced to what it says.

    Attributes:
        numbers: Its numbers, without those of labels.
        words: Its words, without labels, filler and the words of the question.
    """

    numbers: tuple[_Number, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, output: str, query: str = "") -> Outcome:
        """What an output says, beside what the question says itself."""
        lines = [_TOLD.sub("", _LABEL.sub("", line)) for line in output.strip().splitlines()]
        text = "\n".join(lines)
        known = {word.casefold() for word in _WORD.findall(query)} | _FILLER
        numbers = tuple(_numbers(text))
        words = [word.casefold() for word in _WORD.findall(text)[:_MOST]]
        telling = tuple(word for word in words if word not in known)
        return cls(numbers, telling if telling or numbers else tuple(words))

    def agrees(self, other: Outcome, *, ordered: bool = True) -> bool:
        """Whether both say the same; one may use more words than the other."""
        if not _same_numbers(self.numbers, other.numbers, ordered=ordered):
            return False
        fewer, more = sorted((Counter(self.words), Counter(other.words)), key=lambda words: words.total())
        if self.numbers:
            return fewer <= more
        if ordered and fewer == more:
            return self.words == other.words
        return fewer <= more and (bool(fewer) or not more)


def _same_numbers(mine: Sequence[_Number], theirs: Sequence[_Number], *, ordered: bool) -> bool:
    if not ordered:
        mine, theirs = (sorted(numbers, key=lambda number: number.value) for numbers in (mine, theirs))
    return len(mine) == len(theirs) and all(one.near(other) for one, other in zip(mine, theirs, strict=True))


def group(outputs: Sequence[str], query: str = "", *, ordered: bool = True) -> list[list[int]]:
    """Positions of outputs that say the same, largest group first, among equals the one that came first.

    Example:
        >>> group(["Sum: 15", "15.0", "The sum is 14"], "What is the sum?")
        [[0, 1], [2]]
    """
    outcomes = [Outcome.of(output, query) for output in outputs]
    groups: list[list[int]] = []
    for position, outcome in enumerate(outcomes):
        home = next((one for one in groups if outcomes[one[0]].agrees(outcome, ordered=ordered)), None)
        if home is None:
            groups.append([position])
        else:
            home.append(position)
    return sorted(groups, key=len, reverse=True)


def ungrounded(answer: str, *sources: str) -> list[str]:
    """Numbers of an answer that stand in none of its sources, nor are one of theirs rounded or as a percentage.

    Example:
        >>> ungrounded("It is 2.67, not 3.", "Mean: 2.6666666")
        ['3']
    """
    known = [number for source in sources for number in _numbers(source)]
    answer = _ITEM.sub("", answer)
    readings = (answer, answer.translate(_COMMAS))  # In half of the world a comma is what a point is in the other.
    return min(
        ([text for text in _NUMBER.findall(one)[:_MOST] if not _stands(_Number.read(text), known)] for one in readings),
        key=len,
    )


def _stands(number: _Number, known: Sequence[_Number]) -> bool:
    half = 0.5000001 * 10.0**-number.decimals
    return any(
        abs(number.value) == abs(one.value)
        or (number.decimals and abs(abs(number.value) - abs(one.value)) <= half)
        or abs(number.value - 100 * one.value) <= half
        for one in known
    )
