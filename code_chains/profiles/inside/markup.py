"""What the markup of an Excel workbook says beside values: what is merged, hidden, filtered or not calculated."""

from __future__ import annotations

import html
import io
import itertools
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .sheet import Area

MAX_BYTES, HEAD_BYTES = 64 << 20, 4 << 20
"""How much of a sheet is searched, and how much is read."""
MAX_TAGS = 100_000
"""How many elements of a kind are looked at."""
NOT_STORED = "formula without a stored result"
_HIDDEN = r'(?=[^<>]*\bhidden="(?:1|true)")'
_RANGE = re.compile(r"([A-Z]+)(\d+):([A-Z]+)(\d+)")
_FORMULA = re.compile(rb'<c [^<>]*?r="([A-Z]+)\d+"[^<>]*><f[^<>]*(?:/>|>[^<]*</f>)(?:<v ?/>|<v></v>)?()</c>')
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
    relations = {}
    for tag in _tags(_read(archive, "xl/_rels/workbook.xml.rels"), "Relationship"):
        relations[tag.get("Id", "")] = posixpath.join("xl", tag.get("Target", "")).lstrip("/")
    sheets = []
    for tag in _tags(_read(archive, "xl/workbook.xml"), "sheet"):
        sheet = Sheet(tag.get("name", ""), tag.get("state", "visible") != "visible")
        sheet.path = relations.get(tag.get("r:id", ""), "")
        if sheet.path in archive.namelist():
            _add_markup(sheet, _read(archive, sheet.path))
        if "chartsheets" not in sheet.path:
            sheets.append(sheet)
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


def _read(archive: zipfile.ZipFile, path: str) -> bytes:
    with archive.open(path) as file:
        return file.read(MAX_BYTES)


def _tags(text: bytes, name: str, such: str = "") -> Iterator[dict[str, str]]:
    """Return the attributes of the first elements with a name."""
    found = re.finditer(rf"<(?:\w+:)?{name}\s{such}([^<>]*)>".encode(), text)
    for tag in itertools.islice(found, MAX_TAGS):
        attributes = re.findall(r'([\w:]+)="([^"]*)"', tag[1].decode("utf-8", "replace"))
        yield {key: html.unescape(value) for key, value in attributes}


def _add_markup(sheet: Sheet, text: bytes) -> None:
    """Add what the markup of a sheet says; what it has none of is not searched for, as it is long."""
    _measure(sheet, text)
    sheet.is_filtered = b"autoFilter " in text
    if b"mergeCell " in text:
        for tag in _tags(text, "mergeCell"):
            for left, top, right, bottom in _RANGE.findall(tag.get("ref", "")):
                sheet.merged.append(Area(int(top) - 1, int(bottom) - 1, _index(left), _index(right)))
    if b"hidden=" in text:
        sheet.hidden_rows = [int(tag["r"]) for tag in _tags(text, "row", _HIDDEN) if "r" in tag]
        for tag in _tags(text, "col", _HIDDEN):
            sheet.hidden_columns += range(int(tag["min"]) - 1, min(int(tag["max"]), sheet.width))
    formulas = Counter(_FORMULA.findall(text) if b"<f" in text else ())
    errors = Counter(_ERROR.findall(text) if b't="e"' in text else ())
    for (name, error), count in (formulas + errors).items():
        sheet.missing[_index(name.decode()), error.decode() or NOT_STORED] = count


def _measure(sheet: Sheet, text: bytes) -> None:
    """Find out how large a sheet is, and which part of its markup is read."""
    if len(text) < MAX_BYTES:
        sheet.last_row = max(map(int, _ROW_NUMBER.findall(text[-HEAD_BYTES:])), default=0)
    head = text[:HEAD_BYTES]
    if len(text) > HEAD_BYTES and b"<row " in head:
        head = head[: head.rindex(b"<row ")]
        sheet.head = head + b"</sheetData></worksheet>"
    sheet.width = max(map(_index, map(bytes.decode, {*_COLUMN_NAME.findall(head)})), default=0) + 1
    sheet.height = max(map(int, {*_ROW_NUMBER.findall(head)}), default=head.count(b"<row "))


def _index(name: str) -> int:
    """Return the number of a column with a name, from zero on."""
    number = 0
    for letter in name[:3]:
        number = 26 * number + ord(letter) - 64
    return number - 1
