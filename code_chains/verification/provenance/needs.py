"""What a program or a model says is missing, instead of making it up: a line that begins with `Not given:`."""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from code_chains.analysis.columns import YEARS
from code_chains.analysis.parsing import nodes, parse, texts_in
from code_chains.verification.provenance.given import Given, Origin, written_numbers

NOT_GIVEN = "Not given:"
"""How the line begins; models write what follows in the language of the question."""
_MARKER = (
    r"(?:not[ _]given|nicht (?:an)?gegeben|non (?:fourni|donné|dato|fornito|indicato)e?|no (?:dado|proporcionado|indicado)"
    r"|não (?:dado|fornecido|informado)|niet gegeven|nie podano|není (?:zadáno|uvedeno)|не (?:дан|указан|задан)[оаы]?"
    r"|inte (?:angivet|givet)|verilme(?:di|miş)|未给出|未提供"
    r"|与えられてい(?:ません|ない)|주어지지 않(?:음|았음|았습니다)|غير معطى)"
)
"""What is prescribed, and how models translate it."""
_LINE = re.compile(rf"^[\W_]*{_MARKER}\s*[:：](.+)$", re.IGNORECASE | re.MULTILINE)
_SAID = re.compile(_MARKER, re.IGNORECASE)
_SAYING = re.compile(rf"{_MARKER}\s*[:：]", re.IGNORECASE)
"""How a program says it: one that looks for the words, as in a column, leaves the colon out."""
_NOTHING = ("nothing", "none", "n/a", "nothing is missing", "complete", "nichts", "nada", "rien", "niente")
_SUPPOSING = (
    r"\b(?:assum(?:e|es|ed|ing|ption)\b|let'?s (?:say|suppose)|suppos(?:e|ing)\b|hypothetical"
    r"|annahme|angenommen|nehmen wir|annehmen|supon(?:iendo|gamos|er)|asum(?:o|iendo)"
    r"|(?:en )?supposant|supposons|hypothèse|supponendo|supponiamo|ipotizz\w+|supondo|suponha\w*|assumindo|varsay\w+)"
    r"|предполо\w+|допустим|仮定|想定|假设|假定"
)
_ASSUMING = re.compile(
    rf"(?:({_SUPPOSING})|\b(?:placeholder|made[- ]up|example\b|replace (?:this|with)))"
    r"(?:\s*(?:that|dass|que|che)\b)?:?\s*(.*)",
    re.IGNORECASE,
)
"""What small models write beside a value that they have made up."""
_SETTING = re.compile(
    r"^n$|interval|seed|\biter|_iter|precision|toler|step|limit|bins|size|digits|width|dpi|epoch|trial|sample|attempt|max|min",
    re.I,
)
"""Names of what a program may choose by itself."""
_OF_TIME = re.compile(r"hour|day|month|year|time|date|len\(|age\b|std\(|corr", re.IGNORECASE)
_MAX_CHOSEN, _MAX_LIMIT_CHARS = 12, 60
_MAX_TRIVIAL, _MIN_TEXT_CHARS, _MAX_VALUE_CHARS = 2, 4, 40
_READING = re.compile(r"\b(?:open|read_\w+|read_text|input|connect)\(")
_DATES = ("date", "datetime", "Timestamp")
_DAY = re.compile(r"[12]\d{3}-\d{2}-\d{2}")
_BORDER = re.compile(r"-(?:01|02|28|29|30|31)$|12-2[456]$|02-14$|07-04$|11-11$")
"""Days that a program may choose: the ends of months, a day with the next one for times, and those that have names."""
_KNOWN = (Origin.GIVEN, Origin.DERIVED, Origin.KNOWN)
_AROUND = " \t*_\"'()"
_MAX_LINES, _MAX_NEEDS, _MAX_CHARS = 4, 5, 200


def missing_inputs(*, query: str = "", output: str = "", code: str = "", reply: str = "") -> tuple[str, ...]:
    r"""Return what is missing, each once; empty if nothing is said to be.

    Of an output only a short one counts whose words the program has, as it may hold the data of the user; of a program its
    comments, if it computes nothing; and of a model the reply without a program. A question may itself be about the words.

    Args:
        query: The question.
        output: What the program printed, or the error that it raised.
        code: The program; what is none counts as a reply.
        reply: What the model said instead.

    Example:
        >>> missing_inputs(output="Not given: the price of diesel\n")
        ('the price of diesel',)
        >>> missing_inputs(code="# Not given: diesel price")
        ('diesel price',)
    """
    if _SAID.search(query):
        return ()
    is_own = len(output.strip().splitlines()) <= _MAX_LINES and (not code or _SAYING.search(code) is not None)
    said = code if _computes_nothing(code) else ""
    return _needs_in(output if is_own else "", said, "" if code else reply)


def doubted_inputs(code: str, query: str = "") -> tuple[str, ...]:
    r"""Return what comments of a program say is missing, though it goes on without; the question may say so itself.

    Example:
        >>> doubted_inputs("price = 0  # Not given: the price of diesel\nprint(50 * price)")
        ('the price of diesel',)
    """
    return () if _SAID.search(query) else _needs_in(*(comment.string for comment in _comments(code)))


def _comments(code: str) -> list[tokenize.TokenInfo]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (SyntaxError, tokenize.TokenError):
        return []
    return [token for token in tokens if token.type == tokenize.COMMENT]


def assumed_values(code: str, given: Given, *, has_input: bool = False) -> tuple[str, ...]:
    r"""Return what a program says or shows that it assumes: beside comments, as dates that nobody named, as plain numbers.

    Args:
        code: The program.
        given: What it may use.
        has_input: Whether it has files or variables; then a number under a name may be a setting, such as how many to show.

    Example:
        >>> question = "How many cm are left on the wall beside a shelf of 84 cm?"
        >>> assumed_values("wall = 100  # Assuming the wall is 100 cm wide\nprint(wall - 84)", Given(question))
        ('the wall is 100 cm wide',)
    """
    tree = parse(code)
    if tree is None:
        return ()
    own = {line for node in nodes(tree, ast.Assign) for line in _lines_of_own_values(node, given)}
    assumed = [one.text for one in _assumptions(code) if one.lines & own or one.is_own(given)]
    dates = _own_dates(tree, given)
    own_names = [] if has_input or assumed else [*_named_numbers(tree, given), *_named_values(tree, given)]
    limits = _limits(tree, given) if has_input else []
    found = [*assumed, *dates, *_same_values(tree, given), *own_names, *limits]
    return tuple(dict.fromkeys(found))[:_MAX_NEEDS]


def _limits(tree: ast.AST, given: Given) -> list[str]:
    """Return the comparisons of what is in the data with a number that nobody gave, such as when a boiler is due."""
    found = []
    for node in nodes(tree, ast.Compare):
        match node:
            case ast.Compare(
                left=ast.Subscript() | ast.Attribute() | ast.Call(),
                ops=[ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE()],
                comparators=[ast.Constant(value=int() | float() as value)],
            ):
                text = ast.unparse(node)
                is_own = (
                    given.origin(float(value)) in (Origin.WEAK, Origin.UNKNOWN) and abs(value) > _MAX_CHOSEN
                )
                if is_own and value not in YEARS and not _OF_TIME.search(text):
                    found.append(text[-_MAX_LIMIT_CHARS:])
    return found


def _named_numbers(tree: ast.Module, given: Given) -> list[str]:
    """Return the common numbers that a program gives a name of its own: `hours_worked = 20`."""
    found = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int() | float() as value)):
                is_weak = abs(value) > _MAX_TRIVIAL and given.origin(float(value)) is Origin.WEAK
                if is_weak and not _SETTING.search(name):
                    found.append(f"{name} = {value}")
    return found


def _named_values(tree: ast.Module, given: Given) -> list[str]:
    """Return the lists and texts of its own that a program gives a name of the question: `ages = [10, 12, 14]`."""
    found = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if given.mentions(name):
                if _is_own_list(value, given) or _is_own_text(value, given):
                    found.append(f"{name} = {ast.unparse(value)[:_MAX_VALUE_CHARS]}")
    return found


def _is_own_list(node: ast.expr, given: Given) -> bool:
    """Return whether an expression is a list of numbers of which none was given, other than a count."""
    numbers = _numbers_of(node) if isinstance(node, ast.List | ast.Tuple) else ()
    origins = {given.origin(number) for number in numbers}
    is_count = all(second - first == 1 for first, second in itertools.pairwise(numbers))
    return bool(origins) and Origin.GIVEN not in origins and origins != {Origin.KNOWN} and not is_count


def _is_own_text(node: ast.expr, given: Given) -> bool:
    match node:
        case ast.Constant(value=str() as text):
            return len(text) >= _MIN_TEXT_CHARS and any(map(str.isalpha, text)) and not given.holds(text)
    return False


def _same_values(tree: ast.Module, given: Given) -> list[str]:
    """Return which names stand for the same value, though the question states it once: what a hallway and a tin cover."""
    names: defaultdict[tuple[float, ...], list[str]] = defaultdict(list)
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                names[_numbers_of(value)].append(name)
    return [
        " = ".join(dict.fromkeys(same))
        for values, same in names.items()
        if len(set(same)) > 1 and max(map(given.times_stated, values), default=0) == 1
    ]


def _numbers_of(node: ast.expr) -> tuple[float, ...]:
    """Return the numbers that an expression spells out, but for a 0, 1 or 2 alone; empty for any other."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Call(args=elements, keywords=[]):
            pass
        case _:
            elements = [node]
    numbers = list[float]()
    for element in elements:
        match element:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                numbers.append(float(value))
            case _:
                return ()
    return tuple(numbers) if max(numbers, default=0.0) > _MAX_TRIVIAL else ()


@dataclass(frozen=True)
class _Assumption:
    """A comment that says that something is assumed.

    Attributes:
        text: What is assumed.
        lines: The lines that it may be about, up to the next blank one.
        is_sure: Whether it says so in a word that means nothing else, and not of a file.
    """

    text: str
    lines: frozenset[int]
    is_sure: bool

    def is_own(self, given: Given) -> bool:
        """Return whether nobody gave what it says: a number, or what no number is in."""
        numbers = set(written_numbers(self.text))
        origins = {given.origin(value) for value in numbers}
        is_given = bool(numbers) and origins <= set(_KNOWN) and not numbers <= {0.0, 1.0}
        return self.is_sure and not is_given and not given.holds(self.text)


def _assumptions(code: str) -> list[_Assumption]:
    """Return what comments say is assumed."""
    lines = code.splitlines()
    blank = [number for number, line in enumerate(lines, 1) if not line.strip()]
    found = []
    for comment in _comments(code):
        if match := _ASSUMING.search(comment.string):
            text = (match[2] or comment.string).strip(f"{_AROUND}#.,:")[:_MAX_CHARS]
            if text.casefold() in _NOTHING:
                continue
            first = comment.start[0]
            end = next((number for number in blank if number > first), len(lines) + 1)
            is_sure = bool(match[1]) and not _READING.search(code)
            found.append(_Assumption(text, frozenset(range(first, end)), is_sure))
    return found


def _lines_of_own_values(node: ast.Assign, given: Given) -> Iterator[int]:
    """Yield the line of an assignment of plain values that nobody gave, even if they follow from others."""
    parts = [*ast.walk(node.value)]
    if any(isinstance(part, ast.Call | ast.Subscript) for part in parts):
        return
    constants = [part.value for part in parts if isinstance(part, ast.Constant)]
    numbers = [one for one in constants if isinstance(one, int | float) and not isinstance(one, bool)]
    if any(given.origin(float(one)) not in (Origin.GIVEN, Origin.KNOWN) for one in numbers):
        yield node.lineno


def _own_dates(tree: ast.AST, given: Given) -> list[str]:
    """Return the days that nobody named, but for those that a program may choose."""
    days = [text for text in texts_in(tree) if _DAY.fullmatch(text)]
    days += [day for call in nodes(tree, ast.Call) for day in _days_of(call)]
    return [day for day in days if not _BORDER.search(day) and not given.states_digits(int(day[-2:]))]


def _days_of(call: ast.Call) -> Iterator[str]:
    """Yield the day of a call such as `date(2020, 10, 15)`."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _DATES:
            numbers = _numbers_of(call)
            if len(numbers) > 2:
                yield "{:04.0f}-{:02.0f}-{:02.0f}".format(*numbers)


def _needs_in(*texts: str) -> tuple[str, ...]:
    found = (read_need(match[1]) for text in texts for match in _LINE.finditer(text))
    return tuple(dict.fromkeys(filter(None, found)))[:_MAX_NEEDS]


def read_need(text: str) -> str:
    """Return what a reply names as missing, without markup; empty if it says that nothing is."""
    need = text.strip(_AROUND)
    need = need.strip("`") if need.count("`") % 2 else need
    says_nothing = need.casefold() in _NOTHING or not re.search(r"\w", need)
    return "" if says_nothing else "".join(filter(str.isprintable, need[:_MAX_CHARS]))


def _computes_nothing(code: str) -> bool:
    """Return whether a program has no other statements than texts and plain values, or is prose."""
    tree = parse(code)
    if tree is None:
        return len(code.strip().splitlines()) <= _MAX_LINES
    return bool(code.strip()) and all(map(_is_plain, tree.body))


def _is_plain(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Assign(value=ast.Constant()):
            return True
    return False
