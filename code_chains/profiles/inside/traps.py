"""What is easily overlooked in a table: rows that stand twice, totals among details, several spellings, odd values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .columns import literal
from .dates import date_format
from .dialect import is_value
from .layout import TOTAL

MAX_ROWS = 50_000
"""Rows that are looked at."""
MAX_COLUMNS, MAX_DISTINCT, MAX_SHOWN = 40, 2_000, 3
MAX_TEXT_CHARS = 60
MIN_COLUMNS, MAX_TRANSPOSED = 3, 60
"""Columns of which the first may have labels, and rows that may be columns."""
MAX_TOTAL_SHARE, MIN_DETAILS = 0.34, 3
MIN_PADDED = 4
"""One text in so many with blanks around it is no slip of the hand."""
SENTINELS = (-99, -999, -9999, 99, 999, 9999, 99999, 999999)
"""Numbers that stand for missing ones, if they are far from all others."""
RANGES = (
    (re.compile(r"%|percent|pct|prozent|pourcent|porcent", re.IGNORECASE), 0, 100),
    (re.compile(r"\blat(?:itude)?\b", re.IGNORECASE), -90, 90),
    (re.compile(r"\b(?:lon|lng|long|longitude)\b", re.IGNORECASE), -180, 180),
    (re.compile(r"\b(?:age|alter|edad)\b|âge", re.IGNORECASE), 0, 120),
    (re.compile(r"\b(?:month|monat|mois|mes)\b", re.IGNORECASE), 1, 12),
)
"""Between which numbers the values of columns with such names are."""
COUNTED = (
    (20_000, 60_000, "serial days", 'unit="D", origin="1899-12-30"'),
    (10**9, 2 * 10**9, "seconds since 1970", 'unit="s"'),
)
"""Between which numbers dates are that are counted."""
UNIT = re.compile(
    r"\W*(?:units?|uom|currency|ccy|einheit|währung|unité|devise|unidad|moneda)\W*", re.IGNORECASE
)
AVERAGE = re.compile(
    r"\W*(?:averages?|means?|mittelwert|durchschnitt|moyenne|promedio|media|среднее|平均)\W*", re.IGNORECASE
)
_SUBTOTAL = re.compile(r"\S.* (?:(?:sub)?totals?|summe|gesamt)", re.IGNORECASE)
DITTO = {'"', "''", "″", "〃", "ditto", "do."}
_DATE = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-](?:\d{4}|\d{2})\b.*")


def find_traps(frame: Any) -> list[str]:
    """Return a sentence for each thing that a computation with a frame of pandas may get wrong."""
    frame = frame.iloc[:MAX_ROWS, :MAX_COLUMNS]
    if not len(frame):
        return []
    return [*_repeated_rows(frame), *_totals(frame), *_odd_rows(frame), *_odd_columns(frame)]


def _repeated_rows(frame: Any) -> Iterator[str]:
    try:
        repeated = int(frame.duplicated().sum())
    except TypeError:  # It holds lists or dicts.
        return
    if repeated and len(frame.columns) > 1:
        yield f"{repeated:,} of {len(frame):,} rows repeat another one"


def _totals(frame: Any) -> Iterator[str]:
    """Find rows among the others that sum these up."""
    labels = [position for position in range(len(frame.columns)) if _has_texts(frame.iloc[:, position])]
    for position in labels[:3]:
        texts = _texts(frame.iloc[:, position])
        totals = list(filter(_is_total, texts))
        count = int(frame.iloc[:, position].isin(totals).sum()) if totals else 0
        if 0 < count <= MAX_TOTAL_SHARE * len(frame) and len(frame.columns) > 1:
            what = "an average" if AVERAGE.fullmatch(totals[0]) else "a total"
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


def _is_total(text: str) -> bool:
    return bool(TOTAL.fullmatch(text) or AVERAGE.fullmatch(text) or _SUBTOTAL.fullmatch(text))


def _odd_rows(frame: Any) -> Iterator[str]:
    """Find labels that stand for several rows, and rows that are columns."""
    if len(frame.columns) < MIN_COLUMNS or not _has_texts(frame.iloc[:, 0]):
        return
    labels, key = frame.iloc[:, 0], _key(frame, 0)
    alone = frame[labels.notna() & frame.iloc[:, 1].isna()]
    alone = alone[alone.iloc[:, 1:].isna().all(axis=1)]
    if 0 < 2 * len(alone) < len(frame):
        rows = "1 row has" if len(alone) == 1 else f"{len(alone):,} rows have"
        yield f"{rows} a text in {key} and nothing else ({_some(map(str, alone.iloc[:, 0]))}): a heading or a remark"
    filled = labels.dropna()
    are_groups = 2 * len(filled) <= len(labels) and filled.is_unique and labels.notna().iloc[0]
    if are_groups and frame.iloc[:, 1].notna().all():
        yield f"blank cells of {key} may stand for the label above: df[{key}].ffill()"
    cells = frame.iloc[:, 1:].values.tolist() if len(frame) <= MAX_TRANSPOSED else []
    kinds = [set(map(is_value, {*map(str, row)} - {"nan", "None", "NaT"})) for row in cells]
    if all(len(kind) == 1 for kind in kinds) and {True} in kinds and {False} in kinds:
        yield f"its rows may be columns, with their names in {key}: df.set_index({key}).T"


def _odd_columns(frame: Any) -> Iterator[str]:
    names = list(map(str, frame.columns))
    for position in range(1, len(names) - 1):
        are_named = [not name.startswith("Unnamed: ") for name in names[position - 1 : position + 2]]
        if are_named == [True, False, True] and not len(frame.iloc[:, position].dropna()):
            yield f"{literal(names[position])} is empty: two tables may stand beside each other"
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

    for low, high, what, arguments in COUNTED:
        if date_format(["20250101"], name) and bool(((values >= low) & (values < high)).all()):
            yield f"{key} may be {what}: pd.to_datetime(df[{key}], {arguments})"


def _odd_texts(texts: Sequence[str], key: str) -> Iterator[str]:
    if len(texts) > 1 and UNIT.fullmatch(key):
        yield f"{key} has several units ({_some(texts)}), in which numbers beside it are not alike"
    if marks := DITTO.intersection(texts):
        yield f"{_some(marks)} in {key} may stand for the value above"
    if texts and all(text.startswith('="') for text in texts):
        yield f"{key} holds formulas such as {texts[0]}: df[{key}].str.strip('=\"') has their texts"
    padded = [text for text in texts if text != text.strip()]
    if padded and len(padded) * MIN_PADDED >= len(texts):
        yield f"{key} has blanks around texts such as {_some(padded[:1])}: df[{key}].str.strip() is without"
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
    if not _has_texts(series):
        return []
    distinct = series.dropna().drop_duplicates().head(MAX_DISTINCT).tolist()
    return [text for text in distinct if isinstance(text, str) and len(text) <= MAX_TEXT_CHARS]


def _has_texts(series: Any) -> bool:
    return getattr(series.dtype, "kind", "O") in "OTSU"


def _key(frame: Any, position: int) -> str:
    return literal(str(frame.columns[position]))


def _some(texts: Iterable[str]) -> str:
    return ", ".join(map(literal, [*texts][:MAX_SHOWN]))
