"""SQL that only reads, by its syntax: for servers, whose tables and functions are not known here."""

from __future__ import annotations

import functools
import logging
from collections.abc import Collection, Iterator
from importlib.resources import files
from typing import Any, NamedTuple

_DIALECTS = {"postgresql": "postgres", "mssql": "tsql", "mariadb": "mysql"}
"""sqlglot's names of dialects that SQLAlchemy calls otherwise."""

MAX_CHARS = 20_000
"""Of a longer statement nothing is analysed: sqlglot holds for each subquery all that it may read."""
_CATALOGS = ("pg_catalog", "information_schema", "sys", "mysql", "performance_schema", "msdb", "master")
"""Schemas of servers themselves; what a model may know of the tables it is told."""
_REFUSED_COLUMNS = ("nextval", "currval")
"""What reads as a column and moves a sequence."""


@functools.cache
def _functions() -> frozenset[str]:
    """Return the functions, beside those that sqlglot knows, which only compute; others may reach files."""
    return frozenset(files("code_chains.data").joinpath("sql_functions.txt").read_text("utf-8").split())


class Query(NamedTuple):
    """A statement that was checked.

    Attributes:
        text: What may be run: the statement as it was understood, without its comments.
        refusal: Why nothing may be run; empty if something may.
    """

    text: str = ""
    refusal: str = ""


def read_only(sql: str, dialect: str, tables: Collection[str] = ()) -> Query:
    """Return a statement if it is a single one that only reads.

    The syntax is checked; that nothing is written must be ensured by the server as well.

    Args:
        sql: The statement.
        dialect: SQLAlchemy's name of the dialect.
        tables: The tables that it may read; none for all.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if len(sql) > MAX_CHARS:
        return Query(refusal=f"it is longer than {MAX_CHARS:,} characters")
    known = _DIALECTS.get(dialect, dialect)
    if known not in sqlglot.Dialect.classes:
        known = ""  # sqlglot's own, which is close to standard SQL.
    try:
        statements = parsed(sql, known)
        if len(statements) != 1:
            return Query(refusal=f"there are {len(statements)} statements; write a single one")
        [statement] = statements
        if not isinstance(statement, exp.Query):
            return Query(refusal=f"{statement.key.upper()} is not allowed")
        refused = next(filter(None, map(_refusal, statement.walk())), "")
        if not refused and tables:
            refused = next(_other_tables(statement, tables), "")
        return Query(refusal=refused) if refused else Query(statement.sql(dialect=known, comments=False))
    except (SqlglotError, RecursionError, ValueError) as error:
        return Query(refusal=f"it is no SQL that can be checked ({str(error).splitlines()[0]})")


def parsed(sql: str, dialect: str) -> list[Any]:
    """Return the syntax trees of statements.

    Args:
        sql: The statements.
        dialect: sqlglot's name of the dialect.

    Raises:
        SqlglotError, RecursionError, ValueError: They cannot be read.
    """
    import sqlglot

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # Its warnings would show statements.
    return [each for each in sqlglot.parse(sql, read=dialect) if each is not None]


def _refusal(node: Any) -> str:
    """Return why a part of a statement is not allowed; empty if it is."""
    from sqlglot import exp

    writing = (
        exp.DML,
        exp.DDL,
        exp.Into,
        exp.Lock,
        exp.Command,
        exp.Set,
        exp.NextValueFor,
        exp.WithTableHint,
    )
    if isinstance(node, writing) and not isinstance(node, exp.Query):
        return f"{node.key.upper()} is not allowed"
    if isinstance(node, exp.ReadCSV | exp.ReadParquet):
        return f"the function {node.key} is not allowed"
    if isinstance(node, exp.Anonymous) and node.name.lower() not in _functions():
        return f"the function {node.name} is not among those that are known to compute only"
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        return f"the function {node.sql()[:60]} of a schema or package is not allowed"
    if isinstance(node, exp.Table) and _is_catalog(node):
        return f"the table {node.sql()[:60]} is the server's own"
    if isinstance(node, exp.Column) and node.name.lower() in _REFUSED_COLUMNS:
        return f"{node.name} is not allowed"
    return ""


def _is_catalog(table: Any) -> bool:
    schemas = [
        str(part).strip('"').lower() for part in (table.args.get("db"), table.args.get("catalog")) if part
    ]
    return bool(set(schemas) & set(_CATALOGS)) or table.name.lower().startswith(("pg_", "sys."))


def _is_named(table: Any, tables: Collection[str]) -> bool:
    """Return whether a table is one of these; without quotes the case of letters does not count."""
    if table.args.get("db"):
        return False
    if getattr(table.this, "quoted", False):
        return table.name in tables
    return table.name.lower() in {name.lower() for name in tables}


def _other_tables(statement: Any, tables: Collection[str]) -> Iterator[str]:
    """Yield why a statement reads other tables than these."""
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    # Invariant: what a name refers to is up to its scope, as a CTE may have the name of a table that it reads.
    is_own = dict[int, bool]()
    for scope in traverse_scope(statement):
        for table in scope.tables:
            is_cte = table.name in scope.cte_sources and not table.args.get("db")
            is_own[id(table)] = is_own.get(id(table), False) or is_cte
    for table in statement.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            continue  # Its function was checked.
        if id(table) not in is_own:
            yield f"the table {table.name} is read in a way that cannot be checked"
        elif not is_own[id(table)] and not _is_named(table, tables):
            yield f"there is no table {table.sql()[:60]}; there are {', '.join(sorted(tables))}"
