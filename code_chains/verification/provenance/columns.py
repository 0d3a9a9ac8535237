"""Whether a program reads what a question asks for, by the names of columns and the values that their profile shows.

A model that misses a column takes another one: rain where humidity was asked for.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from code_chains.analysis.columns import columns_of, comparisons
from code_chains.analysis.dotted_names import words
from code_chains.analysis.parsing import nodes, tree_of
from code_chains.analysis.work import walk
from code_chains.inputs.text import folded
from code_chains.language.vocabulary import either, pattern, vocabulary
from code_chains.verification.provenance.periods import has_word
from code_chains.verification.provenance.selections import SQL, queries, selections
from code_chains.verification.provenance.synonyms import has_synonym, holds, parts, stem

_MAX_NAMED = 6
_AGGREGATE = (
    r"(?:mean|average|avg|median|total|sum|maximum|minimum|max|min"
    r"|standard deviation|variance|mode|overall|combined|monthly|daily|yearly|weekly|annual)"
)
_SUPERLATIVE = r"(?:highest|lowest|largest|smallest|biggest|greatest|best|worst)"
_OF_NOUN = (
    r"(?:(?:value|amount|level|sum|number)s?\s+)?(?:of\s+)?(?:the\s+|all\s+|our\s+|my\s+|their\s+)*"
    r"([a-z]{3,})(?![a-z-])(?:\s+([a-z]{4,}))?"
)
_SUPERLATIVES = (re.compile(rf"\b{_SUPERLATIVE}\s+{_OF_NOUN}"),)
"""What is greatest or least: a quantity, or a thing if the program shows one."""
_SUBJECTS = (
    re.compile(rf"\b(?:{_AGGREGATE}\s+)+{_OF_NOUN}"),
    re.compile(r"\bhow (?:much|many [a-z]+ of)\s+([a-z]{4,})"),
    re.compile(
        r"\b(?:was|is|were|are)\s+(?:the\s+)?([a-z]{4,})\s+(?:the\s+)?(?:strong|high|low|long|large|heavi|old|young|cheap|great)"
    ),
)
"""What a quantity is of: the noun, and another word in case that the first belongs to it."""
_WHICH = re.compile(
    r"\b(?:which|what)\s+([a-z]{4,})\s+(?!is\b|are\b|was\b|were\b|the\b|of\b)(?:([a-z]{4,}))?"
)
"""What is to be chosen: it has a column of its own, or one of names."""
_WORDS = vocabulary("columns")
_NAME = pattern(_WORDS["name"])
_NAMING = re.compile(rf"{_NAME.pattern}|items|\bid\b|code|\bkey\b", re.IGNORECASE)
_ATTRIBUTES = frozenset(_WORDS["attributes"].split())
"""What things have in columns of their own, and no identifier tells."""
_AGGREGATING = words("mean sum median max min idxmax idxmin std var")
_ADDING = words("mean sum median")
_SQL_METHODS = {"avg": "mean"}
_ORDINAL = pattern(_WORDS["ordinal"])
"""Names of columns whose numbers nobody adds up."""
_MEASURE = pattern(_WORDS["measure"])
"""A column that is called by its unit may hold whatever is asked for."""
_FAMILIES = {
    name: (re.compile(either(family["asked"])), re.compile(either(family["columns"])))
    for name, family in _WORDS["families"].items()
}
"""What is asked for in other words, and what a column with it may be called."""
_FAMILIES_ANYWHERE = ("age", "salary", "rating")
"""Those of which words of other languages are known, too."""
_UNDERIVED = {"age", "calories", "profit"}
"""What nobody computes from several columns that are called otherwise."""
_RATE = re.compile(either(_WORDS["rate"]))
"""What a question may give in place of a column."""
_BORN = re.compile(r"born|birth|dob|date$|year|since", re.IGNORECASE)
_HIRED = re.compile(r"started|hired", re.IGNORECASE)
_DATED = re.compile(r"date|born|birth|year|since", re.IGNORECASE)
_GENERIC = words(_WORDS["generic"])
"""Words that name no column."""
_SQL_NAME = re.compile(r"[\"`\[]([^\"`\]]+)[\"`\]]|(\w+)")
_SQL_AGGREGATE = re.compile(r"\b(avg|sum|min|max)\(\s*[\"`\[]?(\w+)", re.IGNORECASE)


def unanswered_subject(query: str, code: str, profile: str, *, is_english: bool = True) -> str:
    r"""Return as a sentence what a question asks for and its data does not name; empty if nothing is known to be missing.

    Only columns count that the question does not name, and for a quantity just one: what is computed of several may have any
    name.

    Args:
        query: The question.
        code: The program.
        profile: What the model was shown of the data, with the columns of each table.
        is_english: Whether the question is; of one in another language less is known.

    Example:
        >>> profile = "- file `weather.csv`:\n  columns: `day` (date), `rain` (float)"
        >>> unanswered_subject("What is the mean humidity?", "print(df['rain'].mean())", profile)
        'Nothing in the data is called humidity; the program used the column rain. There are: day, rain.'
    """
    columns, asked = columns_of(profile), folded(query)
    read = columns_read(code, profile)
    unnamed = [column for column in read if not _is_named(column, asked)]
    tree = tree_of(code)
    if added := [name for name in _aggregated(tree, _ADDING) if name in unnamed and _ORDINAL.search(name)]:
        reason = f"The program takes a sum or mean of {added[0]}, which the question does not name."
        return f"{reason} There are: {listed(columns)}."
    filtered = {column for column, value in selections(tree, columns) if isinstance(value, str)}
    measures = [name for name in unnamed if name not in filtered and _may_measure(name)]
    if len(measures) > 1:
        aggregated = set(_aggregated(tree))
        measures = [name for name in measures if name in aggregated]
    families = _FAMILIES if is_english else _FAMILIES_ANYWHERE
    missing = _missing_family(asked, columns, tree, families) if unnamed and not _RATE.search(asked) else ""
    is_alone = len(measures) == 1 or not any(map(_may_measure, {*read} - filtered))
    if missing not in _UNDERIVED and not is_alone:
        missing = ""
    if not missing and (not is_english or _names_members(tree) or _computes_of_several(tree, columns)):
        return ""
    if not missing and len(measures) == 1 and not _MEASURE.fullmatch(measures[0]):
        subjects = _SUBJECTS if {*read} - filtered - {*measures} else (*_SUBJECTS, *_SUPERLATIVES)
        missing = _missing(subjects, asked, folded(profile), columns)
    if not missing and unnamed:
        missing = _missing_choice(asked, columns, folded(profile))
    if not missing or (missing in ("age", "oldest") and any(map(_BORN.search, columns))):
        return ""
    used = f"the column{'s' if len(unnamed) > 1 else ''} {listed(unnamed)}"
    return f"Nothing in the data is called {missing}; the program used {used}. There are: {listed(columns)}."


def _names_members(tree: ast.AST) -> bool:
    """Return whether a program compares the same with several texts: what belongs to a kind that a question names."""
    texts: Counter[str] = Counter()
    for place, _, values in comparisons(tree):
        texts[ast.unparse(place)] += sum(isinstance(value, str) for value in values)
    return max(texts.values(), default=0) > 1


def _computes_of_several(tree: ast.AST, columns: Collection[str]) -> bool:
    """Return whether a program adds, subtracts or the like two columns, so that the result may have any name."""
    for node in nodes(tree, ast.BinOp):
        left, right = (
            {name for name in _texts_of(side) if name in columns} for side in (node.left, node.right)
        )
        if left and right and left != right:
            return True
    return False


def listed(columns: Sequence[str]) -> str:
    """Return the first columns of several as a text."""
    return ", ".join(columns[:_MAX_NAMED])


def _aggregated(tree: ast.AST, methods: Collection[str] = _AGGREGATING) -> Iterator[str]:
    """Yield the columns that a program takes a sum, a mean or the like of."""
    for call in nodes(tree, ast.Call):
        match call.func:
            case ast.Attribute(
                value=ast.Subscript(slice=ast.Constant(value=str() as column)) | ast.Attribute(attr=column),
                attr=name,
            ) if name in methods:
                yield column
    for name, column in itertools.chain.from_iterable(map(_SQL_AGGREGATE.findall, queries(tree))):
        if _SQL_METHODS.get(name.lower(), name.lower()) in methods:
            yield column


def _may_measure(column: str) -> bool:
    is_date = _DATED.search(column) and not _HIRED.search(column)
    return not (_NAMING.search(column) or is_date or column == "day")


def columns_read(code: str, profile: str) -> list[str]:
    """Return which of the columns that a profile shows a program names, each once.

    Args:
        code: The program.
        profile: What the model was shown of the data.
    """
    columns, tree = columns_of(profile), tree_of(code)
    texts = {*_texts_of(tree), *_by_place(tree, columns)}
    return [column for column in dict.fromkeys(columns) if column in texts]


def _by_place(tree: ast.AST, columns: Sequence[str]) -> Iterator[str]:
    """Yield the columns that a program takes by their place, as by `df.columns[-1]` or `df.iloc[:, 2]`."""
    for node in nodes(tree, ast.Subscript):
        match node:
            case (
                ast.Subscript(value=ast.Attribute(attr="columns"), slice=place)
                | ast.Subscript(value=ast.Attribute(attr="iloc"), slice=ast.Tuple(elts=[_, place]))
            ):
                yield from (
                    columns[index] for index in _indices(place) if -len(columns) <= index < len(columns)
                )


def _indices(place: ast.expr) -> list[int]:
    match place:
        case ast.Constant(value=int() as index):
            return [index]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as index)):
            return [-index]
    return []


def _missing_family(asked: str, columns: Collection[str], tree: ast.AST, families: Collection[str]) -> str:
    """Return what a question asks for in words of its own, as by "cheapest", and no column may hold; empty if nothing is.

    Words that the program compares with are those of values that it looks for.
    """
    named = folded(" ".join(columns))
    held = folded(" ".join(str(value) for *_, values in comparisons(tree) for value in values))
    for name in families:
        asks, answers = _FAMILIES[name]
        if asks.search(asked) and not answers.search(named) and not asks.search(held):
            return name
    return ""


def _missing_choice(asked: str, columns: Collection[str], shown: str) -> str:
    """Return what is to be chosen and may stand in no column; empty if it may be that of names."""
    missing = _missing([_WHICH], asked, shown, columns)
    naming = _NAME if missing in _ATTRIBUTES else _NAMING
    return "" if any(map(naming.search, columns)) else missing


def _missing(patterns: Iterable[re.Pattern[str]], asked: str, shown: str, columns: Collection[str]) -> str:
    """Return a noun that a question asks for and the data does not show; empty if there is none."""
    named = folded(" ".join(columns))
    for each in patterns:
        for match in each.finditer(asked):
            subjects = [word for word in match.groups() if word and word not in _GENERIC]
            if subjects and not any(_is_shown(word, shown) or has_synonym(word, named) for word in subjects):
                return subjects[0]
    return ""


def _is_shown(subject: str, shown: str) -> bool:
    """Return whether data show a noun, or a short form of it such as `dept` of department."""
    if stem(subject) in shown:
        return True
    short = set(re.findall(rf"(?<![a-z]){subject[0]}[a-z]{{1,4}}(?![a-z])", shown))
    return any(_is_within(form, subject) for form in short)


def _is_within(form: str, word: str) -> bool:
    """Return whether a word has the letters of a form, in their order."""
    rest = iter(word)
    return all(letter in rest for letter in form)


def _is_named(column: str, asked: str) -> bool:
    """Return whether a question names a column, or a longer word of its name."""
    is_short = len(column) < 3
    is_said = has_word(asked, folded(column)) if is_short else stem(column) in asked
    return is_said or any(holds(asked, part) for part in parts(column))


def _texts_of(tree: ast.AST) -> Iterator[str]:
    """Yield what a program may name columns with: its texts and attributes, but for options of what reads a file."""
    options = {node for call in nodes(tree, ast.Call) for node in _options(call)}
    for node in walk(tree):
        if node in options:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
            if SQL.match(node.value):
                yield from map("".join, _SQL_NAME.findall(node.value))
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _options(call: ast.Call) -> Iterator[ast.AST]:
    """Yield all nodes of the options with which a function reads a file."""
    if getattr(call.func, "attr", "").startswith("read_"):
        for keyword in call.keywords:
            yield from walk(keyword.value)
