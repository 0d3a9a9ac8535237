"""Repairs of program text that lost its form on the way: prompts, line numbers, diffs, escapes, typographic characters."""

from __future__ import annotations

import ast
import html
import re
import textwrap
from collections.abc import Callable, Sequence
from itertools import filterfalse, takewhile
from operator import itemgetter

from code_chains.analysis.replies.syntax import Syntax

_PROMPT = re.compile(r"^\s*(?:>>>|In ?\[\d*\]:|\.{3,}:|\.\.\.)(?: |$|(?=\S))")
_FIRST_PROMPT = re.compile(r"\A\s*(?:>>>|In ?\[\d*\]:)")
_DEFINITION = re.compile(r"\s*(?:(?:async\s+)?def\s+\w+\s*\(|class\s+\w+\s*[(:])")
_LABEL = re.compile(r"\A\s*(?:python3?|py)[ \t]*\n(?=\s*\S)", re.IGNORECASE)
_LEFTOVER = re.compile(r"\A(?:\s*+(?:(?:```|~~~)[ \t]*+\w*+|python3?|py)[ \t]*+\n)++", re.IGNORECASE)
_CLOSING = re.compile(r"\s*(?:`{1,3}|~~~)\s*")
_MARKUP = re.compile(
    r"^[ \t]*</?(?:code|python|execute_python|pre|tool_code)\b[^>]*>|</(?:code|python|pre)>[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_CDATA = re.compile(r"\A\s*<!\[CDATA\[(.*?)\]\]>\s*\Z", re.DOTALL)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d+|#x[0-9a-fA-F]+);")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_NUMBERED = re.compile(r"^\s*(\d{1,9})(?:\s*[|:.)] ?|\t| {1,2}|$)(.*)$")
_DIFF_HEAD = re.compile(r"^(?:diff |index |new file|--- |\+\+\+ |@@ |\\ No newline)")
_COMMAND = re.compile(r"^\s*(?:[%!]{1,2}\w|pip3? install |\$ )")
_BULLET = re.compile(r"^[*-] ")
_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("\ufeff\u200b\u200c\u200d\u200e\u200f\u2060\u202a\u202b\u202c\u202d\u202e"),
        **dict.fromkeys("\u2066\u2067\u2068\u2069"),
        **dict.fromkeys("\xa0\u2002\u2003\u2007\u2009\u202f", " "),
        "\u3000": "  ",
    }
)
_QUOTES = str.maketrans({**dict.fromkeys("“”„", '"'), **dict.fromkeys("‘’‚", "'")})
_OUTSIDE_TEXTS = str.maketrans(
    {
        **dict(zip("（）：，；−–×÷", "():,;--*/", strict=True)),
        "≤": "<=",
        "≥": ">=",
        "≠": "!=",
    }
)
_STRING = re.compile(r"""("[^"\n]*"|'[^'\n]*')""")
_ESCAPED = re.compile(r"\\([_*\[\]#`<>])")
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\'": "'"}
_MAX_QUOTED_CHARS = 50_000

Change = Callable[[str], str]


def repair(code: str, syntax: Syntax, changes: Sequence[Change] | None = None) -> str:
    """Return text as valid Python, with as few changes as it needs; an empty string if none helps.

    Args:
        code: The text; a label, prompts and a common indentation are always taken away.
        syntax: Decides what is valid.
        changes: The changes to try in turn; by default all.
    """
    code = textwrap.dedent(_LABEL.sub("", code))  # A label is valid Python, a name.
    if _FIRST_PROMPT.match(code):  # "In [1]: x = 1" is an annotation to Python.
        code = _without_prompts(code)
    if syntax.is_valid(code):
        return code
    for change in _CHANGES if changes is None else changes:
        changed = change(code)
        if changed != code:
            code = textwrap.dedent(changed).strip("\n")
            if syntax.is_valid(code):
                return code
    return ""


def _without_wrapping(code: str) -> str:
    """Remove what is left of fences and tags."""
    cdata = _CDATA.match(code)
    code = cdata[1] if cdata else code
    before, _, last = code.rstrip().rpartition("\n")
    code = before if before and _CLOSING.fullmatch(last) else code
    return _MARKUP.sub("", _LEFTOVER.sub("", code))


def with_plain_characters(code: str) -> str:
    """Replace special spaces, and remove invisible characters."""
    return code.translate(_CHARACTERS)


def _unescaped(code: str) -> str:
    """Undo HTML's escapes."""
    code = _BREAK.sub("\n", code)
    return html.unescape(code) if _ENTITY.search(code) else code


def _without_prompts(code: str) -> str:
    """Return the input of an interactive session, without its output; examples of a docstring are none."""
    lines = code.split("\n")
    before = list(takewhile(lambda line: not _FIRST_PROMPT.match(line), lines))
    if len(before) == len(lines) or any(map(_DEFINITION.match, before)):
        return code
    return "\n".join(_PROMPT.sub("", line) for line in filter(_PROMPT.match, lines))


def _without_line_numbers(code: str) -> str:
    lines = list(filter(str.strip, code.split("\n")))
    matches = list(filter(None, map(_NUMBERED.match, lines)))
    if not matches or len(matches) < len(lines):
        return code
    numbers = list(map(int, map(itemgetter(1), matches)))
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return code
    return "\n".join(map(itemgetter(2), matches))


def patched(code: str) -> str:
    """Return the new side of a unified diff."""
    lines = list(filterfalse(_DIFF_HEAD.match, filter(str.strip, code.split("\n"))))
    signs = set(map(itemgetter(0), lines))
    if "+" not in signs or not signs <= {"+", "-", " "}:
        return code
    return "\n".join(line[1:] for line in lines if line[0] != "-")


def _without_commands(code: str) -> str:
    """Remove magics of notebooks and commands of a shell."""
    return "\n".join(filterfalse(_COMMAND.match, code.split("\n")))


def _without_bullets(code: str) -> str:
    lines = list(filter(str.strip, code.split("\n")))
    if not all(map(_BULLET.match, lines)):
        return code
    return "\n".join(line[2:] for line in lines)


def _with_plain_punctuation(code: str) -> str:
    """Replace typographic quotes, and outside of strings full-width punctuation and typographic operators."""
    parts = _STRING.split(code.translate(_QUOTES))
    parts[::2] = [part.translate(_OUTSIDE_TEXTS) for part in parts[::2]]
    return "".join(parts)


def _without_markdown(code: str) -> str:
    r"""Undo Markdown's escapes, as in `\_\_init\_\_`."""
    return _ESCAPED.sub(r"\1", code)


def with_real_newlines(code: str) -> str:
    r"""Replace literal `\n`, `\t` and escaped quotes, as in a string of JSON without its quotes."""
    if "\\n" not in code:
        return code
    for escape, character in _ESCAPES.items():
        code = code.replace(escape, character)
    return code


_CHANGES: tuple[Change, ...] = (
    _without_wrapping,
    with_plain_characters,
    _unescaped,
    _without_prompts,
    _without_line_numbers,
    patched,
    _without_commands,
    _without_bullets,
    _with_plain_punctuation,
    _without_markdown,
    with_real_newlines,
)


def unquoted(text: str) -> str:
    """Return the text within a string literal; an empty string if text is something else."""
    text = text.strip()
    if text[:1] not in ("'", '"') or len(text) > _MAX_QUOTED_CHARS:
        return ""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ""
    return value if isinstance(value, str) else ""
