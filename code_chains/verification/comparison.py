"""Compare outputs: numbers by tolerance, ignoring labels and the words of the question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter

from code_chains.verification.numbers import NUMBER, Number

_TOKEN = re.compile(
    rf"(?P<number>{NUMBER.pattern})|(?P<word>(?<![\w.])-?[^\W\d]\w*(?:[.'-]\w+)*|\w[\w.'-]*\w|\w)"
    r"|(?P<sign>[^\w\s.,;:!?'\"()\[\]{}=|`_<>-]+)"
)
_LABEL = re.compile(r"^[^:=\n]*?[:=]\s+(?=\S)")
_STATEMENT = re.compile(r"^.*\b(?:is|are|was|were|equals|ist|sind|es|son|est|sont)\b\s+(?=\S)", re.IGNORECASE)
_FILLER = frozenset(
    re.findall(
        r"\w+", "a an and are as at by for from has have in is it its of on that the there to was were with"
    )
)
_NEGATIONS = frozenset(
    re.findall(
        r"\w+",
        "no not never none neither nor without cannot false kein keine nicht nie falsch ni ne pas jamais faux falso "
        "hundred thousand million billion trillion percent",
    )
)
"""Words that change an outcome wherever they occur."""
MAX_TOKENS = 10_000


_Token = Number | str
_value = attrgetter("value")


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text.replace("\u2212", "-")):
        word = match[0].casefold()
        if match["number"]:
            yield Number(match[0])
        else:
            yield "not" if word.endswith(("n't", "n\u2019t")) else word


@dataclass(frozen=True)
class Outcome:
    """An output, reduced to what it states.

    Attributes:
        text: The whole output.
        tokens: Its numbers and words in order, without numbers of labels, filler and the words of the
            question.
        labels: The numbers of labels in order, such as the 7 of "Team 7: 15 points".
        is_labelled: Whether some of these do not occur in the question, so that omitting them changes the
            outcome.
    """

    text: str
    tokens: tuple[_Token, ...]
    labels: tuple[Number, ...] = ()
    is_labelled: bool = False

    @classmethod
    def from_text(cls, output: str, query: str = "") -> Outcome:
        """Parse what an output states, beyond what the question states itself."""
        query_tokens = list(_tokens(query))
        query_values = set(map(_value, _numbers(query_tokens)))
        lines = _without_repeated_end(output.strip().splitlines())[:MAX_TOKENS]
        tokens = tuple(islice(chain.from_iterable(map(_outcome_tokens, lines)), MAX_TOKENS))
        labels = tuple(islice(chain.from_iterable(map(_label_numbers, lines)), MAX_TOKENS))
        ignored = set(_FILLER)
        if len(lines) < 2:  # Labels distinguish several lines, even if they occur in the question.
            ignored.update(_words(query_tokens))
        distinctive = tuple(token for token in tokens if token not in ignored)
        is_labelled = not query_values.issuperset(map(_value, labels))
        return cls(output.strip(), distinctive or tokens, labels, is_labelled)

    @property
    def numbers(self) -> list[Number]:
        """Its numbers."""
        return list(_numbers(self.tokens))

    @property
    def words(self) -> list[str]:
        """Its words."""
        return list(_words(self.tokens))

    def is_equivalent(self, other: Outcome, *, ordered: bool = True) -> bool:
        """Return whether both state the same; one may use more words about it, but no negation."""
        if self.text == other.text:
            return True
        if not self.tokens or not other.tokens or len(self.numbers) != len(other.numbers):
            return False
        if not self._has_labels_of(other, ordered=ordered):
            return False
        if not self.numbers and len(self.tokens) != len(other.tokens):
            return False
        fewer, more = sorted((self, other), key=lambda outcome: len(outcome.tokens))
        if any(map(_changes_outcome, set(fewer.words) ^ set(more.words))):
            return False
        arrange = list[_Token] if ordered else _sorted
        return _is_subsequence(arrange(fewer.tokens), arrange(more.tokens))

    def _has_labels_of(self, other: Outcome, *, ordered: bool) -> bool:
        """Return whether labels have the same numbers; if one has none, the other's must be those of the question."""
        if not self.labels or not other.labels:
            return not (self.is_labelled or other.is_labelled)
        mine, theirs = list(self.labels), list(other.labels)
        if not ordered:
            mine.sort(key=_value)
            theirs.sort(key=_value)
        return len(mine) == len(theirs) and all(map(Number.is_near, mine, theirs))


def _without_repeated_end(lines: list[str]) -> list[str]:
    """Return lines without a last one that the line before ends with: a program printed a value, then it was displayed."""
    if len(lines) > 1 and re.search(rf"(?:[:=]|[^\W\d_])\s+{re.escape(lines[-1])}$", lines[-2]):
        return lines[:-1]
    return lines


def _numbers(tokens: Iterable[_Token]) -> Iterator[Number]:
    for token in tokens:
        if isinstance(token, Number):
            yield token


def _words(tokens: Iterable[_Token]) -> Iterator[str]:
    for token in tokens:
        if isinstance(token, str):
            yield token


def _changes_outcome(word: str) -> bool:
    return word in _NEGATIONS or not any(map(str.isalnum, word))


def _outcome_tokens(line: str) -> Iterator[_Token]:
    """Return the tokens of a line; of a label before a number only the words."""
    label, rest = _split_label(line)
    yield from _words(_tokens(label))
    yield from _tokens(rest)


def _label_numbers(line: str) -> Iterator[Number]:
    label, _ = _split_label(line)
    return _numbers(_tokens(label))


def _split_label(line: str) -> tuple[str, str]:
    """Split a line into the label before a number, which may be empty, and the rest."""
    rest = _STATEMENT.sub("", _LABEL.sub("", line))
    if not NUMBER.search(rest):
        rest = line
    return line[: len(line) - len(rest)], rest


def _sorted(tokens: Sequence[_Token]) -> list[_Token]:
    return [*sorted(_words(tokens)), *sorted(_numbers(tokens), key=_value)]


def _is_subsequence(fewer: Sequence[_Token], more: Sequence[_Token]) -> bool:
    """Return whether one sequence is the other with some more words in between."""
    remaining = iter(more)
    for token in fewer:
        for other in remaining:
            if isinstance(token, Number) and isinstance(other, Number):
                if not token.is_near(other):
                    return False
                break
            if token == other:
                break
            if isinstance(other, Number):
                return False
        else:
            return False
    return True


def group(outputs: Sequence[str], query: str = "", *, ordered: bool = True) -> list[list[int]]:
    """Group the positions of equivalent outputs: largest group first, ties in order of appearance.

    Example:
        >>> group(["Sum: 15", "15.0", "The sum is 14"], "What is the sum?")
        [[0, 1], [2]]
    """
    outcomes = [Outcome.from_text(output, query) for output in outputs]
    groups: list[list[int]] = []
    for position, outcome in enumerate(outcomes):
        for members in groups:
            if all(outcomes[member].is_equivalent(outcome, ordered=ordered) for member in members):
                members.append(position)
                break
        else:
            groups.append([position])
    return sorted(groups, key=len, reverse=True)
