"""Workbooks as people make them: what the line that a profile suggests returns, against the true table.

A workbook is right if the line returns the table, with its header and all its rows, and the profile says what it must; it
is noted if the line does not, but the profile says so. Each is written by code when it is needed.

Usage: python -m benchmarks.workbooks [NAME]
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import openpyxl
import pandas as pd
from openpyxl.worksheet.worksheet import Worksheet

from code_chains.executors import SandboxExecutor
from code_chains.profiles import FileProfiler

Rows = Sequence[Sequence[Any]]
Write = Callable[[Path], None]
SHOW = """
import datetime, json
def plain(value):
    if hasattr(value, "isoformat"):
        return value.isoformat() if value == value else None
    if value is None or value != value:
        return None
    return value.item() if hasattr(value, "item") else value
if not isinstance(df.index, pd.RangeIndex):
    df = df.reset_index()
print(json.dumps([list(map(str, df.columns)), *([plain(v) for v in row] for row in df.astype(object).values)]))
"""
"""Prints what a line has read."""
UNNAMED = re.compile(r"Unnamed: .*|index|level_\d+|None|")
"""What pandas calls a column without a name."""


class Workbook(NamedTuple):
    """A workbook, the rows of its table with the header first, and what must be said about it."""

    write: Write
    table: Rows
    says: tuple[str, ...] = ()
    file: str = "book.xlsx"


def rows_of(sheet: Worksheet, rows: Rows) -> None:
    """Fill a sheet."""
    for row in rows:
        sheet.append(list(row))


def write_rows(
    path: Path, *, rows: Rows, merged: Sequence[str] = (), then: Callable[..., None] | None = None
) -> None:
    """Write a workbook with one sheet, and with what else is to be done with it."""
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    rows_of(sheet, rows)
    for area in merged:
        sheet.merge_cells(area)
    if then:
        then(sheet)
    book.save(path)


def plain(*rows: Sequence[Any], merged: Sequence[str] = (), then: Callable[..., None] | None = None) -> Write:
    """Return what writes these rows."""
    return partial(write_rows, rows=rows, merged=merged, then=then)


def frame(data: pd.DataFrame, **options: Any) -> Write:
    """Return what writes a frame as pandas does."""
    return lambda path: data.to_excel(path, engine="openpyxl", **options)


def hide(sheet: Worksheet) -> None:
    """Hide two rows, a column and another sheet."""
    for row in (3, 4):
        sheet.row_dimensions[row].hidden = True
    sheet.column_dimensions["C"].hidden = True
    other = sheet.parent.create_sheet("Archive")
    rows_of(other, [["year", "sum"], [2019, 4]])
    other.sheet_state = "hidden"


def style(cells: str, number_format: str) -> Callable[[Worksheet], None]:
    """Return what gives cells a format."""

    def apply(sheet: Worksheet) -> None:
        for row in sheet[cells]:
            for cell in row:
                cell.number_format = number_format

    return apply


TOWNS = ["Oslo", "Bergen", "Turku", "Vaasa", "Malmö", "Lund"]
PEOPLE = [["Ann", 34, date(1990, 5, 1)], ["Bo", 51, date(1973, 2, 9)], ["Cy", 27, date(1997, 11, 30)]]
BORN = [
    ["Ann", 34, datetime(1990, 5, 1)],
    ["Bo", 51, datetime(1973, 2, 9)],
    ["Cy", 27, datetime(1997, 11, 30)],
]
SALES = [["North", "a", 3], ["North", "b", 4], ["South", "a", 5], ["South", "b", 6]]
SUMS = pd.DataFrame(SALES, columns=["region", "kind", "units"]).groupby(["region", "kind"]).sum()
IDS = [[f"{100_000 + 7 * number}", number] for number in range(999)] + [["000123", 999]]

FIRST = {
    "index": Workbook(
        frame(pd.DataFrame({"city": TOWNS, "visits": range(1, 7)})),
        [["", "city", "visits"], *([i, town, i + 1] for i, town in enumerate(TOWNS))],
    ),
    "index of text": Workbook(
        frame(pd.DataFrame({"a": [1, 2], "b": [3.5, 4.5]}, index=["x", "y"])),
        [["", "a", "b"], ["x", 1, 3.5], ["y", 2, 4.5]],
    ),
    "gap in the header": Workbook(
        plain(["Name", None, "Born"], *PEOPLE),
        [["Name", "", "Born"], *BORN],
    ),
    "last name empty": Workbook(
        plain(["Name", "Age", None], *PEOPLE),
        [["Name", "Age", ""], *BORN],
    ),
    "years": Workbook(
        plain([None, 2019, 2020], ["Oslo", 4, 5], ["Turku", 6, 7]),
        [["", "2019", "2020"], ["Oslo", 4, 5], ["Turku", 6, 7]],
    ),
    "text ids": Workbook(plain(["id", "n"], *IDS), [["id", "n"], *IDS]),
    "two header rows": Workbook(
        plain(
            ["Region", 2023, None, 2024, None], [None, "Q1", "Q2", "Q1", "Q2"],
            ["North", 1, 2, 3, 4], ["South", 5, 6, 7, 8],
            merged=["A1:A2", "B1:C1", "D1:E1"],
        ),
        [["Region", "2023 Q1", "2023 Q2", "2024 Q1", "2024 Q2"], ["North", 1, 2, 3, 4], ["South", 5, 6, 7, 8]],
    ),
    "notes above": Workbook(
        plain(["Notes", "at", "the", None, "top"], ["or", "merging", None, "cells"], ["Name", "Age", "Born"], *PEOPLE),
        [["Name", "Age", "Born"], *BORN],
        ("2 rows above|skips? .*2",),
    ),
    "total": Workbook(
        plain(["item", "amount"], ["pens", 4], ["ink", 6], ["paper", 9], ["glue", 2], ["Total", 21]),
        [["item", "amount"], ["pens", 4], ["ink", 6], ["paper", 9], ["glue", 2]],
        (r"1 of 5 rows.*row 6.*Total",),
    ),
    "labels of groups": Workbook(frame(SUMS), [["region", "kind", "units"], *SALES], ("region",)),
    "tables side by side": Workbook(
        plain(["item", "n", None, "town", "km"], ["pens", 4, None, "Oslo", 12], ["ink", 6, None, "Turku", 99]),
        [["item", "n"], ["pens", 4], ["ink", 6]],
        ("A1:B3", "D1:E3"),
    ),
    "tables below each other": Workbook(
        plain(["item", "n"], ["pens", 4], ["ink", 6], [], ["town", "km"], ["Oslo", 12], ["Turku", 99]),
        [["item", "n"], ["pens", 4], ["ink", 6]],
        ("A1:B3", "A5:B7"),
    ),
    "hidden": Workbook(
        plain(["Name", "Age", "Born"], *PEOPLE, then=hide),
        [["Name", "Age", "Born"], *BORN],
        ("hidden.*Archive|Archive.*hidden", "rows? 3.*hidden|hidden rows.*3", "hidden column.*(Born|C)|column.*C.*hidden"),
    ),
    "formulas": Workbook(
        plain(["item", "net", "gross"], ["pens", 4, "=B2*1.2"], ["ink", 6, "=B3*1.2"]),
        [["item", "net", "gross"], ["pens", 4, 4.8], ["ink", 6, 7.2]],
        ("gross.*formula|formula.*gross",),
    ),
    "units": Workbook(
        plain(["site", "depth", "flow"], [None, "m", "l/s"], ["A", 3.5, 12], ["B", 4.25, 15], ["C", 1.5, 9]),
        [["site", "depth", "flow"], ["A", 3.5, 12], ["B", 4.25, 15], ["C", 1.5, 9]],
        (r"row 2.*(units|\bm\b)",),
    ),
    "numbers as text": Workbook(
        plain(["id", "amount"], *([i, f"{i * 3.5}"] for i in range(1, 39)), [39, "n/a"], [40, "see note"]),
        [["id", "amount"], *([i, f"{i * 3.5}"] for i in range(1, 39)), [39, None], [40, "see note"]],
        ("n/a", "see note", "1 of 40"),
    ),
    "percent": Workbook(
        plain(["item", "share"], ["pens", 0.25], ["ink", 0.75], then=style("B2:B3", "0.0%")),
        [["item", "share"], ["pens", 0.25], ["ink", 0.75]],
        ("percent",),
    ),
    "errors": Workbook(
        plain(["item", "rate"], ["pens", 2.5], ["ink", "#DIV/0!"], ["glue", "#N/A"], ["paper", 4]),
        [["item", "rate"], ["pens", 2.5], ["ink", None], ["glue", None], ["paper", 4]],
        ("#DIV/0!", "#N/A"),
    ),
    "serial dates": Workbook(
        plain(["date", "n"], [45292, 3], [45293, 4], [45301, 8], [45333, 2]),
        [["date", "n"], *([datetime(2024, *day), n] for day, n in (((1, 1), 3), ((1, 2), 4), ((1, 10), 8), ((2, 11), 2)))],
        ("serial|days since",),
    ),
    "another name": Workbook(
        plain(["Name", "Age", "Born"], *PEOPLE), [["Name", "Age", "Born"], *BORN], file="data.csv"
    ),
}  # fmt: skip


def write_pivot(path: Path) -> None:
    """Write a pivot table with two levels of columns."""
    sales = [
        ("North", 2023, "Q1", 1),
        ("North", 2024, "Q1", 2),
        ("South", 2023, "Q1", 3),
        ("South", 2024, "Q2", 4),
    ]
    data = pd.DataFrame(sales, columns=["region", "year", "quarter", "units"])
    data.pivot_table(index="region", columns=["year", "quarter"], values="units").to_excel(
        path, engine="openpyxl"
    )


def filter_rows(sheet: Worksheet) -> None:
    """Leave a filter on, and another sheet that only a program shows."""
    sheet.auto_filter.ref = "A1:C4"
    sheet.row_dimensions[2].hidden = True
    sheet.parent.create_sheet("Keys").append(["k"])
    sheet.parent.worksheets[1].sheet_state = "veryHidden"


def write_ods(path: Path) -> None:
    """Write a spreadsheet of OpenDocument with a title."""
    space = 'xmlns:{0}="urn:oasis:names:tc:opendocument:xmlns:{0}:1.0"'.format
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'.format
    number = '<table:table-cell office:value-type="float" office:value="{}"/>'.format
    rows = [cell("Stock"), "", cell("item") + cell("n"), cell("pens") + number(4), cell("ink") + number(6)]
    text = "".join(f"<table:table-row>{row or '<table:table-cell/>'}</table:table-row>" for row in rows)
    table = f'<office:spreadsheet><table:table table:name="S">{text}</table:table></office:spreadsheet>'
    body = f"<office:body>{table}</office:body>"
    spaces = " ".join(map(space, ("office", "table", "text", "manifest")))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", f"<manifest:manifest {spaces}/>")
        archive.writestr("content.xml", f"<office:document-content {spaces}>{body}</office:document-content>")


DAYS = pd.date_range("2024-01-01", periods=3)
ZIPS = [[f"{10_115 + 3 * number}", number] for number in range(600)] + [["01067", 600], ["04103", 601]]
SECOND = {
    "index of dates": Workbook(
        frame(pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}, index=DAYS)),
        [["", "a", "b"], *([day.to_pydatetime(), n, text] for day, n, text in zip(DAYS, (1, 2, 3), "xyz", strict=True))],
    ),
    "index beside texts": Workbook(
        frame(pd.DataFrame({"name": ["Ann", "Bo"], "town": ["Oslo", "Lund"]})),
        [["", "name", "town"], [0, "Ann", "Oslo"], [1, "Bo", "Lund"]],
    ),
    "two gaps in the header": Workbook(
        plain(["Name", None, None, "Town"], ["Ann", 3, 2.5, "Oslo"], ["Bo", 4, 3.5, "Lund"]),
        [["Name", "", "", "Town"], ["Ann", 3, 2.5, "Oslo"], ["Bo", 4, 3.5, "Lund"]],
    ),
    "months": Workbook(
        plain(["Item", date(2024, 1, 1), date(2024, 2, 1)], ["pens", 4, 5], ["ink", 6, 7]),
        [["Item", "2024 01 01 00 00 00", "2024 02 01 00 00 00"], ["pens", 4, 5], ["ink", 6, 7]],
    ),
    "numbered columns": Workbook(
        frame(pd.DataFrame([[1.5, "a"], [2.5, "b"]])), [["", "0", "1"], [0, 1.5, "a"], [1, 2.5, "b"]]
    ),
    "postcodes below a title": Workbook(
        plain(["Visitors 2024"], [], ["plz", "n"], *ZIPS), [["plz", "n"], *ZIPS], ("1 row above",)
    ),
    "pivot table": Workbook(
        write_pivot,
        [["region", "2023 Q1", "2024 Q1", "2024 Q2"], ["North", 1, 2, None], ["South", 3, None, 4]],
        ("left out",),
    ),
    "groups of columns": Workbook(
        plain(
            ["Product", "Sales", None, "Costs", None], [None, "net", "gross", "staff", "rent"],
            ["pens", 1, 2, 3, 4], ["ink", 5, 6, 7, 8],
            merged=["A1:A2", "B1:C1", "D1:E1"],
        ),
        [["Product", "Sales net", "Sales gross", "Costs staff", "Costs rent"], ["pens", 1, 2, 3, 4], ["ink", 5, 6, 7, 8]],
    ),
    "report": Workbook(
        plain(
            ["Sales by shop"], ["Created", date(2024, 3, 1)], [], ["shop", "month", "sum"],
            ["A", "Jan", 10.5], ["B", "Jan", 20.25], ["A", "Feb", 8], [], ["Source: till system"],
            merged=["A1:C1"],
        ),
        [["shop", "month", "sum"], ["A", "Jan", 10.5], ["B", "Jan", 20.25], ["A", "Feb", 8]],
        ("2 rows above", "1 of 4 rows left out.*Source"),
    ),
    "sum and remark": Workbook(
        plain(["Posten", "Betrag", "Art"], ["Miete", 900, "x"], ["Strom", 80.5, "y"], ["Summe", 980.5], ["* geschätzt"]),
        [["Posten", "Betrag", "Art"], ["Miete", 900, "x"], ["Strom", 80.5, "y"]],
        (r"2 of 4 rows left out: row 4 \(Summe.*row 5",),
    ),
    "labels of two levels": Workbook(
        plain(
            ["land", "town", "kind", "n"], ["N", "Oslo", "a", 1], [None, None, "b", 2], [None, "Moss", "a", 3],
            ["S", "Lund", "a", 4],
            merged=["A2:A4", "B2:B3"],
        ),
        [
            ["land", "town", "kind", "n"], ["N", "Oslo", "a", 1], ["N", "Oslo", "b", 2], ["N", "Moss", "a", 3],
            ["S", "Lund", "a", 4],
        ],
        ('"land"', '"town"'),
    ),
    "parameters above": Workbook(
        plain(
            ["Site", "Hill"], ["Operator", "Ann"], [],
            ["t", "temp", "ok"], [1, 20.5, True], [2, 21, False], [3, 19, True],
        ),
        [["t", "temp", "ok"], [1, 20.5, True], [2, 21, False], [3, 19, True]],
        ("2 rows above",),
    ),
    "titled tables": Workbook(
        plain(
            ["Pens"], ["colour", "n"], ["red", 1], ["blue", 2], ["green", 3], [],
            ["Inks"], ["colour", "ml"], ["red", 10], ["blue", 20], [], ["Glues"], ["kind", "g"], ["stick", 8],
        ),
        [["colour", "n"], ["red", 1], ["blue", 2], ["green", 3]],
        ("A[78]:B10", "A1[23]:B14"),
    ),
    "filter": Workbook(
        plain(["Name", "Age", "Born"], *PEOPLE, then=filter_rows),
        [["Name", "Age", "Born"], *BORN],
        ("filter", "`Keys`: hidden"),
    ),
    "total of formulas": Workbook(
        plain(["item", "n", "price"], ["pens", 4, 1.5], ["ink", 6, 2.5], ["Total", "=SUM(B2:B3)", "=SUM(C2:C3)"]),
        [["item", "n", "price"], ["pens", 4, 1.5], ["ink", 6, 2.5]],
        (r"1 of 3 rows left out: row 4 \(Total",),
    ),
    "units in brackets": Workbook(
        plain(["crop", "mass", "price"], [None, "(kg)", "(EUR)"], ["oats", 12, 3.5], ["rye", 8, 4.5], ["Total", 20, 8]),
        [["crop", "mass", "price"], ["oats", 12, 3.5], ["rye", 8, 4.5]],
        (r"2 of 4 rows left out: row 2 \(\(kg\).*row 5 \(Total",),
    ),
    "German numbers": Workbook(
        plain(["Ort", "Umsatz"], ["Kiel", "1.234,50"], ["Bonn", "k.A."], ["Jena", "99,90"], ["Ulm", "2.000,00"]),
        [["Ort", "Umsatz"], ["Kiel", 1234.5], ["Bonn", None], ["Jena", 99.9], ["Ulm", 2000]],
        (r'1 of 4 values of "Umsatz" become missing: "k\.A\."',),
    ),
    "percent signs": Workbook(
        plain(["item", "share"], ["pens", "25 %"], ["ink", "12,5 %"]),
        [["item", "share"], ["pens", 25], ["ink", 12.5]],
        ("%",),
    ),
    "dates and texts": Workbook(
        plain(["task", "due"], ["a", date(2024, 5, 1)], ["b", "TBD"], ["c", date(2024, 6, 1)], ["d", "after c"]),
        [["task", "due"], ["a", datetime(2024, 5, 1)], ["b", "TBD"], ["c", datetime(2024, 6, 1)], ["d", "after c"]],
        ('"due" mixes', "TBD"),
    ),
    "OpenDocument": Workbook(
        write_ods, [["item", "n"], ["pens", 4], ["ink", 6]], ("1 row above",), file="stock.xlsx"
    ),
}  # fmt: skip
MADE = {**FIRST, **SECOND}


def normal(value: object) -> object:
    """A cell, as what has been read is printed."""
    return value.isoformat() if isinstance(value, date) else value


def same_name(read: str, true: str) -> bool:
    """Whether a column has its name; one of several rows may be joined or listed."""
    if not true:
        return UNNAMED.fullmatch(read) is not None
    return re.findall(r"\w+", re.sub(r"Unnamed: \w+", "", read)) == re.findall(r"\w+", true)


def is_table(read: Rows, table: Rows) -> bool:
    """Whether the line has returned the table."""
    if len(read) != len(table) or len(read[0]) != len(table[0]):
        return False
    if not all(map(same_name, read[0], table[0])):
        return False
    return [list(map(normal, row)) for row in table[1:]] == [list(row) for row in read[1:]]


def lines_of(text: str) -> str:
    """The lines that a profile suggests first."""
    found = re.search(r"read it with:\n((?P<indent> +).*\n(?:(?P=indent).*\n)*)", text)
    return "\n".join(map(str.strip, found[1].splitlines())) if found else ""


def read(sandbox: SandboxExecutor, path: Path, lines: str) -> Rows:
    """What the lines return; nothing if they fail."""
    done = sandbox.run(f"{lines}\n{SHOW}", files={path.name: path})
    try:
        found: Rows = json.loads(done.stdout)
    except ValueError:
        return [[done.summary]]
    return found


def verdict(sandbox: SandboxExecutor, book: Workbook, folder: Path) -> tuple[str, str, Rows]:
    """Whether a workbook was right, noted or wrong; its profile, and what its line returned."""
    path = folder / book.file
    book.write(folder / "made.xlsx")
    (folder / "made.xlsx").replace(path)
    text = FileProfiler(sandbox).profile({path.name: path}).get(path.name, "")
    returned = read(sandbox, path, lines_of(text))
    said = all(re.search(words, text) for words in book.says)
    if is_table(returned, book.table):
        return ("right" if said else "not said"), text, returned
    return ("noted" if book.says and said else "wrong"), text, returned


def verdicts(names: Sequence[str]) -> Iterator[tuple[str, str, str, Rows]]:
    """The verdict of each workbook."""
    with tempfile.TemporaryDirectory() as folder, SandboxExecutor() as sandbox:
        for name in names:
            yield name, *verdict(sandbox, MADE[name], Path(folder))


def main(names: Sequence[str]) -> None:
    """Print the verdicts; of named workbooks also their profiles."""
    found = list(verdicts(names or list(MADE)))
    print("| workbook | verdict |\n|---|---|")
    for name, judged, text, returned in found:
        print(f"| {name} | {judged} |" + (f"\n{text}\n{returned[:6]}" if names else ""))
    passed = sum(judged in ("right", "noted") for _, judged, _, _ in found)
    print(f"\n{passed} of {len(found)} are right or noted.")


if __name__ == "__main__":
    main(sys.argv[1:])
