"""What a docstring says of a function: its description, its sections and its examples, in its own words."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterable

MAX_DESCRIPTION_CHARS, MAX_SECTIONS_CHARS, MAX_EXAMPLES_CHARS = 400, 700, 500
_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Params|Attributes|Returns|Return|Yields|Raises|Keyword Args|Other Parameters):?"
)
_ANY_SECTION = re.compile(r"[A-Z][A-Za-z ]{2,30}:")
_UNDERLINE = re.compile(r"[-=~]{3,}")
_RESULT, _ERRORS = (
    re.compile(r"^(?=:?(?:returns?|yields?|rtype)\b)", re.I | re.M),
    re.compile(r"^:?raises?\b", re.I | re.M),
)
_FIELD = re.compile(r":(?:param|arg|type|returns?|rtype|raises?|yields?)\b[^:]*:")


def description(doc: str) -> str:
    r"""Return the first paragraph in one line.

    Example:
        >>> description("Add a tax\nto an amount.\n\nMore about it.")
        'Add a tax to an amount.'
    """
    first = re.split(r"\n\s*\n", doc.lstrip(), maxsplit=1)[0]
    lines = first.split("\n")
    ends = [place for place, line in enumerate(lines) if line.startswith(">>>") or _FIELD.match(line)]
    return _cut(" ".join(" ".join(lines[: ends[0] if ends else None]).split()), MAX_DESCRIPTION_CHARS)


def summary(doc: str) -> str:
    """Return the first sentence of the first paragraph."""
    return re.split(r"(?<=[.!?])\s", description(doc), maxsplit=1)[0]


def sections(doc: str) -> list[str]:
    r"""Return the lines about arguments, results and exceptions, in the styles of Google, NumPy and Sphinx.

    Example:
        >>> sections("Add a tax.\n\nArgs:\n    rate: The rate.\n\nNote:\n    Slow.\n\nReturns:\n    The sum.")
        ['Args:', '    rate: The rate.', 'Returns:', '    The sum.']
    """
    style, kept = "", []
    lines = doc.split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        style = _style(line, following, style)
        if style and line.strip() and not _UNDERLINE.fullmatch(line.strip()):
            kept.append(line.rstrip())
    return fitting(kept, MAX_SECTIONS_CHARS)


def named_types(doc: str) -> list[list[str]]:
    r"""Return the names in what is said of arguments, and in what is said of results: some of them may be types.

    Example:
        >>> named_types("Dock.\n\nArgs:\n    at (Berth): Where.\n\nReturns:\n    Bill: The bill.")
        [['Args', 'at', 'Berth', 'Where'], ['Returns', 'Bill', 'The', 'bill']]
    """
    parts = _RESULT.split(_ERRORS.split("\n".join(sections(doc)))[0], maxsplit=1)
    return [re.findall(r"[^\W\d]\w*", part) for part in (*parts, "")[:2]]


def _style(line: str, following: str, style: str) -> str:
    """Return the style of the section that a line belongs to; empty if it is in none that counts."""
    if line.strip() and _UNDERLINE.fullmatch(following.strip()):
        return "NumPy" if _SECTION.fullmatch(line) else ""
    if _ANY_SECTION.fullmatch(line):
        return "Google" if _SECTION.fullmatch(line) else ""
    if _FIELD.match(line):
        return "Sphinx"
    ends = line.startswith(">>>") or (style != "NumPy" and line[:1].strip())
    return "" if ends else style


def examples(doc: str) -> list[str]:
    r"""Return the lines of the interactive examples, with what they show.

    Example:
        >>> examples("Add.\n\n>>> add(1, 2)\n3\n\nThat is all.")
        ['>>> add(1, 2)', '3']
    """
    try:
        found = doctest.DocTestParser().get_examples(doc)
    except ValueError:
        return []
    lines: list[str] = []
    for example in found:
        first, *others = example.source.splitlines() or [""]
        more = [f">>> {first}", *(f"... {line}" for line in others), *example.want.splitlines()]
        if len("\n".join([*lines, *more])) > MAX_EXAMPLES_CHARS:
            break
        lines += more
    return lines


def fitting(lines: Iterable[str], length: int) -> list[str]:
    """Return the first lines that have so many characters together, with a sign if there are more."""
    kept: list[str] = []
    for line in lines:
        length -= len(line) + 1
        if length < 0:
            return [*kept, "…"]
        kept.append(line)
    return kept


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length].rpartition(' ')[0]} …"
