"""SQL as an executor: it reads its inputs and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any

import duckdb
import pandas as pd
import pytest
from langchain_core.messages import BaseMessage

from code_chains import Data, create_code_chain
from code_chains.errors import ConfigurationError, ExecutorError, InputError
from code_chains.executors.base import Executor
from code_chains.executors.limits import Limits
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.executor import ProcessExecutor, SandboxExecutor
from code_chains.executors.sql import SqlExecutor
from code_chains.temporary import process_folder
from code_chains.testing import ExecutorContract, ScriptedExecutor, ScriptedModel
from tests.conftest import at_rest, descendants, soon


@pytest.mark.slow
class TestSql(ExecutorContract):
    EVALUATES = "SELECT 1 + 1 AS two"
    VALUE = "two\n---\n2"
    PRINTS = None
    NAMES_RESULT = None
    FAILS = "SELECT\n  nope\nFROM (VALUES (1)) AS t(a)"
    FAILURE = ("BinderException", 2)
    VALUES: Mapping[str, str] = MappingProxyType({})
    USES = "SELECT sum(numbers.value) * any_value(n.value) AS product FROM numbers, n"
    USED = "product\n-------\n9"
    LEAVES = None
    ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT 1 FROM t) SELECT count(*) FROM t"
    FLOODS = "SELECT repeat('x', 1000) FROM range(1000000)"
    HOARDS = "SELECT list(range) FROM range(10000000000)"
    EXITS = None

    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        with SqlExecutor(limits=Limits(seconds=2, memory="512M", output="64K")) as executor:
            yield executor


@pytest.fixture(scope="module")
def sql() -> Iterator[SqlExecutor]:
    with SqlExecutor(limits=Limits(seconds=2)) as executor:
        executor.run("select 1")  # Its worker stays, whichever test is the first.
        yield executor


@pytest.fixture(scope="module", params=["sandbox", "process"])
def locked(request: pytest.FixtureRequest) -> Iterator[SqlExecutor]:
    """Provide DuckDB in the sandbox, and in a plain process, where its own locks are the only protection."""
    limits = Limits(seconds=5, memory="1G")
    python: Executor = (
        ProcessExecutor(limits=limits) if request.param == "process" else SandboxExecutor(limits=limits)
    )
    with python, SqlExecutor(executor=python) as executor:
        yield executor


# -- what it reads -----------------------------------------------------------------------------------------------------


def test_a_csv_file_is_a_table_of_its_name(sql: SqlExecutor, sales: Path) -> None:
    done = sql.run(
        "SELECT region, amount * 2 AS twice FROM sales_2024 ORDER BY 1", files={"data/sales-2024.csv": sales}
    )
    assert done.output == "region | twice\n------ | -----\nnorth  | 20\nsouth  | 64"


@pytest.mark.rows(2)
@pytest.mark.parametrize("name", ["t.json", "t.jsonl", "t.tsv", "t.parquet", "t.csv.gz", "T.CSV"])
def test_other_kinds_of_files_are_tables_too(sql: SqlExecutor, tmp_path: Path, name: str) -> None:
    path, frame = tmp_path / name.lower(), pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    if name.endswith("parquet"):
        duckdb.from_df(frame).write_parquet(str(path))
    elif "json" in name:
        frame.to_json(path, orient="records", lines=name.endswith("l"))
    else:
        frame.to_csv(path, index=False, sep="\t" if name.endswith("tsv") else ",")
    assert (
        sql.run("SELECT sum(a) AS s, max(b) AS b FROM t", files={name: path}).output == "s | b\n- | -\n3 | y"
    )


@pytest.fixture
def shops(tmp_path: Path) -> dict[str, Path]:
    """Return a file of SQLite, one of DuckDB, and workbooks with one sheet and with two."""
    statement = "CREATE TABLE {} (id INTEGER, day DATE, since DATETIME, price REAL, code TEXT)"
    row = "INSERT INTO {} VALUES (1, '2024-01-31', '2024-01-31 10:00:00', 2.5, '007'), (2, NULL, NULL, 3, '')"
    with closing(sqlite3.connect(tmp_path / "a.db")) as lite:
        lite.executescript(
            f"{statement.format('lite')}; {row.format('lite')}; CREATE VIEW v AS SELECT id FROM lite"
        )
    with closing(duckdb.connect(str(tmp_path / "b.duckdb"))) as duck:
        duck.execute(f"{statement.format('duck')}; {row.format('duck')}")
    frame = pd.DataFrame(
        {"id": [1, 2], "day": [pd.Timestamp("2024-01-31"), None], "price": [2.5, 3], "code": ["007", None]}
    )
    frame.to_excel(tmp_path / "one.xlsx", index=False)
    with pd.ExcelWriter(tmp_path / "two.xlsx") as book:
        frame.to_excel(book, sheet_name="May 24", index=False)
        frame.to_excel(book, sheet_name="June", index=False)
    return {path.name: path for path in tmp_path.iterdir()}


@pytest.mark.parametrize("table", ["lite", "duck", "one", "two_May_24", "two_June"])
def test_databases_and_workbooks_are_tables_with_types(
    sql: SqlExecutor, shops: dict[str, Path], table: str
) -> None:
    query = f"SELECT month(max(day)) AS m, sum(price) AS p, min(code) FILTER (id = 1) AS c FROM {table}"
    assert sql.run(query, files=shops).output.splitlines()[2] == "1 | 5.5 | 007"


def test_tables_of_several_files_are_joined(sql: SqlExecutor, shops: dict[str, Path]) -> None:
    joined = "SELECT count(*) AS n FROM lite JOIN duck USING (id) JOIN one USING (id) JOIN v USING (id)"
    assert sql.run(joined, files=shops).output == "n\n-\n2"


def test_the_name_of_a_file_is_no_pattern(sql: SqlExecutor) -> None:
    files = {"data[1].csv": b"x\n1\n", "data1.csv": b"x\n100\n", "p=3/a.csv": b"x\n5\n"}
    assert sql.run("SELECT sum(x) AS s FROM data_1_", files=files).output.splitlines()[-1] == "1"
    assert sql.run("FROM a", files=files).output == "x\n-\n5"


def test_a_file_with_the_name_of_a_reserved_word_can_be_read(sql: SqlExecutor) -> None:
    assert sql.run("SELECT sum(x) AS s FROM table_", files={"table.csv": b"x\n4\n"}).output == "s\n-\n4"


def test_a_table_that_cannot_be_read_leaves_the_others(sql: SqlExecutor, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as lite:
        lite.executescript(
            "CREATE TABLE t(a); INSERT INTO t VALUES (7); CREATE TABLE g(b); CREATE VIEW v AS SELECT b FROM g"
        )
        lite.executescript(
            "DROP TABLE g; CREATE TABLE sqliteX(c); INSERT INTO sqliteX VALUES (CAST(x'ff41' AS TEXT))"
        )
    files = {"a.db": tmp_path / "a.db"}
    assert sql.run("SELECT a, c FROM t, sqliteX", files=files).output.splitlines()[-1] == "7 | �A"
    assert "cannot be read" in sql.run("FROM v", files=files).output


def test_times_with_an_offset_stay_as_they_are(sql: SqlExecutor, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as lite:
        lite.executescript("CREATE TABLE t(at DATETIME); INSERT INTO t VALUES ('2024-01-02T00:30:00+02:00')")
    assert "+02:00" in sql.run("FROM t", files={"a.db": tmp_path / "a.db"}).output


def test_schemas_alone_hold_no_values_of_defaults_and_categories(sql: SqlExecutor, tmp_path: Path) -> None:
    with closing(duckdb.connect(str(tmp_path / "b.duckdb"))) as duck:
        duck.execute("CREATE TYPE mood AS ENUM ('secret1', 'b')")
        duck.execute("CREATE TABLE t (m mood, n TEXT DEFAULT 'secret2' CHECK (n != 'secret3'))")
    files = {"b.duckdb": tmp_path / "b.duckdb"}
    assert "secret" not in str(sql.describe_files(files, 0))
    assert "secret2" in str(sql.describe_files(files, 1))


def test_long_names_of_columns_are_not_repeated_in_a_value(sql: SqlExecutor) -> None:
    data = ("a," + "x" * 100_000 + "\n" + "1,2\n" * 100).encode()
    done = sql.run("SELECT * FROM h", files={"h.csv": data}, return_value=True)
    assert (done.ok, done.display_data) == (True, ())


def test_two_tables_of_one_name_are_an_input_error(sql: SqlExecutor, shops: dict[str, Path]) -> None:
    with pytest.raises(InputError, match="Two tables would be called 'lite'"):
        sql.run("FROM lite", files=shops, variables={"Lite": [1]})


@pytest.mark.parametrize(
    "verb", ["DELETE FROM", "DROP TABLE", "INSERT INTO lite FROM", "COPY lite TO 'x'; FROM"]
)
def test_databases_of_a_question_are_not_changed(sql: SqlExecutor, shops: dict[str, Path], verb: str) -> None:
    assert sql.run(f"{verb} lite", files=shops).status == "refused"


def test_the_model_sees_tables_with_types_and_first_rows(shops: dict[str, Path]) -> None:
    asked = list[str]()

    def reply(messages: list[BaseMessage]) -> str:
        asked.append(messages[-1].text)
        return "```sql\nSELECT 1 AS n\n```"

    with create_code_chain(ScriptedModel(reply), executor="sql", interpret=False) as chain:
        chain.invoke({"query": "How many?", "files": shops})
    schema_only = Data(schema_only=True)
    with create_code_chain(ScriptedModel(reply), executor="sql", interpret=False, data=schema_only) as chain:
        chain.invoke({"query": "How many?", "files": shops})
    for text in asked:
        assert '"lite" ("id" BIGINT, "day" DATE, "since" TIMESTAMP, "price" DOUBLE, "code" VARCHAR)' in text
    assert ["007" in text for text in asked] == [True, False]


@pytest.mark.parametrize(
    ("kind", "query", "value"),
    [
        (int, "SELECT 7", 7),
        (float, "SELECT 1.50::DECIMAL(4, 2)", 1.5),
        (str, "SELECT 'a'", "a"),
        (bool, "SELECT true", True),
        (date, "SELECT DATE '2024-01-31'", date(2024, 1, 31)),
        (list[int], "SELECT range FROM range(3)", [0, 1, 2]),
        (list[int], "SELECT [5]", [5]),
        (list[dict[str, int]], "SELECT 1 AS a, 2 AS b", [{"a": 1, "b": 2}]),
        (dict[str, int], "SELECT {'a': 1}", {"a": 1}),
    ],
)
def test_the_value_of_a_query_has_the_type_of_the_answer(
    sql: SqlExecutor, kind: Any, query: str, value: Any
) -> None:
    model = ScriptedModel(lambda messages: f"```sql\n{query}\n```")
    chain = create_code_chain(model, executor=sql, answer_type=kind, interpret=False)
    assert chain.invoke("?")["value"] == value


@pytest.mark.parametrize("query", ["SELECT NULL", "SELECT 1 WHERE false", "SELECT 'x'"])
def test_a_query_without_such_a_value_fails_and_is_asked_again(sql: SqlExecutor, query: str) -> None:
    model = ScriptedModel(lambda messages: f"```sql\n{query}\n```")
    done = create_code_chain(model, executor=sql, answer_type=int, interpret=False).invoke("?")
    assert (done["verdict"].status, len(done["attempts"])) == ("failed", 3)


@pytest.mark.parametrize("address", ["postgresql://u:secret@host/shop", "shop.sqlite", "data/shop.duckdb"])
def test_an_address_of_a_database_names_the_executor_for_it(address: str) -> None:
    with pytest.raises(ConfigurationError, match="DatabaseExecutor") as raised:
        create_code_chain(ScriptedModel(lambda messages: ""), executor=address)
    assert "secret" not in str(raised.value)


def test_a_result_without_rows_says_so(sql: SqlExecutor) -> None:
    assert sql.run("SELECT 1 AS a WHERE false").output == "a\n-\n(0 rows)"


@pytest.mark.parametrize("tag", ["sql", "duckdb", "postgresql", "sqlite"])
def test_a_query_may_name_its_dialect(sql: SqlExecutor, tag: str) -> None:
    model = ScriptedModel(lambda messages: f"```{tag}\nSELECT 6 * 7 AS n\n```")
    with create_code_chain(model, executor=sql, interpret=False) as chain:
        assert "42" in chain.invoke("6 * 7?")["output"]


@pytest.mark.rows(3)
@pytest.mark.parametrize(
    ("value", "rows"),
    [
        ([{"a": 1, "b": "2024-01-31"}, {"a": 2}], "1,2024-01-31\n2,\n"),
        ([3, 4], "3\n4\n"),
        ("text", "text\n"),
        ([], ""),
        ([None, 5], '""\n5\n'),
        (1.5, "1.5\n"),
        ({"k": 7}, "7\n"),
        ([{}, {}], "{}\n{}\n"),
    ],
)
def test_a_variable_is_a_table_of_its_name(sql: SqlExecutor, value: Any, rows: str) -> None:
    artifact = sql.run("FROM v", variables={"v": value}).artifacts[0]
    assert artifact.data.decode().partition("\n")[2] == rows


def test_a_frame_is_a_table_with_its_types(sql: SqlExecutor) -> None:
    frame = pd.DataFrame({"day": pd.to_datetime(["2024-01-31", "2024-02-29"]), "n": [1.5, 2.5]})
    done = sql.run("SELECT month(day) AS m, n FROM frame ORDER BY 1 DESC", variables={"frame": frame})
    assert done.output == "m | n\n- | ---\n2 | 2.5\n1 | 1.5"


def test_the_last_of_several_statements_is_shown(sql: SqlExecutor) -> None:
    assert sql.run("SELECT 1;\n-- then\nSELECT 2 AS b;\n").output == "b\n-\n2"
    assert sql.run("-- nothing").output == ""


@pytest.mark.parametrize(
    "verb", ["DESCRIBE t", "SUMMARIZE t", "EXPLAIN FROM t", "PIVOT t ON a USING count(*)", "SHOW TABLES"]
)
def test_read_only_statements_are_allowed(sql: SqlExecutor, verb: str) -> None:
    assert sql.run(verb, variables={"t": [{"a": 1}]}).ok


def test_values_are_shown_as_sql_writes_them(sql: SqlExecutor) -> None:
    done = sql.run(
        "SELECT true AS a, NULL AS b, 'x\ny' AS c, [1, 2] AS d, 1.50::DECIMAL(4, 2) AS e, DATE '2024-01-31' AS f"
    )
    assert done.output.splitlines()[2] == "true | NULL | x\\ny | [1, 2] | 1.50 | 2024-01-31"
    assert sql.run("SELECT now() AS t").ok


def test_the_rows_are_a_csv_artifact(sql: SqlExecutor) -> None:
    artifact = sql.run("SELECT 'a,b' AS x, NULL AS y").artifacts[0]
    assert (artifact.name, artifact.media_type, artifact.data) == ("result.csv", "text/csv", b'x,y\n"a,b",\n')


def test_excess_rows_are_truncated_and_reported() -> None:
    with SqlExecutor(max_rows=3) as sql:
        done = sql.run("FROM range(1000000000000)")
        assert (done.ok, done.truncated, done.output.splitlines()[-1]) == (
            True,
            True,
            "… and more rows than these 3",
        )
        assert not sql.run("FROM range(3)").truncated


def test_wide_tables_are_not_aligned_beyond_the_limit() -> None:
    with SqlExecutor(limits=Limits(output="4K", seconds=5)) as sql:
        done = sql.run("SELECT repeat('x', CASE range WHEN 0 THEN 40 ELSE 1 END) FROM range(300)")
    assert (done.ok, len(done.output) <= 4096) == (True, True)


def test_isolation_is_that_of_the_executor(sql: SqlExecutor) -> None:
    isolation = sql.run("SELECT 1").isolation
    assert isolation is not None
    assert (isolation.level, isolation.open) == ("kernel", ())


# -- attacks -----------------------------------------------------------------------------------------------------------

READS = [
    "FROM read_csv('{canary}')",
    "FROM read_text('{canary}')",
    "FROM read_blob('{canary}')",
    "FROM read_json('{canary}')",
    "FROM read_parquet('{canary}')",
    "FROM parquet_metadata('{canary}')",
    "FROM sniff_csv('{canary}')",
    "FROM '{canary}'",
    "FROM glob('{folder}/*')",
    "FROM read_csv('{folder}/*.csv')",
    "FROM read_text('/proc/self/environ')",
    "FROM query('FROM read_text(''{canary}'')')",
    "FROM read_text((SELECT '{canary}'))",
    "SELECT * FROM read_text(['{canary}'])",
    "FROM read_text('../../../../../../{canary}')",
    "FROM read_text('file://{canary}')",
    "SELECT getenv('MY_SECRET')",
    "SELECT getenv('HOME')",
    "FROM read_csv('http://127.0.0.1:{port}/canary')",
    "FROM sniff_csv('http://127.0.0.1:{port}/canary')",
    "FROM 'http://127.0.0.1:{port}/canary.parquet'",
    "FROM sqlite_scan('{canary}', 't')",
    "FROM seq_scan('{canary}')",
    "EXPLAIN ANALYZE FROM read_text('{canary}')",
    "SELECT * FROM duckdb_secrets(redact := false)",
    "FROM request",
    "FROM duckdb",
]
REFUSED = [
    "COPY (SELECT 1) TO '{folder}/made.csv'",
    "COPY t FROM '{canary}'",
    "COPY (SELECT 1) TO '/dev/stdout'",
    "EXPORT DATABASE '{folder}/made'",
    "IMPORT DATABASE '{folder}'",
    "ATTACH '{folder}/made.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{canary}'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET allowed_paths = ['{canary}']",
    "RESET allowed_paths",
    "SET VARIABLE x = (SELECT content FROM read_text('{canary}'))",
    "PRAGMA enable_profiling",
    "PRAGMA database_list",
    "CREATE SECRET s (TYPE s3)",
    "CREATE MACRO m() AS TABLE FROM read_text('{canary}')",
    "CREATE TABLE t AS SELECT 1",
    "CREATE VIEW v AS FROM read_text('{canary}')",
    "CALL enable_logging(storage = 'file', storage_path = '{folder}/made.log')",
    "INSERT INTO sales VALUES ('x', 1)",
    "DROP VIEW sales",
    "UPDATE sales SET amount = 0",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "USE memory",
    "BEGIN",
    "CHECKPOINT",
    "VACUUM",
    "SELECT 1; COPY (SELECT 1) TO '{folder}/made.csv'",
]
EXPLAINED = [
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/made.csv'",
    "EXPLAIN ANALYZE ATTACH '{folder}/made.db'",
    "EXPLAIN ANALYZE SET enable_external_access = true",
    "EXPLAIN ANALYZE CREATE TABLE t AS FROM read_text('{canary}')",
]


@pytest.fixture(scope="module")
def server() -> Iterator[HTTPServer]:
    class Canary(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET  # noqa: N815

    asked: list[str] = []
    with HTTPServer(("127.0.0.1", 0), Canary) as server:
        server.asked = asked  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def attack(
    locked: SqlExecutor, tmp_path: Path, sales: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Run an attack and check from outside that nothing was created, requested or read."""
    monkeypatch.setenv("MY_SECRET", "hunter2")
    canary = tmp_path / "canary.csv"
    canary.write_text("canary-in-the-coal-mine\n")
    before = sorted(tmp_path.rglob("*"))

    def run(statement: str) -> Any:
        code = statement.format(canary=canary, folder=tmp_path, port=server.server_port)
        done = locked.run(code, files={"sales.csv": sales})
        shown = done.to_json()
        assert not any(secret in shown for secret in ("coal-mine", "hunter2", "north"))
        return done

    yield run
    assert sorted(tmp_path.rglob("*")) == before
    assert server.asked == []
    assert sales.read_text() == "region,amount\nnorth,10\nsouth,32\n"


@pytest.mark.rows(3)
@pytest.mark.parametrize("statement", READS)
def test_nothing_else_can_be_read(attack: Any, statement: str) -> None:
    done = attack(statement)
    assert done.status == "error" or done.result.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("statement", REFUSED)
def test_statements_that_are_not_read_only_are_refused(attack: Any, statement: str) -> None:
    done = attack(statement)
    assert done.status in ("refused", "error")
    assert done.status == "refused" or done.error.type == "ParserException"


@pytest.mark.rows(2)
@pytest.mark.parametrize("statement", EXPLAINED)
def test_explain_does_not_execute_writes(attack: Any, statement: str) -> None:
    assert attack(statement).status in ("error", "refused")


def test_nothing_runs_if_one_statement_is_refused(sql: SqlExecutor) -> None:
    began = time.monotonic()
    done = sql.run("SELECT count(*) FROM range(100000000000); DROP TABLE t")
    assert (done.status, done.isolation, time.monotonic() - began < 2) == ("refused", None, True)


@pytest.mark.slow
def test_links_are_followed_for_inputs_and_never_from_inside(
    locked: SqlExecutor, tmp_path: Path, sales: Path
) -> None:
    (tmp_path / "link.csv").symlink_to(sales)
    files = {"link.csv": tmp_path / "link.csv"}
    assert locked.run("SELECT sum(amount) AS s FROM link", files=files).output == "s\n--\n42"
    for path in (sales, "sales.csv", "./../sales.csv", tmp_path / "link.csv"):
        assert locked.run(f"FROM read_csv('{path}')", files=files).status == "error"


def test_a_name_cannot_become_a_statement(sql: SqlExecutor, tmp_path: Path) -> None:
    name = "a'); COPY (SELECT 1) TO 'x.csv'; --.csv"
    (tmp_path / "t.csv").write_text("a\n1\n")
    assert sql.run("SHOW TABLES", files={name: tmp_path / "t.csv"}).result is not None
    assert sql.run("FROM v", variables={"v": [{'a"; DROP VIEW v; --': 1}]}).ok


# -- endings -----------------------------------------------------------------------------------------------------------

HOSTILE = {
    "cross join": ("SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c", ("timeout",)),
    "big cross join": ("SELECT count(*) FROM range(1000000000) a, range(1000000000) b", ("timeout", "memory")),
    "recursion": ("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n FROM t) SELECT sum(n) FROM t", ("timeout", "memory")),
    "regex": (
        "SELECT regexp_matches(range || repeat('x', 9999), '(x+x+)+y$') FROM range(100000000) ORDER BY 1",
        ("timeout", "memory"),
    ),
    "one long value": ("SELECT length(repeat('x', 100000000000))", ("error", "memory", "timeout")),
    "list aggregate": ("SELECT list_aggregate(range(1000000000), 'sum')", ("timeout", "memory")),
    "list sort": ("SELECT len(list_sort(list_transform(range(200000000), lambda x: hash(x))))", ("timeout", "memory")),
    "levenshtein": ("SELECT levenshtein(repeat('x', 1000000), repeat('y', 1000000))", ("timeout", "memory")),
    "huge sort": ("FROM range(10000000000) ORDER BY hash(range)", ("timeout", "memory")),
    "huge group": ("SELECT range, count(*) FROM range(10000000000) GROUP BY ALL", ("timeout", "memory")),
    "sleep": ("SELECT sleep_ms(60000)", ("timeout", "error")),
    "deep nesting": (f"SELECT {'(' * 20000}1{')' * 20000}", ("error",)),
    "long chain": (f"SELECT 1{' + 1' * 49000}", ("error", "ok", "killed", "memory", "timeout")),
    "flood of columns": (f"SELECT {', '.join(['range'] * 2000)} FROM range(200)", ("output_limit",)),
    "null byte": ("SELECT '\0'", ("error", "ok")),
    "half a character": ("SELECT '\ud800'", ("error", "ok")),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("statement", "statuses"), HOSTILE.values(), ids=HOSTILE.keys())
def test_every_ending_is_a_value_within_its_limit(
    sql: SqlExecutor, statement: str, statuses: tuple[str, ...]
) -> None:
    before, began = at_rest(), time.monotonic()
    done = sql.run(statement)
    assert done.status in statuses, done.error
    assert time.monotonic() - began < sql.limits.seconds * 1.25 + 3
    assert done.ok or done.error is not None
    assert soon(lambda: len(descendants()) <= before)


async def test_cancelling_ends_the_query(sql: SqlExecutor) -> None:
    before = at_rest()
    task = asyncio.create_task(sql.arun(HOSTILE["cross join"][0]))
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert soon(lambda: len(descendants()) <= before)


def test_threads_do_not_mix(sql: SqlExecutor) -> None:
    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda n: sql.run("FROM v", variables={"v": n}).output, range(8)))
    assert done == [f"value\n-----\n{n}" for n in range(8)]


def test_runs_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with SqlExecutor() as sql:
        assert sql.run("FROM f", variables={"f": pd.DataFrame({"a": [1]})}).ok
    assert os.listdir(process_folder()) == []


# -- wrong use ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["book.xls", "notes.txt", ".csv", "table"])
def test_a_file_that_is_no_table_is_refused(sql: SqlExecutor, sales: Path, name: str) -> None:
    with pytest.raises(InputError, match="not a table"):
        sql.run("SELECT 1", files={name: sales})


def test_two_tables_with_the_same_name_are_refused(sql: SqlExecutor, sales: Path) -> None:
    with pytest.raises(InputError, match="'Sales'"):
        sql.run("SELECT 1", files={"Sales.csv": sales}, variables={"sales": 1})


def test_a_frame_that_is_no_table_is_refused(sql: SqlExecutor) -> None:
    with pytest.raises(InputError, match="'f' cannot be made a table"):
        sql.run("SELECT 1", variables={"f": pd.Timestamp(0)})


@pytest.mark.parametrize(
    "arguments", [{"max_rows": 0}, {"limits": Limits(), "executor": ScriptedExecutor(str)}]
)
def test_an_invalid_argument_is_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(arguments))):
        SqlExecutor(**arguments)


def test_an_executor_without_duckdb_is_an_error() -> None:
    with ProcessExecutor() as python, SqlExecutor(executor=python) as sql:
        sql._code = sql._code.replace("import duckdb", "import no_such_duckdb as duckdb")
        with pytest.raises(ExecutorError, match="Install duckdb"):
            sql.run("SELECT 1")


def test_malformed_output_is_an_error() -> None:
    with (
        SqlExecutor(executor=ScriptedExecutor(lambda _: "no JSON")) as sql,
        pytest.raises(ExecutorError, match="malformed"),
    ):
        sql.run("SELECT 1")


def test_an_executor_passed_as_argument_stays_open() -> None:
    with ProcessExecutor() as executor:
        SqlExecutor(executor=executor).close()
        assert executor.run("1").ok


def test_the_request_is_json(sql: SqlExecutor) -> None:
    with sql._prepared(Program("SELECT 1", variables={"a": 1})) as program:
        assert json.loads(json.dumps(program.variables)) == program.variables


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ConfigurationError, match=r'pip install -e "\.\[sql\]"'):
        SqlExecutor()
