"""Questions from files, each with an id that is the same in every run."""

from __future__ import annotations

import csv
import io
import json
import re
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pyarrow.parquet
import pytest
from langsmith.utils import get_env_var
from openpyxl import load_workbook
from pytest_httpserver import HTTPServer

from code_chains import create_code_chain
from code_chains.batch import questions
from code_chains.batch.export import check_table, export_table, without_formula
from code_chains.batch.questions import Question, read_questions, with_ids
from code_chains.batch.runner import map_questions
from code_chains.errors import ConfigurationError, InputError
from code_chains.evaluation import read_cases
from code_chains.executors import SandboxExecutor
from code_chains.testing import ScriptedExecutor, ScriptedModel

ID = "00000000-0000-0000-0000-{:012d}"


def read_text(path: Path, text: str) -> list[Question]:
    path.write_text(text)
    return list(read_questions(path))


def test_json_lines_are_strings_or_objects(tmp_path: Path) -> None:
    lines = [json.dumps("one?"), json.dumps({"id": 7, "query": "two?", "variables": {"n": 1}})]
    one, two = read_text(tmp_path / "q.jsonl", "\n".join(lines))
    assert (one.query, two.id, two.inputs) == ("one?", "7", {"query": "two?", "variables": {"n": 1}})


def test_a_csv_file_has_a_column_query(tmp_path: Path) -> None:
    questions = read_text(tmp_path / "q.csv", 'id,query,other\na,"one, two?",x\nb,three?,y\n')
    assert [(question.id, question.inputs) for question in questions] == [
        ("a", {"query": "one, two?"}),
        ("b", {"query": "three?"}),
    ]


def test_any_other_file_has_one_question_per_line(tmp_path: Path) -> None:
    assert [question.query for question in read_text(tmp_path / "q.txt", "\ufeffone?\n\n  two?  \r\n")] == [
        "one?",
        "two?",
    ]


def test_ids_are_reproducible_and_unique() -> None:
    first, second = ([question.id for question in with_ids(["a", "b", "a"])] for _ in range(2))
    assert first == second
    assert len(set(first)) == 3


def test_an_empty_question_does_not_end_a_lazy_run(sandbox: SandboxExecutor) -> None:
    with create_code_chain(ScriptedModel(lambda messages: "6 * 7"), executor=sandbox) as chain:
        answers = list(map_questions(chain, (query for query in ("one?", "", "two?")), concurrency=1))
    assert sorted("empty" in (answer.error or "") for answer in answers) == [False, False, True]


@pytest.mark.parametrize("questions", ["one?", Path("questions.jsonl"), 5])
def test_questions_are_a_list_of_them(questions: Any) -> None:
    with (
        create_code_chain(ScriptedModel(lambda messages: ""), executor=ScriptedExecutor(str)) as chain,
        pytest.raises(ConfigurationError, match="read_questions"),
    ):
        list(map_questions(chain, questions))


@pytest.mark.parametrize(
    ("item", "words"),
    [({"qury": "x"}, "no query; its keys are qury"), ({"query": "x", "test": "y"}, "'tests'")],
)
def test_a_misspelt_key_is_named(item: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        list(with_ids([item]))


@pytest.mark.parametrize(
    "questions",
    [
        [{"questions": "x"}],
        [{"query": 3}],
        [{"id": 1, "query": "a"}, {"id": "1", "query": "b"}],
        [{"query": "x", "files": {1: object()}}],
    ],
)
def test_an_invalid_question_is_reported_by_its_number(questions: list[Any]) -> None:
    with pytest.raises(InputError, match=r"uestion [12]"):
        list(with_ids(questions))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.jsonl", "{no"),
        ("q.jsonl", "3"),
        ("missing/q.txt", None),
        ("q.csv", "a\n1\n"),
        ("q.csv", "query," * 8_000),
    ],
)
def test_an_invalid_file_is_an_error(tmp_path: Path, name: str, text: str | None) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError):
        list(read_questions(path))


def test_questions_are_read_lazily(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('"fine?"\n{broken\n')
    questions = read_questions(path)
    assert next(questions).query == "fine?"
    with pytest.raises(InputError, match="line 2"):
        next(questions)


# -- files of people -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_columns_are_separated_by_commas_semicolons_or_tabs(tmp_path: Path, separator: str) -> None:
    text = f"\ufeffid{separator}Query \n7{separator}one?\n{separator}two?\n\n"
    questions = read_text(tmp_path / "q.csv", text)
    assert [(question.query, question.origin[-6:]) for question in questions] == [
        ("one?", "line 2"),
        ("two?", "line 3"),
    ]
    assert questions[0].id == "7"


def test_a_question_in_a_table_of_one_column_is_a_whole_line(tmp_path: Path) -> None:
    text = 'question\nWhat is the sum of 1, 2 and 3?\n"How many; in ""total""?"\n'
    questions = read_text(tmp_path / "q.csv", text)
    assert [question.query for question in questions] == [
        "What is the sum of 1, 2 and 3?",
        'How many; in "total"?',
    ]


@pytest.mark.parametrize("row", ["1,Sum of 1, 2 and 3?", "1,2,3"])
def test_a_question_that_would_be_cut_is_an_error_that_names_its_line(tmp_path: Path, row: str) -> None:
    with pytest.raises(InputError, match="line 3: it has more cells than there are columns"):
        read_text(tmp_path / "q.csv", f"id,query\n0,First?,\n{row}\n")


def test_a_column_names_the_files(tmp_path: Path) -> None:
    one, two = tmp_path / "sales.csv", tmp_path / "b.csv"
    one.touch()
    two.touch()
    text = f'query,files,variables\n"table, of sales","{one}; {two}","{{""n"": 1}}"\nno file?,,\n'
    first, second = read_text(tmp_path / "q.csv", text)
    assert first.inputs["files"] == {"sales.csv": one, "b.csv": two}
    assert (first.inputs["variables"], "files" in second.inputs) == ({"n": 1}, False)


@pytest.mark.parametrize("name", ["question", "Question", "prompt"])
def test_a_table_may_call_the_query_as_most_data_sets_do(tmp_path: Path, name: str) -> None:
    (one,) = read_text(tmp_path / "q.csv", f"{name},answer\nSix times seven?,42\n")
    assert one.inputs == {"query": "Six times seven?"}


def test_lines_after_a_number_sign_and_a_space_are_comments(tmp_path: Path) -> None:
    text = "# Arithmetic\n#\nSix times seven?\n#1 in sales?\n"
    assert [one.query for one in read_text(tmp_path / "q.txt", text)] == ["Six times seven?", "#1 in sales?"]


def test_an_array_has_questions(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.touch()
    one, two = read_text(tmp_path / "q.json", f'["one?", {{"query": "two?",\n "files": ["{file}"]}}]')
    assert (one.query, two.inputs["files"], two.origin[-10:]) == (
        "one?",
        {"a.csv": file},
        "question 2",
    )


def test_files_for_all_come_before_those_of_a_question(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    (tmp_path / "own").touch()
    path.write_text(f'"one?"\n{{"query": "two?", "files": {{"a": "{tmp_path / "own"}"}}}}\n')
    one, two = read_questions(path, files={"a": Path("common"), "b": Path("b")})
    assert one.inputs["files"] == {"a": Path("common"), "b": Path("b")}
    assert two.inputs["files"] == {"a": tmp_path / "own", "b": Path("b")}


def test_a_missing_file_is_named_with_its_question(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 2: there is no file '/.*/nowhere\.csv'"):
        read_text(tmp_path / "q.jsonl", '"one?"\n{"query": "two?", "files": ["nowhere.csv"]}\n')


@pytest.mark.parametrize("name", ["answer", "output", "verdict", "usage", "Region of sale", "language"])
def test_own_columns_are_kept_beside_the_question_and_never_read(tmp_path: Path, name: str) -> None:
    (row,) = read_text(tmp_path / "q.csv", f"id,query,{name}\n1,x?,GOLD\n")
    (item,) = read_text(tmp_path / "q.jsonl", json.dumps({"id": 1, "query": "x?", name: "GOLD"}))
    assert (row.inputs, row.own) == (item.inputs, item.own) == ({"query": "x?"}, {name: "GOLD"})


@pytest.mark.parametrize("suffix", [".xlsx", ".parquet"])
def test_spreadsheets_and_parquet_have_questions(tmp_path: Path, suffix: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["007", "b"], "Question": ["one?", "two?"], "n": [1.5, None]})
    path = tmp_path / f"q{suffix}"
    frame.to_excel(path, index=False) if suffix == ".xlsx" else frame.to_parquet(path)
    one, two = read_questions(path)
    assert (one.id, one.query, one.own, two.own) == ("007", "one?", {"n": 1.5}, {"n": None})


def test_a_frame_has_questions() -> None:
    pandas = pytest.importorskip("pandas")
    (one,) = with_ids(pandas.DataFrame({"query": ["one?"], "group": ["a"]}))
    assert (one.query, one.own) == ("one?", {"group": "a"})


def test_an_example_of_a_dataset_is_a_question() -> None:
    (one,) = with_ids([{"inputs": {"question": "one?"}, "outputs": {"answer": 1}}])
    assert (one.inputs, one.own) == ({"query": "one?"}, {"outputs": {"answer": 1}})


def test_the_checksum_of_a_question_follows_its_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    digests = []
    for text in ("1", "22", "1"):
        path.write_text(text)
        digests.append(Question("1", {"query": "x", "files": {"a.csv": path}}).digest)
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.csv", "text,id\nx,1\n", "no column query; its columns are text, id"),
        ("q.csv", "", "no column query; its columns are none"),
        ("q.csv", "query,variables\nx,{\n", "line 2, column variables, is not JSON"),
        ("q.csv", "query,files\nx,a/s.csv;b/s.csv\n", "line 2: two files"),
        ("q.csv", "query,files\n,a.csv\n", "line 2 has no query"),
        ("q.json", '{"query": "x"}', "must be an array"),
        ("q.json", "[3]", "question 1 must be a string"),
        ("q.jsonl", '{"query": "x", "files": "a.csv"}', "line 1: files must be"),
    ],
)
def test_what_is_no_question_is_named_by_its_place(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_text(tmp_path / name, text)


def test_a_question_is_called_by_its_place_and_text(tmp_path: Path) -> None:
    (question,) = read_text(tmp_path / "q.txt", f"\n{'word ' * 30}\n")
    assert str(question).startswith(f"{tmp_path / 'q.txt'}, line 2 (word word")
    assert len(str(question)) < len(str(tmp_path)) + 100


# -- tables of answers -----------------------------------------------------------------------------------------

RECORDS = [
    {
        "id": "1",
        "given": {"query": "ü?", "own": {"region": "N", "answer": "GOLD"}, "digest": ""},
        "computed": {
            "answer": "=1+1",
            "verdict": {"status": "verified", "reason": "ok"},
            "output": "a\n-3",
            "value": [1],
            "usage": {"input_tokens": 3, "output_tokens": 4, "model_calls": 1, "usd": 0.5},
        },
    },
    {
        "id": "2",
        "given": {"query": "-3", "own": {}, "digest": ""},
        "computed": {"answer": "+49.30", "output": "\x00\ud800" + "x" * 40_000, "seconds": 1.5},
    },
]
FAILED = {"id": "3", "given": {"query": "x", "own": {}, "digest": ""}, "computed": {"error": "@broken"}}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text(
        "".join(json.dumps(record) + "\n" for record in [{"code_chains_results": 1, "run": {}}, *RECORDS])
    )
    Path(f"{path}.failed").write_text(json.dumps(FAILED) + "\n")
    return path


def test_answers_are_exported_as_csv_without_formulas(results: Path, tmp_path: Path) -> None:
    assert export_table(results, tmp_path / "a.csv") == 3
    with (tmp_path / "a.csv").open(encoding="utf-8-sig", newline="") as file:
        one, two, failed = csv.DictReader(file)
    assert (one["region"], one["answer"], one["value"], one["tokens"], one["usd"]) == (
        "N",
        "GOLD",
        "[1]",
        "7",
        "0.5",
    )
    assert (one["query"], one["answer (code_chains)"], one["verdict"], one["output"]) == (
        "ü?",
        "'=1+1",
        "verified",
        "a\n-3",
    )
    assert (two["query"], two["answer (code_chains)"], len(two["output"])) == ("-3", "+49.30", 40_002)
    assert failed["error"] == "'@broken"


@pytest.mark.parametrize(
    "text",
    [
        "=1",
        "@x",
        "-2+3+cmd|' /C calc'!A0",
        '+1+HYPERLINK("http://e")',
        "+x",
        "-",
        "\t=1",
        "\n=1",
        "\r\nx",
        " =1",
        "＝",
        "＋",
        "＠",
    ],
)
def test_what_could_be_a_formula_is_text(text: str) -> None:
    assert without_formula(text) == f"'{text}"


def test_a_formula_after_a_semicolon_which_divides_columns_elsewhere_is_text() -> None:
    assert without_formula("x;=1+1; @y;-2;-z") == "x;'=1+1; '@y;-2;'-z"


@pytest.mark.parametrize(
    "text", ["a\n=b", "a\r=1", 'a;"=1;b', "x;\u00a0=1", "x;\n=1", "a \n\t+cmd|x", "a\n@b", 'a"\n"=b']
)
def test_no_field_is_a_formula_where_semicolons_and_lines_divide_a_cell(text: str) -> None:
    file = io.StringIO()
    csv.writer(file).writerow(["1", without_formula(text)])
    rows = csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter=";")
    assert not [field for row in rows for field in row if field.lstrip('" \t\n\r\xa0')[:1] in ("=", "+", "@")]


@pytest.mark.parametrize(
    "text", ["+" + "1" * 100_000 + "x", "a" + " " * 100_000 + "b", "x;" + "\n" * 100_000]
)
def test_a_long_cell_is_read_once(text: str) -> None:
    start = time.process_time()
    without_formula(text)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "text",
    [
        "-3",
        "+1.5",
        "-.5",
        "1e9",
        "-1e-9",
        "+12%",
        "a=b",
        "",
        "text",
        "-1;+2",
        "a;\n- b",
        "a\n- b\n- c",
        "for (;;) x;",
    ],
)
def test_numbers_and_words_stay_as_they_are(text: str) -> None:
    assert without_formula(text) == text


def test_answers_are_exported_as_a_spreadsheet_without_formulas(results: Path, tmp_path: Path) -> None:
    assert export_table(results, tmp_path / "a.xlsx") == 3
    header, one, *_ = load_workbook(tmp_path / "a.xlsx").active.iter_rows()
    assert [cell.value for cell in header][:4] == ["id", "query", "region", "answer"]
    assert (one[4].value, one[4].data_type) == ("=1+1", "s")


def test_text_that_a_spreadsheet_cannot_hold_is_cut_with_a_mark(results: Path, tmp_path: Path) -> None:
    export_table(results, tmp_path / "a.xlsx")
    cells = [cell.value for cell in list(load_workbook(tmp_path / "a.xlsx").active.iter_rows())[2]]
    assert "… [cut, 40,002 characters]" in cells[7]


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_answers_are_exported_for_programs(results: Path, tmp_path: Path, suffix: str) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / f"a{suffix}"
    assert export_table(results, path) == 3
    frame = pandas.read_parquet(path) if suffix == ".parquet" else pandas.read_json(path, lines=True)
    assert frame["usd"].tolist()[0] == 0.5
    assert list(map(str, frame["id"])) == ["1", "2", "3"]


def test_questions_that_are_not_there_any_more_are_left_out(results: Path, tmp_path: Path) -> None:
    assert export_table(results, tmp_path / "a.csv", order=["2", "new"]) == 1


def test_rows_are_in_the_order_of_the_questions(results: Path, tmp_path: Path) -> None:
    export_table(results, tmp_path / "a.csv", order=["3", "2", "1"])
    with (tmp_path / "a.csv").open(encoding="utf-8-sig", newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ["3", "2", "1"]


def test_an_existing_table_is_not_replaced_unless_that_is_meant(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("mine")
    with pytest.raises(InputError, match="exists"):
        check_table(tmp_path / "mine.csv")
    with pytest.raises(InputError, match="exists"):
        check_table(tmp_path / "mine.csv", may_exist=True)


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx", "a.parquet", "a.jsonl"])
def test_a_table_of_the_run_is_replaced_when_it_is_resumed(results: Path, tmp_path: Path, name: str) -> None:
    export_table(results, tmp_path / name)
    check_table(tmp_path / name, may_exist=True)


@pytest.mark.parametrize("name", ["a.ods", "a", "nowhere/a.csv"])
def test_a_table_that_cannot_be_written_is_refused_early(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        check_table(tmp_path / name)


@pytest.fixture
def langsmith(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[HTTPServer]:
    """A server whose address LangSmith's client takes from the environment, which it reads once."""
    monkeypatch.setenv("LANGSMITH_ENDPOINT", httpserver.url_for("").rstrip("/"))
    monkeypatch.setenv("LANGSMITH_API_KEY", "key")
    get_env_var.cache_clear()  # type: ignore[attr-defined]
    yield httpserver
    get_env_var.cache_clear()  # type: ignore[attr-defined]


def test_a_dataset_of_langsmith_is_read_by_its_name(langsmith: HTTPServer) -> None:
    dataset = {
        "id": ID.format(1),
        "name": "sums",
        "created_at": "2026-01-01T00:00:00Z",
        "tenant_id": ID.format(1),
    }
    examples = [
        {"id": ID.format(number), "dataset_id": ID.format(1), "inputs": {"question": f"Double {number}"}}
        | {"outputs": {"answer": 2 * number}, "created_at": "2026-01-01T00:00:00Z"}
        for number in (2, 3)
    ]
    langsmith.expect_request("/datasets").respond_with_json([dataset])
    langsmith.expect_request("/examples").respond_with_json(examples)
    langsmith.expect_request(re.compile("/(info|sessions)")).respond_with_json({})
    questions = list(read_questions("langsmith:sums"))
    assert [(question.id, question.inputs["query"]) for question in questions] == [
        (ID.format(2), "Double 2"),
        (ID.format(3), "Double 3"),
    ]
    assert [case.expectation.value for case in read_cases("langsmith:sums")] == [4, 6]


def test_a_dataset_of_langsmith_that_cannot_be_read_says_what_to_set(langsmith: HTTPServer) -> None:
    langsmith.expect_request(re.compile(".*")).respond_with_json({"detail": "no"}, status=401)
    with pytest.raises(InputError, match="LANGSMITH_API_KEY"):
        list(read_questions("langsmith:sums"))


def workbook(path: Path, sheet: bytes) -> Path:
    """A workbook with this sheet."""
    import openpyxl

    whole = io.BytesIO()
    openpyxl.Workbook().save(whole)
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            is_sheet = name == "xl/worksheets/sheet1.xml"
            target.writestr(name, SHEET % sheet if is_sheet else source.read(name))
    return path


SHEET = (
    b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    b'<dimension ref="A1:XFD1048576"/><sheetData>%s</sheetData></worksheet>'
)
HEAD = b'<row r="1"><c r="A1" t="inlineStr"><is><t>query</t></is></c></row>'


@pytest.mark.parametrize(
    ("sheet", "reason"),
    [
        (HEAD + b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>', "more than 100,000 rows"),
        (HEAD.replace(b"query", b"other"), "no column query"),
        (HEAD + b"<row/>" * 9_000_000, "expands to more than"),
        (HEAD + b"<row/>" * 2_100_000, "more than 2,000,000 elements"),
        (b'<!DOCTYPE x [<!ENTITY a "aaaa">]>' + HEAD, "declares a document type"),
    ],
    ids=["far cells", "no questions", "many bytes", "many rows", "entities"],
)
def test_a_workbook_takes_no_memory_for_cells_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sheet: bytes, reason: str
) -> None:
    monkeypatch.setattr(questions, "_MAX_ROWS", 100_000)
    path = workbook(tmp_path / "q.xlsx", sheet)
    tracemalloc.start()
    with pytest.raises(InputError, match=reason):
        list(read_questions(path))
    assert tracemalloc.get_traced_memory()[1] < 200 << 20
    tracemalloc.stop()


def test_a_parquet_file_of_values_that_are_repeated_is_counted_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "q.parquet"
    pandas.DataFrame({"query": pandas.Categorical(["What is 1 + 1?"] * 1000)}).to_parquet(path)
    assert [question.query for question in read_questions(path)] == ["What is 1 + 1?"] * 1000
    monkeypatch.setattr(questions, "_MAX_VALUES", 999)
    with pytest.raises(InputError, match="more than 999 values"):
        list(read_questions(path))


@pytest.mark.parametrize(
    "column",
    [
        pyarrow.array([b"x" * 2000] * 200_000, pyarrow.binary(2000)),
        pyarrow.array([None] * 1_000_000, pyarrow.struct([("a", pyarrow.int32())])),
        pyarrow.array([[]] * 1_000_000, pyarrow.list_(pyarrow.int32())),
    ],
    ids=["fixed bytes", "structures", "lists"],
)
def test_what_the_values_of_a_parquet_file_become_is_counted_first(tmp_path: Path, column: Any) -> None:
    path = tmp_path / "q.parquet"
    query = pyarrow.array(["x"] * len(column))
    pyarrow.parquet.write_table(pyarrow.table({"query": query, "other": column}), path)
    with pytest.raises(InputError, match="values take more than"):
        list(read_questions(path))


def test_empty_cells_and_errors_of_a_workbook_are_missing(tmp_path: Path) -> None:
    row = b'<row r="3"><c r="A3" t="inlineStr"><is><t>Why?</t></is></c><c r="B3" t="e"><v>#N/A</v></c></row>'
    head = HEAD.replace(b"</row>", b'<c r="B1" t="inlineStr"><is><t>n</t></is></c></row>')
    (question,) = read_questions(workbook(tmp_path / "q.xlsx", head + row))
    assert (question.query, question.own, question.origin) == (
        "Why?",
        {"n": None},
        f"{tmp_path}/q.xlsx, row 3",
    )
