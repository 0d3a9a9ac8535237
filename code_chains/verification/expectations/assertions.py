"""The syntax of tests: what asserts, what a test runner would call, and which names come from the program."""

from __future__ import annotations

import ast
import builtins
import itertools

from code_chains.analysis.parsing import nodes, parse


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
        return any(map(self.has, ast.walk(tree)))


BENCH_NAMES = ("_capsys", "_monkeypatch", "_module", "_shown", "_raised")
"""Names of the harness that tests use once they need no test runner."""
BENCH_ASSERTIONS = ("_shown", "_raised")
"""Functions of the harness that assert what doctests do."""


def _asserts(name: str) -> bool:
    return name.startswith("assert") or name == "raises"


def is_test_case(node: ast.stmt) -> bool:
    """Return whether a statement defines a case of unittest, which runs itself."""
    return isinstance(node, ast.ClassDef) and any("TestCase" in ast.unparse(base) for base in node.bases)


def names_of(tests: str) -> list[str]:
    """Return the names of a program that tests use, including `output`; none if the tests cannot be parsed."""
    tree = parse(tests)
    return ["output", *free_names(tree)] if tree else []


def free_names(tests: ast.Module) -> list[str]:
    """Return the names that tests use and neither define nor find among the builtins."""
    if not tests.body:
        return []
    used, defined = list[str](), {"output", *BENCH_NAMES, *dir(builtins)}
    for node in ast.walk(tests):
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
