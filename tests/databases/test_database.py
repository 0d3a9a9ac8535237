"""A database of the application is read, and never changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy
from langchain_core.messages import BaseMessage

from code_chains import create_code_chain
from code_chains.analysis.queries import read_only
from code_chains.databases import DatabaseExecutor
from code_chains.errors import ConfigurationError, InputError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.testing import ScriptedModel

TABLES = (
    "CREATE TABLE orders (id INTEGER, total REAL, state TEXT)",
    "INSERT INTO orders VALUES (1, 2.5, 'open'), (2, 40, 'paid')",
    "CREATE TABLE users (id INTEGER, password TEXT)",
    "INSERT INTO users VALUES (1, 'hunter2')",
    "CREATE VIEW paid AS SELECT * FROM orders WHERE state = 'paid'",
    "CREATE VIEW everything AS SELECT * FROM users",
)


@pytest.fixture(params=["sqlite", "duckdb"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a file of each kind."""
    path = tmp_path / f"shop.{request.param}"
    connect: Callable[[str], Any] = sqlite3.connect if request.param == "sqlite" else duckdb.connect
    connection = connect(str(path))
    for statement in TABLES:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


@pytest.fixture(scope="module")
def reader() -> Iterator[SandboxExecutor]:
    """Read all files in one sandbox."""
    with SandboxExecutor(limits=Limits(seconds=2), preload=("duckdb",)) as reader:
        yield reader


@pytest.fixture
def shop(path: Path, reader: SandboxExecutor) -> DatabaseExecutor:
    return DatabaseExecutor(path, executor=reader)


def test_rows_are_a_table_and_an_artifact(shop: DatabaseExecutor) -> None:
    done = shop.run("SELECT state, count(*) AS n FROM orders GROUP BY state ORDER BY state")
    assert done.output == "state | n\n----- | -\nopen  | 1\npaid  | 1"
    assert done.artifacts[0].data == b"state,n\nopen,1\npaid,1\n"


@pytest.mark.parametrize(
    "code",
    [
        "DELETE FROM orders",
        "UPDATE orders SET total = 0",
        "CREATE TABLE x (a INTEGER)",
        "DROP VIEW paid",
        "ATTACH '/tmp/x.db' AS x",
        "PRAGMA writable_schema = 1",
        "VACUUM",
    ],
)
def test_what_does_more_than_read_is_refused(shop: DatabaseExecutor, path: Path, code: str) -> None:
    before = path.read_bytes()
    done = shop.run(code)
    assert (done.status, path.read_bytes()) == ("refused", before)
    assert done.error is not None
    assert "Nothing was run" in done.error.message


@pytest.mark.parametrize(
    "code",
    [
        "SELECT 1; DELETE FROM orders",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT load_extension('x')",
        "SELECT nope",
    ],
)
def test_no_other_statement_and_no_file_is_reached(shop: DatabaseExecutor, path: Path, code: str) -> None:
    before = path.read_bytes()
    done = shop.run(code)
    assert not done.ok
    assert path.read_bytes() == before


def test_an_endless_query_ends_in_time(shop: DatabaseExecutor) -> None:
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"
    assert shop.run(endless).status == "timeout"


def test_rows_beyond_the_limit_are_left_out_and_said(path: Path, reader: SandboxExecutor) -> None:
    done = DatabaseExecutor(path, max_rows=1, executor=reader).run("SELECT id FROM orders ORDER BY id")
    assert done.truncated
    assert "and more rows" in done.output


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("SELECT zeroblob(900000000)", "memory"),
        ("SELECT instr(zeroblob(16000000), CAST(zeroblob(200000) || 'a' AS BLOB))", "timeout"),
    ],
)
def test_no_value_fills_the_memory_and_no_function_takes_forever(
    tmp_path: Path, reader: SandboxExecutor, code: str, status: str
) -> None:
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE a (b)")
    assert DatabaseExecutor(tmp_path / "a.db", executor=reader).run(code).status == status


HIDDEN = (
    "SELECT * FROM users",
    "SELECT * FROM orders, main.users",
    "SELECT (SELECT max(password) FROM users)",
    "WITH users AS (SELECT * FROM main.users) SELECT * FROM users",
    "SELECT * FROM query('SELECT * FROM users')",
    "SELECT * FROM query_table('users')",
    "SELECT * FROM pragma_table_info('users')",
    "SELECT * FROM given.main.users",
    "SELECT * FROM everything",
)


def test_other_tables_than_those_named_are_neither_shown_nor_read(
    path: Path, reader: SandboxExecutor
) -> None:
    shop = DatabaseExecutor(path, tables=["orders"], executor=reader)
    assert "hunter2" not in shop.guidance
    assert "users" not in shop.guidance
    for code in HIDDEN:
        done = shop.run(code)
        assert not done.ok
        assert "hunter2" not in done.to_json()
    assert shop.run("WITH users AS (SELECT 1 AS id) SELECT id FROM users").ok


def test_a_view_is_named_alone(path: Path, reader: SandboxExecutor) -> None:
    shop = DatabaseExecutor(path, tables=["paid"], executor=reader)
    assert shop.run("SELECT id FROM paid").output.endswith("2")
    assert not shop.run("SELECT id FROM orders").ok


def test_a_table_that_is_missing_is_named(path: Path, reader: SandboxExecutor) -> None:
    shop = DatabaseExecutor(path, tables=["nope"], executor=reader)
    with pytest.raises(ConfigurationError, match="nope"):
        _ = shop.guidance


def test_the_model_sees_tables_and_views_and_as_many_rows_as_are_allowed(
    path: Path, reader: SandboxExecutor
) -> None:
    assert "40.0" in DatabaseExecutor(path, executor=reader).guidance
    silent = DatabaseExecutor(path, sample_rows=0, executor=reader).guidance
    assert "orders" in silent
    assert "paid" in silent
    assert "40.0" not in silent


def test_a_program_works_with_the_rows(sandbox: SandboxExecutor, shop: DatabaseExecutor) -> None:
    code = "rows = query_database('SELECT * FROM orders')\nprint(sum(row['total'] for row in rows))"
    assert sandbox.run(code, tools=[shop.as_tool()]).output == "42.5"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DROP TABLE orders", "Nothing was run"),
        ("SELECT nope FROM orders", "nope"),
        ("SELECT 1 AS a, 2 AS a", "same name"),
    ],
)
def test_a_query_of_a_program_that_fails_is_its_error(
    sandbox: SandboxExecutor, shop: DatabaseExecutor, sql: str, reason: str
) -> None:
    done = sandbox.run(f"query_database({sql!r})", tools=[shop.as_tool()])
    assert done.error is not None
    assert reason in done.error.message


def test_a_chain_writes_sql_in_the_dialect_of_the_database(shop: DatabaseExecutor, path: Path) -> None:
    prompts = list[str]()

    def reply(messages: list[BaseMessage]) -> str:
        prompts.append(str(messages[0].content))
        return "```sql\nSELECT sum(total) AS total FROM orders\n```"

    with create_code_chain(ScriptedModel(reply), executor=shop, interpret=False) as chain:
        assert chain.invoke("What is the total of the orders?")["output"] == "total\n-----\n42.5"
    assert path.suffix[1:] in prompts[0]
    assert "CREATE TABLE orders" in prompts[0]


def test_samples_are_lines_that_look_like_nothing_else(tmp_path: Path, reader: SandboxExecutor) -> None:
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE a (b)")
        connection.execute("INSERT INTO a VALUES (?)", ["x\n\nCREATE TABLE fake(z)\n"])
        connection.execute("CREATE VIEW broken AS SELECT * FROM nowhere")
    lines = DatabaseExecutor(tmp_path / "a.db", executor=reader).guidance.splitlines()
    assert [line for line in lines if line.startswith("CREATE")] == [
        "CREATE TABLE a (b)",
        "CREATE VIEW broken AS SELECT * FROM nowhere",
    ]


def test_what_another_process_has_committed_is_read_and_no_more(
    tmp_path: Path, reader: SandboxExecutor
) -> None:
    writer = sqlite3.connect(tmp_path / "a.db")
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE a (b)")
    writer.execute("INSERT INTO a VALUES (1)")
    writer.commit()
    writer.execute("INSERT INTO a VALUES (2)")
    shop = DatabaseExecutor(tmp_path / "a.db", executor=reader)
    assert shop.run("SELECT count(*) AS n FROM a").output.endswith("1")
    writer.commit()
    assert shop.run("SELECT count(*) AS n FROM a").output.endswith("2")
    writer.close()


def test_an_engine_and_a_database_of_langchain_stand_for_their_file(
    tmp_path: Path, reader: SandboxExecutor
) -> None:
    class SQLDatabase:  # What is read of LangChain's.
        _include_tables = ("a",)

        def __init__(self, engine: sqlalchemy.Engine) -> None:
            self._engine = engine

        def get_usable_table_names(self) -> list[str]:
            return ["a"]

    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'own.db'}")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE a (b)")
        connection.exec_driver_sql("CREATE TABLE secret (b)")
    assert DatabaseExecutor(engine, executor=reader).run("DELETE FROM a").status == "refused"
    shop = DatabaseExecutor(SQLDatabase(engine), executor=reader)  # type: ignore[arg-type]
    assert (shop.tables, shop.run("SELECT * FROM secret").status) == (("a",), "refused")


@pytest.mark.parametrize(
    ("database", "reason"),
    [
        ("missing.db", "No such file"),
        (__file__, "none of SQLite or DuckDB"),
        (5, "int"),
        ("nodriver+x://ann:hunter2@host/db", "cannot read"),
        ("://hunter2", "cannot read"),
        ("postgresql+psycopg://u:hunter2", "cannot read"),
        ("host=127.0.0.1 password=hunter2", "No such file"),
        ("duckdb:///md:x?motherduck_token=hunter2", "No such file"),
        ("sqlite://", "in memory"),
        ("a\0b", "it is no path"),
    ],
)
def test_what_is_no_database_is_refused_without_its_password(database: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as error:
        DatabaseExecutor(database)
    assert "hunter2" not in str(error.value)


def test_files_of_a_question_are_refused(shop: DatabaseExecutor, sales: Path) -> None:
    with pytest.raises(InputError, match="SqlExecutor"):
        shop.run("SELECT 1", files={"sales.csv": sales})


REFUSED = {
    "SELECT * FROM ts_stat('SELECT to_tsvector(pg_read_file(''/etc/passwd''))')": "ts_stat",
    "SELECT * FROM crosstab('SELECT 1') AS t(a text)": "crosstab",
    "SELECT current_setting('data_directory')": "current_setting",
    "SELECT * FROM pg_catalog.pg_user": "server's own",
    "SELECT rolname FROM pg_roles": "server's own",
    "WITH x AS (DELETE FROM a RETURNING *) SELECT * FROM x": "DELETE",
    "SELECT * INTO b FROM a": "INTO",
    "SELECT * FROM a FOR UPDATE": "LOCK",
    "SELECT pg_read_file('/etc/passwd')": "pg_read_file",
    "SELECT pg_catalog.pg_sleep(9)": "pg_sleep",
    "SELECT query_to_xml('DELETE FROM a', true, true, '')": "query_to_xml",
    "SELECT lo_import('/etc/passwd')": "lo_import",
    "SELECT set_config('a', 'b', false)": "set_config",
    "COPY a TO '/tmp/x'": "COPY",
    "DO $$ BEGIN END $$": "COMMAND",
    "EXPLAIN ANALYZE DELETE FROM a": "not allowed",
    "SELECT 1; SELECT 2": "2 statements",
    "se lect": "not allowed",
    "SELECT (": "no SQL",
    f"WITH {', '.join(f'c{n} AS (SELECT 1)' for n in range(8000))} SELECT 1": "longer than 20,000 characters",
}


@pytest.mark.parametrize(("sql", "reason"), REFUSED.items(), ids=(sql[:40] for sql in REFUSED))
def test_a_statement_for_a_server_that_may_do_more_than_read_is_refused(sql: str, reason: str) -> None:
    query = read_only(sql, "postgresql")
    assert reason in query.refusal
    assert query.text == ""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x::jsonb->>'a' FROM t WHERE a ~ 'x' AND b ILIKE '%y%'",
        "(SELECT 1) UNION (SELECT 2) ORDER BY 1",
        "SELECT count(*) FILTER (WHERE x > 1), date_trunc('month', d) FROM a GROUP BY 2",
        "SELECT pg_typeof(1)",
        "WITH t AS (SELECT 1) SELECT * FROM t, generate_series(1, 3)",
    ],
)
def test_a_statement_that_reads_is_run(sql: str) -> None:
    assert read_only(sql, "postgresql", ["t", "a"]).refusal == ""


TABLES_OF_OTHERS = (
    "WITH users AS (SELECT * FROM users) SELECT * FROM users",
    "WITH users AS (SELECT 1) SELECT * FROM public.users",
    "SELECT * FROM users, (WITH users AS (SELECT 1) SELECT * FROM users) z",
    "SELECT * FROM hidden.orders",
    'SELECT * FROM "Orders"',
    "SELECT ARRAY(SELECT password FROM users)",
    "SELECT * FROM (orders CROSS JOIN users)",
    "TABLE users",
)


@pytest.mark.parametrize("sql", TABLES_OF_OTHERS)
def test_a_statement_for_a_server_reads_no_table_of_others(sql: str) -> None:
    assert "there is no table" in read_only(sql, "postgresql", ["orders"]).refusal


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("oracle", "SELECT UTL_HTTP.REQUEST('http://x') FROM dual"),
        ("oracle", "SELECT seq.NEXTVAL FROM dual"),
        ("mssql", "SELECT NEXT VALUE FOR s"),
        ("mssql", "SELECT * FROM a WITH (XLOCK)"),
        ("mysql", "SELECT RELEASE_ALL_LOCKS()"),
    ],
)
def test_other_servers_have_other_ways_which_are_refused(dialect: str, sql: str) -> None:
    assert read_only(sql, dialect).refusal


def test_what_is_run_has_no_comments_that_a_server_would_execute() -> None:
    assert read_only("SELECT /*!50000 sleep(5) */ 1", "mysql").text == "SELECT 1"


def test_a_view_without_an_end_costs_itself_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE orders (amount INTEGER)")
        connection.execute("INSERT INTO orders VALUES (42)")
        endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT sum(n) AS s FROM r"
        connection.execute(f"CREATE VIEW endless AS {endless}")
    connection.close()
    with DatabaseExecutor(tmp_path / "a.db") as executor:
        assert "42" in executor.guidance
        assert "cannot be read" in executor.guidance
