"""What is said of workbooks: the line returns the table, and what it leaves out or changes is noted."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from code_chains.profiles.inside.program import profile_file

openpyxl, pd = pytest.importorskip("openpyxl"), pytest.importorskip("pandas")
Profile = Callable[..., dict[str, Any]]


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """The profile of the first sheet of a workbook with these rows."""
    monkeypatch.chdir(tmp_path)

    def of(rows: Any, name: str = "a.xlsx", *, change: Callable[[Any], object] = str) -> dict[str, Any]:
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        change(book.active)
        book.save("made.xlsx")
        Path("made.xlsx").rename(name)
        found = profile_file(name)
        assert found
        part: dict[str, Any] = found["parts"][0]
        return part

    return of


def returned(part: dict[str, Any]) -> Any:
    """What the lines of a profile return, with the names first."""
    names: dict[str, Any] = {}
    exec("\n".join(part["read"]), names)
    frame = names["df"].astype(object)
    return [[*frame.columns], *frame.where(frame.notna(), None).values.tolist()]


TABLES: dict[str, tuple[Any, Any]] = {
    "an index without a name": (
        [[None, "city", "n"], [0, "Oslo", 1], [1, "Lund", 2]],
        [["Unnamed: 0", "city", "n"], [0, "Oslo", 1], [1, "Lund", 2]],
    ),
    "an index beside one column": (
        [[None, "n"], ["x", 1], ["y", 2]],
        [["Unnamed: 0", "n"], ["x", 1], ["y", 2]],
    ),
    "a gap in the header": (
        [["Name", None, "Born"], ["Ann", 34, 1990], ["Bo", 51, 1973]],
        [["Name", "Unnamed: 1", "Born"], ["Ann", 34, 1990], ["Bo", 51, 1973]],
    ),
    "a gap in the header above a row of texts": (
        [["Name", None, "Born"], ["Ann", "young", "early"], ["Bo", 51, 1973], ["Cy", 27, 1997]],
        [["Name", "Unnamed: 1", "Born"], ["Ann", "young", "early"], ["Bo", 51, 1973], ["Cy", 27, 1997]],
    ),
    "years": ([[None, 2019, 2020], ["Oslo", 4, 5]], [["Unnamed: 0", 2019, 2020], ["Oslo", 4, 5]]),
    "no header": ([[1, 2.5], [2, 3.5]], [[0, 1], [1, 2.5], [2, 3.5]]),
    "identifiers of which few begin with a zero": (
        [["id", "n"], *([f"{100_007 + i}", i] for i in range(400)), ["000123", 400]],
        [["id", "n"], *([f"{100_007 + i}", i] for i in range(400)), ["000123", 400]],
    ),
    "codes of which one is a text": ([["id"], ["0815"], [4711]], [["id"], ["0815"], ["4711"]]),
    "names of two rows": (
        [["Region", 2023, None, 2024, None], [None, "Q1", "Q2", "Q1", "Q2"], ["North", 1, 2, 3, 4]],
        [["Region", "2023 Q1", "2023 Q2", "2024 Q1", "2024 Q2"], ["North", 1, 2, 3, 4]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_the_line_returns_the_table(profile: Profile, case: str) -> None:
    rows, table = TABLES[case]
    assert returned(profile(rows)) == table


NOTES: dict[str, tuple[Any, Any, str]] = {
    "rows above": (
        [["at", "the", None, "of"], ["or", "merging", None, "cells"], ["Name", "Age", "Kids", "Born"], ["Ann", 3, 0, 8]],
        [["Name", "Age", "Kids", "Born"], ["Ann", 3, 0, 8]],
        "2 rows above left out, the first is: at, the, of",
    ),
    "a total": (
        [["item", "n"], ["pens", 4], ["ink", 6], ["Total", 10]],
        [["item", "n"], ["pens", 4], ["ink", 6]],
        "1 of 3 rows left out: row 4 (Total, 10)",
    ),
    "units": (
        [["site", "depth"], [None, "m"], ["A", 3.5], ["B", 4.5]],
        [["site", "depth"], ["A", 3.5], ["B", 4.5]],
        "1 of 3 rows left out: row 2 (m)",
    ),
    "labels of groups": (
        [["region", "kind", "n"], ["North", "a", 3], [None, "b", 4], ["South", "a", 5], [None, "b", 6]],
        [["region", "kind", "n"], ["North", "a", 3], ["North", "b", 4], ["South", "a", 5], ["South", "b", 6]],
        '2 blank cells of "region" filled with the label above',
    ),
    "tables side by side": (
        [["item", "n", None, "town", "km"], ["pens", 4, None, "Oslo", 12], ["ink", 6]],
        [["item", "n"], ["pens", 4], ["ink", 6]],
        "other tables or remarks are in D1:E2; this reads A1:B3",
    ),
    "tables below each other": (
        [["item", "n"], ["pens", 4], ["ink", 6], [], ["town", "km"], ["Oslo", 12]],
        [["item", "n"], ["pens", 4], ["ink", 6]],
        "other tables or remarks are in A5:B6; this reads A1:B3",
    ),
    "a small table above": (
        [["item", "n"], ["pens", 4], ["ink", 6], [], ["town", "km", "h"], ["Oslo", 12, 1], ["Rome", 14, 2]],
        [["town", "km", "h"], ["Oslo", 12, 1], ["Rome", 14, 2]],
        "other tables or remarks are in A1:B3; this reads A5:C7",
    ),
    "texts among numbers that are texts": (
        [["n"], *([f"{i}"] for i in range(20)), ["n/a"], ["see note"]],
        [["n"], *([f"{i}"] for i in range(20)), [None], ["see note"]],
        '"n" stays text, as "see note" are no numbers',
    ),
    "texts among numbers": (
        [["n"], *([i] for i in range(20)), ["n/a"], ["see note"]],
        [["n"], *([i] for i in range(20)), [None], ["see note"]],
        '"n" mixes 20 of int with 2 texts, such as "n/a"',
    ),
    "many texts among numbers": (
        [["n"], [1], [2], ["about 3"], ["4 or 5"]],
        [["n"], [1], [2], ["about 3"], ["4 or 5"]],
        '"n" mixes 2 of int with 2 texts, such as "about 3"',
    ),
    "errors": ([["n"], [1], ["#DIV/0!"]], [["n"], [1], [None]], '"n" (column A) is missing in 1 row: #DIV/0!'),
    "formulas without results": (
        [["n", "m"], [1, "=A2*2"]],
        [["n", "m"], [1, None]],
        '"m" (column B) is missing in 1 row: formula without a stored result',
    ),
    "days as numbers": (
        [["date"], [45292], [45293]],
        [["date"], [45292], [45293]],
        '"date" may be serial days: pd.to_datetime(df["date"], unit="D", origin="1899-12-30")',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NOTES)
def test_what_the_line_leaves_out_or_changes_is_noted(profile: Profile, case: str) -> None:
    rows, table, note = NOTES[case]
    part = profile(rows)
    assert returned(part) == table
    assert part["notes"][0] == note


def test_hidden_rows_are_noted(profile: Profile) -> None:
    def hide(sheet: Any) -> None:
        sheet.row_dimensions[3].hidden = True

    part = profile([["n"], [1], [2]], change=hide)
    assert part["notes"] == ["rows 3 of the sheet are hidden; they are read, too"]


def test_hidden_columns_are_noted(profile: Profile) -> None:
    def hide(sheet: Any) -> None:
        sheet.column_dimensions["B"].hidden = True

    part = profile([["n", "m"], [1, 2]], change=hide)
    assert part["notes"] == ['hidden columns of the sheet are read, too: "m" (column B)']


def test_percents_are_noted(profile: Profile) -> None:
    def style(sheet: Any) -> None:
        sheet["B2"].number_format = "0.0%"

    part = profile([["item", "share"], ["pens", 0.25]], change=style)
    assert part["notes"] == ['"share" is shown as percent: 0.25 means 25%']


def test_numbers_that_are_shown_with_zeros_are_texts(profile: Profile) -> None:
    def style(sheet: Any) -> None:
        sheet["A2"].number_format = "00000"

    assert returned(profile([["zip", "n"], [1067, 1], [10115, 2]], change=style))[1:] == [
        ["01067", 1],
        ["10115", 2],
    ]


def test_merged_labels_are_repeated(profile: Profile) -> None:
    rows = [["region", "n"], ["North", 3], [None, 4], ["South", 5]]
    part = profile(rows, change=lambda sheet: sheet.merge_cells("A2:A3"))
    assert returned(part)[2] == ["North", 4]


def test_names_of_three_rows_are_joined(profile: Profile) -> None:
    def merge(sheet: Any) -> None:
        for area in ("A1:A3", "B1:E1", "B2:C2", "D2:E2"):
            sheet.merge_cells(area)

    rows = [["R", 2023], [None, "H1", None, "H2"], [None, "Q1", "Q2", "Q3", "Q4"], ["N", 1, 2, 3, 4]]
    assert returned(profile(rows, change=merge))[0] == [
        "R",
        "2023 H1 Q1",
        "2023 H1 Q2",
        "2023 H2 Q3",
        "2023 H2 Q4",
    ]


def test_a_merged_title_is_no_row_of_names(profile: Profile) -> None:
    rows = [["Sales 2024"], ["item", "n", "m", "k"], ["pens", 1, 2, 3]]
    assert returned(profile(rows, change=lambda sheet: sheet.merge_cells("A1:C1")))[0] == [
        "item",
        "n",
        "m",
        "k",
    ]


def test_names_of_two_rows_may_begin_anywhere(profile: Profile) -> None:
    rows = [[None, "R", 2023, None, 2024], [None, None, "Q1", "Q2", "Q1", "Q2"], [None, "N", 1, 2, 3, 4]]
    assert returned(profile(rows)) == [["R", "2023 Q1", "2023 Q2", "2024 Q1", "2024 Q2"], ["N", 1, 2, 3, 4]]


def test_a_remark_that_is_wider_than_its_table_widens_nothing(profile: Profile) -> None:
    part = profile([["n", "m"], [1, 2], [], [None, None, None, "end"]])
    assert returned(part) == [["n", "m"], [1, 2]]


def test_merged_values_are_noted_and_not_repeated(profile: Profile) -> None:
    rows = [["item", "budget"], ["pens", 3], ["ink", None], ["glue", 5]]
    part = profile(rows, change=lambda sheet: sheet.merge_cells("B2:B3"))
    assert part["notes"] == ['merged cells of "budget" hold one value for several rows']


def test_marks_in_the_first_column_are_no_labels_of_groups(profile: Profile) -> None:
    part = profile([["flag", "n"], ["x", 1], [None, 2], ["x", 3], [None, 4]])
    assert returned(part)[2] == [None, 2]


def test_remarks_beside_a_table_are_none_of_its_columns(profile: Profile) -> None:
    part = profile([["n", "m"], [1, 2], [3, 4, None, None, "check"], [5, 6]])
    assert returned(part) == [["n", "m"], [1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("name", ["a.csv", "a.xls", "a.dat", "a.json"])
def test_a_workbook_is_one_under_any_name(profile: Profile, name: str) -> None:
    assert returned(profile([["n"], [1]], name)) == [["n"], [1]]


def test_a_long_sheet_is_profiled_by_its_first_rows(profile: Profile) -> None:
    part = profile([["n", "text"], *([i, "x" * 2000] for i in range(2500))])
    assert part["notes"][0].startswith("only rows 1 to ")


def test_a_sheet_is_called_empty_only_if_all_of_it_was_read(profile: Profile) -> None:
    part = profile([], change=lambda sheet: sheet.cell(60_000, 1, "HELLO"))
    assert [fact for fact in part["facts"] if fact.startswith("nothing in its first ")]
    assert profile([], name="b.xlsx")["facts"] == ["empty"]


def test_a_sheet_that_is_too_wide_is_not_read(profile: Profile) -> None:
    part = profile([["n"], [1]], change=lambda sheet: sheet.cell(1_000_000, 16_384, 1))
    assert part["facts"] == ["16,384 columns, which is too wide"]


def test_a_workbook_that_is_cut_off_is_said_to_be(profile: Profile) -> None:
    profile([["n"], [1]])
    Path("a.xlsx").write_bytes(Path("a.xlsx").read_bytes()[:-100])
    assert profile_file("a.xlsx") == {
        "format": "Excel workbook",
        "facts": ["cannot be read: damaged, cut off, or too large (BadZipFile)"],
        "read": [],
    }


@pytest.mark.parametrize(
    ("stream", "said"),
    [("EncryptedPackage", "password"), ("Workbook", "old Excel"), ("WordDocument", "Word")],
)
def test_old_files_of_office_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(500) + stream.encode("utf-16-le") + bytes(500))
    assert said in str(profile_file("a"))


def test_a_missing_engine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with zipfile.ZipFile("a.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
    notes = (profile_file("a.ods") or {})["notes"]
    assert notes == ["pandas or python-calamine is not installed, so it cannot be read as a table"]
