"""Programs that only define something, where a question asks for just that."""

from __future__ import annotations

import ast
import re

from code_chains.analysis.parsing import holds, parse
from code_chains.analysis.replies.syntax import top_level_names

_DEFINING = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.Assign, ast.AnnAssign, ast.Pass),
)
_IMPLEMENT = re.compile(r"\b(?:implement\w*|implémente\w*)", re.IGNORECASE)
_MAKES = re.compile(
    r"\b(?:write|create|define|give|make|build|code|provide|generate|need|want|design|develop|complete|finish"
    r"|escrib\w+|crea\w*|define|programa|haz|schreib\w*|erstell\w*|definier\w*|écri\w+|crée\w*|défini\w*|scriv\w+|definisci"
    r"|escrev\w+|crie|defina|schrijf|maak|definieer|napisz|zdefiniuj|utwórz|напиш\w+|созда\w+|реализ\w+|определи\w*|yaz\w*"
    r"|oluştur\w*|buat\w*|tulis\w*|viết|tạo|skriv|skapa|scrie|napiš|napište)\b"
    r"|写|編|编|实现|定义|创建|書|作|実装|定義|작성|만들|구현|정의|लिख|बना|اكتب|أنشئ|بنویس|כתוב|เขียน|γράψε|напиши",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"\b(?:functions?|class|method|decorator|generator|dataclass|context manager|funktion|klasse|función|clase"
    r"|fonction|classe|função|funzione|functie|funkcj\w+|funkci|funcți\w+|функци\w+|класс\w*|fungsi|fonksiyon\w*|hàm)\b"
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
