"""Say what tables hold in place of a text that a program looked for in vain."""

from __future__ import annotations

import ast
import contextlib
import difflib
from collections.abc import Iterator
from typing import Any

from .wire import Json

MAX_COLUMNS, MAX_ROWS, MAX_SHOWN, MAX_CHARS = 30, 20_000, 3, 60
MIN_SIMILARITY = 0.7


def hint(error: BaseException, names: Json, source: str) -> str:
    """Return a text that no cell of a compared column equals, and cells that come close; empty if the error is another.

    Args:
        error: What was raised, such as for the first of no rows.
        names: The names that the failing frame could see.
        source: The program.
    """
    if not isinstance(error, IndexError | ValueError):
        return ""
    with contextlib.suppress(Exception):
        for table, column, text in compared(ast.parse(source), names):
            if text not in cells_of(table, column):
                return f"No {column!r} is {text!r}. {close_cells(table, column, text)}"
    return ""


def compared(tree: ast.AST, names: Json) -> Iterator[tuple[Any, str, str]]:
    """Yield the tables of which a program compares a column with a text, with the column and the text."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(
                left=ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as column))
                | ast.Attribute(value=ast.Name(id=name), attr=column),
                ops=[ast.Eq()],
                comparators=[ast.Constant(value=str() as text)],
            ):
                table = names.get(name)
                if type(table).__module__.startswith("pandas") and column in getattr(table, "columns", ()):
                    yield table, column, text


def cells_of(table: Any, column: str) -> list[str]:
    """Return the different texts of a column."""
    return [cell for cell in table[column].head(MAX_ROWS).unique() if isinstance(cell, str)]


def close_cells(table: Any, column: str, text: str) -> str:
    """Return a sentence about the cells that have a text in them or look like it, those of the column first."""
    others = [name for name in table.columns[:MAX_COLUMNS] if isinstance(name, str) and name != column]
    for name in (column, *others):
        with contextlib.suppress(Exception):  # Two columns of one name, or cells that cannot be hashed.
            cells = cells_of(table, name)
            folded = {cell.strip().casefold(): cell for cell in cells}
            within = [cell for key, cell in folded.items() if text.strip().casefold() in key]
            close = difflib.get_close_matches(
                text.strip().casefold(), list(folded), MAX_SHOWN, MIN_SIMILARITY
            )
            if found := [*within, *map(folded.__getitem__, close)][:MAX_SHOWN]:
                shown = ", ".join(repr(cell)[:MAX_CHARS] for cell in dict.fromkeys(found))
                return f"In {name!r} there is {shown}."
    cells = table[column].head(MAX_ROWS).drop_duplicates().tolist()
    shown = ", ".join(repr(cell)[:MAX_CHARS] for cell in cells[:MAX_SHOWN])
    return (
        f"There {'are' if len(cells) > 1 else 'is'} {shown}{' and others' if len(cells) > MAX_SHOWN else ''}."
    )
