"""What a program is expected to do: tests and examples, as one program that asserts them, and as words for the model."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from code_chains.errors import InputError
from code_chains.inputs import fenced

__all__ = ["Expectations", "NoFunctionError", "expect"]

_PRELUDE = """
import math as _math
import reprlib as _reprlib

_brief = _reprlib.Repr()
_brief.maxstring = _brief.maxother = 200
_brief.maxlist = _brief.maxdict = _brief.maxset = _brief.maxtuple = 20
_failures = []


def _plain(value):
    return value.tolist() if type(value).__module__ == "numpy" else value


def _same(got, expected):
    got = _plain(got)
    numbers = isinstance(got, (int, float)) and isinstance(expected, (int, float))
    if numbers and (isinstance(got, float) or isinstance(expected, float)):
        return _math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-12) or (got != got and expected != expected)
    if isinstance(got, (list, tuple)) and isinstance(expected, (list, tuple)):
        return len(got) == len(expected) and all(map(_same, got, expected))
    if isinstance(got, dict) and isinstance(expected, dict):
        return got.keys() == expected.keys() and all(_same(got[key], expected[key]) for key in expected)
    return type(got).__eq__(got, expected) is True


def _explain(source, left, operator, right):
    if operator == "==":
        return f"{source} gave {_brief.repr(left)}, expected {_brief.repr(right)}"
    return f"{source} {operator} {_brief.repr(right)} does not hold: it is {_brief.repr(left)}"


def _noted(error):
    return "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])


def _example(source, call, expected):
    try:
        got = call()
    except Exception as error:
        if not (isinstance(expected, type) and isinstance(error, expected)):
            _failures.append(f"{source} raised {_noted(error)}, expected {_brief.repr(expected)}")
        return
    if isinstance(expected, type) or not _same(got, expected):
        _failures.append(_explain(source, got, "==", expected))


def _report(count):
    assert not _failures, f"{len(_failures)} of {count} examples failed: " + "; ".join(_failures[:3])
"""


_ERRORS = {
    name: value for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)
}


class NoFunctionError(ValueError):
    """A program defines no function that examples could be tried on."""


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

        Args:
            code: The program that is tested.
            query: The question; a function that it names is the one that examples are tried on, else the last one is.
            output: What the program printed; tests see it as `output`.

        Raises:
            NoFunctionError: There are examples, but no function in the program.
        """
        parts = [
            _PRELUDE,
            f"output = {output!r}",
            ast.unparse(ast.fix_missing_locations(_Explained().visit(_copy(self.tests)))),
        ]
        if self.examples:
            name = _function(code, query)
            for args, expected in self.examples:
                parts.append(f"_example({f'{name}({args})'!r}, lambda: {name}({args}), {expected})")
            parts.append(f"_report({len(self.examples)})")
        return "\n".join(parts)

    def told(self) -> str:
        """What a model is told: the first of each. The others stay unknown, so that they cannot be answered by rote."""
        if self.examples:
            shown = "\n".join(f"f({args}) == {expected}" for args, expected in self.examples[:2])
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
        return ast.parse(tests or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"The tests are no Python: {error}.") from error


def _several(examples: object) -> Iterable[object]:
    if examples is None:
        return ()
    if isinstance(examples, str | bytes | Mapping) or not isinstance(examples, Iterable):
        raise InputError("examples must be pairs of arguments and result, e.g. [((2, 3), 5)].")
    return examples


def _pair(example: object) -> tuple[str, str]:
    if isinstance(example, Mapping) and "expected" in example and example.keys() <= {"args", "kwargs", "expected"}:
        args, kwargs, expected = example.get("args") or (), example.get("kwargs") or {}, example["expected"]
    elif isinstance(example, Sequence) and not isinstance(example, str) and len(example) == 2:
        args, expected = example
        args, kwargs = args if isinstance(args, tuple) else (args,), {}
    else:
        raise InputError(f"{example!r:.80} is no example. Give a pair of arguments and result, e.g. ((2, 3), 5).")
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
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        body = []
    names = [node.name for node in body if isinstance(node, ast.FunctionDef) and node.name != "main"]
    named = [name for name in names if re.search(rf"\b{re.escape(name)}\b", query)]
    if not names:
        raise NoFunctionError("The program defines no function that could be tried on the examples. Define one.")
    return (named or names)[-1]


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
    return ast.parse(ast.unparse(tests))


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


class _Explained(ast.NodeTransformer):
    """Assertions that say what they found."""

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        """`assert f(2) == 4` fails with "f(2) gave 5, expected 4"."""
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
