"""What the markup of an Excel workbook says beside values: what is merged, hidden, filtered or not calculated."""

from __future__ import annotations

import html
import io
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .sheet import Area

MAX_BYTES, HEAD_BYTES = 64 << 20, 4 << 20
"""How much of a sheet is searched, and how much is read."""
NOT_STORED = "formula without a stored result"
_RANGE = re.compile(rb'<(?:\w+:)?mergeCell [^<>]*?ref="([A-Z]+)(\d+):([A-Z]+)(\d+)"')
_ROW = re.compile(rb'<(?:\w+:)?row (?=[^<>]*\bhidden="(?:1|true)")[^<>]*?\br="(\d+)"')
_COLUMN = re.compile(
    rb'<(?:\w+:)?col (?=[^<>]*\bhidden="(?:1|true)")(?=[^<>]*\bmin="(\d+)")[^<>]*\bmax="(\d+)"'
)
_FORMULA = re.compile(rb'<c [^<>]*?r="([A-Z]+)\d+"[^<>]*><f[^<>]*(?:/>|>[^<]*</f>)(?:<v ?/>|<v></v>)?</c>')
_ERROR = re.compile(
    rb'<c r="([A-Z]+)\d+"[^<>]*\bt="e"[^<>]*>(?:<f[^<>]*(?:/>|>[^<]*</f>))?<v>(#[^<]{1,20})</v>'
)
_COLUMN_NAME, _ROW_NUMBER = re.compile(rb'\br="([A-Z]+)\d'), re.compile(rb'\br="[A-Z]*(\d{1,9})"')


@dataclass
class Sheet:
    """A sheet of a workbook.

    Attributes:
        name: Its name.
        is_hidden: Whether it is not shown.
        merged: Ranges whose cells are merged.
        hidden_rows: Rows that are not shown.
        hidden_columns: Columns that are not shown.
        is_filtered: Whether it has a filter.
        missing: How many cells of a column have an error or a formula without a stored result, by column and what it is.
        path: Where it is in the archive.
        head: The markup of its first rows, if it is long.
        last_row: The number of its last row, which may be empty; 0 if it is not known.
        height: The number of the last row of the head.
        width: How many columns the head may have.
    """

    name: str
    is_hidden: bool = False
    merged: list[Area] = field(default_factory=list)
    hidden_rows: list[int] = field(default_factory=list)
    hidden_columns: list[int] = field(default_factory=list)
    is_filtered: bool = False
    missing: Counter[tuple[int, str]] = field(default_factory=Counter)
    path: str = ""
    head: bytes = b""
    last_row: int = 0
    height: int = 0
    width: int = 0

    @property
    def cells(self) -> int:
        """How many cells its head has, with those between the others."""
        return self.width * self.height


def read_sheets(archive: zipfile.ZipFile) -> list[Sheet]:
    """Return the sheets of a workbook, without what is in them; none if they are not in XML."""
    if "xl/workbook.xml" not in archive.namelist():
        return []
    relations = dict[str, str]()
    for tag in _tags(archive, "xl/_rels/workbook.xml.rels", "Relationship"):
        relations[tag.get("Id", "")] = posixpath.join("xl", tag.get("Target", "")).lstrip("/")
    sheets = []
    for tag in _tags(archive, "xl/workbook.xml", "sheet"):
        path = relations.get(tag.get("r:id", ""), "")
        if "chartsheets" not in path:
            sheets.append(_read_sheet(archive, path, tag))
    return sheets


def first_rows(archive: zipfile.ZipFile, sheets: Iterable[Sheet]) -> io.BytesIO:
    """Return a workbook that has the first rows of each sheet, as readers go through all rows before they return some."""
    heads, short = {sheet.path: sheet.head for sheet in sheets if sheet.head}, io.BytesIO()
    with zipfile.ZipFile(short, "w") as target:
        for name in archive.namelist():
            if name.endswith((".xml", ".rels")):
                target.writestr(name, heads.get(name) or archive.read(name))
    short.seek(0)
    return short


def _tags(archive: zipfile.ZipFile, path: str, name: str) -> Iterable[dict[str, str]]:
    with archive.open(path) as file:
        text = file.read(1 << 20).decode("utf-8", "replace")
    for attributes in re.findall(rf"<(?:\w+:)?{name}\s([^<>]*)>", text):
        yield {key: html.unescape(value) for key, value in re.findall(r'([\w:]+)="([^"]*)"', attributes)}


def _read_sheet(archive: zipfile.ZipFile, path: str, tag: dict[str, str]) -> Sheet:
    is_hidden = tag.get("state", "visible") != "visible"
    sheet = Sheet(tag.get("name", ""), is_hidden, path=path)
    if path not in archive.namelist():
        return sheet
    with archive.open(path) as file:
        text = file.read(MAX_BYTES)
    _measure(sheet, text)
    if b"mergeCell " in text:
        for left, top, right, bottom in _RANGE.findall(text):
            sheet.merged.append(Area(int(top) - 1, int(bottom) - 1, _index(left), _index(right)))
    if b"hidden=" in text:
        sheet.hidden_rows = list(map(int, _ROW.findall(text)))
        for first, last in _COLUMN.findall(text):
            sheet.hidden_columns += range(int(first) - 1, min(int(last), sheet.width))
    if b"<f" in text:
        sheet.missing.update((_index(name), NOT_STORED) for name in _FORMULA.findall(text))
    if b't="e"' in text:
        sheet.missing.update((_index(name), error.decode()) for name, error in _ERROR.findall(text))
    sheet.is_filtered = b"autoFilter " in text
    return sheet


def _measure(sheet: Sheet, text: bytes) -> None:
    """Find out how large a sheet is, and which part of its markup is read."""
    if len(text) < MAX_BYTES:
        sheet.last_row = max(map(int, _ROW_NUMBER.findall(text[-HEAD_BYTES:])), default=0)
    head = text[:HEAD_BYTES]
    if len(text) > HEAD_BYTES and b"<row " in head:
        head = head[: head.rindex(b"<row ")]
        sheet.head = head + b"</sheetData></worksheet>"
    sheet.width = max(map(_index, {*_COLUMN_NAME.findall(head)}), default=0) + 1
    sheet.height = max(map(int, {*_ROW_NUMBER.findall(head)}), default=head.count(b"<row "))


def _index(name: bytes) -> int:
    """Return the number of a column with a name, from zero on."""
    number = 0
    for letter in name[:3]:
        number = 26 * number + letter - 64
    return number - 1
