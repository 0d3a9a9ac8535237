"""What a program or a model says is missing, instead of making it up: a line that begins with `Not given:`."""

from __future__ import annotations

import ast
import io
import re
import tokenize

from code_chains.analysis.parsing import parse
from code_chains.language.vocabulary import either, vocabulary

NOT_GIVEN = "Not given:"
"""How the line begins; models write what follows in the language of the question."""
_WORDS = vocabulary("needs")
_MARKER = either(_WORDS["marker"])
"""What is prescribed, and how models translate it."""
_MARKUP = r"[*_`\s]*[:：][*_`]*"
_LINE = re.compile(rf"^(?:[^\w\n]|_|\d+[.)][ \t])*+{_MARKER}{_MARKUP}(.+)$", re.IGNORECASE | re.MULTILINE)
"""A line may be an item of a list."""
_LIST = re.compile(
    rf"({_MARKER}{_MARKUP})[ \t]*\n((?:[ \t]*(?:[-*•]|\d+[.)])[ \t].+(?:\n|$))+)", re.IGNORECASE
)
_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]", re.MULTILINE)
_SENTENCE_BEFORE = re.compile(rf"[.!;:,]\s+(?={_MARKER}\s*[:：])", re.IGNORECASE)
_FIGURE = re.compile(
    r"(?!(?:19|20)\d\d\b)[$€£¥]?\s?\d[\d\s.,]*[%€$£¥]?(?:\s?(?:of|von|de|sur|di|из|/)\s?\d+)?(?:\s[^\W\d]+)?"
)
"""What a label of a result has after it: how many of something were not given."""
_SAID = re.compile(_MARKER, re.IGNORECASE)
_SAYING = re.compile(rf"{_MARKER}\s*[:：]", re.IGNORECASE)
"""How a program says it: one that looks for the words, as in a column, leaves the colon out."""
NOTHING = tuple(_WORDS["nothing"])
_AROUND = ("()", '""', "''", "``", "__")
_MAX_LINES, _MAX_NEEDS, _MAX_CHARS = 6, 5, 200


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
    return () if _SAID.search(query) else _needs_in(*(comment.string for comment in comments_in(code)))


def comments_in(code: str) -> list[tokenize.TokenInfo]:
    """Return the comments of a program; none of one that cannot be read."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (SyntaxError, tokenize.TokenError):
        return []
    return [token for token in tokens if token.type == tokenize.COMMENT]


def _needs_in(*texts: str) -> tuple[str, ...]:
    lines = (_SENTENCE_BEFORE.sub("\n", _LIST.sub(_with_marker, text)) for text in texts)
    found = (read_need(match[1]) for text in lines for match in _LINE.finditer(text))
    return tuple(dict.fromkeys(filter(None, found)))[:_MAX_NEEDS]


def _with_marker(listed: re.Match[str]) -> str:
    """Return a list of what is missing with the marker before each item."""
    return "\n" + _ITEM.sub(lambda _: listed[1], listed[2])


def read_need(text: str) -> str:
    """Return what a reply names as missing, without markup; empty if it says that nothing is, or has a figure there."""
    need = text.strip(" \t*;")
    while len(need) > 1 and need[0] + need[-1] in _AROUND and not set(need[1:-1]) & {need[0], need[-1]}:
        need = need[1:-1].strip(" \t*")
    for mark in "`_":
        need = need.strip(f"{mark} ") if need.count(mark) % 2 else need
    says_nothing = (
        need.rstrip(".").casefold() in NOTHING or not re.search(r"\w", need) or _FIGURE.fullmatch(need)
    )
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
