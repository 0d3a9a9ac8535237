"""What a SQL statement makes up: figures that are written down in it, and results that hold nothing. No model is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from code_chains.analysis.queries import MAX_CHARS, parsed
from code_chains.records import NOT_ANALYSED, Verdict
from code_chains.verification.numbers import mantissa
from code_chains.verification.provenance.given import written_numbers
from code_chains.verification.provenance.own_numbers import is_own, is_share

if TYPE_CHECKING:
    from code_chains.verification.sanity.verdict import Outcome

MAX_NODES = 2000
"""Longer statements, and those of more parts, are not analysed, as reading them takes long."""
_DIALECTS = ("duckdb", "postgres", "mysql", "tsql")
"""Tried one after the other; quotation marks differ."""
_NOTHING = (
    "The result holds no value: no row was selected, or only NULL. If that is so, say so in the result."
)
_MAX_SHOWN, _MAX_SHOWN_CHARS = 3, 60
_LEAST = 3
"""Numbers up to this one say nothing by themselves, such as ranks."""


def statement_verdict(outcome: Outcome) -> Verdict | None:
    """Return the verdict on a statement that shows nothing, or what stands in it alone; None if there is none.

    The rules are those of programs: what a column of the result shows is read or computed, or was given; a number that
    rows are compared or multiplied with is an assumption unless it was given.
    """
    if _shows_nothing(outcome.output):
        return Verdict("failed", "checks", _NOTHING)
    statement = _parsed(outcome.code)
    if statement is None or sum(1 for _ in islice(statement.walk(), MAX_NODES + 1)) > MAX_NODES:
        return NOT_ANALYSED
    if made_up := list(islice(_written_down(statement, outcome), _MAX_SHOWN)):
        reason = f"The statement writes down {_listed(made_up)}, which is neither computed from the data nor given."
        return Verdict("failed", "provenance", reason)
    if assumed := list(islice(_assumed(statement, outcome), _MAX_SHOWN)):
        reason = f"The statement assumes {_listed(assumed)}, which was not given."
        return Verdict("unverified", "provenance", reason)
    return None


def _shows_nothing(output: str) -> bool:
    rows = output.splitlines()[2:]
    return bool(rows) and all(
        cell.strip() in ("NULL", "(0 rows)") for row in rows for cell in row.split(" | ")
    )


def _parsed(code: str) -> Any:
    """Return the last of the statements, whose rows are shown; None if it cannot be read."""
    try:
        from sqlglot.errors import SqlglotError
    except ImportError:
        return None
    for dialect in _DIALECTS if len(code) <= MAX_CHARS else ():
        with suppress(SqlglotError, ImportError, RecursionError, ValueError):
            return next(reversed(parsed(code, dialect)), None)
    return None


def _written_down(statement: Any, outcome: Outcome) -> Iterator[str]:
    """Yield what a column of a result shows without reading anything, though it was not given."""
    from sqlglot import exp

    # A column of these kinds depends on rows, or on anything but its text.
    reading = _parts_with(
        statement,
        *(
            exp.Column,
            exp.Star,
            exp.Subquery,
            exp.Select,
            exp.AggFunc,
            exp.Window,
            exp.Anonymous,
            exp.Parameter,
        ),
    )
    for select in statement.find_all(exp.Select):
        columns = [column.unalias() for column in select.expressions]
        constant = [column for column in columns if id(column) not in reading]
        # A text beside what is read is a label.
        counted = constant if len(constant) == len(columns) else []
        for column in constant:
            if any(_own_numbers(column, outcome)) or (column in counted and _is_own_text(column, outcome)):
                yield column.sql()
    for table in statement.find_all(exp.Values):
        if any(_own_numbers(table, outcome)):
            yield table.sql()
    for case in statement.find_all(exp.Case):
        results = [branch.args["true"] for branch in case.args["ifs"]]
        own = [
            number
            for result in results
            if _number(result) is not None
            for number in _own_numbers(result, outcome)
        ]
        if own and len(results) > 1:
            yield case.sql()


def _parts_with(statement: Any, *kinds: type) -> set[int]:
    """Return the parts of a statement that have a part of some kinds, or are one, by their identities, in one walk."""
    found = set[int]()
    for node in statement.find_all(*kinds):
        while node is not None and id(node) not in found:
            found.add(id(node))
            node = node.parent
    return found


def _own_numbers(node: Any, outcome: Outcome) -> Iterator[float]:
    from sqlglot import exp

    for literal in node.find_all(exp.Literal):
        for number in written_numbers(literal.name):  # Text may be parsed.
            if is_own(number, outcome.given, least=_LEAST):
                yield number


def _is_own_text(column: Any, outcome: Outcome) -> bool:
    from sqlglot import exp

    is_text = isinstance(column, exp.Literal) and column.is_string
    return outcome.has_data and is_text and not outcome.given.holds(column.name)


def _assumed(statement: Any, outcome: Outcome) -> Iterator[str]:
    """Yield comparisons, products and sums of what is read with a number that was not given."""
    from sqlglot import exp

    reading = _parts_with(statement, exp.Column, exp.Star)
    for node in statement.find_all(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Mul, exp.Add, exp.Sub):
        for side, other in ((node.left, node.right), (node.right, node.left)):
            number = _number(side)
            if number is None or mantissa(number) == 1 or id(other) not in reading:
                continue
            is_factor = isinstance(node, exp.Mul) and is_share(number, outcome.given)
            if is_factor or is_own(number, outcome.given):
                yield node.sql()


def _number(node: Any) -> float | None:
    from sqlglot import exp

    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    try:
        return float(node.name)
    except ValueError:
        return None


def _listed(texts: list[str]) -> str:
    shown = [text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…" for text in texts]
    return " and ".join(f"`{text}`" for text in shown[:_MAX_SHOWN])
