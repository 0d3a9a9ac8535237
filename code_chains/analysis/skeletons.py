"""What programs do, whatever their names and layout."""

from __future__ import annotations

import ast

from code_chains.analysis.parsing import parse
from code_chains.analysis.work import is_too_large, walk


def is_same_program(code: str, other: str) -> bool:
    """Return whether two programs differ in names of variables, texts and layout at most."""
    return _skeleton(code) == _skeleton(other)


def _skeleton(code: str) -> object:
    """Return what a program does, without its names, texts and layout."""
    tree = None if is_too_large(code) else parse(code)
    if tree is None:
        return code
    return [_kind(node) for node in walk(tree)]


def _kind(node: ast.AST) -> object:
    if isinstance(node, ast.Constant) and not isinstance(node.value, str):
        return type(
            node.value
        ), node.value  # Not its text, which an integer of more than 4300 digits does not have.
    return type(node), getattr(node, "attr", None)
