"""Whether a question names the rows that a program selects: a model that misses some takes those of another year or town."""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from difflib import get_close_matches

from code_chains.analysis.columns import columns_of, comparisons
from code_chains.analysis.dotted_names import words
from code_chains.analysis.parsing import parse, texts_in
from code_chains.inputs.text import folded
from code_chains.language.vocabulary import either, vocabulary
from code_chains.verification.provenance.given import Given, Origin
from code_chains.verification.provenance.periods import DAYS, MONTHS, has_word, unread_period
from code_chains.verification.provenance.synonyms import holds, is_state, parts

SQL = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)
_ANSWERS = words("yes true none null ja nein oui non sim nao evet hayir male female")
_CALENDAR = frozenset([*DAYS, *MONTHS])
_SQL_EQUALITY = re.compile(r"(?<!\w)(\w++)[\"`\]]?\s*+=\s*+'([^']*+)'")
_VOWELS = ("a", "e", "i", "o", "y")
_WORDS = vocabulary("selections")
_OF_LETTERS = re.compile(either(_WORDS["of_letters"]))
_LEAVING_OUT = re.compile(either(_WORDS["leaving_out"]))
_TEXT_METHODS = frozenset({"lower", "upper", "casefold", "strip", "title"})
_LONG_WORD, _SIMILAR = re.compile(r"[^\W\d_]{4,}"), 0.8
_RANGE = re.compile(r"^(\d{1,3})\s*[-–]\s*\d+$")


def unnamed_selection(asked: str, code: str, given: Given, profile: str, *, is_english: bool = True) -> str:
    r"""Return as a sentence which rows a program selects though nobody named them; empty if there are none.

    Args:
        asked: The question, with its translation if there is one.
        code: The program.
        given: The numbers that it may use.
        profile: What the model was shown of the data: an attribute is a column if it is called like one.
        is_english: Whether the question is; texts that are compared may translate words of another language.

    Example:
        >>> code = "print(df[df['group'] == 'Owls']['child'].tolist())"
        >>> unnamed_selection("Which children have a nut allergy?", code, Given(""), "")
        'The program selects `group` = `Owls`, which the question does not name.'
    """
    tree = parse(code)
    if tree is None:
        return ""
    asked = folded(asked)
    if (
        other := unread_period(asked, tree, profile)
        or _chosen_by_ending(asked, tree)
        or _first_rows(asked, tree)
    ):
        return other
    chosen: defaultdict[str, list[str | float]] = defaultdict(list)
    for column, value in selections(tree, columns_of(profile)):
        chosen[column].append(value)
    for column, values in chosen.items():
        named = {value: _is_named(value, asked, given, is_english=is_english) for value in values}
        unnamed = [value for value in values if named[value] is False]
        # Several, of which none is named, are those of a kind that the question names: fruit, weekends.
        is_kind = len(set(map(folded, map(str, values)))) > 1 and True not in named.values()
        if unnamed and not is_kind:
            return f"The program selects `{column}` = `{unnamed[0]}`, which the question does not name."
    return ""


def _chosen_by_ending(asked: str, tree: ast.AST) -> str:
    """Return as a sentence that rows are selected by the last letter of a name, as by a guess who is a woman."""
    for place, how, values in comparisons(tree):
        if how == "endswith" and len(values) == 1 and values[0] in _VOWELS and not _OF_LETTERS.search(asked):
            text = ast.unparse(_without_text_methods(place))
            return f"The program selects `{text}` = `…{values[0]}`, which the question does not name."
    return ""


def _first_rows(asked: str, tree: ast.Module) -> str:
    """Return as a sentence that the first rows of a table are left out as soon as it is read, as if they were none."""
    if _LEAVING_OUT.search(asked):
        return ""
    for read, dropped in itertools.pairwise(tree.body):
        match read, dropped:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr=method))),
                ast.Assign(
                    targets=[ast.Name()],
                    value=ast.Subscript(
                        value=ast.Attribute(value=ast.Name(id=table), attr="iloc"),
                        slice=ast.Slice(lower=ast.Constant(value=int()), upper=None, step=None),
                    ),
                ),
            ) if name == table and method.startswith("read_"):
                return (
                    f"The program selects `{ast.unparse(dropped.value)}`, which the question does not name."
                )
    return ""


def _is_named(value: str | float, asked: str, given: Given, *, is_english: bool) -> bool | None:
    """Return whether a question names a value; None for one that needs no name or may have another one."""
    if isinstance(value, str):
        return _is_word_of(value, asked) if is_english else None
    origin = given.origin(value)
    return None if origin in (Origin.KNOWN, Origin.WEAK) else origin is not Origin.UNKNOWN


def selections(tree: ast.AST, columns: Collection[str]) -> Iterator[tuple[str, str | float]]:
    """Yield the columns that a program compares for equality, with what it compares them to."""
    for place, _, values in comparisons(tree):
        match _without_text_methods(place):
            case ast.Subscript(slice=ast.Constant(value=str() as column)):
                pass
            case ast.Attribute(attr=column) if column in columns:
                pass
            case ast.Call(
                func=ast.Name(id="col") | ast.Attribute(attr="col"),
                args=[ast.Constant(value=str() as column)],
            ):
                pass
            case _:
                continue
        for value in values:
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                yield column, value
    for column, value in itertools.chain.from_iterable(map(_SQL_EQUALITY.findall, queries(tree))):
        if column in columns:
            yield column, value


def queries(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a program that are queries in SQL."""
    return filter(SQL.match, texts_in(tree))


def _without_text_methods(place: ast.expr) -> ast.expr:
    """Return what `.str.lower()` or the like is called of."""
    match place:
        case ast.Call(func=ast.Attribute(value=text, attr=name), args=[]) if name in _TEXT_METHODS:
            return _without_text_methods(text)
        case ast.Attribute(value=text, attr="str"):
            return _without_text_methods(text)
    return place


def _is_word_of(value: str, asked: str) -> bool | None:
    """Return whether a question has a longer word of a text; None of a short one, a day or a yes: they may mean anything."""
    written_parts = [*parts(value), *_RANGE.findall(value)]
    if value.casefold() in _CALENDAR:  # They are told by themselves, and called otherwise in other languages.
        return None
    if not written_parts or folded(value) in _ANSWERS or is_state(folded(value), asked):
        return None
    if any(holds(asked, part) for part in written_parts):
        return True
    if any(len(short) > 1 and has_word(asked, short) for short in _initials(value)):
        return True
    named_months = (name[:3] for name in MONTHS if name[:3] in folded(value))
    if any(has_word(asked, month) for month in named_months):
        return True
    # Spelled in another way, or in one word.
    written, known = (_LONG_WORD.findall(text) for text in (folded(value), asked))
    is_similar = any(get_close_matches(word, known, 1, _SIMILAR) for word in written)
    return is_similar or _joined(value) in _joined(asked)


def _initials(value: str) -> tuple[str, ...]:
    """Return what a name may be shortened to, as the United States to US or USA."""
    short = "".join(word[0] for word in re.findall(r"[^\W\d_]+", folded(value)))
    return short, f"{short}a"


def _joined(text: str) -> str:
    return re.sub(r"[\W_]", "", folded(text))
