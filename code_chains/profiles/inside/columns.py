"""What a column of texts holds, and the line of pandas that converts it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .dates import DateFormat, date_format, is_like_date
from .numbers import QUOTES, SPACES, NumberFormat, number_format

PANDAS_MISSING = {
    *("", " ", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
    *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
}
"""What pandas takes for missing by default."""
NULLS = {"\\N"}
"""What MySQL writes for missing values, also of texts."""
WORDS = {"NA", "N/A", "n/a", "None"}
"""What pandas takes for missing and may be meant: a country, a region, `not applicable`. In texts it stays."""
OTHER_MISSING = {
    *("-", "--", "---", "—", "–", ".", "..", "?", "??", "*", "x", "k.A.", "k. A.", "kA", "n.a.", "N.A."),
    *("n.v.", "na", "Null", "none", "NONE", "missing", "Missing", "unknown", "Unknown", "unbekannt"),
    *("keine Angabe", "inconnu", "N.D.", "n.d.", "s/d", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?"),
    *("#NUM!", "#WERT!", "#BEZUG!", "(null)", "[null]", "\\N", "tbd", "TBD"),
}
"""What else stands for a missing value in a column of numbers or dates."""
MIN_SHARE = 0.6
"""A column of at least this share of numbers is one of numbers with errors in it."""
MIN_FOR_ERRORS, MAX_ERRORS = 2, 20
MAX_STATEMENT_CHARS = 1000
_NAME_OF_VERSION = re.compile(r"version|release|section|chapter|clause|kapitel|abschnitt", re.IGNORECASE)
_ENDS_IN_ZERO = re.compile(r"(\d+\.)\d+0")
_POWER, _BARE = re.compile(r"\d+[eE]\d+"), re.compile(r"[+-]?(?=.*[1-9])[\d.,]+")
TEXTS_OF_NUMBERS = {
    re.compile(r"\d{1,3}:[0-5]\d:[0-5]\d(?:\.\d+)?"): "pd.to_timedelta reads durations",
    re.compile(r"\d[\d.,]* ?(?:[kKMGTB]|[KMGT]i?B)?"): "letters such as K and M stand for powers",
}
_LONG_NUMBER = re.compile(r"[+-]?\d{16,}[.,]\d+")
_SEPARATED_DIGITS = re.compile(rf"[\d.,{SPACES}{QUOTES}+-]*\d[\d.,{SPACES}{QUOTES}+-]*")


@dataclass
class Column:
    """What a column of texts holds.

    Attributes:
        name: Its name.
        key: Its name as a literal of Python.
        kind: `number`, `date`, `identifier`, `text` or `empty`.
        number: How its numbers are written.
        date: How its dates are written.
        missing: Marks of missing values in it that readers do not know.
        defaults: Marks of missing values in it that pandas knows.
        words: Texts of it that pandas would take for missing.
        errors: Texts for which it stays one of texts, as all others are numbers.
        may_be_numbers: Whether a reader could take its texts for numbers.
        mixed_units: The units of numbers that are in several, so that they stay text.
        doubt: What numbers lose that may be meant, or why texts are none.
    """

    name: str
    kind: str
    number: NumberFormat | None = None
    date: DateFormat | None = None
    missing: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    may_be_numbers: bool = False
    mixed_units: tuple[str, ...] = ()
    doubt: str = ""
    key: str = ""


def classify(name: str, texts: Sequence[str]) -> Column:
    """Find out what a column holds."""
    distinct = set(map(str.strip, texts))
    values = distinct - PANDAS_MISSING
    defaults = tuple(sorted((distinct & PANDAS_MISSING) - {""}))
    for marks in (set[str](), values & OTHER_MISSING):
        if values - marks and (column := _typed(name, values - marks)):
            column.missing, column.defaults = tuple(sorted(marks)), defaults
            return column
    words = distinct & WORDS
    if not values and not words:
        return Column(name, "empty")
    column = _with_errors(name, texts, values) or Column(name, "text")
    column.missing = tuple(values & NULLS)
    column.may_be_numbers = any(map(_SEPARATED_DIGITS.fullmatch, values))
    column.words, column.defaults = tuple(sorted(words)), tuple(sorted({*defaults} - words))
    return column


def _typed(name: str, values: set[str]) -> Column | None:
    """Return a column of numbers or dates; None if it is neither."""
    if date := date_format(values, name):
        return Column(name, "date", date=date)
    number = number_format(values)
    if number is None:
        return None
    if any(value.isdigit() and not value.isascii() for value in values):
        return Column(
            name, "text", doubt=f"{max(values)} and others stay text: int reads digits of any script"
        )
    if number.has_mixed_units:
        return Column(name, "text", mixed_units=number.units)
    if number.is_identifier:
        return Column(name, "identifier", number=number)
    version = _first_version(values) if number.decimal == "." else ""
    if version and _NAME_OF_VERSION.search(name):
        return Column(name, "identifier", number=number)
    return Column(name, "number", number=number, doubt=_doubt(values, number, version))


def _doubt(values: set[str], number: NumberFormat, version: str) -> str:
    """Return what numbers lose that may be meant; empty if that is nothing."""
    if long := next(filter(_LONG_NUMBER.fullmatch, values), ""):
        return f"{long} and other long numbers are rounded"
    code = version or (min(values) if all(map(_POWER.fullmatch, values)) else "")
    if code:
        return f"{code} is read as a number: read it as text if it is a version or a code"
    bare = next(filter(_BARE.fullmatch, sorted(values)), "") if number.units else ""
    return f"{bare} has no unit, and others have {' or '.join(number.units)}" if bare else ""


def _first_version(values: set[str]) -> str:
    """Return a value that comes after another one as a version does, and not as a number: 1.10 after 1.9, or beside 1.1."""
    for match in filter(None, map(_ENDS_IN_ZERO.fullmatch, values)):
        if not values.isdisjoint([f"{match[1]}9", match[0].rstrip("0")]):
            return match[0]
    return ""


def _with_errors(name: str, texts: Sequence[str], values: set[str]) -> Column | None:
    """Return a column of numbers that a few texts in it keep from being one."""
    numbers = {value for value in values if number_format([value])}
    others = values - numbers
    if numbers and not others:
        return Column(name, "text", doubt="its numbers are written in several ways, so it stays text")
    for pattern, what in TEXTS_OF_NUMBERS.items():
        if values and all(map(pattern.fullmatch, values)):
            return Column(name, "text", doubt=f"{max(values - numbers)} and others stay text: {what}")
    some = sorted(values)[:MAX_ERRORS]
    if some and all(map(is_like_date, some)):
        unknown = next((value for value in some if not date_format([value], name)), "")
        ways = f"in a form that is not known, such as {unknown}" if unknown else "in several ways"
        return Column(name, "text", doubt=f"its dates are written {ways}, so it stays text")
    if not others or len(others) > MAX_ERRORS or len(numbers) < MIN_FOR_ERRORS:
        return None
    count = sum(map(others.__contains__, map(str.strip, texts)))
    number = number_format(numbers)
    if number is None or number.is_identifier or count > (1 - MIN_SHARE) * len(texts):
        return None
    return Column(name, "text", errors=tuple(sorted(others)))


def conversion(column: Column, number: NumberFormat, *, may_miss: bool = False) -> str:
    """Return the expression that converts a column of texts to numbers; what may miss is a mark of missing values."""
    errors = ', errors="coerce"' if may_miss else ""
    steps = f"df[{column.key}]"
    for unit in number.units:
        if set(unit) & set(".,-"):  # Of such a unit a separator would be left.
            steps += f'.str.replace("{unit}", "")'
    if number.has_parentheses:
        steps += r""".str.replace(r"\((.*)\)", r"-\1", regex=True)"""
    if number.has_trailing_minus:
        steps += r""".str.replace(r"^(.*)-$", r"-\1", regex=True)"""
    if number.has_odd_signs:
        steps += '.str.replace("−", "-")'
    if number.units or number.thousands or number.has_odd_signs:
        kept = f"0-9{number.decimal or ''}eE+-" if not number.units else f"0-9{number.decimal or ''}-"
        steps += f'.str.replace("[^{kept}]", "", regex=True)'
    if number.decimal == ",":
        steps += '.str.replace(",", ".")'
    return f"pd.to_numeric({steps}{errors})"


def with_conversions(call: str, conversions: Mapping[str, str]) -> list[str]:
    """Return the lines that read a table and convert columns.

    Invariant: it is one statement wherever that is possible, as small models copy the first one alone.
    """
    if not conversions:
        return [f"df = {call}"]
    functions = mapping(
        dict(zip(conversions, map("lambda df: {}".format, conversions.values()), strict=True))
    )
    assigned = f"{call}.assign(**{functions})"
    has_names = all(key.startswith(("'", '"')) for key in conversions)
    if has_names and len(assigned) <= MAX_STATEMENT_CHARS:
        return [f"df = {assigned}"]
    return [f"df = {call}", *map("df[{}] = {}".format, conversions, conversions.values())]


def mapping(items: Mapping[str, str]) -> str:
    """Return a dict of keys and values that are source already."""
    return "{" + ", ".join(map(": ".join, items.items())) + "}"


def key_of(name: object) -> str:
    """Return the name of a column as Python writes it."""
    return literal(name) if isinstance(name, str) else repr(name)


def literal(text: str) -> str:
    """Return text as a literal of Python, in double quotes where that is possible."""
    quoted = repr(text)
    if quoted.startswith("'") and '"' not in quoted:
        return f'"{quoted[1:-1]}"'
    return quoted
