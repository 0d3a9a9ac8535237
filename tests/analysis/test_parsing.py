import ast
from typing import Any

import pytest

from code_chains.analysis.parsing import parse


def test_a_tree_is_had_though_another_thread_parses_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    real, blamed = ast.parse, iter([True, True])

    def blames(code: str) -> Any:
        if next(blamed, False):
            raise SystemError("AST constructor recursion depth mismatch (before=8, after=3)")
        return real(code)

    monkeypatch.setattr(ast, "parse", blames)
    tree = parse("x = 1")
    assert tree is not None
    assert ast.unparse(tree) == "x = 1"
