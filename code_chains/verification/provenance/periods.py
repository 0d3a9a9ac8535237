"""Whether a program reads the year, month or weekday that a question asks for: a model that misses it takes another one."""

from __future__ import annotations

import ast
import re
from calendar import day_name, month_name
from collections.abc import Iterator

from code_chains.analysis.columns import comparisons
from code_chains.analysis.parsing import nodes
from code_chains.verification.letters import folded

DAYS, MONTHS = (tuple(name.casefold() for name in names if name) for names in (day_name, month_name))
_YEAR = re.compile(r"(?<![\w.,/–-])(?:19|20)\d\d(?![\w/–]|[.,-]\d)")
_YEAR_READ = re.compile(r"(?:19|20)\d\d(?=-\d\d|$)")
_RELATIVE = re.compile(
    r"before|after|previous|next|last|follow|prior|since|until|ago|later|earlier|than|chang|grow|grew|compar"
    r"|forecast|predict|projec|expect|estimat|\bplan|budget|\bwill\b|prognos|previs|pronost"
    r"|\b(?:vor|nach|seit|bis|avant|apres|depuis|suivant|precedent|antes|despues|desde|hasta|siguiente|anterior|prima|dopo)"
)
"""Words by which a question asks for another year than it names."""
_COLUMN = re.compile(r"`([^`\n]{1,100})` \(([^()]*)\)")
"""A column as a profile shows it: its name, and its type with a range or some values."""
_OF_YEARS = re.compile(r"year|jahr|annee|\bano\b|anno|jaar|\brok\b|год|yil|年")
_YEAR_SHOWN = re.compile(r"(?<![\d.])((?:19|20)\d\d)(?=-\d\d|,|$| to )")
_PICKING = re.compile(
    r"\b(?:max|idxmax|nlargest|tail|last|latest|now|today|utcnow)\b|\[-1\]|reverse|ascending"
)
"""How a program may take the last period without naming it."""
_MAY = re.compile(r"\b(?:in|of|for|during|on|since|by) may\b|\bmay \d")


def unread_period(asked: str, tree: ast.AST, profile: str) -> str:
    """Return as a sentence which period a question asks for and a program does not read; empty if there is none.

    Args:
        asked: The question, folded.
        tree: The program.
        profile: What the model was shown of the data.
    """
    return (
        _other_name(asked, tree, profile) or _other_year(asked, tree) or _dropped_year(asked, tree, profile)
    )


def has_word(text: str, word: str) -> bool:
    """Return whether a text has a word, not within another one."""
    return re.search(rf"(?<![^\W_]){word}(?![^\W_])", text) is not None


def _other_name(asked: str, tree: ast.AST, profile: str) -> str:
    """Return which weekday or month a program reads in place of those that are asked for, or that the data does not show."""
    places = [*(node.slice for node in nodes(tree, ast.Subscript)), *nodes(tree, ast.Compare)]
    constants = (part.value for place in places for part in nodes(place, ast.Constant))
    found = folded(" ".join(text for text in constants if isinstance(text, str)))
    values = folded(" ".join(shown for _, shown in _COLUMN.findall(profile) if shown.startswith("text")))
    for names in (DAYS, MONTHS):
        wanted, read = ([name for name in names if has_word(text, name)] for text in (asked, found))
        if wanted and read and not set(wanted) & set(read):
            return _reads(read[0].title(), wanted[0].title())
        shown = [name for name in names if re.search(rf"\b(?:{name}|{name[:3]})\b", values)]
        is_sure = len(wanted) == 1 and len(shown) > 1 and "more" not in values and "different" not in values
        if is_sure and wanted[0] not in shown and (wanted[0] != "may" or _MAY.search(asked)):
            place = names.index(wanted[0])
            used = [
                word
                for word in _used(tree)
                if wanted[0][:3] in folded(word) or word in (str(place), str(place + 1))
            ]
            return "" if used else _reads(", ".join(map(str.title, shown)), wanted[0].title())
    return ""


def _other_year(asked: str, tree: ast.AST) -> str:
    """Return as a sentence which year a program selects in place of the one that is asked for; empty if none."""
    wanted = set(_YEAR.findall(asked))
    compared = (value for _, how, values in comparisons(tree) if how != "in" for value in values)
    read = [year[0] for value in compared if (year := _YEAR_READ.match(str(value)))]
    if len(wanted) != 1 or not read or wanted & set(read) or _RELATIVE.search(asked):
        return ""
    return _reads(read[0], wanted.pop())


def _dropped_year(asked: str, tree: ast.AST, profile: str) -> str:
    """Return as a sentence which year a program has in a label alone, though its data has others; empty if there is none."""
    wanted, shown = set(_YEAR.findall(asked)), set(_years_shown(profile))
    if len(wanted) != 1 or _RELATIVE.search(asked) or not shown - wanted:
        return ""
    year, first, last = wanted.pop(), min(shown), max(shown)
    may_be_picked = first <= year <= last and _PICKING.search(ast.unparse(tree))
    return "" if may_be_picked or year in " ".join(_used(tree)) else _reads(f"{first} to {last}", year)


def _reads(read: str, wanted: str) -> str:
    return f"The program reads {read}, and the question asks for {wanted}."


def _years_shown(profile: str) -> Iterator[str]:
    """Yield the years that columns of dates and of years hold."""
    for name, shown in _COLUMN.findall(profile):
        if not shown.startswith("int") or _OF_YEARS.search(folded(name)):
            yield from _YEAR_SHOWN.findall(shown)


def _used(tree: ast.AST) -> Iterator[str]:
    """Yield the constants and attributes of a program, but for what stands in labels."""
    labels = {part for text in nodes(tree, ast.JoinedStr) for part in text.values}
    for call in nodes(tree, ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == "print":
            labels.update(call.args)
    yield from (str(node.value) for node in nodes(tree, ast.Constant) if node not in labels)
    yield from (node.attr for node in nodes(tree, ast.Attribute))
