"""Extract the program from a model's reply."""

from __future__ import annotations

import ast
import builtins
import json
import keyword
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain, islice, takewhile
from operator import itemgetter
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from code_chains.analysis.parsing import error_line, parse
from code_chains.analysis.replies.fences import (
    Block,
    join,
    markdown_blocks,
    select,
    tolerant_blocks,
    without_blocks,
)
from code_chains.analysis.replies.repairs import repair, unquoted, with_plain_characters, with_real_newlines
from code_chains.analysis.replies.syntax import Syntax, computes, used_names
from code_chains.analysis.replies.text import first_turn, visible_text, without_next_turn
from code_chains.analysis.replies.tool_calls import calls_in, code_in_call
from code_chains.analysis.work import (
    INLINE_STEPS,
    TooMuchWorkError,
    is_limited,
    is_too_large,
    limited_to,
    spend,
)
from code_chains.errors import InputError

_FENCE_TAGS = {"sql": ("sql", "duckdb", "sqlite", "postgresql", "postgres", "psql", "mysql")}
"""Words after a fence that stand for a language, where these are more than its name."""
_FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)
_TAGS = tuple(
    re.compile(pattern, re.DOTALL | re.IGNORECASE | re.MULTILINE)
    for pattern in (
        r"<(?:execute_python|execute|python|code|tool_code)(?:\s[^<>]*)?>(.*?)(?:</(?:execute_python|execute|python|code|tool_code)>|\Z)",
        r"""<(?:｜DSML｜)?parameter\s+name="(?:code|python|input|source)"[^<>]*>(.*?)(?:</(?:｜DSML｜)?parameter>|\Z)""",
        r"<arg_value>(.*?)(?:</arg_value>|\Z)",
        r"^\[PYTHON\](.*?)(?:\[/PYTHON\]|\Z)",
        r"^\[BEGIN\]\s*\n(.*?)(?:^\[(?:END|DONE)\]|\Z)",
        r"^\{code:python\}(.*?)(?:\{code\}|\Z)",
    )
)
_LABEL = re.compile(
    r"^[^\w\n]*(?:action input|answer|python|solution|[^\n`:]{0,80}\b(?:code|program|command)\b[^\n`:]{0,20}):[ \t]*"
    r"(?:\n(?:[ \t]*\n)?)?(?=[ \t]*\S)",
    re.IGNORECASE | re.MULTILINE,
)
_LABEL_END = re.compile(
    r"^[^\w\n]*(?:observation|explanation|output|result|note|thought|final answer)\b.*",
    re.IGNORECASE | re.MULTILINE,
)
_SCALAR = re.compile(
    r"^[ \t]*(?:code|python|input)[ \t]*:[ \t]*[|>]-?[ \t]*\n((?:[ \t]+\S.*\n?|[ \t]*\n)+)", re.MULTILINE
)
_INLINE = re.compile(r"(`{1,3})(?:python[ \t]++)?([^`\n]++)\1")
_OPENS_CODE = re.compile(
    r"[ \t]*((import|from|def|class|for|while|if|with|try|print|async)\b|@|#|[A-Za-z_][\w.\[\], ]*=[^=])"
)
_BLOCK_HEADER = re.compile(
    r"\s*(?:(?:else|try|finally)|(?:elif|except|for|while|if|with|def|class|async)\b.*):\s*(?:#.*)?$"
)
_OPENS_EXPRESSION = re.compile(r"\w\(|[\w\])]\s*[-+*/%|&]?=[^=]")
_PROSE = re.compile(r"(?<![^\W\d_])[^\W\d_]++ [^\W\d_]{2,}|[。，！？；：]|^\W*[^\W\d_]{2,}[.!]\s*$")
"""What sentences hold: two words in a row, the marks of languages that write no blanks; or they are one word and a mark."""
_REFUSES = re.compile(r"\b(?:never|don't|do not|avoid|must not)\b", re.IGNORECASE)
_MAX_LINE_CHARS, _MAX_WORD_CHARS = 1000, 20
_MAX_STEPS = 5 * INLINE_STEPS
"""Steps of whoever asks for a program outside of an analysis."""
_STEPS_OF_WORD = 100
"""Steps that the search of a keyword like a word takes."""
_MAX_PROSE_LINES, _MAX_TRIES, _MAX_DEPTH = 2000, 60, 3
_SQL_WORDS = (
    "select|with|from|insert|update|delete|create|pivot|unpivot|summarize|describe|show|values|explain"
)
_SQL_BEGINS = re.compile(rf"(?im)(?:^[ \t]*|:[ \t]*|(`|<sql>)\s*)(?=(?:{_SQL_WORDS})\s+\S|--|\()")
_SQL_ENDS = re.compile(r"(?m)^[A-Za-z][\w ]{0,30}:(?!:)")
"""A label after a statement, such as that of its result."""
_SQL_GOES_ON = re.compile(
    rf"(?i)\s*(?:{_SQL_WORDS}|union|order|group|where|join|left|limit|and|or|--|[(),])(?:\b|(?<=\W))"
)
_DOCUMENT = re.compile(r"""<<-?[ \t]*['"]?(\w++)['"]?[^\n]*+\n""")
"""The head of a document in a command of a shell."""
_ARGUMENT = re.compile(r"""\bpython3?[ \t]+-c[ \t]+(['"])(.*?)(?<!\\)\1""", re.DOTALL)
"""A program as an argument of Python's command."""
_KNOWN_FUNCTIONS = {*dir(builtins), "display"}
_FILE = re.compile(r"^#[ \t]*(?:file:?[ \t]*)?(\w+)\.py[ \t]*$", re.MULTILINE)
"""A comment that names a file."""
_IMPORT = re.compile(r"^from (\w+) import [\w, ]+\n", re.MULTILINE)
_LANGUAGES = {"python": "Python", "sql": "SQL"}
_MAX_REPLY_CHARS = 200
"""How much of a reply without a program is quoted."""
_NOTEBOOK_MARKS = ("%", "!", "In [")
"""What cells of notebooks begin with that are not Python."""


_FIELDS = ("code", "python_code", "python", "program", "script")
"""Fields of structured replies and arguments of tools that hold a program; `imports` comes before it."""


def reply_text(reply: object) -> str:
    """Return the text of a model's reply or of a chunk of it; empty for anything that has none.

    That of a structured reply, or of a message that only calls a tool with a program, is the program in a fence.
    """
    if isinstance(reply, str):
        return reply
    if isinstance(reply, BaseMessage):
        calls = [] if "```" in str(reply.text) else getattr(reply, "tool_calls", None) or []
        said = [str(reply.text), *(reply_text(call["args"]) for call in calls[:1])]
        return "\n\n".join(filter(str.strip, said))
    held = reply.model_dump() if isinstance(reply, BaseModel) else reply
    if not isinstance(held, Mapping):
        return ""
    if held.get("parsed") is not None:
        return reply_text(held["parsed"])
    named = (held[name] for name in _FIELDS if isinstance(held.get(name), str))
    code = next(named, None) or code_in_call(dict(held))
    program = "\n".join(filter(None, [str(held.get("imports") or ""), code]))
    return f"```python\n{program}\n```" if code and "```" not in program else program


def extract_code(reply: str | BaseMessage | BaseModel | Mapping[str, Any]) -> str:
    """Find the Python program in a model's reply.

    Reads fenced blocks with a real Markdown parser, and with a tolerant one where that finds no program; tags such as
    `<execute_python>`; tool calls as JSON, XML or tokens; labels such as `Code:`; inline code; and bare code. Thoughts,
    chat-template tokens and invented further turns are left out; prompts, line numbers, magics, diffs, escapes and
    typographic characters are undone where the text is not Python otherwise. Several blocks are joined in order, without
    those that later ones repeat, correct or replace. Prose is never returned. Of a reply longer than 200,000
    characters the beginning is read.

    Args:
        reply: The text of the reply, its message, or a structured reply with a field such as `code`.

    Returns:
        The program; an empty string if there is none. A block that is labelled as Python is returned even if it is
        not valid, so that a check can tell the model why.
    """
    if not isinstance(reply, str | BaseMessage | BaseModel | Mapping):
        raise InputError(f"A reply is text or a message, not {type(reply).__name__}.")
    whole, syntax = visible_text(reply_text(reply)), Syntax()
    text = first_turn(whole)
    spoken = without_next_turn(text)
    if spoken != text and syntax.is_program(spoken):
        text = spoken
    code = _find(text, syntax)
    if not code and text != whole:  # The token was part of a program.
        code = _find(whole, syntax)
    code = _out_of_call(_of_one_file(code or _broken_block(text, syntax)), syntax)
    return code.strip("\n").rstrip() + "\n" if code.strip() else ""


def extract_fenced(reply: str, language: str) -> str:
    """Find a program in another language than Python in a model's reply. Never raises.

    Args:
        reply: The text of the reply.
        language: The word after the fence, e.g. `sql`, for which the names of dialects stand as well.
            Blocks without a word count where none has it.

    Returns:
        The blocks in order; where the reply has no fences, its SQL in JSON, after a label, between marks or in
        paragraphs, or else the whole reply.
    """
    text = first_turn(visible_text(reply))
    fences = markdown_blocks(text)
    tags = _FENCE_TAGS.get(language, (language,))
    blocks = _codes(fences, tags) or _codes(fences, [""])
    unfenced = _statements(text) if language == "sql" else ""
    code = "\n".join(map(str.strip, blocks)) if fences else unfenced or text.strip()
    return code + "\n" if code.strip() else ""


def _statements(text: str) -> str:
    """Return the SQL of a text without fences; empty if no statement begins anywhere."""
    with suppress(ValueError, RecursionError):
        held = json.loads(text, strict=False)
        texts = [value for value in held.values() if isinstance(value, str)] if isinstance(held, dict) else []
        return next(filter(_SQL_BEGINS.match, texts), "").strip()
    if not (begin := _SQL_BEGINS.search(text)):
        return ""
    mark, rest = begin[1] or "", text[begin.end() :]
    if mark in ("`", "<sql>"):
        return rest.partition("`" if mark == "`" else "</")[0].strip()
    paragraphs = re.split(r"\n[ \t]*\n", _SQL_ENDS.split(rest, maxsplit=1)[0])
    goes_on = takewhile(_SQL_GOES_ON.match, paragraphs[1:])
    return "\n\n".join([paragraphs[0], *goes_on]).strip()


def _codes(blocks: Sequence[Block], tags: Sequence[str]) -> list[str]:
    return [block.code for block in blocks if block.language in tags]


def as_program(text: str, language: str = "python") -> str:
    """Return text that is a program as it is, and else the program in it, as in the reply of a stock `LLMChain`.

    Args:
        text: A program, or the reply of a model.
        language: The language of the program.

    Returns:
        The program, also where it is broken; an empty string if the text is prose.
    """
    if language != "python":
        return extract_fenced(text, language) or text if "```" in text else text
    if is_limited():
        return _as_python(text)
    try:
        with limited_to(_MAX_STEPS):
            return _as_python(text)
    except TooMuchWorkError:
        return text  # A program that nobody has read is refused where it is checked.


@lru_cache(64)  # Several stages ask for the same one.
def _as_python(text: str) -> str:
    if is_too_large(text):  # Whoever checks it says so.
        return text
    # Invariant: a valid program is never searched for another one, whatever its texts look like.
    if parse(text) is not None and not Syntax().is_call(text):
        return text
    is_cell = text.lstrip().startswith(_NOTEBOOK_MARKS)
    has_markup = (
        "```" in text or "~~~" in text or without_next_turn(visible_text(text)).strip() != text.strip()
    )
    is_reply = is_cell or has_markup or Syntax().is_call(text) or next(_tags(text), None) is not None
    code = extract_code(text) if is_reply else ""
    # Without any markup it is a broken program, which a check reports, unless no line of it is code.
    return code or ("" if _is_prose(text) else text)


def no_program(reply: str, language: str) -> str:
    """Say that a reply holds no program, and quote it, as it may give the reason."""
    text = _shortened(reply)
    quote = f" It was: {text!r}" if text else ""
    return f"The reply held no {_LANGUAGES.get(language, language)} program.{quote}"


def refused(reply: str) -> str:
    """Say that the provider of a model refused to reply, in its own words if it gave any."""
    text = _shortened(reply)
    return f"The model's provider refused: {text}" if text else "The model's provider withheld the reply."


def _shortened(reply: str) -> str:
    text = " ".join(reply.split())
    return text if len(text) <= _MAX_REPLY_CHARS else f"{text[:_MAX_REPLY_CHARS]}…"


def _find(text: str, syntax: Syntax, depth: int = 0) -> str:
    """Return the program in text, by the first reader that finds one that compiles."""
    if depth > _MAX_DEPTH or not text.strip():
        return ""
    fence = _FENCE.search(text)
    tag = min(map(re.Match.start, _tags(text)), default=len(text))
    readers = [_from_fences, _from_tags] if fence and fence.start() < tag else [_from_tags, _from_fences]
    for reader in (
        _whole,
        *readers,
        _from_calls,
        _from_shell,
        _from_scalar,
        _from_labels,
        _from_inline,
        _repaired,
        _from_prose,
    ):
        code = reader(text, syntax, depth)
        if code:
            return code
    return ""


def _broken_block(text: str, syntax: Syntax) -> str:
    """Return blocks that are labelled as Python and are not valid, without prose after a block that was never closed."""
    code = join([block for block in markdown_blocks(text) if block.is_python])
    lines = code.split("\n")
    end = error_line(code) - 1
    program = "\n".join(lines[:end])
    has_code_after = any(map(_is_code_line, lines[end:]))
    return program if not has_code_after and syntax.is_program(program) and computes(program) else code


def _whole(text: str, syntax: Syntax, depth: int) -> str:
    """Return text that is a program as it stands."""
    if any(tag.match(text.lstrip()) for tag in _TAGS):  # "[BEGIN]" is valid Python, a list.
        return ""
    code = repair(text, syntax, changes=())
    return code if syntax.is_program(code) else ""


def _tags(text: str) -> Iterator[re.Match[str]]:
    for pattern in _TAGS:
        yield from islice(pattern.finditer(text), _MAX_TRIES)


def _from_tags(text: str, syntax: Syntax, depth: int) -> str:
    """Return the program between tags; a tag within one line of a text with fences is prose."""
    has_fence = bool(_FENCE.search(text))
    blocks = []
    for tag in sorted(_tags(text), key=re.Match.start):
        if has_fence and "\n" not in tag[1]:
            continue
        if program := _program_in(tag[1], syntax, depth):
            blocks.append(Block("python", program))
    return join(blocks)


def _program_in(body: str, syntax: Syntax, depth: int) -> str:
    code = repair(body, syntax)
    return code if syntax.is_program(code) else _find(body, syntax, depth + 1)


def _from_fences(text: str, syntax: Syntax, depth: int) -> str:
    if "```" not in text and "~~~" not in text:
        return ""
    return select(markdown_blocks(text), syntax) or select(tolerant_blocks(text, syntax), syntax)


def _from_calls(text: str, syntax: Syntax, depth: int) -> str:
    programs = (_program_in(code, syntax, depth) for code in calls_in(text))
    return "\n".join(filter(None, programs))


def _from_shell(text: str, syntax: Syntax, depth: int) -> str:
    """Return the program that a command of a shell runs."""
    found = (re.sub(r"\\([\"$`\\])", r"\1", command[2]) for command in _ARGUMENT.finditer(text))
    programs = (repair(code, syntax) for code in islice(chain(_documents(text), found), _MAX_TRIES))
    return next(filter(None, programs), "")


def _documents(text: str) -> Iterator[str]:
    """Yield the documents in the commands of a shell."""
    # Invariant: no head is looked for within a document, so that time is linear.
    place = 0
    while head := _DOCUMENT.search(text, place):
        place = text.find(f"\n{head[1]}", head.end() - 1)
        if place < 0:
            return
        yield text[head.end() : place]


def _out_of_call(code: str, syntax: Syntax) -> str:
    """Return the program that is the one argument of a call of a tool, which is all that the code does."""
    tree = parse(code)
    only = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    node, calls_tool = (only.value if isinstance(only, ast.Expr) else None), False
    while isinstance(node, ast.Call):
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if len(given) != 1 or (name != "print" and name in _KNOWN_FUNCTIONS):
            return code
        calls_tool = calls_tool or name != "print"
        node = given[0]
    inner = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return inner if calls_tool and syntax.is_program(inner) and computes(inner) else code


def _of_one_file(code: str) -> str:
    """Return the code of several files without what one imports from another."""
    files = set(_FILE.findall(code))
    return _IMPORT.sub(lambda line: "" if line[1] in files else line[0], code) if files else code


def _from_scalar(text: str, syntax: Syntax, depth: int) -> str:
    """Return the program in a block scalar of YAML."""
    scalar = _SCALAR.search(text)
    return repair(scalar[1], syntax) if scalar else ""


def _from_labels(text: str, syntax: Syntax, depth: int) -> str:
    """Return the program that begins on the line of a label."""
    for label in islice(_LABEL.finditer(text), _MAX_TRIES):
        rest = _LABEL_END.split(text[label.end() :], maxsplit=1)[0]
        for candidate in (rest, rest.partition("\n")[0]):
            code = repair(candidate, syntax)
            if syntax.is_program(code) and computes(code):
                return code
    return ""


def _from_inline(text: str, syntax: Syntax, depth: int) -> str:
    """Return inline code that prints something; a name or a call in prose is not a program."""
    spans = map(itemgetter(2), islice(_INLINE.finditer(without_blocks(text)), _MAX_TRIES))
    code = "\n".join(filter(syntax.is_program, map(str.strip, spans)))
    is_complete = not used_names(code) - set(dir(builtins))
    return code if "print(" in code and is_complete and not _REFUSES.search(text) else ""


def _repaired(text: str, syntax: Syntax, depth: int) -> str:
    """Return the whole text as a program if a repair, or taking it out of its quotes, makes it one."""
    inner = unquoted(text) or ("" if "\n" in text.strip() else with_real_newlines(text))
    if inner and inner != text:
        return _program_in(inner, syntax, depth + 1)
    code = repair(without_blocks(text), syntax)
    return code if syntax.is_program(code) else ""


def _from_prose(text: str, syntax: Syntax, depth: int) -> str:
    """Return the first run of lines that is a program; a lone sentence is none."""
    lines = with_plain_characters(without_blocks(text)).split("\n")[:_MAX_PROSE_LINES]
    tries = 0
    for start, line in enumerate(lines):
        if tries == _MAX_TRIES:
            break
        end = _end_of_indentation(lines, start) if _OPENS_CODE.match(line) else start
        while end > start and tries < _MAX_TRIES:
            tries += 1
            candidate = textwrap.dedent("\n".join(lines[start:end]))
            if syntax.is_program(candidate) and computes(candidate):
                is_broken = any(map(_is_code_line, lines[end:]))  # What follows belongs to it.
                return "" if is_broken else candidate
            end = min(end - 1, start + error_line(candidate) - 1)
    return ""


def _is_prose(text: str) -> bool:
    """Return whether text is sentences, and no line of it could be one of a program, even a misspelt one."""
    lines = text.split("\n")[:_MAX_PROSE_LINES]
    return bool(_PROSE.search(text)) and not any(map(_may_be_code, lines))


def _may_be_code(line: str) -> bool:
    spend(_STEPS_OF_WORD)
    word = re.split(r"\W", line.strip(), maxsplit=1)[0][:_MAX_WORD_CHARS]
    is_near_keyword = bool(get_close_matches(word, keyword.kwlist, 1, 0.8))
    is_indented_or_quoted = line[:1] in (" ", "\t", '"', "'")
    return is_near_keyword or is_indented_or_quoted or bool(_OPENS_CODE.match(line)) or _is_code_line(line)


def _is_code_line(line: str) -> bool:
    """Return whether a line is a statement, the head of a block, or an expression whose brackets do not match."""
    text = line.strip()
    is_unfinished = sum(map(text.count, "([{")) != sum(map(text.count, ")]}"))
    if _BLOCK_HEADER.match(line) or (is_unfinished and _OPENS_EXPRESSION.search(line)):
        return True
    return len(text) <= _MAX_LINE_CHARS and parse(text) is not None and computes(text)


def _end_of_indentation(lines: Sequence[str], start: int) -> int:
    """Return the number of the first line after another one that is indented less."""
    indentation = len(lines[start]) - len(lines[start].lstrip())
    for number in range(start, len(lines)):
        line = lines[number]
        if line.strip() and len(line) - len(line.lstrip()) < indentation:
            return number
    return len(lines)
