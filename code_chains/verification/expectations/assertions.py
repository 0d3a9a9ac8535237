"""The syntax of tests: what asserts, what a test runner would call, and which names come from the program."""

from __future__ import annotations

import ast
import builtins
import itertools

from code_chains.analysis.parsing import names_in, nodes, parse
from code_chains.analysis.work import walk


class Assertions:
    """Tells what asserts: `assert`, and calls such as `self.assertEqual`, `pytest.raises` and `assert_frame_equal`.

    Args:
        tests: The tests, as they import functions that assert.
    """

    def __init__(self, tests: ast.Module) -> None:
        imported = itertools.chain.from_iterable(node.names for node in nodes(tests, ast.ImportFrom))
        asserting = [alias for alias in imported if _asserts(alias.name)]
        self._names = {alias.asname or alias.name for alias in asserting}

    def has(self, node: ast.AST) -> bool:
        """Return whether a node asserts something."""
        match node:
            case ast.Call(func=ast.Name(id=name)):
                return name in self._names or name in BENCH_ASSERTIONS
            case ast.Call(func=ast.Attribute(attr=name)):
                return _asserts(name)
        return isinstance(node, ast.Assert)

    def are_in(self, tree: ast.AST) -> bool:
        """Return whether something in a tree asserts."""
        return any(map(self.has, walk(tree)))


PROGRAM_MODULE = "_solution"
"""What tests call the module of the program, for assignments to its names."""
BENCH_NAMES = ("_capsys", "_monkeypatch", "_module", "_shown", "_raised", "_program", PROGRAM_MODULE)
"""Names of the harness that tests use once they need no test runner."""
_IS_CASE = "is_test_case"
BENCH_ASSERTIONS = ("_shown", "_raised")
"""Functions of the harness that assert what doctests do."""


def _asserts(name: str) -> bool:
    return name.startswith("assert") or name == "raises"


def is_test_case(node: ast.stmt) -> bool:
    """Return whether a statement defines a case of unittest, which runs itself; see `mark_test_cases`."""
    return isinstance(node, ast.ClassDef) and getattr(node, _IS_CASE, False)


def mark_test_cases(tests: ast.Module) -> None:
    """Mark the classes that are cases of unittest, also those that derive from others of the tests."""
    cases = set[str]()
    for node in tests.body:
        if isinstance(node, ast.ClassDef):
            is_case = any("TestCase" in ast.unparse(base) for base in node.bases)
            setattr(node, _IS_CASE, is_case or bool(cases & names_in(*node.bases)))
            cases |= {node.name} if is_test_case(node) else set()


def names_of(tests: str) -> list[str]:
    """Return the names of a program that tests use, including `output`; none if the tests cannot be parsed."""
    tree = parse(tests)
    return ["output", *free_names(tree)] if tree else []


def free_names(tests: ast.Module) -> list[str]:
    """Return the names that tests use and neither define nor find among the builtins."""
    if not tests.body:
        return []
    used, defined = list[str](), {"output", *BENCH_NAMES, *dir(builtins)}
    for node in walk(tests):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.append(name)
            case (
                ast.Name(id=name)
                | ast.arg(arg=name)
                | ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.ExceptHandler(name=str(name))
            ):
                defined.add(name)
            case ast.alias(name=name, asname=new_name):
                defined.add((new_name or name).partition(".")[0])
    return [name for name in dict.fromkeys(used) if name not in defined]
