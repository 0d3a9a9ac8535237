from __future__ import annotations

import gzip
import io
import json
import os
import time as clock
import unicodedata
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains import create_code_chain
from code_chains.chains import ExecuteChain
from code_chains.errors import InputError
from code_chains.executors import MontyExecutor, SandboxExecutor
from code_chains.executors import inputs as files_module
from code_chains.executors.guest.serialization import unpack_all
from code_chains.executors.inputs import check_files, files_on_disk
from code_chains.executors.values import check_variables, pack_variables
from code_chains.inputs import check_query, fenced
from code_chains.inputs.pasted import find_data
from code_chains.profiles import describe, describe_inputs
from code_chains.testing import ScriptedModel, asks_for_code


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


def test_a_name_has_composed_letters_as_models_write_it(sales: Path) -> None:
    assert [*check_files({unicodedata.normalize("NFD", "Générer.csv"): sales})] == ["Générer.csv"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.csv' does not exist"):
        check_files({"gone.csv": tmp_path / "gone.csv"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a folder of tables."""
    for name in ("data/a.csv", "data/b.csv", "data/old/c.csv", "data/notes.txt", "data/.hidden", "top.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("n\n1\n")
    (tmp_path / "data" / "link.csv").symlink_to(tmp_path / "top.csv")
    (tmp_path / "latest.csv").symlink_to(tmp_path / "data" / "a.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


FOLDERS: dict[str, tuple[Any, list[str]]] = {
    "a folder": ([Path("data")], ["data/a.csv", "data/b.csv", "data/notes.txt", "data/old/c.csv"]),
    "a folder with a slash": ([Path("data/old/")], ["old/c.csv"]),
    "a folder by another name": ({"in": Path("data/old")}, ["in/c.csv"]),
    "a pattern": ([Path("data/*.csv")], ["a.csv", "b.csv", "link.csv"]),
    "a pattern of all folders": ([Path("data/**/c*.csv")], ["old/c.csv"]),
    "a pattern and a file": ([Path("t*.csv"), Path("data/a.csv")], ["top.csv", "a.csv"]),
    "a link": ([Path("latest.csv")], ["latest.csv"]),
}


@pytest.mark.parametrize(("files", "names"), FOLDERS.values(), ids=FOLDERS)
def test_folders_and_patterns_stand_for_their_files(folder: Path, files: Any, names: list[str]) -> None:
    assert list(check_files(files)) == names


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([Path("data/*.xlsx")], "No file matches"),
        ([Path("empty")], "has no files"),
        ([Path("data/*.csv"), Path("data/a.csv")], "same name"),
    ],
)
def test_what_stands_for_no_file_is_refused(folder: Path, files: Any, says: str) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match=says):
        check_files(files)


def test_many_files_are_described_in_short(folder: Path) -> None:
    for number in range(200):
        (folder / "data" / "old" / f"{number}.csv").write_text("n\n1\n")
    text = describe(check_files([Path("data")]), {})
    assert (text.count("separated by"), "184 more files" in text, len(text) < 5000) == (19, True, True)


def test_a_program_reads_the_files_of_a_folder(folder: Path, sandbox: SandboxExecutor) -> None:
    code = "import glob; print(sorted(glob.glob('**/*.csv', recursive=True)))"
    done = sandbox.run(code, files=check_files([Path("data")]))
    assert done.stdout == "['data/a.csv', 'data/b.csv', 'data/old/c.csv']\n"


def test_a_fifo_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        check_files({"pipe": tmp_path / "pipe"})


@pytest.mark.parametrize("variables", [{"x": object()}, {"not a name": 1}, {"x": open}, [1]])
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


def test_an_integer_without_a_text_is_described() -> None:
    assert describe({}, {"n": [10**5000]}) == "- variable `n`: list, 1 items"


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
    assert check_variables({"d": {"1": (2, 3)}}) == {"d": {"1": (2, 3)}}


VALUES: dict[str, Any] = {
    "a key that is not text": {1: "one", (1, 2): "pair", date(2024, 1, 1): None, 2.5: "float"},
    "a date": date(2024, 2, 29),
    "a moment with its zone": datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=UTC),
    "a time": time(9, 30),
    "a duration": timedelta(days=-1, microseconds=7),
    "a decimal": Decimal("1.10"),
    "bytes": b"\x00\xff",
    "a set": {1, "two", (3, 4), frozenset({5})},
    "a frozenset": frozenset({1, 2}),
    "a complex number": 1 - 2j,
    "a long integer": 7**5000,
    "a dict that looks like a packed value": {"datetime.date": "2024-01-01"},
    "all of them within lists and dicts": [{"day": [date(2024, 1, 1)], "n": Decimal(1)}, {2: {3}}],
    "plain values": {"a": [1, 2.5, "x", None, True, {"b": []}]},
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_program_gets_the_value_that_was_passed(sandbox: SandboxExecutor, value: Any) -> None:
    assert unpack_all(json.loads(json.dumps(pack_variables({"d": value})))) == {"d": value}
    run = sandbox.run(
        "print(repr(d) if not isinstance(d, set | frozenset) else sorted(map(repr, d)))",
        variables={"d": value},
    )
    assert run.output == (
        repr(value) if not isinstance(value, set | frozenset) else str(sorted(map(repr, value)))
    )


ALL_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.timedeltas()
    | st.decimals(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.dates(), inner),
    max_leaves=20,
)


@given(ALL_VALUES)
def test_packing_and_unpacking_returns_the_value(value: Any) -> None:
    packed = json.loads(json.dumps(pack_variables({"x": value})))
    assert unpack_all(packed) == {"x": value}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (pd.Timestamp("2024-01-01 10:00"), "Timestamp('2024-01-01 10:00:00')"),
        (pd.NaT, "NaT"),
        (type("Moment", (datetime,), {})(2024, 2, 29, 12), "datetime.datetime(2024, 2, 29, 12, 0)"),
        (np.datetime64("2024-01-01"), "np.datetime64('2024-01-01')"),
        (
            np.datetime64("2024-01-01T00:00:00.000000001", "ns"),
            "np.datetime64('2024-01-01T00:00:00.000000001')",
        ),
        (np.timedelta64(5_000, "ns"), "np.timedelta64(5000,'ns')"),
        (
            datetime(2024, 1, 1, tzinfo=ZoneInfo("UTC")),
            "datetime.datetime(2024, 1, 1, 0, 0, tzinfo=zoneinfo.ZoneInfo(key='UTC'))",
        ),
    ],
)
def test_moments_keep_their_type(sandbox: SandboxExecutor, value: Any, shown: str) -> None:
    assert sandbox.run("print(repr(d))", variables={"d": value}).output == shown


def test_series_are_series(sandbox: SandboxExecutor) -> None:
    variables = {
        "named": pd.Series([1, 2, 39], index=["a", "b", "c"], name="qty"),
        "bare": pd.Series(["x", None]),
        "frame": pl.Series("p", [1.5, 2.5]),
    }
    code = (
        "print(type(named).__name__, named.name, named['c'], named.sum(), bare.name, frame.name, frame.sum())"
    )
    assert sandbox.run(code, variables=variables).output == "Series qty 39 42 None p 4.0"


@pytest.mark.parametrize("value", [date(2024, 1, 1), {1: 2}, b"x", pd.Series([1]), np.zeros(2)])
def test_executors_that_take_json_alone_say_so(value: Any) -> None:
    with MontyExecutor() as executor, pytest.raises(InputError, match="'d' is not a JSON value"):
        executor.run("1", variables={"d": value})


def file_of(content: bytes) -> io.BytesIO:
    file = io.BytesIO(content)
    file.read()  # Somebody has read it already.
    return file


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"a,b\n1,2\n", bytearray(b"a,b\n1,2\n"), file_of(b"a,b\n1,2\n")])
def test_files_may_be_bytes_or_open(sandbox: SandboxExecutor, content: Any) -> None:
    code = "print(open('x.csv').read())"
    assert sandbox.run(code, files={"x.csv": content}).output == "a,b\n1,2"
    model = ScriptedModel(lambda messages: code if asks_for_code(messages) else "Done.")
    with create_code_chain(model, executor=sandbox) as chain:
        for session_id in (None, "ann"):
            asked = {"query": "?", "files": {"x.csv": content}, "session_id": session_id}
            assert chain.invoke(asked)["output"] == "a,b\n1,2"
    assert "columns `a`, `b`" in describe_inputs({"files": {"x.csv": content}})[0]


def test_files_may_be_a_list_of_paths(sandbox: SandboxExecutor, sales: Path) -> None:
    code = f"print(open({sales.name!r}).read())"
    assert sandbox.run(code, files=[sales]).output == sales.read_text().strip()  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Two files have the same name"):
        check_files([sales, Path(str(sales))])


def test_open_files_of_a_list_have_names_of_their_own(sales: Path) -> None:
    uploaded = io.BytesIO(b"a,b\n1,2\n")
    uploaded.name = "uploaded.csv"  # As Streamlit has it.
    with sales.open("rb") as opened, files_on_disk([uploaded, opened]) as files:
        assert set(files) == {"uploaded.csv", sales.name}


def test_an_open_file_of_a_list_has_no_path_in_its_name(tmp_path: Path) -> None:
    uploaded = io.BytesIO(b"a")
    uploaded.name = "C:\\data\\uploaded.csv"
    with gzip.open(tmp_path / "sales.csv.gz", "wb") as packed:
        packed.write(b"a,b\n")
    with gzip.open(tmp_path / "sales.csv.gz") as opened, files_on_disk([uploaded, opened]) as files:
        assert {name: path.read_bytes() for name, path in files.items()} == {
            "uploaded.csv": b"a",
            "sales.csv": b"a,b\n",
        }


@pytest.mark.parametrize("file", [io.BytesIO(b"a,b\n1,2\n"), b"a,b\n1,2\n"])
def test_a_file_of_a_list_without_a_name_is_asked_for_one(file: object) -> None:
    with (
        pytest.raises(InputError, match=r'has no name\. Pass it by one: files=\{"sales\.csv"'),
        files_on_disk([file]),
    ):
        pass


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (io.StringIO("text"), "binary"),
        (3, "not by int"),
        (os.popen, "not by function"),
        (Path("missing"), "does not exist"),
        ("sales.csv", r"given as text. Pass pathlib\.Path"),
    ],
)
def test_what_is_no_file_is_refused_before_a_model_is_paid(content: Any, words: str) -> None:
    with pytest.raises(InputError, match=words), files_on_disk({"x": content}):
        pass


def test_bytes_leave_no_file_behind() -> None:
    with files_on_disk({"x": b"1"}) as files:
        assert files["x"].read_bytes() == b"1"
    assert not files["x"].parent.exists()


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(5), 5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        ([np.int8(1)], [1]),
        ({"n": np.int64(2)}, {"n": 2}),
    ],
)
def test_numbers_of_numpy_are_numbers(value: object, plain: object) -> None:
    checked = check_variables({"n": value})["n"]
    assert (checked, type(checked)) == (plain, type(plain))


@pytest.mark.slow
def test_columns_of_several_types_are_what_they_were(sandbox: SandboxExecutor) -> None:
    mixed = [1, "two", None, 2.5, date(2024, 1, 1), b"x", [1, "a"], {"k": (1,)}, 2**70, "\udce9"]
    frame = pd.DataFrame({"n": range(len(mixed)), "mixed": mixed}, index=range(5, 15))
    code = "print(list(map(repr, df['mixed'])), df['n'].sum(), df['mixed'].dtype, list(df.index)[:2])"
    seen = sandbox.run(code, variables={"df": frame}).output
    assert seen == f"{list(map(repr, mixed))} 45 object [5, 6]"
    run = sandbox.run("print(s.name, repr(s[9]), repr(s[6]))", variables={"s": frame["mixed"]})
    assert run.output == "mixed datetime.date(2024, 1, 1) 'two'"
    assert frame["mixed"].tolist() == mixed  # The caller's own is as it was.


def test_a_column_of_what_cannot_be_passed_is_refused_before_a_model_is_asked() -> None:
    frame = pd.DataFrame({"x": [1, 2], "y": [1, object()]})
    with pytest.raises(InputError, match=r"column 'y' of 'df'.*df\['y'\]\.astype\(str\)"):
        check_variables({"df": frame})


def test_columns_of_text_and_dates_with_gaps_are_taken() -> None:
    frame = pd.DataFrame({"who": ["Ann", None], "day": [date(2024, 1, 1), None], "n": [[1], [2, 3]]})
    assert check_variables({"df": frame})["df"] is frame


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
    began = clock.process_time()
    describe({"t.csv": tmp_path / "t.csv"}, {})
    assert clock.process_time() - began < 0.5


@pytest.mark.parametrize(
    "value",
    [datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")), [time(12, tzinfo=ZoneInfo("Europe/Berlin"))]],
)
def test_a_time_zone_with_rules_is_kept(sandbox: SandboxExecutor, value: Any) -> None:
    assert sandbox.run("repr(d)", variables={"d": value}).result == repr(repr(value))


@pytest.mark.parametrize(
    "files",
    [{"p": "/etc/passwd"}, ["/etc/passwd"], {"p": "/etc"}, ["/etc/pass*"], {"p": {"path": "/etc/passwd"}}],
)
@pytest.mark.parametrize("key", ["query", "code"])
def test_no_json_of_a_client_reads_a_file_of_this_machine(
    sandbox: SandboxExecutor, files: Any, key: str
) -> None:
    model = ScriptedModel(lambda messages: pytest.fail("a model was asked"))
    with create_code_chain(model, executor=sandbox) as chain:
        runnable = chain if key == "query" else ExecuteChain(sandbox)
        with pytest.raises(InputError, match="file"):
            runnable.invoke({key: "print(open('p').read())", "files": files})


@pytest.mark.parametrize("name", [("a", 1), 3, None, date(2024, 1, 1)])
def test_a_series_keeps_its_name(sandbox: SandboxExecutor, name: Any) -> None:
    assert sandbox.run("print(repr(d.name))", variables={"d": pd.Series([1], name=name)}).output == repr(name)


def test_a_pattern_with_too_many_matches_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "MAX_FILES", 1)
    with pytest.raises(InputError, match="3 files match"):
        check_files([Path("data/*.csv")])


@pytest.mark.parametrize("end", [" " * 60_000 + "x", "\t" * 60_000, " ," * 30_000, "\n" * 60_000 + "y"])
def test_numbers_before_many_blanks_are_found_at_once(end: str) -> None:
    start = clock.process_time()
    find_data({"query": f"Sum 1 2 3 4 5 6 7 8{end}"})
    assert clock.process_time() - start < 1
