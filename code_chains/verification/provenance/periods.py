"""Whether a program reads the year, month or weekday that a question asks for: a model that misses it takes another one."""

from __future__ import annotations

import ast
import re
from calendar import day_name, month_name
from collections.abc import Iterator, Sequence

from code_chains.analysis.columns import comparisons
from code_chains.analysis.parsing import nodes, texts_in
from code_chains.inputs.text import folded
from code_chains.language.vocabulary import either, vocabulary

DAYS, MONTHS = (tuple(name.casefold() for name in names if name) for names in (day_name, month_name))
_YEAR = re.compile(r"(?<![\w.,/–-])(?:19|20)\d\d(?![\w/–]|[.,-]\d)")
_WRITTEN_YEAR = re.compile(r"(?:19|20)\d\d")
_YEAR_READ = re.compile(r"(?:19|20)\d\d(?=-\d\d|$)")
_WORDS = vocabulary("periods")
_RELATIVE = re.compile(either(_WORDS["relative"]))
"""Words by which a question asks for another year than it names."""
_COLUMN = re.compile(r"`([^`\n]{1,100})` \(([^()]*)\)")
"""A column as a profile shows it: its name, and its type with a range or some values."""
_PERIOD = re.compile(either(_WORDS["period"]))
"""What a column is called that says when the rest of its row was."""
_IN_PART = re.compile(r"\bmore\b|different|(?<![a-z])[a-z]{3,}+ ?[-–] ?[a-z]{3,}")
"""Values of which a profile shows some, and ranges of days."""
_OF_YEARS = re.compile(either(_WORDS["of_years"]))
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
    return re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", text) is not None


def _other_name(asked: str, tree: ast.AST, profile: str) -> str:
    """Return which weekday or month a program reads in place of those that are asked for, or that the data does not show."""
    places = [*(node.slice for node in nodes(tree, ast.Subscript)), *nodes(tree, ast.Compare)]
    constants = (part.value for place in places for part in nodes(place, ast.Constant))
    found = folded(" ".join(text for text in constants if isinstance(text, str)))
    for names in (DAYS, MONTHS):
        wanted, read = ([name for name in names if has_word(text, name)] for text in (asked, found))
        if wanted and read and not set(wanted) & set(read):
            return _reads(read[0].title(), wanted[0].title())
        is_sure = len(wanted) == 1 and (wanted[0] != "may" or _MAY.search(asked))
        if is_sure and (reason := _dropped_name(wanted[0], names, tree, profile)):
            return reason
    return ""


def _dropped_name(wanted: str, names: Sequence[str], tree: ast.AST, profile: str) -> str:
    """Return as a sentence that a program has a weekday or month in a label alone, though its data shows others."""
    used, place = [folded(text) for text in _used(tree)], names.index(wanted)
    numbers = re.compile(rf"(?<!\d)0?(?:{place}|{place + 1})(?!\d)")
    if any(wanted[:3] in text or numbers.search(text) for text in used):
        return ""
    for values in map(folded, _values_of_periods(tree, profile)):
        shown = [name for name in names if re.search(rf"\b(?:{name}|{name[:3]})\b", values)]
        is_whole = len(shown) > 1 and not _IN_PART.search(values)
        if is_whole and wanted not in shown:
            return _reads(", ".join(map(str.title, shown)), wanted.title())
    return ""


def _values_of_periods(tree: ast.AST, profile: str) -> Iterator[str]:
    """Yield what a profile shows of the columns that hold periods: they are called so, or a program reads them."""
    read = set(texts_in(tree)) | {node.attr for node in nodes(tree, ast.Attribute)}
    for name, shown in _COLUMN.findall(profile):
        is_period = not shown.startswith(("int", "float")) or _OF_YEARS.search(folded(name))
        if is_period and (name in read or _PERIOD.fullmatch(folded(name))):
            yield shown


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
    wanted = set(_YEAR.findall(asked))
    if (
        len(wanted) != 1
        or _RELATIVE.search(asked)
        or wanted & set(_WRITTEN_YEAR.findall(" ".join(_used(tree))))
    ):
        return ""
    year = wanted.pop()
    shown = [years for values in _values_of_periods(tree, profile) if (years := _YEAR_SHOWN.findall(values))]
    if not shown or {year} in map(set, shown):  # All is of that year.
        return ""
    first, last = min(shown[0]), max(shown[0])
    may_be_picked = first <= year <= last and _PICKING.search(ast.unparse(tree))
    return "" if may_be_picked else _reads(f"{first} to {last}", year)


def _reads(read: str, wanted: str) -> str:
    return f"The program reads {read}, and the question asks for {wanted}."


def _used(tree: ast.AST) -> Iterator[str]:
    """Yield the constants and attributes of a program, but for what stands in labels."""
    labels = {part for text in nodes(tree, ast.JoinedStr) for part in text.values}
    for call in nodes(tree, ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == "print":
            labels.update(call.args)
    yield from (str(node.value) for node in nodes(tree, ast.Constant) if node not in labels)
    for node in nodes(tree, ast.BinOp):
        match node:
            case ast.BinOp(
                ast.Constant(value=int() as first), ast.Add(), ast.Constant(value=int() as second)
            ):
                yield str(first + second)
    yield from (node.attr for node in nodes(tree, ast.Attribute))
