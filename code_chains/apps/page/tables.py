"""Tables that programs displayed, as CSV."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser

from code_chains.batch.export import without_formula


def is_table(html: bytes) -> bool:
    """Return whether a view has a table."""
    return b"<tr" in html


def is_shortened(html: bytes) -> bool:
    """Return whether a view leaves out rows or columns, as pandas does in large tables."""
    return re.search(rb">\s*\.\.\.\s*<", html) is not None


def table_as_csv(html: bytes) -> bytes:
    r"""Return the tables of a view as CSV, which spreadsheets recognise as UTF-8.

    Example:
        >>> table_as_csv(b"<table><tr><th>n<th>name<tr><td>1<td>a, b</table>").decode("utf-8-sig")
        'n,name\r\n1,"a, b"\r\n'
    """
    text = io.StringIO()
    csv.writer(text).writerows(map(without_formula, row) for row in _read(html))
    return text.getvalue().encode("utf-8-sig", "replace")


def _read(html: bytes) -> list[list[str]]:
    reader = _TableReader()
    reader.feed(html.decode("utf-8", "replace"))
    reader.close()
    return reader.rows


class _TableReader(HTMLParser):
    """Reads the cells of tables; one that spans several rows or columns stands in each of them.

    Attributes:
        rows: The cells by row.
    """

    MAX_SPAN, MAX_CELLS, MAX_CHARS = 100, 200_000, 10_000_000
    """Invariant: a few bytes of a program's HTML make no table that fills the memory."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._is_in_cell = False
        self._spans: dict[int, tuple[int, str]] = {}
        """By column: for how many further rows a cell stands there, and its text."""
        self._row_span = self._column_span = 1
        self._cells = self._chars = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a row or a cell."""
        if tag in ("tr", "td", "th"):
            self._end_cell()
        if tag == "tr":
            self.rows.append([])
            self._fill_spans()
        elif tag in ("td", "th") and self.rows:
            spans = dict(attrs)
            self._row_span, self._column_span = _span(spans.get("rowspan")), _span(spans.get("colspan"))
            self._is_in_cell = True
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        """Add text to the current cell."""
        if self._is_in_cell:
            self.rows[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        """End a cell."""
        if tag in ("td", "th", "tr", "table"):
            self._end_cell()

    def _end_cell(self) -> None:
        if not self._is_in_cell:
            return
        self._is_in_cell = False
        row = self.rows[-1]
        row[-1] = " ".join(row[-1].split())
        if not self._has_room(self._column_span * self._row_span, row[-1]):
            return
        column = len(row) - 1
        row += [row[-1]] * (self._column_span - 1)
        if self._row_span > 1:
            self._spans |= dict.fromkeys(range(column, len(row)), (self._row_span - 1, row[-1]))
        self._fill_spans()

    def _has_room(self, count: int, text: str) -> bool:
        """Count cells with a text; return whether the table may still have them."""
        self._cells, self._chars = self._cells + count, self._chars + count * len(text)
        return self._cells <= self.MAX_CELLS and self._chars <= self.MAX_CHARS

    def _fill_spans(self) -> None:
        """Repeat cells of rows above at the end of the current row."""
        row = self.rows[-1]
        while len(row) in self._spans:
            count, text = self._spans.pop(len(row))
            if count > 1:
                self._spans[len(row)] = (count - 1, text)
            row.append(text)


def _span(value: str | None) -> int:
    return min(int(value), _TableReader.MAX_SPAN) if value and value.isdecimal() and int(value) else 1
