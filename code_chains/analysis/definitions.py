"""Programs that only define something, where a question asks for just that."""

from __future__ import annotations

import ast
import re

from code_chains.analysis.parsing import parse
from code_chains.analysis.syntax import top_level_names

__all__ = ["defines_what_is_asked"]

_DEFINING = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.Assign, ast.AnnAssign, ast.Pass),
)
_ASKS = re.compile(
    r"\b(?:functions?|class|method|decorator|generator|dataclass|def|implement\w*|funktion|klasse|implementier\w*|función|clase"
    r"|implementa|fonction|classe|função|funzione|functie|funkcj\w+|функци\w+|класс\w*|fungsi|fonksiyon\w*|hàm)\b"
    r"|関数|クラス|函数|函數|类|類|함수|클래스|फ़ंक्शन|फलन|دالة|تابع|פונקציה|ฟังก์ชัน|συνάρτηση",
    re.IGNORECASE,
)


def defines_what_is_asked(code: str, query: str) -> bool:
    """Return whether a program consists of definitions, and a question asks for one or names one; no question asks for any.

    Args:
        code: The program.
        query: The question; may be empty.
    """
    tree, names = parse(code), top_level_names(code, definitions=True)
    if tree is None or not names or not all(map(_is_definition, tree.body)):
        return False
    is_named = not names.isdisjoint(re.findall(r"\w+", query))
    return not query.strip() or is_named or bool(_ASKS.search(query))


def _is_definition(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, _DEFINING)
