"""Tests in pytest's style as plain functions: parametrized cases become loops, and fixtures calls.

The harness runs where no test runner is, and counts what was asserted; it needs functions without arguments.
"""

from __future__ import annotations

import ast
import copy
import itertools
import textwrap
from collections.abc import Collection, Iterable
from operator import attrgetter

from code_chains.analysis.parsing import holds, names_in, nodes, positional_parameters
from code_chains.analysis.work import walk
from code_chains.errors import InputError
from code_chains.verification.expectations.assertions import free_names, is_test_case, mark_test_cases

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BUILT_IN_FIXTURES = {
    "tmp_path": "_tmp_path()",
    "capsys": "_capsys()",
    "capfd": "_capsys()",
    "monkeypatch": "_monkeypatch()",
}
_MODULE_HOOKS = ("setup_module", "teardown_module")
_NOT_RUN = ("skip", "skipif", "xfail", "parametrize")
"""Marks that decide whether and how a test runs; others only label it."""


def without_runner(tests: ast.Module) -> ast.Module:
    """Return tests in which parametrized tests and those with fixtures are functions that nobody needs to pass anything.

    Raises:
        InputError: A test needs more of a test runner.
    """
    fixtures = dict[str, ast.FunctionDef]()
    for node in tests.body:
        if isinstance(node, ast.FunctionDef) and _is_fixture(node):
            _check_options(node)
            fixtures[node.name] = node
    mark_test_cases(tests)
    _inherit(tests)
    _bind_globally(tests)
    for labelled in walk(tests):
        if isinstance(labelled, _Function | ast.ClassDef):
            labelled.decorator_list = list(itertools.filterfalse(_is_label, labelled.decorator_list))
    names = _Names(tests)
    body: list[ast.stmt] = []
    for node in tests.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test") and not is_test_case(node):
            _check_class(node)
            own = {item.name: item for item in filter(_is_fixture, nodes(node, ast.FunctionDef))}
            for fixture in own.values():
                _check_options(fixture)
            rows, node.body = _plain_tests(node.body, fixtures | own, names, owner="self", own=own)
            body += [*rows, node]
        else:
            rows, plain = _plain_tests([node], fixtures, names)
            body += [*rows, *plain]
    for fixture in fixtures.values():
        fixture.decorator_list = []
    tests.body = [node for node in body if not _is_unused_import(node, body)]
    return ast.fix_missing_locations(tests)


def _inherit(tests: ast.Module) -> None:
    """Give classes of tests the methods that they inherit from other classes of the tests, each from the nearest.

    Raises:
        InputError: A class of the tests extends one of the program, which is in another process.
    """
    classes = {node.name: node for node in tests.body if isinstance(node, ast.ClassDef)}
    theirs = set(free_names(tests))
    for kind in nodes(tests, ast.ClassDef):
        if extended := theirs & names_in(*kind.bases):
            raise InputError(
                f"The class {kind.name!r} of the tests extends {min(extended)!r}, which they do not define. Tests cannot"
                " extend a class of the program: ask for the subclass in the question, and test that."
            )
    for kind in classes.values():
        own = {item.name for item in kind.body if isinstance(item, _Function)}
        for base in (
            classes[name] for name in _base_names(kind) if name in classes and not is_test_case(kind)
        ):
            # A base stands above, so that it has what it inherits itself.
            kind.body += [
                copy.deepcopy(item)
                for item in base.body
                if isinstance(item, _Function) and item.name not in own
            ]


def _base_names(kind: ast.ClassDef) -> list[str]:
    return [base.id for base in kind.bases if isinstance(base, ast.Name)]


def _bind_globally(tests: ast.Module) -> None:
    """Make `module.x` in `setup_module(module)` the global `x`."""
    for hook in filter(lambda node: node.name in _MODULE_HOOKS, nodes(tests, ast.FunctionDef)):
        if hook.args.args:
            attributes = _Globals(hook.args.args.pop(0).arg)
            attributes.visit(hook)
            if attributes.bound:
                hook.body.insert(0, ast.copy_location(ast.Global(sorted(attributes.bound)), hook.body[0]))


class _Globals(ast.NodeTransformer):
    """Turn attributes of a module into names."""

    def __init__(self, module: str) -> None:
        self._module = module
        self.bound = set[str]()

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.value, ast.Name) or node.value.id != self._module:
            return node
        self.bound.add(node.attr)
        return ast.copy_location(ast.Name(node.attr, node.ctx), node)


class _Names:
    """Names that the tests do not use."""

    def __init__(self, tests: ast.Module) -> None:
        self._used = names_in(tests)
        for node in walk(tests):
            if isinstance(node, _Function | ast.ClassDef):
                self._used.add(node.name)
            elif isinstance(node, ast.arg):
                self._used.add(node.arg)

    def new(self, name: str) -> str:
        """Return an unused name that ends with the given one."""
        while name in self._used:
            name = f"_{name}"
        self._used.add(name)
        return name


def _check_class(tests: ast.ClassDef) -> None:
    if tests.decorator_list:
        raise _unknown(tests, f"the decorator {ast.unparse(tests.decorator_list[0])[:80]}")


def _is_label(decorator: ast.expr) -> bool:
    """Return whether a decorator is a mark that changes nothing, or a condition that never holds."""
    name = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
    if not name.startswith("pytest.mark."):
        return False
    is_never = (
        isinstance(decorator, ast.Call)
        and name.endswith("skipif")
        and ast.unparse(decorator.args[0]) == "False"
    )
    return is_never or not name.endswith(_NOT_RUN)


def _plain_tests(
    body: list[ast.stmt],
    fixtures: dict[str, ast.FunctionDef],
    names: _Names,
    owner: str = "",
    own: Collection[str] = (),
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Return statements that bind the rows of cases, once and before all, and the tests.

    Args:
        body: Statements of the tests, or of one of their classes.
        fixtures: The fixtures by name.
        names: Names that are in use.
        owner: What methods call their object; empty outside of a class.
        own: The fixtures that are methods.
    """
    rows: list[ast.stmt] = []
    plain: list[ast.stmt] = []
    automatic = [name for name, fixture in fixtures.items() if _is_automatic(fixture)]
    for node in body:
        if not isinstance(node, _Function) or not node.name.startswith("test"):
            plain.append(node)
        elif node.decorator_list or _required(node, owner) or automatic:
            bound, functions = _plain_test(node, fixtures, names, owner, own=own, automatic=automatic)
            rows += bound
            plain += functions
        else:
            plain.append(node)
    for name in own:
        fixtures[name].decorator_list = []
    return rows, plain


def _required(function: _Function, owner: str) -> list[str]:
    """Return the parameters without defaults, except `self`."""
    parameters = positional_parameters(function)
    required = parameters[: len(parameters) - len(function.args.defaults)]
    return required[1:] if owner else required


def _plain_test(
    test: _Function,
    fixtures: dict[str, ast.FunctionDef],
    names: _Names,
    owner: str,
    *,
    own: Collection[str],
    automatic: Iterable[str],
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Return the rows of a test's cases, and the test under another name with one of its name that calls it for each."""
    name, cases = test.name, [_cases(decorator, test) for decorator in test.decorator_list]
    given = list(itertools.chain.from_iterable(arguments for arguments, _, _ in cases))
    test.name, test.decorator_list = names.new(f"_{name}"), []
    needed = [argument for argument in _required(test, owner) if argument not in given]
    set_up = _SetUp(fixtures, test, given, names, own)
    for argument in [*automatic, *needed]:
        set_up.make(argument)
    rows: list[ast.stmt] = []
    is_async = isinstance(test, ast.AsyncFunctionDef)
    source = [f"{'async ' if is_async else ''}def {name}({owner}):"]
    for depth, (_, target, values) in enumerate(cases, 1):
        bound = names.new("_rows")
        rows += ast.parse(f"{bound} = list({values})").body
        source.append(f"{'    ' * depth}for {target} in {bound}:")
    function = f"{owner}.{test.name}" if owner else test.name
    call = f"{'await ' if is_async else ''}{function}({_passed([*given, *needed])})"
    lines = [*set_up.lines, call]
    if after := set_up.tear_down():
        lines = [*set_up.lines, "try:", f"    {call}", "finally:", *map("    {}".format, after)]
    body = "\n".join(lines)
    source.append(textwrap.indent(body, "    " * (len(cases) + 1)))
    return rows, [test, *_placed("\n".join(source), test.lineno)]


def _placed(source: str, line: int) -> list[ast.stmt]:
    """Return statements as if they stood in one line of the tests, by which their results are told."""
    tree = ast.parse(source)
    for node in walk(tree):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = line
    return tree.body


def _passed(names: Iterable[str]) -> str:
    """Return arguments that hand on variables of the same names."""
    return ", ".join(f"{name}={name}" for name in names)


def _cases(decorator: ast.expr, test: _Function) -> tuple[list[str], str, str]:
    """Return the names of `parametrize`, and as source the target of its loop and the rows."""
    unknown = _unknown(test, f"the decorator {ast.unparse(decorator)[:80]}")
    if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith("parametrize"):
        raise unknown
    arguments = {keyword.arg: keyword.value for keyword in decorator.keywords}
    if not arguments.keys() <= {"argnames", "argvalues", "ids"}:
        raise unknown
    arguments.update(zip(("argnames", "argvalues", "indirect"), decorator.args, strict=False))
    names = _names(arguments.get("argnames"))
    rows = arguments.get("argvalues")
    if not names or rows is None or "indirect" in arguments:
        raise unknown
    # A list of one name means tuples.
    is_single = isinstance(arguments["argnames"], ast.Constant) and len(names) == 1
    if isinstance(rows, ast.List | ast.Tuple):
        rows.elts = [_row(row, test, is_single=is_single) for row in rows.elts]
    target = names[0] if is_single else f"({', '.join(names)},)"
    return names, target, ast.unparse(rows)


def _names(names: ast.expr | None) -> list[str]:
    if isinstance(names, ast.Constant) and isinstance(names.value, str):
        return list(filter(None, map(str.strip, names.value.split(","))))
    if isinstance(names, ast.List | ast.Tuple):
        return [str(name.value) for name in names.elts if isinstance(name, ast.Constant)]
    return []


def _row(row: ast.expr, test: _Function, *, is_single: bool) -> ast.expr:
    """Return a row of cases, with `pytest.param(…)` as the values alone."""
    if not isinstance(row, ast.Call) or not ast.unparse(row.func).endswith("pytest.param"):
        return row
    if _has_keywords_besides(("id",), row):
        raise _unknown(test, ast.unparse(row)[:80])
    return row.args[0] if is_single else ast.Tuple(row.args, ast.Load())


def _has_keywords_besides(names: tuple[str, ...], call: ast.Call) -> bool:
    return any(keyword.arg not in names for keyword in call.keywords)


# -- fixtures ------------------------------------------------------------------------------------------------


def _is_fixture(function: ast.FunctionDef) -> bool:
    decorators = map(ast.unparse, function.decorator_list)
    return any(decorator.partition("(")[0] in ("pytest.fixture", "fixture") for decorator in decorators)


def _is_automatic(fixture: ast.FunctionDef) -> bool:
    """Return whether each test uses a fixture, unasked."""
    return any("autouse=True" in ast.unparse(decorator) for decorator in fixture.decorator_list)


class _SetUp:
    """Makes the fixtures of a test, each once.

    Attributes:
        lines: Statements that make them.
    """

    def __init__(
        self,
        fixtures: dict[str, ast.FunctionDef],
        test: _Function,
        given: list[str],
        names: _Names,
        own: Collection[str],
    ) -> None:
        self.lines: list[str] = []
        self._fixtures, self._test, self._names = fixtures, test, names
        self._made = set(given)  # A case that is called like a fixture takes its place.
        self._own, self._after = own, list[str]()

    def make(self, name: str, within: tuple[str, ...] = ()) -> None:
        """Add the statements that make a fixture and those that it needs."""
        if name in self._made:
            return
        fixture = self._fixtures.get(name)
        if fixture is None and name in _BUILT_IN_FIXTURES:
            self.lines.append(f"{name} = {_BUILT_IN_FIXTURES[name]}")
            if name == "monkeypatch":
                self._after.append(f"{name}.undo()")
        elif fixture is None or name in within:
            raise _unknown(self._test, f"the fixture {name!r}")
        else:
            is_own = name in self._own
            needed = _required(fixture, "self" if is_own else "")
            for other in needed:
                self.make(other, (*within, name))
            call = f"{f'self.{name}' if is_own else f'globals()[{name!r}]'}({_passed(needed)})"
            if holds(fixture, ast.Yield | ast.YieldFrom):
                generator = self._names.new(f"_{name}")
                self._after.append(f"next({generator}, None)")
                self.lines.append(f"{generator} = {call}")
                call = f"next({generator})"
            self.lines.append(f"{name} = {call}")
        self._made.add(name)

    def tear_down(self) -> list[str]:
        """Return statements that let fixtures that yield go on, the last one first."""
        return self._after[::-1]


def _check_options(fixture: ast.FunctionDef) -> None:
    for decorator in fixture.decorator_list:
        if isinstance(decorator, ast.Call) and _has_keywords_besides(("scope", "autouse"), decorator):
            raise _unknown(fixture, f"the decorator {ast.unparse(fixture.decorator_list[0])[:80]}")


def _is_unused_import(node: ast.stmt, body: list[ast.stmt]) -> bool:
    """Return whether a statement imports pytest for decorators alone, as it need not be installed."""
    is_pytest = isinstance(node, ast.Import) and list(map(attrgetter("name"), node.names)) == ["pytest"]
    return is_pytest and "pytest" not in names_in(*body)


def _unknown(test: _Function | ast.ClassDef, what: str) -> InputError:
    return InputError(
        f"{test.name.lstrip('_')!r} of the tests needs a test runner: {what} is not known here. Parametrize it with"
        " @pytest.mark.parametrize, use fixtures of the tests, or use a loop."
    )
