"""Whether what a program looks up in its files stands there, as far as the program compares it with cells.

Small models write what the question calls a thing ("Pierce College Station") where the file calls it otherwise ("Pierce
College"): the comparison holds for no row, and the program prints zero or nothing as if that were the answer.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from code_chains.analysis.columns import COMPARING_METHODS, WHOLE_METHODS, YEARS, comparisons
from code_chains.analysis.parsing import nodes, parse
from code_chains.verification.sanity.failure_reports import says_not_found

_MAX_TEXTS, _MIN_CHARS, _MAX_CHARS = 20, 2, 100
_MAX_SHOWN = 3
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
_PATTERN_METHODS, _PATTERN = frozenset(["contains", "match", "fullmatch"]), re.compile(r"[?*+^$|\\()\[\]{}]")
_NOTHING = re.compile(
    r"(?:^|[:=\s])(?:0|0\.0+|nan|NaN|None|\[\]|\{\}|set\(\))(?:[ \t]+[^\W\d_]+)?[\s.!]*$|\[\]|Empty DataFrame|Series\(\[\]",
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

missing, within = {}, {}
contents = [content(name) for name in files]
if None not in contents:
    whole = "\n".join(map(decoded, contents))
    folded = whole.casefold()
    cells = [cell.strip() for cell in dict.fromkeys(re.split(r'[",;\t|\r\n<>]+', whole)) if len(cell) < 100]
    lowered = [(cell.casefold(), cell) for cell in cells]
    known = {low for low, _ in lowered}
    for text in texts:
        if (text.casefold() not in folded) if any_case else (text not in whole):
            missing[text] = close(text, cells)
        elif text in whole_cells and text.casefold() not in known:
            within[text] = [cell for low, cell in lowered if text.casefold() in low][:3]
print(json.dumps([missing, within]))
"""
"""Prints which `texts` stand in none of the `files`, with cells that are like them, and which of `whole_cells` stand within
cells alone, with these; nothing of what cannot be searched."""


def looked_up(code: str, *, whole: bool = False) -> tuple[str, ...]:
    """Return the texts and years that a program compares with cells of its data.

    With `whole` only those that a cell must consist of.

    One that the program has for something else as well, or may have made itself, does not count.

    Example:
        >>> looked_up("print(df[df['Station'] == 'Pierce College Station']['Parking'])")
        ('Pierce College Station',)
    """
    tree = parse(code)
    if tree is None or any(node.attr in _DERIVING for node in nodes(tree, ast.Attribute)):
        return ()
    constants = [node.value for node in nodes(tree, ast.Constant)]
    counted = Counter(str(value) for value in constants if isinstance(value, str) or _is_year(value))
    methods = WHOLE_METHODS if whole else COMPARING_METHODS
    texts = dict.fromkeys(text for text in _compared(tree, methods) if counted[text] == 1)
    return tuple(text for text in texts if _MIN_CHARS <= len(text) <= _MAX_CHARS)[:_MAX_TEXTS]


def _compared(tree: ast.AST, methods: Collection[str]) -> Iterator[str]:
    for place, how, values in comparisons(tree):
        if how in methods or (how == "==" and _is_cell(place)):
            texts = (str(value) for value in values if isinstance(value, str) or _is_year(value))
            yield from (text for text in texts if how not in _PATTERN_METHODS or not _PATTERN.search(text))


def _is_year(value: object) -> bool:
    return type(value) is int and value in YEARS


def _is_cell(node: ast.expr) -> bool:
    """Return whether an expression looks up a column or a field, also in another case."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    if isinstance(node, ast.Attribute):
        return node.attr == "str" and _is_cell(node.value)
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


def ignores_case(code: str) -> bool:
    """Return whether a program may compare without regard to case."""
    return re.search(r"lower\(|upper\(|casefold\(|case\s*=\s*False|IGNORECASE|\(\?i\)", code) is not None


class Found(NamedTuple):
    """What files have in place of texts.

    Attributes:
        missing: Texts that stand in none, with cells that are like them.
        within: Texts that no cell consists of, with cells that have them in it.
    """

    missing: dict[str, list[str]]
    within: dict[str, list[str]]


def read_found(output: str) -> Found:
    """Read what the probe printed, which is made of the user's files; empty if that is malformed."""
    try:
        missing, within = map(_cells_by_text, json.loads(output))
    except (ValueError, TypeError, AttributeError):
        return Found({}, {})
    return Found(missing, within)


def _cells_by_text(found: Mapping[object, Sequence[object]]) -> dict[str, list[str]]:
    return {str(text): [str(cell) for cell in cells][:_MAX_SHOWN] for text, cells in found.items()}


def missing_texts(found: Found, output: str) -> str:
    """Return as a sentence which texts a program looks up in vain; empty if that is not known to matter.

    Args:
        found: What the probe printed.
        output: What the program printed: of a text without another one like it, or within a cell, nothing is said unless
            nothing was found.
    """
    is_empty = _NOTHING.search(output.strip()) is not None or says_not_found(output)
    sentences = []
    for text, others in found.missing.items():
        if others:
            sentences.append(f"`{text}` stands in no file; there is {_listed(others)}.")
        elif is_empty:
            sentences.append(f"`{text}` stands in no file.")
    if is_empty:
        sentences += [
            f"No cell is `{text}`; there is {_listed(cells)}."
            for text, cells in found.within.items()
            if cells
        ]
    return " ".join(sentences)


def _listed(cells: Sequence[str]) -> str:
    return ", ".join(f"`{cell[:_MAX_CHARS]}`" for cell in cells)
