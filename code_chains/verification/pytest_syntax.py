"""Tests in pytest's style as plain functions: parametrized cases become loops, and fixtures calls.

The harness runs where no test runner is, and counts what was asserted; it needs functions without arguments.
"""

from __future__ import annotations

import ast

from code_chains.errors import InputError

__all__ = ["without_runner"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BUILT_IN_FIXTURES = {"tmp_path": "__import__('pathlib').Path(__import__('tempfile').mkdtemp())"}


def without_runner(tests: ast.Module) -> ast.Module:
    """Return tests in which parametrized tests and those with fixtures are functions that nobody needs to pass anything.

    Raises:
        InputError: A test needs more of a test runner.
    """
    fixtures = {
        node.name: node for node in tests.body if isinstance(node, ast.FunctionDef) and _is_fixture(node)
    }
    for fixture in fixtures.values():
        _check_options(fixture)
    body: list[ast.stmt] = []
    for node in tests.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            node.body = _plain_tests(node.body, fixtures, owner="self")
            body.append(node)
        else:
            body += _plain_tests([node], fixtures)
    tests.body = [node for node in body if not _is_unused_import(node, body)]
    return ast.fix_missing_locations(tests)


def _plain_tests(
    body: list[ast.stmt], fixtures: dict[str, ast.FunctionDef], owner: str = ""
) -> list[ast.stmt]:
    plain: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name in fixtures and not owner:
            node.decorator_list = []
        if isinstance(node, _Function) and node.name.startswith("test") and _needs_runner(node, owner):
            plain += _plain_test(node, fixtures, owner)
        else:
            plain.append(node)
    return plain


def _needs_runner(test: _Function, owner: str) -> bool:
    return bool(test.decorator_list or _required(test, owner))


def _required(function: _Function, owner: str = "") -> list[str]:
    """Return the parameters without defaults, except `self`."""
    arguments = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    required = arguments[: len(arguments) - len(function.args.defaults)]
    return required[1:] if owner else required


def _plain_test(test: _Function, fixtures: dict[str, ast.FunctionDef], owner: str) -> list[ast.stmt]:
    """Return a test under another name, and a function of its name that calls it with each of its cases."""
    name, cases = test.name, [_cases(decorator, test) for decorator in test.decorator_list]
    given = {argument for names, _ in cases for argument in names}
    test.name, test.decorator_list = f"_{name}", []
    lines, values = _set_up(
        [argument for argument in _required(test, owner) if argument not in given], fixtures, test
    )
    arguments = ", ".join(f"{argument}={argument}" for argument in (*given, *values))
    is_async = isinstance(test, ast.AsyncFunctionDef)
    call = f"{'await ' if is_async else ''}{f'{owner}.' if owner else ''}{test.name}({arguments})"
    source = [f"{'async ' if is_async else ''}def {name}({owner}):"]
    for depth, (names, rows) in enumerate(cases, 1):
        source.append(f"{'    ' * depth}for {', '.join(names)} in {rows}:")
    indent = "    " * (len(cases) + 1)
    source += [f"{indent}{line}" for line in (*lines, call, *_tear_down(values, fixtures))]
    return [test, *ast.parse("\n".join(source)).body]


def _cases(decorator: ast.expr, test: _Function) -> tuple[list[str], str]:
    """Return the names and the rows of `parametrize`, as source."""
    is_parametrize = isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize")
    arguments = (
        {keyword.arg: keyword.value for keyword in decorator.keywords}
        if isinstance(decorator, ast.Call)
        else {}
    )
    if (
        not isinstance(decorator, ast.Call)
        or not is_parametrize
        or not arguments.keys() <= {"argnames", "argvalues", "ids"}
    ):
        raise _unknown(test, f"the decorator {ast.unparse(decorator)[:80]}")
    positional: dict[str | None, ast.expr] = dict(
        zip(("argnames", "argvalues", "indirect"), decorator.args, strict=False)
    )
    arguments |= positional
    names = _names(arguments.get("argnames"))
    rows = arguments.get("argvalues")
    if not names or rows is None or "indirect" in positional:
        raise _unknown(test, f"the decorator {ast.unparse(decorator)[:80]}")
    if isinstance(rows, ast.List | ast.Tuple):
        rows.elts = [_row(row, test, is_single=len(names) == 1) for row in rows.elts]
    return names, ast.unparse(rows)


def _names(names: ast.expr | None) -> list[str]:
    if isinstance(names, ast.Constant) and isinstance(names.value, str):
        return [name.strip() for name in names.value.split(",") if name.strip()]
    if isinstance(names, ast.List | ast.Tuple):
        return [str(name.value) for name in names.elts if isinstance(name, ast.Constant)]
    return []


def _row(row: ast.expr, test: _Function, *, is_single: bool) -> ast.expr:
    """Return a row of cases, with `pytest.param(…)` as the values alone."""
    if not isinstance(row, ast.Call) or not ast.unparse(row.func).endswith("pytest.param"):
        return row
    if any(keyword.arg != "id" for keyword in row.keywords):
        raise _unknown(test, ast.unparse(row)[:80])
    return row.args[0] if is_single else ast.Tuple(row.args, ast.Load())


# -- fixtures ------------------------------------------------------------------------------------------------


def _is_fixture(function: ast.FunctionDef) -> bool:
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any(decorator.partition("(")[0] in ("pytest.fixture", "fixture") for decorator in decorators)


def _set_up(
    names: list[str], fixtures: dict[str, ast.FunctionDef], test: _Function
) -> tuple[list[str], list[str]]:
    """Return statements that make the fixtures of a test, each once, and the names of those that it is passed."""
    lines: dict[str, None] = {}
    for name in names:
        _make(name, fixtures, test, lines, ())
    return list(lines), names


def _make(
    name: str,
    fixtures: dict[str, ast.FunctionDef],
    test: _Function,
    lines: dict[str, None],
    within: tuple[str, ...],
) -> None:
    if name in _BUILT_IN_FIXTURES:
        lines[f"{name} = {_BUILT_IN_FIXTURES[name]}"] = None
        return
    if name not in fixtures or name in within:
        raise _unknown(test, f"the fixture {name!r}")
    needed = _required(fixtures[name])
    for other in needed:
        _make(other, fixtures, test, lines, (*within, name))
    call = f"globals()[{name!r}]({', '.join(f'{other}={other}' for other in needed)})"
    if _yields(fixtures[name]):
        lines[f"_{name} = {call}"] = None
        call = f"next(_{name})"
    lines[f"{name} = {call}"] = None


def _check_options(fixture: ast.FunctionDef) -> None:
    calls = [decorator for decorator in fixture.decorator_list if isinstance(decorator, ast.Call)]
    if any(keyword.arg != "scope" for call in calls for keyword in call.keywords):
        raise _unknown(fixture, f"the decorator {ast.unparse(fixture.decorator_list[0])[:80]}")


def _yields(fixture: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(fixture))


def _tear_down(names: list[str], fixtures: dict[str, ast.FunctionDef]) -> list[str]:
    """Return statements that let fixtures that yield go on, the last one first."""
    return [
        f"next(_{name}, None)" for name in reversed(names) if name in fixtures and _yields(fixtures[name])
    ]


def _is_unused_import(node: ast.stmt, body: list[ast.stmt]) -> bool:
    """Return whether a statement imports pytest for decorators alone, as it need not be installed."""
    if not isinstance(node, ast.Import) or [alias.name for alias in node.names] != ["pytest"]:
        return False
    used = {name.id for other in body for name in ast.walk(other) if isinstance(name, ast.Name)}
    return "pytest" not in used


def _unknown(test: _Function, what: str) -> InputError:
    return InputError(
        f"{test.name.lstrip('_')!r} of the tests needs a test runner: {what} is not known here. Parametrize it with"
        " @pytest.mark.parametrize, use fixtures of the tests, or use a loop."
    )
