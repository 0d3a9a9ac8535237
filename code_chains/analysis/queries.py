"""SQL that only reads, by its syntax."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

_DIALECTS = {"postgresql": "postgres", "mssql": "tsql", "mariadb": "mysql"}
"""sqlglot's names of dialects that SQLAlchemy calls otherwise."""
_OUTSIDE = (
    *("pg_", "lo_", "dblink", "query_to_", "table_to_", "cursor_to_", "schema_to_", "database_to_", "set_"),
    *(
        "setval",
        "nextval",
        "load_",
        "readfile",
        "writefile",
        "xp_",
        "sp_",
        "openrowset",
        "openquery",
        "opendata",
    ),
    *("sys_", "utl_", "dbms_", "httpuri", "sleep", "benchmark", "get_lock", "release_lock"),
)
"""How the names of functions begin that do more than read tables; servers allow some of them to any role."""
_HARMLESS = ("pg_typeof", "pg_size_pretty", "set_bit", "set_byte")


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

    known = _DIALECTS.get(dialect, dialect)
    if known not in sqlglot.Dialect.classes:
        known = ""  # sqlglot's own, which is close to standard SQL.
    try:
        statements = [each for each in sqlglot.parse(sql, read=known) if each is not None]
    except (SqlglotError, RecursionError) as error:
        return Query(refusal=f"it is no SQL that can be checked ({str(error).splitlines()[0]})")
    if len(statements) != 1:
        return Query(refusal=f"there are {len(statements)} statements; write a single one")
    [statement] = statements
    if not isinstance(statement, exp.Query):
        return Query(refusal=f"{statement.key.upper()} is not allowed")
    refused = next(filter(None, map(_refusal, statement.walk())), "")
    if not refused and tables and (others := _others(statement, tables)):
        refused = f"there is no table {others[0]}; there are {', '.join(sorted(tables))}"
    return Query(refusal=refused) if refused else Query(statement.sql(dialect=known, comments=False))


def _refusal(node: object) -> str:
    """Return why a part of a statement is not allowed; empty if it is."""
    from sqlglot import exp

    writing = (exp.DML, exp.DDL, exp.Into, exp.Lock, exp.Command, exp.Set)
    if isinstance(node, writing) and not isinstance(node, exp.Query):
        return f"{node.key.upper()} is not allowed"
    if isinstance(node, exp.Func):
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        return f"the function {name} is not allowed" if _is_outside(name) else ""
    return ""


def _is_outside(name: str) -> bool:
    name = name.lower()
    return name.startswith(_OUTSIDE) and name not in _HARMLESS


def _others(statement: object, tables: Collection[str]) -> list[str]:
    """Return the tables of a statement that are none of these, nor named by itself."""
    from sqlglot import exp

    assert isinstance(statement, exp.Query)
    known = {name.lower() for name in tables} | {each.alias.lower() for each in statement.find_all(exp.CTE)}
    named = [
        each.name for each in statement.find_all(exp.Table) if each.name
    ]  # Not functions, as `generate_series`.
    return [name for name in named if name.lower() not in known]
