"""The test harness: the program that runs tests and examples against a program in another sandbox."""

from __future__ import annotations

import ast
import builtins
import itertools
import re
import symtable
import sys
from operator import attrgetter

from code_chains.analysis.parsing import names_in, nodes, parse, syntax_tree
from code_chains.analysis.well_known_imports import import_line
from code_chains.verification.expectations.assertions import free_names, is_assertion, runner_calls
from code_chains.verification.expectations.oracles import DataFlow, is_asked_for

_PRELUDE = """
import builtins as _b
import inspect as _inspect
import math as _math
import reprlib as _reprlib

_brief = _reprlib.Repr()
_brief.maxstring = _brief.maxother = 200
_brief.maxlist = _brief.maxdict = _brief.maxset = _brief.maxtuple = 20
_failures, _ran, _begun = [], [], _b.set()


def _plain(value):
    return value.tolist() if _b.type(value).__module__ == "numpy" else value


def _same(got, expected):
    got = _plain(got)
    numbers = _b.isinstance(got, (_b.int, _b.float)) and _b.isinstance(expected, (_b.int, _b.float))
    if numbers and (_b.isinstance(got, _b.float) or _b.isinstance(expected, _b.float)):
        try:
            near = _math.isclose(got, expected, rel_tol=1e-9, abs_tol=0.0 if expected else 1e-12)
        except _b.OverflowError:
            near = False
        return near or (got != got and expected != expected)
    if _b.isinstance(got, (_b.list, _b.tuple)) and _b.isinstance(expected, (_b.list, _b.tuple)):
        return _b.len(got) == _b.len(expected) and _b.all(_b.map(_same, got, expected))
    if _b.isinstance(got, _b.dict) and _b.isinstance(expected, _b.dict):
        return got.keys() == expected.keys() and _b.all([_same(got[key], expected[key]) for key in expected])
    return _b.type(got).__eq__(got, expected) is True


def _explain(source, left, operator, right):
    if operator == "==":
        return f"{source} gave {_brief.repr(left)}, expected {_brief.repr(right)}"
    return f"{source} {operator} {_brief.repr(right)} does not hold: it is {_brief.repr(left)}"


def _noted(error):
    return "; ".join([f"{_b.type(error).__name__}: {error}", *_b.getattr(error, "__notes__", ())])


def _example(source, call, expected):
    try:
        got = call()
        if _inspect.iscoroutine(got):
            try:
                got.send(None)
            except _b.StopIteration as end:
                got = end.value
    except _b.Exception as error:
        if not (_b.isinstance(expected, _b.type) and _b.isinstance(error, expected)):
            _failures.append(f"{source} raised {_noted(error)}, expected {_brief.repr(expected)}")
        return
    if _b.isinstance(expected, _b.type) or not _same(got, expected):
        _failures.append(_explain(source, got, "==", expected))


def _report(count):
    assert not _failures, f"{_b.len(_failures)} of {count} examples failed: " + "; ".join(_failures[:3])


def _cases(kind):
    import unittest

    passed = []

    class Result(unittest.TestResult):
        def addSuccess(self, test):
            passed.append(test)

    result, suite = Result(), unittest.defaultTestLoader.loadTestsFromTestCase(kind)
    count = suite.countTestCases()  # Python 3.12.1 does not count skipped ones in `testsRun`.
    suite.run(result)
    failed = [text.strip().splitlines()[-1] for _, text in [*result.failures, *result.errors]]
    assert not failed, "; ".join(failed[:3])
    assert _b.len(passed) == count, "a test was skipped"
    _ran.extend(passed)
"""

_NO_ASSERTION = "The tests ran to their end without asserting anything"


class UntestableError(ValueError):
    """A program cannot be tested: it defines no function, or it redefines a name of Python's that the tests use."""


def build_harness(
    tests: ast.Module, examples: tuple[tuple[str, str], ...], code: str, *, query: str, output: str
) -> str:
    """Build the source of the harness; see `Expectations.program`."""
    parts = [_PRELUDE, f"output = {output!r}", f"_own({_bound_names(tests)!r})"]
    if tests.body:
        parts += [*_resolve_names(tests, code, query), *_instrument(tests), f"assert _ran, {_NO_ASSERTION!r}"]
    if examples:
        name = _function_under_test(code, query)
        parts.append(f"_tried = _program({name!r})")
        for args, expected in examples:
            parts.append(f"_example({f'{name}({args})'!r}, lambda: _tried({args}), {expected})")
        parts.append(f"_report({len(examples)})")
    return "\n".join(parts)


# -- names ---------------------------------------------------------------------------------------------------


def _function_under_test(code: str, query: str) -> str:
    """Return the function that examples are tried on: one that the question names, or else the last one."""
    top_level = _top_level_names(code)
    functions = [name for name, is_function in top_level.items() if is_function and name != "main"]
    if not functions:
        raise UntestableError(
            "The program defines no function that could be tried on the examples. Define one."
        )
    functions.reverse()
    helpers = _helpers(code)
    for name in functions:
        if _mentions(query, name):
            return name
    return next(itertools.filterfalse(helpers.__contains__, functions), functions[0])


def _helpers(code: str) -> set[str]:
    """Return the functions of a program that other functions of it call."""
    tree = parse(code)
    helpers = set[str]()
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            called = {call.func.id for call in nodes(node, ast.Call) if isinstance(call.func, ast.Name)}
            helpers |= called - {node.name}
    return helpers


def _top_level_names(code: str) -> dict[str, bool]:
    """Return the names that a program binds at its top level, and whether each is a function or class."""
    tree = parse(code)
    names: dict[str, bool] = {}
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[node.name] = True
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = isinstance(node.value, ast.Lambda)
        elif isinstance(node, ast.Assign):
            is_function = isinstance(node.value, ast.Lambda)
            names |= {target.id: is_function for target in node.targets if isinstance(target, ast.Name)}
    return names


def _mentions(query: str, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", query))


def _resolve_names(tests: ast.Module, code: str, query: str) -> list[str]:
    """Return statements that bind names which both Python (or a library) and the program could define.

    Invariant: such a name is bound to the program's only if the question asks for it and the tests do nothing
        with it but
    test it. In a statement that also depends on another name of the program, it may be the oracle.

    Raises:
        UntestableError: Either could be meant.
    """
    owned = {name for name, is_function in _top_level_names(code).items() if is_function}
    builtin = names_in(tests) & vars(builtins).keys()
    free = free_names(tests)
    imports = {name: line for name in free if (line := _missing_import(name, tests))}
    of_program = {*free} - imports.keys() | (builtin | imports.keys()) & owned
    lines = []
    for name in sorted(builtin & owned | imports.keys()):
        if name in owned and _is_of_program(name, tests, query, of_program, imports.get(name, "")):
            lines.append(f"{name} = _program({name!r})")
        else:
            lines.append(imports[name])
    return sorted(lines)


def _is_of_program(name: str, tests: ast.Module, query: str, of_program: set[str], import_line: str) -> bool:
    """Return whether the tests mean the program's name; that of a module only if the question asks for it."""
    is_asked = is_asked_for(name, query)
    if import_line.startswith("import") and not is_asked:
        return False
    is_plausible = import_line.startswith("from") and (not query or _mentions(query, name))
    if (is_asked or is_plausible) and not DataFlow(tests).meets(name, of_program):
        return True
    raise UntestableError(f"The program defines {name!r}, which has another meaning in Python. Rename it.")


def _missing_import(name: str, tests: ast.Module) -> str:
    """Return the import that a name of the tests lacks, if the name is a well-known one."""
    owners = map(attrgetter("value"), nodes(tests, ast.Attribute))
    is_module = any(isinstance(owner, ast.Name) and owner.id == name for owner in owners)
    line = import_line(name)
    if not line and name in {*sys.stdlib_module_names, "pytest"}:
        line = f"import {name}"
    return line if line.startswith("from") or is_module else ""


def _bound_names(tests: ast.Module) -> list[str]:
    """Return the names that the tests bind outside of functions, even in branches that are not taken."""
    top = symtable.symtable(ast.unparse(tests), "<tests>", "exec")
    bound, tables = set[str](), [top]
    while tables:
        table = tables.pop()
        for symbol in table.get_symbols():
            is_global = table is top or symbol.is_declared_global()
            if is_global and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(symbol.get_name())
        tables += table.get_children()
    return sorted(bound)


# -- instrumentation -----------------------------------------------------------------------------------------


def _instrument(tests: ast.Module) -> list[str]:
    """Return the tests with explained assertions, the calls of a test runner, and checks that each function ran."""
    tree = syntax_tree(ast.unparse(tests))  # A copy: expectations are shared and never mutated.
    tree.body = list(itertools.filterfalse(_is_for_test_runners, tree.body))
    functions = _number_functions(tree)
    parts = list(itertools.chain.from_iterable(map(runner_calls, tree.body)))
    for number, name in enumerate(functions):
        parts.append(f"assert {number} in _begun, {f'{name} of the tests was never run'!r}")
    tree = ast.fix_missing_locations(_Instrumentation().visit(tree))
    return [ast.unparse(tree), *parts]


def _is_for_test_runners(node: ast.stmt) -> bool:
    """Return whether a statement is left out: `from __future__`, and calls that would start a test runner."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    if isinstance(node, ast.If):
        return "__name__" in ast.unparse(node.test)
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith(("unittest.main(", "pytest.main("))


def _number_functions(tree: ast.Module) -> list[str]:
    """Make each function that asserts record that it was called; return their names, each at its number."""
    names: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if any(map(is_assertion, ast.walk(node))):
            node.body.insert(0, syntax_tree(f"_begun.add({len(names)})").body[0])
            names.append(node.name)
    return names


_SYMBOLS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_COUNT = ast.parse("_ran.append(1)").body[0]


class _Instrumentation(ast.NodeTransformer):
    """Count assertions as they run, and make them explain their failure."""

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        """Make `assert f(2) == 4` fail with "f(2) gave 5, expected 4", and count it."""
        return [_COUNT, self._explain(node)]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        """Count a call such as `np.testing.assert_allclose(…)`."""
        return [_COUNT, node] if is_assertion(node.value) else node

    def visit_With(self, node: ast.With) -> ast.stmt | list[ast.stmt]:
        """Count `with pytest.raises(…)` after its end."""
        self.generic_visit(node)
        asserts = any(is_assertion(item.context_expr) for item in node.items)
        return [node, _COUNT] if asserts else node

    def visit_If(self, node: ast.If) -> ast.If:
        """Convert the condition: it asserts nothing, so objects of the program may be true or false."""
        self.generic_visit(node)
        node.test = _as_condition(node.test)
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        """Convert the condition of a loop, such as `while node:`."""
        self.generic_visit(node)
        node.test = _as_condition(node.test)
        return node

    def _explain(self, node: ast.Assert) -> ast.Assert:
        """Add a message with the values that were compared."""
        test, symbol = node.test, ""
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            symbol = _SYMBOLS.get(type(test.ops[0]), "")
        if node.msg:
            return node
        if not symbol or not isinstance(test, ast.Compare):
            node.msg = ast.Constant(f"{ast.unparse(test)} does not hold")
            return node
        left, right = test.left, test.comparators[0]
        node.msg = ast.Call(
            ast.Name("_explain", ast.Load()),
            [
                ast.Constant(ast.unparse(left)),
                ast.Name("_left", ast.Load()),
                ast.Constant(symbol),
                ast.Name("_right", ast.Load()),
            ],
            [],
        )
        test.left = ast.NamedExpr(ast.Name("_left", ast.Store()), left)
        test.comparators = [ast.NamedExpr(ast.Name("_right", ast.Store()), right)]
        return node


def _as_condition(test: ast.expr) -> ast.expr:
    """Return an expression that evaluates the truth of its operands with `_condition`."""
    if isinstance(test, ast.BoolOp):
        test.values = list(map(_as_condition, test.values))
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test.operand = _as_condition(test.operand)
    else:
        test = ast.Call(ast.Name("_condition", ast.Load()), [test], [])
    return test
