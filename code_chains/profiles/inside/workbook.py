"""Workbooks: their sheets, the line that reads the table of each, and what the line leaves out or changes."""

from __future__ import annotations

import importlib.util
import itertools
import re
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, cast

from .columns import PANDAS_MISSING, Column, classify, conversion, key_of, literal, mapping, with_conversions
from .frames import Json, describe_frame, plural, run_lines, texts_in, without_none
from .markup import Sheet, first_rows, read_sheets
from .numbers import NumberFormat
from .sheet import Area, Cells, SheetTable, are_texts, cell_text, find_table, letters, row_text
from .source import Source
from .traps import find_traps

MAX_SHEETS, MAX_NOTED, MAX_SPECIAL_COLUMNS = 8, 5, 30
MAX_EXPANDED_BYTES = 200 << 20
"""A workbook that expands to more is not opened."""
MAX_ROWS, MAX_WIDTH = 10_000, 2_000
MAX_CELLS = {"openpyxl": 12_000}
MAX_CELLS_OF_OTHERS = 40_000
"""Cells that are read of all sheets: what takes about a second."""
MAX_SLOW_CELLS, MAX_DENSE_CELLS = 10_000, 5_000_000
"""For more cells calamine is used, which takes a tenth of the time, but memory for the cells between others as well."""
_CODE, _ZEROS = re.compile(r"0\d+"), re.compile("00+")
KINDS = {"xl/workbook.xml": "xlsx", "xl/workbook.bin": "xlsb"}
STREAMS = {"EncryptedPackage": "locked", "Workbook": "xls"}
FORMATS = {"ods": "OpenDocument spreadsheet", "xls": "old Excel workbook", "xlsb": "binary Excel workbook"}
OPENPYXL, CALAMINE = {"openpyxl": "openpyxl"}, {"calamine": "python_calamine"}
ENGINES = {
    "xlsx": OPENPYXL | CALAMINE,
    "xlsb": CALAMINE | {"pyxlsb": "pyxlsb"},
    "ods": CALAMINE | {"odf": "odf"},
    "xls": CALAMINE | {"xlrd": "xlrd"},
}
"""Engines of pandas for a kind of workbook, the preferred one first, and the modules that they need."""
JOINED = (
    '.pipe(lambda df: df.set_axis([" ".join(str(part) for part in name if not str(part).startswith("Unnamed: "))'
    " for name in df.columns], axis=1))"
)
"""Gives columns below several rows of names one name each."""


@dataclass
class Part:
    """A sheet on its way to a profile: where its table is, and what is done with it."""

    sheet: Sheet
    cells: list[Cells]
    table: SheetTable
    is_complete: bool
    arguments: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    conversions: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def column(self, index: int) -> list[Any]:
        """Return the cells of a column of the table."""
        return [self.cells[row][self.table.area.left + index] for row in self.table.body]

    def text(self, row: int) -> str:
        """Return what is in a row, in the columns of the table."""
        area = self.table.area
        return row_text(self.cells[row][area.left : area.right + 1])

    def lines(self, **changes: str) -> list[str]:
        """Return the lines that read the table."""
        arguments = self.arguments | changes
        if self.types:  # Texts that look like numbers would be read as such.
            arguments["dtype"] = mapping(self.types)
        name = arguments.pop("name")
        call = f"pd.read_excel({', '.join([name, *map('='.join, arguments.items())])})"
        if len(self.table.header) > 1:  # read_excel takes no usecols with these.
            call += f".iloc[:, {self.table.area.left}:{self.table.area.right + 1}]{JOINED}"
        if not all(map(self.text, self.table.body)):
            call += '.dropna(how="all", ignore_index=True)'
        return with_conversions(call, self.conversions)


def profile_workbook(source: Source) -> Json | None:
    """Describe the sheets of a workbook; None if it is none."""
    kind = "xlsx"
    try:
        kind = _kind(source)
        return _profile(source, kind) if kind else None
    except Exception as error:
        if kind == "xlsx" and b"xl/" not in source.data:
            raise
        facts = [f"cannot be read: damaged, cut off, or too large ({type(error).__name__})"]
        return {"format": FORMATS.get(kind, "Excel workbook"), "facts": facts, "read": []}


def _kind(source: Source) -> str:
    """Return the suffix of what a file is by its content; empty if it is no workbook."""
    if source.compression:
        return ""
    if not source.data.startswith(b"PK"):
        return next((STREAMS[name] for name in STREAMS if name.encode("utf-16-le") in source.data), "")
    if b"opendocument.spreadsheet" in source.data[:100]:
        return "ods"
    with zipfile.ZipFile(source.name) as archive:
        names = archive.namelist()
    return next((KINDS[name] for name in KINDS if name in names), "")


def _profile(source: Source, kind: str) -> Json:
    profile: Json = {"format": FORMATS.get(kind, "Excel workbook"), "facts": [], "read": []}
    if kind == "locked":
        return profile | {"facts": ["protected by a password"]}
    content: Any = source.name
    sheets = list[Sheet]()
    if kind != "xls":
        with zipfile.ZipFile(source.name) as archive:
            expanded = sum(map(attrgetter("file_size"), archive.infolist()))
            if expanded > MAX_EXPANDED_BYTES:
                return profile | {"facts": [f"expands to {expanded:,} bytes"]}
            sheets = read_sheets(archive)
            content = first_rows(archive, sheets) if any(map(attrgetter("head"), sheets)) else source.name
    engines = [engine for engine, module in ENGINES[kind].items() if importlib.util.find_spec(module)]
    if not engines or importlib.util.find_spec("pandas") is None:
        needed = f"pandas or {next(iter(ENGINES[kind].values())).replace('_', '-')}"
        profile["facts"] = [f"sheets {', '.join(sheet.name for sheet in sheets[:20])}"] if sheets else []
        return profile | {"notes": [f"{needed} is not installed, so it cannot be read as a table"]}
    # Invariant: calamine ends the process where it has no memory for a sheet, so that no such sheet is given to it.
    sizes = list(map(attrgetter("cells"), sheets))
    is_dense = max(sizes, default=0) <= MAX_DENSE_CELLS
    if sheets and not is_dense and engines == ["calamine"]:
        return profile | {"facts": ["has cells too far apart to be read without openpyxl"]}
    engine = engines[-1 if is_dense and sum(sizes) > MAX_SLOW_CELLS else 0]
    return profile | _read_book(source, content, sheets, engine)


def _read_book(source: Source, content: Any, sheets: list[Sheet], engine: str) -> Json:
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pd.ExcelFile(content, engine=cast("Any", engine)) as book:
            sheets = sorted(sheets or _sheets_of(book), key=attrgetter("is_hidden"))
            parts = [_profile_sheet(source, book, sheet, sheets) for sheet in sheets[:MAX_SHEETS]]
    return {"facts": [plural(len(sheets), "sheet")], "parts": parts}


def _sheets_of(book: Any) -> list[Sheet]:
    """Return the sheets of a workbook that is not in XML."""
    sheets = getattr(book.book, "sheets_metadata", ())
    hidden = {sheet.name for sheet in sheets if not str(sheet.visible).endswith(".Visible")}
    return [Sheet(str(name), is_hidden=name in hidden) for name in book.sheet_names]


def _profile_sheet(source: Source, book: Any, sheet: Sheet, sheets: list[Sheet]) -> Json:
    facts = ["hidden"] if sheet.is_hidden else []
    if sheet.width > MAX_WIDTH:
        return {"name": sheet.name, "facts": [*facts, f"{sheet.width:,} columns, which is too wide"]}
    total = sum(map(attrgetter("cells"), sheets[:MAX_SHEETS]))
    most = MAX_CELLS.get(book.engine, MAX_CELLS_OF_OTHERS)
    limit = max(20, most * sheet.height // total) if total else MAX_ROWS // len(sheets)
    read = book.parse(sheet.name, header=None, dtype=object, na_filter=False, nrows=limit + 1).values.tolist()
    cells: list[Cells] = [[None if value == "" else value for value in row] for row in read[:limit]]
    table = find_table(cells, is_complete=len(read) <= limit)
    if table is None:
        # Invariant: "empty" is said of what was read to its end.
        found = "empty" if max(len(read), sheet.height) <= limit else f"nothing in its first {limit:,} rows"
        return {"name": sheet.name, "facts": [*facts, found]}
    part = Part(sheet, cells, table, is_complete=not sheet.head and max(len(read), sheet.height) <= limit)
    _set_arguments(part, source.name, len(sheets))
    part.arguments["engine"] = literal(book.engine)
    # pandas refuses columns beyond the rows that it reads.
    reach = next((i for i, row in enumerate(table.body) if cells[row][table.area.right] is not None), 0)
    frame = _run(part, book, reach + 1)
    _note_rows(part)
    _note_sheet(part)
    _fill_groups(part, list(frame.columns))
    for index, key in enumerate(frame.columns[:MAX_SPECIAL_COLUMNS]):
        if _is_name(key):
            _convert(part, key_of(key), part.column(index))
    if len(frame.columns) > MAX_SPECIAL_COLUMNS:
        part.notes.append(f"texts in columns after the first {MAX_SPECIAL_COLUMNS} were not looked at")
    _note_formats(part, book, frame.columns)
    frame = _run(part, book, len(table.body))
    part.notes += find_traps(frame)
    rows = plural(len(frame), "row")
    if not part.is_complete:
        rows = f"up to {sheet.last_row - table.header.stop:,} rows" if sheet.last_row else f"more than {rows}"
    shown = table.area.of(cells)[table.header.start - table.area.top :][:4]
    return {
        "name": sheet.name,
        "facts": [*facts, rows],
        "read": ["import pandas as pd", *part.lines()],
        "columns": describe_frame(frame),
        "column_count": len(frame.columns),
        "notes": part.notes,
        "first_rows": [", ".join(map(cell_text, row))[:400] for row in shown],
    }


def _run(part: Part, book: Any, nrows: int) -> Any:
    """Return what the lines return, of the first rows."""
    return run_lines(part.lines(name="book", nrows=str(nrows)), book=book)


def _set_arguments(part: Part, name: str, count: int) -> None:
    """Say where the table is."""
    table, arguments = part.table, {"name": literal(name)}
    if count > 1:
        arguments["sheet_name"] = literal(part.sheet.name)
    if len(table.header) != 1:
        arguments["header"] = str([*range(len(table.header))] or None)
    if table.skipped:
        arguments["skiprows"] = str([*range(table.header.start), *table.skipped])
    elif table.header.start:
        arguments["skiprows"] = str(table.header.start)
    if len(table.header) < 2 and (table.area.left or table.area.right < len(part.cells[0]) - 1):
        arguments["usecols"] = literal(table.area.columns)
    if part.is_complete and table.end < len(part.cells):
        arguments["nrows"] = str(len(table.body))
    part.arguments = arguments


def _note_rows(part: Part) -> None:
    """Say which rows and ranges the line leaves out."""
    table, body = part.table, {*part.table.body}
    below = list(filter(part.text, range(table.header.stop, table.area.bottom + 1)))
    left_out = [f"row {row + 1} ({part.text(row)[:30]})" for row in below if row not in body]
    if left_out:
        part.notes.append(f"{len(left_out)} of {len(below)} rows left out: {_some(left_out)}")
    others = [area for area in table.others if area.bottom >= table.header.start or _is_table(part, area)]
    above = list(map(row_text, part.cells[: table.header.start]))
    for area in others:
        above[area.top : area.bottom + 1] = [""] * len(above[area.top : area.bottom + 1])
    if above := list(filter(None, above)):
        part.notes.append(f"{plural(len(above), 'row')} above left out, the first is: {above[0][:60]}")
    if others:
        names = _some([area.name for area in others])
        part.notes.append(f"other tables or remarks are in {names}; this reads {table.area.name}")
    if not part.is_complete:
        part.notes.append(f"only rows 1 to {len(part.cells)} were looked at; totals may end the sheet")


def _is_table(part: Part, area: Area) -> bool:
    """Return whether an area has names above a column of values, and is no list of settings."""
    names, *rows = area.of(part.cells)
    values = [all(not isinstance(row[index], str | None) for row in rows) for index in range(len(names))]
    return (
        len(rows) > 0
        and None not in names
        and are_texts(names)
        and (any(values[1:]) if len(rows) > 1 else values[0])
    )


def _some(texts: Sequence[str]) -> str:
    """Return the first texts, and how many there are besides."""
    more = f" and {len(texts) - MAX_NOTED} more" if len(texts) > MAX_NOTED else ""
    return ", ".join(texts[:MAX_NOTED]) + more


def _note_sheet(part: Part) -> None:
    """Say what of the sheet is not shown or not calculated."""
    sheet = part.sheet
    if sheet.hidden_rows:
        how = "hidden by a filter" if sheet.is_filtered else "hidden"
        part.notes.append(
            f"rows {_some(list(map(str, sheet.hidden_rows)))} of the sheet are {how}; they are read, too"
        )
    if sheet.hidden_columns:
        names = _some([_name(part, column) for column in sheet.hidden_columns])
        part.notes.append(f"hidden columns of the sheet are read, too: {names}")
    for (column, what), number in itertools.islice(sheet.missing.items(), MAX_NOTED):
        part.notes.append(f"{_name(part, column)} is missing in {plural(number, 'row')}: {what}")


def _name(part: Part, column: int) -> str:
    """Return what a column of the sheet is called."""
    row = part.cells[part.table.header.stop - 1] if part.table.header else ()
    name = cell_text(row[column]) if column < len(row) else ""
    return f"{literal(name)} (column {letters(column)})" if name else f"column {letters(column)}"


def _fill_groups(part: Part, keys: list[Any]) -> None:
    """Repeat labels that stand for the rows below: merged ones, or ones in the first column of which most are blank."""
    table, is_outer = part.table, True
    for index, key in enumerate(keys[:MAX_SPECIAL_COLUMNS]):
        values, name = part.column(index), key_of(key)
        blanks = {row for row, value in zip(table.body, values, strict=True) if value is None}
        merged = _rows_below_merged(part, table.area.left + index)
        are_labels = blanks <= merged and (is_outer or are_texts(values))
        if index == 0 and len(keys) > 1:
            are_labels = are_labels or _are_group_labels(values, part.column(1))
        is_outer = are_labels and bool(blanks) and values[0] is not None and _is_name(key)
        if is_outer:
            part.conversions[name] = f"df[{name}].ffill()"
            part.notes.append(f"{plural(len(blanks), 'blank cell')} of {name} filled with the label above")
        elif blanks & merged:
            part.notes.append(f"merged cells of {name} hold one value for several rows")


def _rows_below_merged(part: Part, column: int) -> set[int]:
    """Return the rows of a column that are merged with one above."""
    rows = set[int]()
    for span in part.sheet.merged:
        if span.left == column:
            rows.update(range(span.top + 1, min(span.bottom, part.table.area.bottom) + 1))
    return rows


def _is_name(key: object) -> bool:
    """Return whether a name of a column can be written as source."""
    return isinstance(key, str | int | float)


def _are_group_labels(labels: list[Any], others: list[Any]) -> bool:
    """Return whether most of the labels are blank, none is twice there, and the values beside them are complete."""
    filled = without_none(labels)
    return 2 * len(filled) <= len(labels) and len(filled) == len(set(filled)) and None not in others


def _convert(part: Part, key: str, cells: list[Any]) -> None:
    """Convert texts of a column that are numbers or dates, and say which values become missing."""
    values = without_none(cells)
    texts = texts_in(values)
    if not texts:
        return
    # Whole numbers stand for other values, which must not tell how the texts are to be read.
    column = classify(key, [value if isinstance(value, str) else str(i) for i, value in enumerate(values)])
    column.key = key
    if len(texts) == len(values):
        _convert_texts(part, column)
    elif not PANDAS_MISSING.issuperset(texts):
        _convert_mixed(part, column, values, texts)
    marks = PANDAS_MISSING.union(column.missing)
    if lost := [literal(text) for text in texts if text.strip() and text.strip() in marks]:
        shown = _some(list(dict.fromkeys(lost)))
        part.notes.append(f"{len(lost)} of {len(values)} values of {key} become missing: {shown}")


def _convert_texts(part: Part, column: Column) -> None:
    """Convert a column of texts."""
    key = column.key
    if column.errors:
        part.notes.append(f"{key} stays text, as {_some(list(map(literal, column.errors)))} are no numbers")
    if column.kind in ("number", "identifier") or column.may_be_numbers:
        part.types[key] = "str"
    if column.kind == "number" and column.number:
        part.conversions[key] = conversion(column, column.number.resolved("."), may_miss=bool(column.missing))
        if column.number.units:
            part.notes.append(f"{key} is in {' or '.join(column.number.units)}")
    elif column.date and column.date.is_ambiguous:
        part.notes.append(f"dates of {key} are texts, as day and month could be exchanged")
    elif column.date:
        errors = ', errors="coerce"' if column.missing else ""
        part.conversions[key] = f'pd.to_datetime(df[{key}], format="{column.date.format}"{errors})'


def _convert_mixed(part: Part, column: Column, values: list[Any], texts: list[str]) -> None:
    """Convert a column of numbers with a few texts that are numbers or marks of missing values."""
    kinds = {type(value).__name__ for value in values} - {"str"}
    number = column.number and column.number.resolved(".")
    is_plain = column.kind == "number" and number in (NumberFormat(), NumberFormat("."))
    if number and is_plain and kinds <= {"int", "float"}:
        part.conversions[column.key] = conversion(column, number, may_miss=bool(column.missing))
        return
    column.missing = ()
    if any(map(_CODE.fullmatch, texts)):
        part.types[column.key] = "str"  # Of a code that is a text, zeros at its beginning would be lost.
    example = f"{plural(len(texts), 'text')}, such as {literal(texts[0][:30])}"
    what = f"{len(values) - len(texts)} of {' and '.join(sorted(kinds))}"
    part.notes.append(f"{column.key} mixes {what} with {example}")


def _note_formats(part: Part, book: Any, keys: Iterable[Any]) -> None:
    """Say which columns the workbook shows as percent, and read those as text which it shows with leading zeros."""
    if not hasattr(book.book, "worksheets") or not part.table.body:
        return
    row, left = part.table.body[0] + 1, part.table.area.left + 1
    cells = next(book.book[part.sheet.name].iter_rows(min_row=row, max_row=row, min_col=left), ())
    shown = list[str]()
    for key, cell in zip(keys, cells, strict=False):
        shape = str(getattr(cell, "number_format", ""))
        if "%" in shape:
            shown.append(literal(str(key)))
        elif _ZEROS.fullmatch(shape) and _is_name(key):
            part.types[key_of(key)] = "str"
            part.conversions[key_of(key)] = f"df[{key_of(key)}].str.zfill({len(shape)})"
            part.notes.append(f"{key_of(key)} is shown with {len(shape)} digits, so it is read as text")
    if shown:
        part.notes.append(f"{_some(shown)} is shown as percent: 0.25 means 25%")
