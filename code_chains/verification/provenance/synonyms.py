"""Words for what tables hold, which mean the same: a question and the columns of its data may use different ones."""

from __future__ import annotations

import re

from code_chains.analysis.dotted_names import words
from code_chains.inputs.text import folded
from code_chains.language.vocabulary import either, vocabulary

_WORDS = vocabulary("synonyms")
_GROUPS = tuple(map(either, _WORDS["groups"]))
_SYNONYMS = tuple((re.compile(rf"(?<![a-z])(?:{group})"), re.compile(group)) for group in _GROUPS)
"""What a word of a question begins with, and what stands in names of columns, which may join words."""
_STATES = tuple(map(words, _WORDS["states"]))
"""Words for the state that a thing is in, which mean the same."""
_NOT = words("not nobody never no t yet without isn wasn hasn haven")


def is_state(value: str, asked: str) -> bool:
    """Return whether a question has another word for a state.

    Example:
        >>> is_state("open", "the total of the unpaid invoices"), is_state("open", "the total of the invoices")
        (True, False)
    """
    asked_words = set(re.findall(r"[a-z]+", asked))
    is_open = asked_words & _NOT and asked_words & _STATES[1] and value in _STATES[0]
    return bool(is_open) or any(value in states and states & asked_words for states in _STATES)


def has_synonym(word: str, text: str) -> bool:
    """Return whether a text has another word for what a word means, also in the larger languages of Europe.

    Args:
        word: An English noun, folded.
        text: What it may stand in, folded.

    Example:
        >>> has_synonym("revenue", "region, umsatz"), has_synonym("humidity", "day, rain_mm")
        (True, False)
    """
    return any(begins.match(word) and stands.search(text) for begins, stands in _SYNONYMS)


def holds(asked: str, part: str) -> bool:
    """Return whether a question has a part of a name, within a word unless it is short: no `age` in `average`."""
    return part in asked if len(part) > 3 else re.search(rf"\b{part}", asked) is not None


def parts(name: str) -> list[str]:
    """Return the longer words of the name of a column, without their endings."""
    return [stem(word) for word in re.findall(r"[^\W\d_]{3,}", folded(name))]


def stem(word: str) -> str:
    """Return a word without its ending."""
    word = re.sub(r"(?<=[a-z]{2})ies$", "y", folded(word))
    return word[: max(4, len(word) - 2)]
