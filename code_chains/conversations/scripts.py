"""Programs of a session as parts of a script: print what a notebook displays, and collect imports from the future."""

from __future__ import annotations

import ast
import warnings
from itertools import accumulate

from code_chains.analysis.parsing import parse
from code_chains.analysis.references import words

_NEVER_NONE = words(
    "abs all any bool bytes complex dict divmod enumerate float format frozenset hash hex int isinstance len list map ord"
    " pow range repr reversed round set sorted str sum tuple type zip"
)
"""Builtin functions that never return None."""
_RETURNING_NONE = words("print show display append extend savefig close")
"""Last names of functions and methods that are called for their effect, so that their None is not printed."""


def compiles(program: str) -> bool:
    """Return whether a program is a script, as one with a top-level await is not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(program, "<export>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def print_value(program: str, output: str) -> str:
    """Make a program print the value of its last expression, if it had output."""
    tree = parse(program)
    last = tree.body[-1] if tree and tree.body else None
    if not isinstance(last, ast.Expr) or not output.strip() or _callee_name(last.value) in _RETURNING_NONE:
        return program
    value = _source(program, last)
    if isinstance(last.value, ast.Tuple):
        value = f"({value})"
    # str and repr of numbers, lists and other literals are equal.
    template = "print({})" if _is_literal(output.strip().splitlines()[-1]) else "print(repr({}))"
    if _may_be_none(last.value):
        newline = "\n" if _line_prefix(program, last).strip() else ""  # `if` cannot follow a semicolon.
        return _replace(program, last, f"{newline}if (_ := {value}) is not None:\n    {template.format('_')}")
    return _replace(program, last, template.format(value))


def _may_be_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and not (
        isinstance(value.func, ast.Name) and value.func.id in _NEVER_NONE
    )


def _callee_name(value: ast.expr) -> str:
    """Return the last name of the function that is called; empty if it is not a call."""
    function = value.func if isinstance(value, ast.Call) else None
    return getattr(function, "id", "") or getattr(function, "attr", "")


def _is_literal(text: str) -> bool:
    try:
        return not isinstance(ast.literal_eval(text), str | bytes)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def extract_futures(program: str) -> tuple[str, set[str]]:
    """Return a program without its imports from `__future__`, which must be at the beginning of a file, and their names."""
    tree, names = parse(program), set[str]()
    for node in reversed(tree.body if tree else []):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            program = _replace(program, node, "pass")
            names |= {alias.name for alias in node.names}
    return program, names


def _span(program: str, node: ast.stmt) -> tuple[bytes, int, int]:
    """Return a program as bytes, the unit of columns in the syntax tree, with start and end of a statement."""
    lines = program.encode().splitlines(keepends=True)
    starts = list(accumulate(map(len, lines), initial=0))
    end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
    return program.encode(), starts[node.lineno - 1] + node.col_offset, end


def _source(program: str, node: ast.stmt) -> str:
    data, start, end = _span(program, node)
    return data[start:end].decode()


def _line_prefix(program: str, node: ast.stmt) -> str:
    """Return the text before a statement on its line."""
    data, start, _ = _span(program, node)
    return data[:start].rpartition(b"\n")[2].decode()


def _replace(program: str, node: ast.stmt, new: str) -> str:
    data, start, end = _span(program, node)
    return f"{data[:start].decode()}{new}{data[end:].decode()}"
