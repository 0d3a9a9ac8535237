"""The syntax of tests: what asserts, what a test runner would call, and which names come from the program."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from code_chains.analysis.parsing import parse


def is_assertion(node: ast.AST) -> bool:
    """Return whether a node is an assert statement, or a call such as `self.assertEqual` or `pytest.raises`."""
    name = ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
    return isinstance(node, ast.Assert) or name.startswith("assert") or name == "raises"


def is_test_case(node: ast.stmt) -> bool:
    """Return whether a statement defines a case of unittest, which runs itself."""
    return isinstance(node, ast.ClassDef) and any("TestCase" in ast.unparse(base) for base in node.bases)


def runner_calls(node: ast.stmt) -> Iterator[str]:
    """Yield the calls that a test runner would make for a top-level statement; see `without_runner` for their arguments."""
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
        yield f"{node.name}()"
    elif isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test"):
        yield f"await {node.name}()"
    elif isinstance(node, ast.ClassDef) and is_test_case(node):
        yield f"_cases({node.name})"
    elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name.startswith("test"):
                yield f"{node.name}().{item.name}()"


def names_of(tests: str) -> list[str]:
    """Return the names of a program that tests use, including `output`; none if the tests cannot be parsed."""
    tree = parse(tests)
    return ["output", *free_names(tree)] if tree else []


def free_names(tests: ast.Module) -> list[str]:
    """Return the names that tests use and neither define nor find among the builtins."""
    if not tests.body:
        return []
    used, defined = list[str](), {"output", *dir(builtins)}
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
