"""Whether two outputs say the same: numbers by tolerance, without labels and the words of the question."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Outcome", "group", "ungrounded", "untold"]

_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w]|\.\d)|(?<![\w.])[-+]?\.\d+(?!\w)"
)
_TOKEN = re.compile(
    rf"(?P<number>{_NUMBER.pattern})|(?P<word>(?<![\w.])-?[^\W\d]\w*(?:[.'-]\w+)*|\w[\w.'-]*\w|\w)"
    r"|(?P<sign>[^\w\s.,;:!?'\"()\[\]{}=|`_<>-]+)"
)
_BESIDE = re.compile(r"(?<=\d)(?=[^\W\d_A-Za-zÀ-ɏ])|(?<=[^\W\d_A-Za-zÀ-ɏ])(?=\d)")
_LABEL = re.compile(r"^[^:=\n]*?[:=]\s+(?=\S)")
_TOLD = re.compile(r"^.*\b(?:is|are|was|were|equals|ist|sind|es|son|est|sont)\b\s+(?=\S)", re.IGNORECASE)
_FILLER = frozenset(
    re.findall(r"\w+", "a an and are as at by for from has have in is it its of on that the there to was were with")
)
_TURNING = frozenset(
    re.findall(
        r"\w+",
        "no not never none neither nor without cannot false kein keine nicht nie falsch ni ne pas jamais faux falso "
        "hundred thousand million billion trillion percent",
    )
)
"""Words that make it another outcome, wherever they stand."""
_ITEM = re.compile(r"^\s*\d{1,2}[.)]\s", re.MULTILINE)
_COMMAS = str.maketrans(",.", ".,")
_FEW = 3
_MOST = 10_000


@dataclass(frozen=True)
class _Number:
    text: str

    @property
    def whole(self) -> int | None:
        """Its value, if it is written as a whole number."""
        plain = self.text.replace(",", "")
        return int(plain) if len(plain) < 4000 and re.fullmatch(r"[-+]?\d+", plain) else None

    @property
    def value(self) -> float:
        """Its value, as near as a float comes."""
        return float(self.text.replace(",", ""))

    @property
    def decimals(self) -> int:
        """How many decimals it is written with."""
        return len(self.text.lower().partition("e")[0].partition(".")[2])

    def near(self, other: _Number) -> bool:
        """Equal, but for rounding to two decimals or more."""
        if self.whole is not None and other.whole is not None:
            return self.whole == other.whole
        if float("inf") in (abs(self.value), abs(other.value)):
            return self.text == other.text
        difference = abs(self.value - other.value)
        if difference <= 1e-9 * max(abs(self.value), abs(other.value)):
            return True
        decimals = min(self.decimals, other.decimals)
        return decimals >= 2 and bool(self.value and other.value) and difference <= 0.5000001 * 10.0**-decimals


_Token = _Number | str


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text.replace("\u2212", "-")):
        word = match[0].casefold()
        yield _Number(match[0]) if match["number"] else "not" if word.endswith(("n't", "n\u2019t")) else word


@dataclass(frozen=True)
class Outcome:
    """An output, reduced to what it says.

    Attributes:
        text: All of it.
        tokens: Its numbers and words in order, without numbers of labels, filler and the words of the question.
    """

    text: str
    tokens: tuple[_Token, ...]

    @classmethod
    def of(cls, output: str, query: str = "") -> Outcome:
        """What an output says, beside what the question says itself."""
        known = {token for token in _tokens(query) if isinstance(token, str)} | _FILLER
        lines = output.strip().splitlines()[:_MOST]
        found = [token for line in lines for token in _told(line)][:_MOST]
        if len(lines) > 1:  # Then labels tell the lines apart, also where they stand in the question.
            known = set(_FILLER)
        telling = tuple(token for token in found if token not in known)
        return cls(output.strip(), telling or tuple(found))

    @property
    def numbers(self) -> list[_Number]:
        """Its numbers."""
        return [token for token in self.tokens if isinstance(token, _Number)]

    @property
    def words(self) -> list[str]:
        """Its words."""
        return [token for token in self.tokens if isinstance(token, str)]

    def agrees(self, other: Outcome, *, ordered: bool = True) -> bool:
        """Whether both say the same; one may say more words about it than the other, but for a no."""
        if self.text == other.text:
            return True
        if not self.tokens or not other.tokens or len(self.numbers) != len(other.numbers):
            return False
        if not self.numbers and len(self.tokens) != len(other.tokens):
            return False
        fewer, more = sorted((self, other), key=lambda outcome: len(outcome.tokens))
        if any(word in _TURNING or not any(map(str.isalnum, word)) for word in set(fewer.words) ^ set(more.words)):
            return False
        mine, theirs = (list(one.tokens) if ordered else _sorted(one.tokens) for one in (fewer, more))
        return _within(mine, theirs)


def _told(line: str) -> Iterator[_Token]:
    """The tokens of a line; of a label before a number only the words."""
    rest = _TOLD.sub("", _LABEL.sub("", line))
    if not _NUMBER.search(rest):
        rest = line
    label = line[: len(line) - len(rest)]
    yield from (token for token in _tokens(label) if isinstance(token, str))
    yield from _tokens(rest)


def _sorted(tokens: Sequence[_Token]) -> list[_Token]:
    numbers = sorted((token for token in tokens if isinstance(token, _Number)), key=lambda number: number.value)
    return [*sorted(token for token in tokens if isinstance(token, str)), *numbers]


def _within(fewer: Sequence[_Token], more: Sequence[_Token]) -> bool:
    """Whether the one is the other with some more words in between."""
    remaining = iter(more)
    for token in fewer:
        for other in remaining:
            if isinstance(token, _Number) and isinstance(other, _Number):
                if not token.near(other):
                    return False
                break
            if token == other:
                break
            if isinstance(other, _Number):
                return False
        else:
            return False
    return True


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
    known = [_Number(text).value for source in sources for text in _NUMBER.findall(_spaced(source))[:_MOST]]
    answer = _ITEM.sub("", _spaced(answer))
    readings = (answer, answer.translate(_COMMAS))  # In half of the world a comma is what a point is in the other.
    return min((_unknown(reading, known) for reading in readings), key=len)


def untold(answer: str, output: str) -> bool:
    """Whether an output has a few numbers, and an answer tells none of them.

    Example:
        >>> untold("What is the sum?", "Sum: 15")
        True
    """
    known = {_Number(text).value for text in _NUMBER.findall(_spaced(output))[:_MOST]}
    if not 0 < len(known) <= _FEW:
        return False
    spaced = _spaced(answer)
    numbers = [_Number(text) for reading in (spaced, spaced.translate(_COMMAS)) for text in _NUMBER.findall(reading)]
    return not any(_stands(number, list(known), percent=True) for number in numbers)


def _spaced(text: str) -> str:
    """Text whose digits are those of English, apart from letters of scripts that put no space beside them."""
    digits = {
        ord(sign): str(unicodedata.decimal(sign)) for sign in set(text) if not sign.isascii() and sign.isdecimal()
    }
    return _BESIDE.sub(" ", text.translate({**digits, ord("٫"): ".", ord("٬"): ","}))


def _unknown(answer: str, known: Sequence[float]) -> list[str]:
    found = []
    for match in _NUMBER.finditer(answer):
        percent = re.match(r"\s*(?:%|percent|prozent|por ciento|pour cent)", answer[match.end() :], re.IGNORECASE)
        if not _stands(_Number(match[0]), known, percent=bool(percent)):
            found.append(match[0])
    return found


def _stands(number: _Number, known: Sequence[float], *, percent: bool) -> bool:
    half = 0.5000001 * 10.0**-number.decimals
    return any(
        number.value == one
        or (number.decimals and abs(number.value - one) <= half)
        or (percent and abs(number.value - 100 * one) <= half)
        for one in known
    )
