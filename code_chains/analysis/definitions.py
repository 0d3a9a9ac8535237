"""Programs that only define something, where a question asks for just that."""

from __future__ import annotations

import ast
import re

from code_chains.analysis.parsing import holds, parse
from code_chains.analysis.replies.syntax import top_level_names
from code_chains.language.vocabulary import pattern, vocabulary

_DEFINING = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.Assign, ast.AnnAssign, ast.Pass),
)
_WORDS = vocabulary("definitions")
_IMPLEMENT = pattern(_WORDS["implement"])
_MAKES = pattern(_WORDS["makes"])
_DEFINITION = pattern(_WORDS["definition"])


def defines_what_is_asked(code: str, query: str) -> bool:
    """Return whether a program consists of definitions, and a question asks for one or names one; no question asks for any.

    Args:
        code: The program.
        query: The question; may be empty.
    """
    tree, names = parse(code), top_level_names(code, definitions=True)
    if tree is None or not names or not all(map(_is_definition, tree.body)):
        return False
    is_named = any(_is_named(name, query) for name in names)
    asks = _IMPLEMENT.search(query) or (_MAKES.search(query) and _DEFINITION.search(query))
    return not query.strip() or is_named or bool(asks)


def _is_named(name: str, query: str) -> bool:
    """Return whether a question has a name that is surely that of something in a program."""
    is_marked = re.search(rf"`{name}\b|\b{name}\s*\(", query) is not None
    return is_marked or ("_" in name and name in re.findall(r"\w+", query))


def _is_definition(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    computes = isinstance(node, ast.Assign | ast.AnnAssign) and holds(node, ast.Call)
    return is_text or (isinstance(node, _DEFINING) and not computes)
