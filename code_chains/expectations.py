"""What a program is expected to do: tests and examples, as one program that asserts them, and as words for the model."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from code_chains.errors import InputError
from code_chains.imports import import_line
from code_chains.inputs import fenced
from code_chains.parsing import UNREADABLE, parse, syntax_tree

__all__ = ["Expectations", "UntestableError", "expect", "names_of"]

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

    result = Result()
    unittest.defaultTestLoader.loadTestsFromTestCase(kind).run(result)
    failed = [text.strip().splitlines()[-1] for _, text in [*result.failures, *result.errors]]
    assert not failed, "; ".join(failed[:3])
    assert _b.len(passed) == result.testsRun, "a test was skipped"
    _ran.extend(passed)
"""

_NOTHING = "The tests ran to their end without asserting anything"


_ERRORS = {
    name: value for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)
}


class UntestableError(ValueError):
    """A program cannot be tested as it is: it lacks the function, or hides one of Python's own that the tests use."""


@dataclass(frozen=True)
class Expectations:
    """Tests and examples that were given with a question, checked.

    Attributes:
        tests: Python source, usually `assert` statements.
        examples: Calls with what they should give.
    """

    tests: ast.Module = field(default_factory=lambda: ast.Module([], []))
    examples: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tests.body or self.examples)

    @property
    def count(self) -> int:
        """How many assertions and examples there are."""
        return len(self.examples) + (
            sum(isinstance(node, ast.Assert) for node in ast.walk(self.tests)) or bool(self.tests.body)
        )

    def program(self, code: str, *, query: str = "", output: str = "") -> str:
        """The source of a program that runs the tests and tries the examples.

        Functions of the tests whose names begin with `test` are called, and `unittest.TestCase` classes are run. Tests that
        end without having asserted anything fail.

        Args:
            code: The program that is tested.
            query: The question; a function that it names is the one that examples are tried on, else the last one is.
            output: What the program printed; tests see it as `output`.

        Raises:
            UntestableError: There are examples, but no function in the program; or the program gives a name of Python's own
                a meaning that the tests may or may not mean.
        """
        parts = [_PRELUDE, f"output = {output!r}"]
        if self.tests.body:
            parts += [*_meant(self.tests, code, query), *_run_by(self.tests), f"assert _ran, {_NOTHING!r}"]
        if self.examples:
            name = _function(code, query)
            parts.append(f"_tried = _program({name!r})")
            for args, expected in self.examples:
                parts.append(f"_example({f'{name}({args})'!r}, lambda: _tried({args}), {expected})")
            parts.append(f"_report({len(self.examples)})")
        return "\n".join(parts)

    def told(self) -> str:
        """What a model is told before it writes: the first test, or one or two examples; never all, if there are several."""
        if self.examples:
            few = self.examples[: max(1, min(2, len(self.examples) - 1))]
            shown = "\n".join(f"f({args}) == {expected}" for args, expected in few)
            told = "Define a function; it will be tried on examples. Where it is called f, these are:"
            return f"{told}\n{fenced(shown, 'python')}"
        first = next((node for node in self.tests.body if isinstance(node, ast.Assert)), None)
        names = ", ".join(f"`{name}`" for name in _unbound(self.tests))
        if not names:
            return "The program will be tested."
        shown = f", for example:\n{fenced(ast.unparse(first), 'python')}" if first else "."
        return f"The program will be tested. The tests use these names of it: {names}{shown}"


def expect(tests: object = None, examples: object = None) -> Expectations:
    """Tests and examples as they were given, checked.

    Args:
        tests: Python source.
        examples: Pairs of arguments and what the function should give for them. A tuple is several arguments, anything else
            is one; a mapping with `args`, `kwargs` and `expected` says the same in JSON. What should be given may be an
            exception of Python's.

    Raises:
        InputError: They cannot be used.
    """
    return Expectations(_parsed(tests), tuple(_pair(example) for example in _several(examples)))


def _parsed(tests: object) -> ast.Module:
    if not isinstance(tests, str | None):
        raise InputError(f'tests must be Python source, e.g. "assert f(2) == 4", not {type(tests).__name__}.')
    try:
        tree = syntax_tree(tests or "")
    except UNREADABLE as error:
        raise InputError(f"The tests are no Python: {error}.") from error
    if tree.body and not any(_asserts(node) for node in ast.walk(tree)):
        raise InputError('The tests assert nothing. Give some, e.g. "assert f(2) == 4".')
    for node in tree.body:
        _calls(node)
    return tree


def _asserts(node: ast.AST) -> bool:
    """Whether this is an assertion: a statement, or a call such as `self.assertEqual` or `pytest.raises`."""
    name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    return isinstance(node, ast.Assert) or name.startswith("assert") or name == "raises"


def _several(examples: object) -> Iterable[object]:
    if examples is None:
        return ()
    if isinstance(examples, str | bytes) or not isinstance(examples, Sequence):
        raise InputError("examples must be a list of pairs of arguments and result, e.g. [((2, 3), 5)].")
    return examples


def _pair(example: object) -> tuple[str, str]:
    args: object = ()
    kwargs: object = {}
    if isinstance(example, Mapping) and "expected" in example and example.keys() <= {"args", "kwargs", "expected"}:
        args, kwargs, expected = example.get("args") or [], example.get("kwargs") or {}, example["expected"]
    elif isinstance(example, Sequence) and not isinstance(example, str) and len(example) == 2:
        args, expected = example
        args = args if isinstance(args, tuple) else (args,)
    else:
        raise InputError(f"{example!r:.80} is no example. Give a pair of arguments and result, e.g. ((2, 3), 5).")
    if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping):
        raise InputError(f"{example!r:.80} is no example: args must be a list, and kwargs a mapping.")
    if wrong := [name for name in kwargs if not isinstance(name, str) or not name.isidentifier()]:
        raise InputError(f"An argument of an example cannot be called {wrong[0]!r}.")
    named = [f"{name}={_literal(value)}" for name, value in kwargs.items()]
    return ", ".join([*map(_literal, args), *named]), _expected(expected)


def _expected(value: object) -> str:
    return next((name for name, known in _ERRORS.items() if known is value), "") or _literal(value)


def _literal(value: object) -> str:
    text = repr(value)
    try:
        if ast.literal_eval(text) == value:
            return text
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        pass
    raise InputError(
        f"{text:.80} cannot be part of an example: give numbers, text, lists, tuples, dicts or sets. Use tests."
    )


def _function(code: str, query: str) -> str:
    """The function that examples are about: the one the question names, or the last one."""
    names = [name for name, is_function in _top_level(code).items() if is_function and name != "main"]
    all_names = list(names)
    helpers = _called_by_others(code)
    names = [name for name in names if name not in helpers] or names
    named = [name for name in _top_level(code) if name in all_names and _is_named(name, query)]
    if not names:
        raise UntestableError("The program defines no function that could be tried on the examples. Define one.")
    return (named or names)[-1]


def _called_by_others(code: str) -> set[str]:
    """Functions of a program that other functions of it call: helpers."""
    tree = parse(code)
    found = set()
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
            found |= {call.id for call in calls if isinstance(call, ast.Name) and call.id != node.name}
    return found


def _top_level(code: str) -> dict[str, bool]:
    """Names that a program binds at its top level, and whether each is a function or class."""
    tree = parse(code)
    names: dict[str, bool] = {}
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[node.name] = True
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = isinstance(node.value, ast.Lambda)
        elif isinstance(node, ast.Assign):
            made = isinstance(node.value, ast.Lambda)
            names |= {target.id: made for target in node.targets if isinstance(target, ast.Name)}
    return names


def _is_named(name: str, query: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", query))


def _is_asked_for(name: str, query: str) -> bool:
    """Whether a question asks for a function of this name, and does not just use the word."""
    return bool(re.search(rf"\b{re.escape(name)}\s*\(|`{re.escape(name)}\b", query))


def _meant(tests: ast.Module, code: str, query: str) -> list[str]:
    """What names of the tests mean that both Python or a library and the program could give a meaning.

    They are the program's where the question asks for them; where that is not clear, the program is not tested as it is.
    """
    owned = {name for name, is_function in _top_level(code).items() if is_function}
    used = {node.id for node in ast.walk(tests) if isinstance(node, ast.Name)} & set(vars(builtins))
    unclear = [name for name in used & owned if not _is_asked_for(name, query)]
    lines = [f"{name} = _program({name!r})" for name in used & owned]
    for name in _unbound(tests):
        line = _forgotten(name, tests)
        if line.startswith("import"):
            lines += [] if _is_asked_for(name, query) else [line]
        elif line and name not in owned:
            lines.append(line)
        elif line and query and not _is_named(name, query):
            unclear.append(name)
    if unclear:
        raise UntestableError(f"The program defines {unclear[0]!r}, which has another meaning in Python. Rename it.")
    return sorted(lines)


def _forgotten(name: str, tests: ast.Module) -> str:
    """The import that a name of the tests lacks, if it is a well-known one."""
    owners = [node.value for node in ast.walk(tests) if isinstance(node, ast.Attribute)]
    as_module = any(isinstance(node, ast.Name) and node.id == name for node in owners)
    line = import_line(name) or (f"import {name}" if name in {*sys.stdlib_module_names, "pytest"} else "")
    return line if line.startswith("from") or as_module else ""


def _run_by(tests: ast.Module) -> list[str]:
    """The tests, and calls of what in them is meant to be called by others; each that asserts must have begun."""
    tree = _copy(tests)
    tree.body = [node for node in tree.body if not _is_for_others(node)]
    begun = _number_functions(tree)
    calls = [call for node in tree.body for call in _calls(node)]
    tree = ast.fix_missing_locations(_Explained().visit(tree))
    ends = [f"assert {number} in _begun, {f'{name} of the tests was never run'!r}" for number, name in begun.items()]
    return [ast.unparse(tree), *calls, *ends]


def _is_for_others(node: ast.stmt) -> bool:
    """What is left out: `from __future__`, and calls that would start a test runner."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    if isinstance(node, ast.If):
        return "__name__" in ast.unparse(node.test)
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith(("unittest.main(", "pytest.main("))


def _number_functions(tree: ast.Module) -> dict[int, str]:
    """Have each function that asserts say that it began."""
    begun: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(map(_asserts, ast.walk(node))):
            begun[len(begun)] = node.name
            node.body.insert(0, syntax_tree(f"_begun.add({len(begun) - 1})").body[0])
    return begun


def _calls(node: ast.stmt) -> list[str]:
    """Calls of tests that a test runner would make."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
        return [_call(node, node.name)]
    if isinstance(node, ast.ClassDef) and any("TestCase" in ast.unparse(base) for base in node.bases):
        return [f"_cases({node.name})"]
    if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
        methods = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name.startswith("test")]
        return [_call(method, f"{node.name}().{method.name}", given=1) for method in methods]
    return []


def _call(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, given: int = 0) -> str:
    wanted = len(function.args.posonlyargs) + len(function.args.args) - len(function.args.defaults) - given
    if wanted > 0 or function.decorator_list:
        raise InputError(
            f"The test {function.name} needs a test runner: fixtures and decorators are not known here. Use a loop."
        )
    return f"{'await ' if isinstance(function, ast.AsyncFunctionDef) else ''}{name}()"


def names_of(tests: str) -> list[str]:
    """Names of a program that tests use, `output` among them; none of tests that cannot be read."""
    tree = parse(tests)
    return ["output", *_unbound(tree)] if tree else []


def _unbound(tests: ast.Module) -> list[str]:
    """Names that the tests use and do not make themselves."""
    names = [node for node in ast.walk(tests) if isinstance(node, ast.Name)]
    made = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | {"output"} | set(dir(builtins))
    named = ast.FunctionDef | ast.ClassDef | ast.ExceptHandler
    made |= {str(node.name) for node in ast.walk(tests) if isinstance(node, named)}
    made |= {node.arg for node in ast.walk(tests) if isinstance(node, ast.arg)}
    for node in ast.walk(tests):
        if isinstance(node, ast.Import | ast.ImportFrom):
            made |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return list(dict.fromkeys(node.id for node in names if node.id not in made))


def _copy(tests: ast.Module) -> ast.Module:
    return syntax_tree(ast.unparse(tests))


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


class _Explained(ast.NodeTransformer):
    """Assertions that say what they found."""

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        """`assert f(2) == 4` fails with "f(2) gave 5, expected 4", and counts as one that was run."""
        return [_COUNT, self.explained(node)]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        """A call such as `np.testing.assert_allclose(…)` counts, too."""
        return [_COUNT, node] if _asserts(node.value) else node

    def visit_With(self, node: ast.With) -> ast.stmt | list[ast.stmt]:
        """And so does `with pytest.raises(…)`, once it is through."""
        self.generic_visit(node)
        return [node, _COUNT] if any(_asserts(item.context_expr) for item in node.items) else node

    def explained(self, node: ast.Assert) -> ast.Assert:
        """With a message that says what was found."""
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
