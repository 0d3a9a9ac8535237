"""The syntax of tests: what asserts, what a test runner would call, and which names come from the program."""

from __future__ import annotations

import ast
import builtins

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


def runner_calls(node: ast.stmt) -> list[str]:
    """Return the calls that a test runner would make for a top-level statement; see `without_runner` for their arguments."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
        return [_call(node, node.name)]
    if isinstance(node, ast.ClassDef) and is_test_case(node):
        return [f"_cases({node.name})"]
    if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
        functions = [item for item in node.body if isinstance(item, ast.FunctionDef)]
        methods = [function for function in functions if function.name.startswith("test")]
        return [_call(method, f"{node.name}().{method.name}") for method in methods]
    return []


def _call(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    return f"{'await ' if isinstance(function, ast.AsyncFunctionDef) else ''}{name}()"


def names_of(tests: str) -> list[str]:
    """Return the names of a program that tests use, including `output`; none if the tests cannot be parsed."""
    tree = parse(tests)
    return ["output", *free_names(tree)] if tree else []


def free_names(tests: ast.Module) -> list[str]:
    """Return the names that tests use and neither define nor find among the builtins."""
    if not tests.body:
        return []
    names = [node for node in ast.walk(tests) if isinstance(node, ast.Name)]
    defined = (
        {node.id for node in names if not isinstance(node.ctx, ast.Load)} | {"output"} | set(dir(builtins))
    )
    named = ast.FunctionDef | ast.ClassDef | ast.ExceptHandler
    defined |= {str(node.name) for node in ast.walk(tests) if isinstance(node, named)}
    defined |= {node.arg for node in ast.walk(tests) if isinstance(node, ast.arg)}
    for node in ast.walk(tests):
        if isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return list(dict.fromkeys(node.id for node in names if node.id not in defined))
