from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.errors import InputError
from code_chains.inputs import check_files, check_query, check_variables, describe, fenced


@pytest.mark.parametrize(
    ("query", "says"),
    [("", "empty"), (" \n", "empty"), ("x" * 1_000_000, "1,000,000 characters"), (5, "must be text")],
    ids=["empty", "blank", "1 MB", "a number"],
)
def test_a_question_that_is_none_is_refused(query: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        check_query(query)


@pytest.mark.parametrize("name", ["../x.csv", "/etc/x", "", ".", "a/../../b", "nul\0"])
def test_a_name_that_leaves_the_working_directory_is_refused(name: str, sales: Path) -> None:
    with pytest.raises(InputError, match="cannot be called"):
        check_files({name: sales})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.csv' does not exist"):
        check_files({"gone.csv": tmp_path / "gone.csv"})


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        check_files({"data": tmp_path})


def test_a_fifo_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no regular file"):
        check_files({"pipe": tmp_path / "pipe"})


@pytest.mark.parametrize("variables", [{"x": object()}, {"not a name": 1}, {"x": {1, 2}}, [1]])
def test_a_variable_that_is_no_json_is_refused(variables: dict[str, object]) -> None:
    with pytest.raises(InputError):
        check_variables(variables)


def test_a_table_is_described_with_its_columns(sales: Path) -> None:
    assert "columns `region`, `amount`" in describe({"sales.csv": sales}, {})


def test_a_german_table_is_described_with_its_separator(tmp_path: Path) -> None:
    (tmp_path / "umsatz.csv").write_text("Region;Umsatz\nNord;1,5\nSüd;2,5\n")
    assert "separated by ';', columns `Region`, `Umsatz`" in describe(
        {"umsatz.csv": tmp_path / "umsatz.csv"}, {}
    )


def test_a_binary_file_is_described_as_such(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\0\1\2")
    assert describe({"x.bin": tmp_path / "x.bin"}, {}).endswith("3 bytes, binary")


def test_a_variable_is_described_with_its_type() -> None:
    assert describe({}, {"n": [1, 2]}) == "- variable `n`: list, [1, 2]"


@given(st.text())
def test_a_fence_cannot_be_closed_from_inside(text: str) -> None:
    fence, *_, last = fenced(text).split("\n")
    assert last not in text.split("\n")
    assert fence == f"{last}text"


def test_names_that_would_collide_are_refused(sales: Path) -> None:
    for names in ({"a": sales, "a/b": sales}, {"a.csv": sales, "./a.csv": sales}):
        with pytest.raises(InputError):
            check_files(names)


@pytest.mark.parametrize("path", [None, b"x", 5])
def test_a_path_that_is_none_is_refused(path: object) -> None:
    with pytest.raises(InputError, match="by its path"):
        check_files({"a.csv": path})


@pytest.mark.parametrize("name", ["a\nb", "x" * 300, "\x1b[2J"])
def test_a_name_that_could_harm_is_refused(name: str, sales: Path) -> None:
    with pytest.raises(InputError, match="cannot be called"):
        check_files({name: sales})


def test_variables_are_what_the_program_will_get() -> None:
    assert check_variables({"d": {1: (2, 3)}}) == {"d": {"1": [2, 3]}}


def test_a_table_from_excel_has_no_invisible_mark(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes("\ufeffregion,amount\nnorth,1\n".encode())
    assert "columns `region`" in describe({"x.csv": tmp_path / "x.csv"}, {})


def test_broken_text_is_no_question() -> None:
    with pytest.raises(InputError, match="UTF-8"):
        check_query("caf\udce9")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a,b\n1,2\n", "','"),
        ("a;b\n1,5;2,5\n3,5;4,5\n", "';'"),
        ("a\tb, c\n1\t2\n", "'\\t'"),
        ("a|b\n1|2\n", "'|'"),
        ('"x;y;z",b\n"1;2;3",2\n', "','"),
        ("name\nAnn\nBob, the second\n", "','"),
        ("", "an empty table"),
    ],
)
def test_the_delimiter_of_a_table_is_told(tmp_path: Path, text: str, columns: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    assert columns in describe({"t.csv": tmp_path / "t.csv"}, {})


@pytest.mark.parametrize("unit", ['"\n', ',"', '\n"a', '"', "'", ",", '"\n"', "\r", '",\n'])
def test_a_hostile_table_is_described_in_no_time(tmp_path: Path, unit: str) -> None:
    (tmp_path / "t.csv").write_text(unit * (100_000 // len(unit)))
    began = time.process_time()
    describe({"t.csv": tmp_path / "t.csv"}, {})
    assert time.process_time() - began < 0.5
