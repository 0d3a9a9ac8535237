"""What is easily overlooked in a table: rows that stand twice, totals among details, several spellings, odd values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .columns import literal
from .layout import TOTAL

MAX_ROWS = 50_000
"""Rows that are looked at."""
MAX_COLUMNS, MAX_DISTINCT, MAX_SHOWN = 40, 2_000, 3
MAX_TEXT_CHARS = 60
MAX_TOTAL_SHARE, MIN_DETAILS = 0.34, 3
SENTINELS = (-99, -999, -9999, 999, 9999, 99999, 999999)
"""Numbers that stand for missing ones, if they are far from all others."""
RANGES = (
    (re.compile(r"%|percent|pct|prozent|pourcent|porcent", re.IGNORECASE), 0, 100),
    (re.compile(r"\blat(?:itude)?\b", re.IGNORECASE), -90, 90),
    (re.compile(r"\b(?:lon|lng|long|longitude)\b", re.IGNORECASE), -180, 180),
    (re.compile(r"\b(?:age|alter|edad)\b|âge", re.IGNORECASE), 0, 120),
    (re.compile(r"\b(?:month|monat|mois|mes)\b", re.IGNORECASE), 1, 12),
)
"""Between which numbers the values of columns with such names are."""
AVERAGE = re.compile(
    r"\W*(?:averages?|means?|mittelwert|durchschnitt|moyenne|promedio|media|среднее|平均)\W*", re.IGNORECASE
)
_DATE = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-](?:\d{4}|\d{2})\b.*")


def find_traps(frame: Any) -> list[str]:
    """Return a sentence for each thing that a computation with a frame of pandas may get wrong."""
    frame = frame.iloc[:MAX_ROWS, :MAX_COLUMNS]
    if not len(frame):
        return []
    return [*_repeated_rows(frame), *_totals(frame), *_odd_columns(frame)]


def _repeated_rows(frame: Any) -> Iterator[str]:
    try:
        repeated = int(frame.duplicated().sum())
    except TypeError:  # It holds lists or dicts.
        return
    if repeated and len(frame.columns) > 1:
        yield f"{repeated:,} of {len(frame):,} rows repeat another one"


def _totals(frame: Any) -> Iterator[str]:
    """Find rows among the others that sum these up."""
    for position in range(min(len(frame.columns), 3)):
        texts = _texts(frame.iloc[:, position])
        totals = [text for text in texts if TOTAL.fullmatch(text) or AVERAGE.fullmatch(text)]
        count = int(frame.iloc[:, position].isin(totals).sum()) if totals else 0
        if 0 < count <= MAX_TOTAL_SHARE * len(frame) and len(frame.columns) > 1:
            what = "a total" if TOTAL.fullmatch(totals[0]) else "an average"
            rows = f"1 row is {what}" if count == 1 else f"{count:,} rows are totals"
            yield f"{rows} among details ({_some(totals)} in {_key(frame, position)}), which sums count twice"
            return
    if _ends_in_sum(frame):
        yield "the last row has the sums of the others, which sums count twice"


def _ends_in_sum(frame: Any) -> bool:
    """Return whether the last row has no label, and the sums of the columns of numbers."""
    first, numbers = frame.iloc[:, 0], frame.select_dtypes("number")
    if (
        len(frame) <= MIN_DETAILS
        or not numbers.shape[1]
        or first.isna().tolist() != [False] * (len(frame) - 1) + [True]
    ):
        return False
    last, above = numbers.iloc[-1].dropna(), numbers.iloc[:-1].sum()
    return (
        len(last) > 0
        and bool(((above[last.index] - last).abs() <= 1e-6 * last.abs()).all())
        and bool(last.any())
    )


def _odd_columns(frame: Any) -> Iterator[str]:
    for position in range(len(frame.columns)):
        series, key = frame.iloc[:, position], _key(frame, position)
        if getattr(series.dtype, "kind", "O") in "iuf":
            yield from _odd_numbers(series.dropna(), key, str(frame.columns[position]))
        else:
            yield from _odd_texts(_texts(series), key)


def _odd_numbers(values: Any, key: str, name: str) -> Iterator[str]:
    if not len(values):
        return
    found = [number for number in SENTINELS if bool((values == number).any())]
    others = values[~values.isin(found)] if found else values
    for number in found:
        distance = max(abs(others.max()), abs(others.min()), 1) * 5 if len(others) else abs(number)
        if abs(number) > distance:
            yield f"{number} stands {int((values == number).sum()):,} times in {key}, which may mean missing"
    for pattern, low, high in RANGES:
        outside = int(((values < low) | (values > high)).sum())
        if pattern.search(name) and 0 < outside < len(values):
            yield f"{outside:,} of {len(values):,} values of {key} are not between {low} and {high}"


def _odd_texts(texts: Sequence[str], key: str) -> Iterator[str]:
    spellings: dict[str, list[str]] = {}
    for text in texts:
        spellings.setdefault(" ".join(text.casefold().split()), []).append(text)
    several = [same for same in spellings.values() if len(same) > 1]
    if several and len(texts) < MAX_DISTINCT:
        yield f"{key} has several spellings of the same, such as {_some(several[0])}"
    dates = list(filter(None, map(_DATE.fullmatch, texts)))
    firsts = any(int(date[1]) > 12 for date in dates)
    if firsts and any(int(date[2]) > 12 for date in dates):
        yield f"dates of {key} are in two orders, day first and month first, so it stays text"


def _texts(series: Any) -> list[str]:
    """Return the distinct texts of a column; nothing of one with other values or very many."""
    if getattr(series.dtype, "kind", "O") not in "OTSU":
        return []
    distinct = series.dropna().drop_duplicates().head(MAX_DISTINCT).tolist()
    return [text for text in distinct if isinstance(text, str) and len(text) <= MAX_TEXT_CHARS]


def _key(frame: Any, position: int) -> str:
    return literal(str(frame.columns[position]))


def _some(texts: Iterable[str]) -> str:
    return ", ".join(map(literal, [*texts][:MAX_SHOWN]))
