"""Extract the program from a model's reply."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from typing import TYPE_CHECKING

from code_chains.analysis.parsing import parse

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

__all__ = ["extract_code", "extract_fenced"]

_THINK = re.compile(
    r"^[ \t]*<(think|thinking|reasoning)>.*?(</\1>|\Z)|\A.*?^[ \t]*</think>",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)
_TAG = re.compile(
    r"<(execute_python|execute|python|code|tool_code)>(.*?)(</\1>|\Z)", re.DOTALL | re.IGNORECASE
)
_PYTHON = {"python", "py", "python3", "py3", "ipython", "pycon", "execute_python", "tool_code"}
_PROMPT = re.compile(r"^\s*(>>>|\.\.\.)( |$)")
_OPENING = re.compile(
    r"(import|from|def|class|for|while|if|with|try|print|async)\b|@|#|[A-Za-z_][\w.\[\], ]*=[^=]"
)
_MAX_REPLY_CHARS = 200_000
_MAX_PROSE_LINES = 2000
_MAX_PARSES = 60
_LEFTOVER = re.compile(r"\A(?:\s*(?:(?:```|~~~)\s*\w*|python3?|py)[ \t]*\n)+", re.IGNORECASE)
_MAGIC = re.compile(r"^\s*[%!]\w")


def extract_code(reply: str) -> str:
    """Find the Python program in a model's reply. Never raises.

    Reads fenced blocks with a real Markdown parser (indented, nested, `~~~`, unclosed, CRLF, attributes), the
    tags `<execute_python>`, `<code>` and the like, JSON with a `code` field, doctest prompts, and bare code
    without any fence. Thoughts inside `<think>` are left out. Several Python blocks are joined in order,
    unless the last one defines anew all that the earlier ones defined. Of a reply longer than 200,000
    characters the beginning is read.

    Args:
        reply: The text of the reply.

    Returns:
        The program, or an empty string where there is none.
    """
    text = _THINK.sub("", reply[:_MAX_REPLY_CHARS].replace("\r\n", "\n").replace("\r", "\n"))
    for source in (_from_tags, _from_fences, _from_json, _from_prose):
        code = source(text)
        if code.strip():
            return code.strip("\n").rstrip() + "\n"
    return ""


def extract_fenced(reply: str, language: str) -> str:
    """Find a program in another language than Python in a model's reply. Never raises.

    Args:
        reply: The text of the reply.
        language: The word after the fence, e.g. `sql`. Blocks without a word count where none has it.

    Returns:
        The blocks in order; the whole reply where it has no fences at all.
    """
    text = _THINK.sub("", reply[:_MAX_REPLY_CHARS].replace("\r\n", "\n").replace("\r", "\n"))
    fences = [token for token in _parser().parse(text) if token.type == "fence"]
    tagged = [token.content for token in fences if _language(token.info) == language]
    blocks = (
        tagged or [token.content for token in fences if not token.info.strip()] or ([] if fences else [text])
    )
    code = "\n".join(block.strip() for block in blocks)
    return code + "\n" if code.strip() else ""


def _from_tags(text: str) -> str:
    # A fence wins over a tag that merely stands inside a program, e.g. a string that holds "<code>".
    fence, tag = _FENCE.search(text), _TAG.search(text)
    if not tag or (fence and (fence.start() < tag.start() or "\n" not in tag[2])):
        return ""
    return _join([_clean(_from_fences(body) or body) for _, body, _ in _TAG.findall(text)])


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable("inline")  # Only the blocks matter, and inline rules can be slow.


def _from_fences(text: str) -> str:
    fences = [token for token in _parser().parse(text) if token.type == "fence"]
    tagged = [token.content for token in fences if _language(token.info) in _PYTHON]
    # Blocks without a language are code only where no block says that it is Python: else they show output or
    # a shell.
    blocks = map(_clean, tagged or [token.content for token in fences if not token.info.strip()])
    return _join([block for block in blocks if block.strip()])


def _language(info: str) -> str:
    words = re.split(r"[\s{},:=]+", info.strip().lower().strip("{}. "))
    return words[0].lstrip(".") if words else ""


def _join(blocks: list[str]) -> str:
    """Join blocks, unless the last one redefines all that the earlier ones defined."""
    earlier = set().union(*map(_defined, blocks[:-1])) if len(blocks) > 1 else set()
    if earlier and earlier <= _defined(blocks[-1]):
        return blocks[-1]
    return "\n\n".join(block.strip("\n") for block in blocks)


def _defined(code: str) -> set[str]:
    """Return the functions and classes that a block defines at its top level."""
    tree = parse(code)
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in tree.body if isinstance(node, kinds)} if tree else set()


def _from_json(text: str) -> str:
    fences = [token.content for token in _parser().parse(text) if token.type == "fence"]
    text = fences[0] if fences else text
    try:
        data = json.loads(text.strip())
    except (ValueError, RecursionError):
        return ""
    code = data.get("code") if isinstance(data, dict) else None
    return _clean(code) if isinstance(code, str) else ""


def _from_prose(text: str) -> str:
    """Return the longest run of lines that is a program; a lone sentence is none."""
    lines = _clean(text).split("\n")
    if _is_program("\n".join(lines)):
        return "\n".join(lines)
    lines = lines[:_MAX_PROSE_LINES]
    parses = 0
    for start in (number for number, line in enumerate(lines) if _opens_code(line)):
        end = len(lines)
        while end > start and parses < _MAX_PARSES:
            parses += 1
            candidate = "\n".join(lines[start:end])
            if _is_program(candidate):
                return candidate
            end = min(end - 1, start + _line_of_error(candidate) - 1)
    return ""


def _line_of_error(code: str) -> int:
    """Return the line, from 1, at which a text stops being Python."""
    try:
        compile(code, "<reply>", "exec", ast.PyCF_ONLY_AST, True)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1
    return len(code) + 1


def _opens_code(line: str) -> bool:
    return bool(_OPENING.match(line))


def _is_program(code: str) -> bool:
    """Return whether text parses and has an effect: a bare name or a constant, as in "Hello", is no program."""
    tree = parse(code)
    idle = ast.Name | ast.Constant | ast.Tuple | ast.Attribute | ast.Compare
    return bool(tree and tree.body) and not all(
        (isinstance(node, ast.Expr) and isinstance(node.value, idle)) or isinstance(node, ast.AnnAssign)
        for node in (tree.body if tree else [])
    )


def _clean(code: str) -> str:
    """Take away a shared indentation and what is left of a fence; where it is no Python yet, also prompts and magics."""
    import textwrap

    code = _LEFTOVER.sub("", textwrap.dedent(code))
    if parse(code):
        return code
    lines = code.split("\n")
    if any(line.startswith(">>> ") for line in lines):
        lines = [_PROMPT.sub("", line) for line in lines if _PROMPT.match(line)]
    return "\n".join(line for line in lines if not _MAGIC.match(line))
