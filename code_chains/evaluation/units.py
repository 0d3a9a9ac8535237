"""Units and currencies by their names and signs, and as one name each."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import TypeVar

from code_chains.language.vocabulary import pattern, vocabulary

_Value = TypeVar("_Value")


def by_word(words: Mapping[_Value, str]) -> dict[str, _Value]:
    """Return values by each of their words."""
    return {word: value for value, group in words.items() for word in group.split()}


_CODES = "eur usd gbp chf jpy cad aud nzd hkd sgd sek nok dkk pln czk inr cny brl mxn".split()
_WORDS = vocabulary("units")
_CURRENCIES = by_word(_WORDS["currencies"])
_PREFIXES = {"": ""} | by_word(_WORDS["prefixes"])
_BASES = by_word(_WORDS["bases"])
_UNITS = (
    _CURRENCIES
    | {prefix + base: sign + unit for prefix, sign in _PREFIXES.items() for base, unit in _BASES.items()}
    | by_word(
        {
            "%": "% percent prozent pct",
            "°C": "°c celsius °celsius",
            "°F": "°f fahrenheit °fahrenheit",
            "K": "kelvin",
            "km": "km",
            "cm": "cm",
            "kg": "kg",
            "l": "l",
            "kWh": "kwh",
            "h": "h hour hr stunde stunden",
            "min": "min minute minuten",
            "s": "s sec",
            "d": "day",
            "in": "in inch inche zoll",
            "ft": "ft foot feet",
            "yd": "yard",
            "mi": "mi mile",
            "lb": "lb lbs",
            "oz": "oz ounce",
            "t": "tonne tonnen",
            "km/h": "kmh kph",
            "mi/h": "mph",
        }
    )
)
"""Units by their names in small letters."""
_ALIKE = ({"pound", "gbp"}, {"pound", "lb"}, {"°c", "c"}, {"°f", "f"})
_OTHERS_BY_CASE = frozenset("Pa pA Mb MB Gb GB Tb TB Mbp MBp Gbp GBp".split()).union(
    f"{prefix}{base}" for prefix in "mM" for base in "W Wh V A Ah VA Ω Hz J N Pa m bar eV".split()
)
"""Signs of units that differ by case alone; any other spelling of one, such as mw, may be each of them."""
RAISED = str.maketrans({"1": "", "¹": "", "2": "²", "3": "³"})
MONEY = "€$£¥₹₽₩₺"
LETTERS = r"[^\W\d_²³]+"
_NAME = rf"(?:{LETTERS}|[{MONEY}%٪％]|°\s?(?:celsius|fahrenheit|[CF])?)(?:[²³]|[23](?!\w))?"
_TIME = r"(?:second|minute|hour|day|week|month|year)"
UNIT = re.compile(
    rf"\s?((?:per cent|us dollars?|(?:(?:degrees?|grad|square|cubic|sq\.?|cu\.?)\s+)?{_NAME})"
    rf"(?:(?:\s?[/·⋅]\s?|\s+(?:per|pro|an?(?=\s+{_TIME}))\s+)(?:(?:square|cubic)\s+)?{_NAME}(?:\s+(?:squared|cubed))?)*)",
    re.IGNORECASE,
)
_PERCENT = pattern(_WORDS["percent"])
_PER = re.compile(r"(?<!\s)\s*+/\s*+|(?<!\s)\s++(?:per|pro|an?)\s++", re.IGNORECASE)
_SQUARE = re.compile(
    rf"\b(?:(square\s|sq\.?\s|quadrat)|(?:cubic\s|cu\.?\s|kubik))\s*({LETTERS})", re.IGNORECASE
)
_SLASH = re.compile(rf"\s?/\s?({_NAME})", re.IGNORECASE)
MONEY_BEFORE = re.compile(
    rf"(\b(?:{'|'.join(_CODES)})"
    rf"|(?:\b(?:us|ca|c|au|a|sg|s|nz|hk|mx|r))?[{MONEY}])\s?[-+]?$",
    re.IGNORECASE,
)


def unit_at(text: str, start: int, end: int) -> str:
    """Return the unit of a number that stands within a text; empty if it has none."""
    if _PERCENT.match(text, end):
        return "%"
    found = UNIT.match(text, end)
    after = unit_named(found[1]) if found else ""
    before = MONEY_BEFORE.search(text[max(0, start - 8) : start])
    if before is None or after in _CURRENCIES.values():
        return after
    slash = _SLASH.match(text, end)
    return unit_named(before[1]) + (f"/{_name(slash[1])}" if slash else "")


def is_same_unit(first: str, second: str) -> bool:
    """Return whether units are the same, in any case unless it makes them others; pounds are money or weights."""
    folded, other = first.casefold(), second.casefold()
    if folded != other:
        return {folded, other} in _ALIKE
    pairs = zip(first.split("/"), second.split("/"), strict=True)
    return not any(one != two and _is_sign(one) and _is_sign(two) for one, two in pairs)


def _is_sign(unit: str) -> bool:
    return unit.rstrip("²³") in _OTHERS_BY_CASE


def unit_named(written: str) -> str:
    """Return what a unit is called, such as `m/s²` for meters per square second."""
    text = re.sub(r"^(?:degrees?|grad) ", "°", " ".join(written.split()), flags=re.IGNORECASE)
    text = text.replace(" squared", "²").replace(" cubed", "³")
    text = _SQUARE.sub(lambda match: f"{match[2]}{'²' if match[1] else '³'}", text)
    return "/".join(map(_name, _PER.split(text)))


def _name(written: str) -> str:
    """Return what a single unit is called."""
    base, power = written.rstrip("23²³"), written[len(written.rstrip("23²³")) :].translate(RAISED)
    base = unicodedata.normalize("NFKC", base.replace(" ", ""))
    folded = base.casefold()
    singular = folded.removesuffix("s") if len(folded) > 3 else folded
    for name in (folded, singular):
        if name in _UNITS:
            return f"{_UNITS[name]}{power}"
    return (re.sub(r"[sS]$", "", base) if len(base) > 3 else base) + power
