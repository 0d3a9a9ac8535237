"""Checks that a program shows its outcome."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from code_chains.analysis.checks.output_detection import is_silent
from code_chains.analysis.parsing import child_statements, names_in
from code_chains.analysis.references import Reading, read, words
from code_chains.records import Problem

_PURE = words(
    "builtins.sorted builtins.sum builtins.len builtins.max builtins.min builtins.abs builtins.round builtins.reversed "
    "builtins.str builtins.int builtins.float builtins.list builtins.dict builtins.set builtins.tuple builtins.zip "
    "builtins.map builtins.filter"
)


def results_used(code: str) -> list[Problem]:
    r"""Advise against lines that compute a value and discard it. The last line is shown, as in a notebook.

    Only what surely has no other effect counts: comparisons, arithmetic, names, literals, comprehensions, and
    builtins such as `sorted`. What stands inside `try` or `with` may be there for the exception.

    Example:
        >>> [problem.line for problem in results_used("x = [3, 1]\nsorted(x)\nprint(x)")]
        [2]
    """
    reading = read(code)
    if not reading:
        return []
    message = "The value of this line is thrown away; assign it to a name, or print it"
    problems = []
    for node in _statements(reading.tree):
        if not isinstance(node, ast.Expr) or node is reading.tree.body[-1]:
            continue
        if _is_idle(node.value, reading):
            problems.append(Problem("results_used", message, node.lineno, "advice"))
    return problems


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the statements in order, except those inside `try` and `with`."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        yield node
        guarded = isinstance(node, ast.Try | ast.TryStar | ast.With | ast.AsyncWith)
        below = [child for child in child_statements(node) if not guarded or child not in node.body]  # type: ignore[attr-defined]
        stack.extend(reversed(below))


def _is_idle(node: ast.expr, reading: Reading) -> bool:
    """Return whether an expression has no effect but its value."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, str) and node.value is not ...
    idle = (ast.Compare | ast.BinOp | ast.UnaryOp | ast.Name | ast.List | ast.Tuple | ast.Set | ast.Dict | ast.JoinedStr
            | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Call)  # fmt: skip
    return isinstance(node, idle) and all(_is_pure(part, reading) for part in ast.walk(node))


def _is_pure(node: ast.AST, reading: Reading) -> bool:
    if isinstance(node, ast.Call):
        names = reading.names(node.func)
        runs = (
            [*node.args[:1], *node.keywords] if names & {"builtins.map", "builtins.filter"} else node.keywords
        )
        return names <= _PURE and not names_in(*runs)
    effects = ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.BitOr | ast.LShift | ast.RShift
    return not isinstance(node, effects)


def prints_something(code: str) -> list[Problem]:
    r"""Check that there is something to see: it prints, shows, logs, writes, raises, ends with a value or sets `result`.

    When in doubt it says nothing: whatever calls something that is not known to be silent may print.

    Example:
        >>> [str(problem) for problem in prints_something("total = sum([1, 2])")]
        ['Nobody would see the outcome. Print the answer at the end.']
        >>> prints_something("total = sum([1, 2])\nprint(total)")
        []
    """
    reading = read(code)
    if not reading or "result" in reading.defined or not is_silent(reading):
        return []
    if reading.tree.body and isinstance(reading.tree.body[-1], ast.Expr):
        return []
    return [Problem("prints_something", "Nobody would see the outcome. Print the answer at the end.")]
