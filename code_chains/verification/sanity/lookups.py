"""Whether what a program looks up in its files stands there, as far as the program compares it with cells.

Small models write what the question calls a thing ("Pierce College Station") where the file calls it otherwise ("Pierce
College"): the comparison holds for no row, and the program prints zero or nothing as if that were the answer.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from code_chains.analysis.parsing import nodes, parse

_MAX_TEXTS, _MIN_CHARS, _MAX_CHARS = 20, 2, 100
_MAX_SHOWN = 3
_METHODS = frozenset(["isin", "eq", "contains", "startswith", "endswith", "match", "fullmatch"])
_DERIVING = frozenset(
    [
        "strftime",
        "month_name",
        "day_name",
        "dt",
        "map",
        "replace",
        "cut",
        "qcut",
        "assign",
        "title",
        "capitalize",
    ]
)
"""What makes texts that stand in no file."""
_NOTHING = re.compile(
    r"(?:^|[:=\s])(?:0|0\.0+|nan|NaN|None|\[\]|\{\}|set\(\))[\s.]*$|\[\]|Empty DataFrame|Series\(\[\]",
    re.MULTILINE,
)
"""What is printed where nothing was found."""
PROBE = r"""
import difflib, json, re, zipfile

LIMIT = 8 << 20

def content(name):
    if zipfile.is_zipfile(name):
        with zipfile.ZipFile(name) as archive:
            names = [one for one in archive.namelist() if one.endswith(".xml")]
            if sum(archive.getinfo(one).file_size for one in names) > LIMIT:
                return None
            return b"\n".join(archive.read(one) for one in names)
    with open(name, "rb") as file:
        data = file.read(LIMIT + 1)
    return None if len(data) > LIMIT or data[:4] == b"PAR1" else data

def decoded(data):
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text + "\n" + text.encode().decode("unicode-escape", "replace") if "\\u" in text else text

def close(text, cells):
    low = text.casefold().strip()
    at = folded.find(low)
    if at >= 0 and len(folded) == len(whole):
        return [whole[at:at + len(low)]]
    same = [cell for cell in cells if cell.casefold().strip() == low]
    inside = [cell for cell in cells if len(cell) > 3 and cell.casefold() in low and 2 * len(cell) >= len(text)]
    similar = difflib.get_close_matches(text, cells[:5000], 3, 0.75)
    return list(dict.fromkeys(same + inside + similar))[:3]

found = {}
contents = [content(name) for name in files]
if None not in contents:
    whole = "\n".join(map(decoded, contents))
    folded = whole.casefold()
    cells = [cell.strip() for cell in dict.fromkeys(re.split(r'[",;\t|\r\n<>]+', whole)) if len(cell) < 100]
    for text in texts:
        if (text.casefold() not in folded) if any_case else (text not in whole):
            found[text] = close(text, cells)
print(json.dumps(found))
"""
"""Prints which `texts` stand in none of the `files`, with cells that are like them; nothing of what cannot be searched."""


def looked_up(code: str) -> tuple[str, ...]:
    """Return the texts that a program compares with cells of its data.

    One that the program has for something else as well, or may have made itself, does not count.

    Example:
        >>> looked_up("print(df[df['Station'] == 'Pierce College Station']['Parking'])")
        ('Pierce College Station',)
    """
    tree = parse(code)
    if tree is None or any(node.attr in _DERIVING for node in nodes(tree, ast.Attribute)):
        return ()
    counted = Counter(node.value for node in nodes(tree, ast.Constant) if isinstance(node.value, str))
    texts = dict.fromkeys(text for text in _compared(tree) if counted[text] == 1)
    return tuple(text for text in texts if _MIN_CHARS <= len(text) <= _MAX_CHARS)[:_MAX_TEXTS]


def _compared(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                if _is_cell(left) or _is_cell(right):
                    yield from _texts([left, right])
            case ast.Call(func=ast.Attribute(attr=name), args=[argument, *_]) if name in _METHODS:
                yield from _texts(argument.elts if isinstance(argument, ast.List) else [argument])


def _is_cell(node: ast.expr) -> bool:
    """Return whether an expression looks up a column or a field, also in another case."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    if isinstance(node, ast.Attribute):
        return node.attr == "str" and _is_cell(node.value)
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


def _texts(found: Sequence[ast.expr]) -> Iterator[str]:
    for node in found:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def ignores_case(code: str) -> bool:
    """Return whether a program may compare without regard to case."""
    return re.search(r"lower\(|upper\(|casefold\(|case\s*=\s*False|IGNORECASE|\(\?i\)", code) is not None


def read_found(output: str) -> dict[str, list[str]]:
    """Read what the probe printed, which is made of the user's files; empty if that is malformed."""
    try:
        found = json.loads(output)
        return {str(text): [str(cell) for cell in cells][:_MAX_SHOWN] for text, cells in found.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def missing_texts(found: Mapping[str, Sequence[str]], output: str) -> str:
    """Return as a sentence which texts a program looks up in vain; empty if that is not known to matter.

    Args:
        found: What the probe printed.
        output: What the program printed: of a text without another one like it, nothing is said unless nothing was found.
    """
    is_empty = _NOTHING.search(output.strip()) is not None
    sentences = []
    for text, others in found.items():
        if others:
            there = ", ".join(f"`{other[:_MAX_CHARS]}`" for other in others)
            sentences.append(f"`{text}` stands in no file; there is {there}.")
        elif is_empty:
            sentences.append(f"`{text}` stands in no file.")
    return " ".join(sentences)
