"""Rounding: whether a number has no more decimals than its question asks for."""

from __future__ import annotations

import decimal
import re
from typing import Any

from code_chains.language.vocabulary import either, pattern, vocabulary
from code_chains.verification.number_words import numerals

_COUNTS = numerals(
    "zero one two three four five six",
    "null eine zwei drei vier fünf sechs",
    "cero un dos tres cuatro cinco seis",
    "zéro une deux trois quatre cinq six",
)
_NUMBER = rf"\b(\d{{1,2}}|{'|'.join(_COUNTS)})"
_WORDS = vocabulary("rounding")
_PLACES = either(_WORDS["places"])
_ROUND = r"\b(?:round|rund|gerund|redonde|arrondi)\w*"
_GAP, _TO = r"[^.;?!\n]{0,40}?", r"\b(?:to|with|auf|mit|con|avec|[aà]) "
_DIRECTIVES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_ROUND}{_GAP}{_TO}{_PLACES}",
        rf"{_TO}{_PLACES}{_GAP}{_ROUND}",
        r"\bto (?:the )?nearest (?:integer|whole number)\b()",
        r"\b(?:auf|zur) (?:die )?(?:nächsten? )?(?:ganzen? )?zahl (?:ge)?rund\w*()",
        r"\bal entero m[áa]s (?:cercano|pr[óo]ximo)\b()",
        r"\b[àa] l['’]entier le plus proche\b()",
    )
)
"""What asks for a rounded number; the group is the number of decimals, empty for none."""
_ANY_PLACES = re.compile(_PLACES, re.IGNORECASE)
_DOUBTS = pattern(_WORDS["doubts"])
"""With these words a question may ask for something else than a rounded answer, such as rounded intermediate results."""


def rounding_problem(query: str, value: Any) -> str:
    """Return what is wrong with the rounding of a number; empty unless that is certain.

    Only a single number is judged, and only if the question states one rounding in plain words (English, German, Spanish or
    French) and nothing that could change its meaning: a false alarm costs a right answer.

    Example:
        >>> rounding_problem("What is the mean, rounded to two decimals?", 2.6666666)
        'the question asks for a number with at most 2 decimals, got 2.6666666'
        >>> rounding_problem("What is the mean, rounded to two decimals?", 2.5)
        ''
    """
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        return ""
    places = asked_decimals(query)
    if places is None or _decimals(value) <= places:
        return ""
    return f"the question asks for a number with at most {places} decimals, got {value}"


def asked_decimals(query: str) -> int | None:
    """Return the number of decimals that a question asks for; None if it does not, or in doubt."""
    counts = [count for directive in _DIRECTIVES for count in directive.findall(query)]
    others = set(_ANY_PLACES.findall(query)) - set(counts)
    if len(set(counts)) != 1 or others or _DOUBTS.search(query):
        return None
    count = counts[0].lower() or "0"
    return int(count) if count.isdigit() else _COUNTS[count]


def _decimals(value: float | decimal.Decimal) -> int:
    """Return the number of decimals, without zeros at the end."""
    number = decimal.Decimal(str(value))
    exponent = number.normalize().as_tuple().exponent if number.is_finite() else 0
    return max(0, -exponent) if isinstance(exponent, int) else 0
