"""Tables that programs displayed, as CSV."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator

from code_chains.batch.export import without_formula
from code_chains.executors.guest.display import MAX_CSV_ROWS

# A cell may be as long as the limits of artifacts allow; the number is a C long, which has 32 bits on Windows.
csv.field_size_limit(2**31 - 1)


def has_table(html: bytes) -> bool:
    """Return whether a view has a table."""
    return b"<tr" in html


def label_of(table: bytes) -> str:
    """Return what the link to a table says."""
    rows = itertools.islice(_rows(table), MAX_CSV_ROWS + 2)  # With the names of the columns.
    is_long = sum(1 for _ in rows) > MAX_CSV_ROWS + 1
    return f"Download the first {MAX_CSV_ROWS:,} rows as CSV" if is_long else "Download as CSV"


def for_spreadsheets(table: bytes) -> bytes:
    r"""Return CSV that spreadsheets recognise as UTF-8, in which no cell is a formula.

    Example:
        >>> for_spreadsheets(b'n,name\n1,"=a"').decode("utf-8-sig")
        "n,name\r\n1,'=a\r\n"
    """
    text, rows = io.StringIO(), itertools.islice(_rows(table), MAX_CSV_ROWS + 1)
    csv.writer(text).writerows(map(without_formula, row) for row in rows)
    return text.getvalue().encode("utf-8-sig", "replace")


def _rows(table: bytes) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(table.decode("utf-8", "replace"), newline=""))
