"""From a model's reply to the program in it."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

__all__ = ["extract_code"]

_THINK = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<(execute_python|execute|python|code|tool_code)>(.*?)(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_PYTHON = {"", "python", "py", "python3", "py3", "ipython", "pycon", "execute_python", "tool_code"}
_PROMPT = re.compile(r"^\s*(>>>|\.\.\.)( |$)")
_OPENING = re.compile(r"(import|from|def|class|for|while|if|with|try|print|async)\b|@|#|[A-Za-z_][\w.\[\], ]*=[^=]")
_LONGEST_PROSE = 2000
_MAGIC = re.compile(r"^\s*[%!]\w")


def extract_code(reply: str) -> str:
    """Find the Python program in a model's reply. Never raises.

    Reads fenced blocks with a real Markdown parser (indented, nested, `~~~`, unclosed, CRLF, attributes), the tags
    `<execute_python>`, `<code>` and the like, JSON with a `code` field, doctest prompts, and bare code without any
    fence. Thoughts inside `<think>` are left out. Several Python blocks are joined in order, unless only the last one
    stands alone as a corrected whole.

    Args:
        reply: The text of the reply.

    Returns:
        The program, or an empty string where there is none.
    """
    text = _THINK.sub("", reply.replace("\r\n", "\n").replace("\r", "\n"))
    for source in (_from_tags, _from_fences, _from_json, _from_prose):
        code = source(text)
        if code.strip():
            return code.strip("\n").rstrip() + "\n"
    return ""


def _from_tags(text: str) -> str:
    # A fence wins over a tag that merely stands inside a program, e.g. a string that holds "<code>".
    fence, tag = re.search(r"^\s*(```|~~~)", text, re.MULTILINE), _TAG.search(text)
    if not tag or (fence and fence.start() < tag.start()):
        return ""
    return _join([_clean(_from_fences(body) or body) for _, body, _ in _TAG.findall(text)])


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def _from_fences(text: str) -> str:
    tokens = _parser().parse(text)
    blocks = [_clean(token.content) for token in tokens if token.type == "fence" and _language(token.info) in _PYTHON]
    return _join([block for block in blocks if block.strip()])


def _language(info: str) -> str:
    words = re.split(r"[\s{},:=]+", info.strip().lower().strip("{}. "))
    return words[0].lstrip(".") if words else ""


def _join(blocks: list[str]) -> str:
    """Blocks belong together, except where a later one repeats the earlier ones in corrected form."""
    if len(blocks) > 1 and any(_defined(blocks[-1]) & _defined(block) for block in blocks[:-1]):
        return blocks[-1]
    return "\n\n".join(block.strip("\n") for block in blocks)


def _defined(code: str) -> set[str]:
    """Names of functions and classes that a block defines at its top level."""
    tree = _tree(code)
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in tree.body if isinstance(node, kinds)} if tree else set()


def _from_json(text: str) -> str:
    try:
        data = json.loads(text.strip())
    except (ValueError, RecursionError):
        return ""
    code = data.get("code") if isinstance(data, dict) else None
    return _clean(code) if isinstance(code, str) else ""


def _from_prose(text: str) -> str:
    """The longest run of lines that is a program; a lone sentence is none."""
    lines = _clean(text).split("\n")
    if _is_program("\n".join(lines)):
        return "\n".join(lines)
    lines = lines[:_LONGEST_PROSE]
    starts = [number for number, line in enumerate(lines) if _opens_code(line)][:20]
    for start in starts:
        for end in range(len(lines), start, -1):
            candidate = "\n".join(lines[start:end])
            if len(lines) - end < 40 and _is_program(candidate):
                return candidate
    return ""


def _opens_code(line: str) -> bool:
    return bool(_OPENING.match(line))


def _is_program(code: str) -> bool:
    """Whether text parses and does something: a bare name or a constant, as in "Hello", is no program."""
    tree = _tree(code)
    idle = ast.Name | ast.Constant | ast.Tuple | ast.Attribute | ast.Compare
    return bool(tree and tree.body) and not all(
        (isinstance(node, ast.Expr) and isinstance(node.value, idle)) or isinstance(node, ast.AnnAssign)
        for node in (tree.body if tree else [])
    )


def _tree(code: str) -> ast.Module | None:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _clean(code: str) -> str:
    """Take away doctest prompts with their outputs, notebook magics, and a shared indentation."""
    import textwrap

    lines = code.split("\n")
    if any(re.match(r"\s*>>> ", line) for line in lines):
        lines = [_PROMPT.sub("", line) for line in lines if _PROMPT.match(line)]
    lines = [line for line in lines if not _MAGIC.match(line)]
    return textwrap.dedent("\n".join(lines))
