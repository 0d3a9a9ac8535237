"""Read the blocks of code in a reply and select those that are the program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING

from code_chains.analysis.replies.repairs import patched, repair
from code_chains.analysis.replies.syntax import Syntax, top_level_names, top_level_variables, used_names

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_PYTHON = {
    "python",
    "py",
    "python3",
    "py3",
    "ipython",
    "ipython3",
    "pycon",
    "execute_python",
    "tool_code",
    "code",
}
_PLAIN = {"text", "txt", "plain", "plaintext"}
_LABEL = re.compile(r"(?:lang(?:uage)?[-=]\W*)?([a-z_+#-]+)(\d(?:\.\d+)?)?", re.IGNORECASE)
_GLUED = re.compile(r"(?:python3?|py)(?=(?:print|import|from|def|for|while|class)\b)")
_ATTRIBUTE = re.compile(
    r"^[\s{:.]*(?:title|file(?:name)?|name|line_?nos|linenums|hl_lines|start\w*|caption|highlight|id|label)\s*=",
    re.IGNORECASE,
)
_OPENING = re.compile(r"^[ \t>]*(`{3,}|~{3,})(.*)$")
_CLOSING = re.compile(r"^[ \t>]*(?:`{2,}|~{3,})|(?P<last>.*?\S)[ \t]*`{3,}")
_MAX_CLOSINGS = 20
_MAX_BLOCKS = 200
_GAP_CHARS = 200
_CORRECTION = re.compile(
    r"\bcorrected\b|\bfixed\b|correct (?:version|code|program|solution)|\bfix(?:ed)? (?:that|this|it)\b|\binstead\b"
    r"|\brevised\b|(?:final|improved|updated) (?:version|code|program|solution)"
    r"|(?:complete|full|whole) (?:code|program|solution)|\bshould be\b|attempt \d|❌|✅",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(
    r"alternativ|option \w|method \w|approach \w|variant|another way|one-liner|equivalent", re.IGNORECASE
)


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        language: The label in lower case without a version; empty if there is none.
        code: The content.
        gap: The text between the block before and this one.
    """

    language: str
    code: str
    gap: str = ""

    @property
    def is_python(self) -> bool:
        """Whether the label names Python."""
        return self.language in _PYTHON


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable("inline")  # Only the blocks matter, and inline rules can be slow.


@lru_cache(4)
def _fences(text: str) -> tuple[Token, ...]:
    """Return the fences of Markdown; cached, as several readers look at the same text."""
    tokens = (token for token in _parser().parse(text) if token.type == "fence" and token.map)
    return tuple(islice(tokens, _MAX_BLOCKS))


def markdown_blocks(text: str) -> list[Block]:
    """Return the fenced blocks as Markdown defines them."""
    lines, end = text.split("\n"), 0
    blocks = []
    for token in _fences(text):
        first, after = token.map or (end, end)
        blocks.append(_block(token.info, token.content, "\n".join(lines[end:first])))
        end = after
    return blocks


def without_blocks(text: str) -> str:
    """Return text without its fenced blocks."""
    if "```" not in text and "~~~" not in text:
        return text
    lines = text.split("\n")
    for token in _fences(text):
        first, after = token.map or (0, 0)
        lines[first:after] = [""] * (after - first)
    return "\n".join(lines)


def _block(info: str, code: str, gap: str) -> Block:
    """Return a block; what follows the label on its line may be the first line of the code."""
    info = info.strip()
    glued = _GLUED.match(info)
    language, rest = "", info.lstrip("{. ")
    if label := _LABEL.match(rest):
        language, rest = label[1].lower(), rest[label.end() :]
    if glued:
        rest = info[glued.end() :]
    if language in ("diff", "patch"):
        return Block("python" if patched(code) != code else language, patched(code), gap)
    if glued or language in _PYTHON or info.endswith(".py"):
        language = "python"
    elif _is_code(info):
        language, rest = "", info
    elif language in _PLAIN:
        language = ""
    if rest and not _ATTRIBUTE.match(rest) and _is_code(rest.strip()):
        code = f"{rest.strip()}\n{code}"
    return Block(language, code, gap)


def _is_code(text: str) -> bool:
    may_be_code = not {"=", "("}.isdisjoint(text) or text.startswith(("import ", "from "))
    return may_be_code and Syntax().is_program(text)


def tolerant_blocks(text: str, syntax: Syntax) -> list[Block]:
    """Return the fenced blocks of text whose fences are not as Markdown defines them.

    A fence may be closed on the last line of its code, by a shorter one, before other text, or never; one without a label
    may close a block that was never opened. A block ends at the first of its possible ends where it is Python.
    """
    lines, blocks = text.split("\n"), list[Block]()
    number = start = 0
    while number < len(lines) and len(blocks) < _MAX_BLOCKS:
        opening = _OPENING.match(lines[number])
        if not opening:
            number += 1
            continue
        above = "\n".join(lines[start:number])
        code = repair(above, syntax) if not opening[2].strip() else ""
        if code and syntax.is_program(code):  # The fence closes what was never opened.
            blocks.append(Block("python", code, ""))
            start = number = number + 1
            continue
        info, inline, _ = opening[2].partition(opening[1])
        if inline:  # Opened and closed on one line.
            blocks.append(_block(info, "", above))
            start = number = number + 1
            continue
        body, number = _body(lines, number + 1, syntax)
        blocks.append(_block(info, body, above))
        start = number
    return blocks


def _body(lines: Sequence[str], first: int, syntax: Syntax) -> tuple[str, int]:
    """Return the code of a block whose first line is given, and the number of the line after it."""
    bodies = list[tuple[str, int]]()
    for number, last in list(_ends(lines, first)) or [(len(lines), "")]:
        body = "\n".join([*lines[first:number], last])
        bodies.append((body, number + 1))
        if repair(body, syntax):
            return bodies[-1]
    return bodies[0]


def _ends(lines: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    """Yield where a block may end: the number of a line, and what of this line belongs to the block."""
    count = 0
    for number in range(first, len(lines)):
        closing = _CLOSING.match(lines[number])
        if closing:
            yield number, closing["last"] or ""
            count += 1
        if count == _MAX_CLOSINGS:
            return


def select(blocks: Sequence[Block], syntax: Syntax) -> str:
    """Return the program in some blocks; an empty string if none of them is valid Python.

    Blocks that are labelled as Python count, or those without a label if there are none. Beside labelled blocks, one
    without a label counts if it uses what they define; otherwise it shows output or a shell.
    """
    valid = list[Block]()
    for block in blocks:
        code = repair(block.code, syntax)
        if code and not syntax.is_data(code):
            valid.append(replace(block, code=code))
    labelled = list(filter(attrgetter("is_python"), valid))
    if not labelled:
        return join([block for block in valid if not block.language and syntax.is_program(block.code)])
    defined = _definitions(map(attrgetter("code"), labelled))
    return join([block for block in valid if block.is_python or _is_usage(block, defined)])


def _is_usage(block: Block, defined: set[str]) -> bool:
    return not block.language and not defined.isdisjoint(used_names(block.code))


def join(blocks: Sequence[Block]) -> str:
    """Join blocks in order, without those that others repeat, correct or replace."""
    if len(blocks) == 1:
        return blocks[0].code.strip("\n")
    parts = list[str]()
    for block in _without_excerpts(blocks):
        code, gap = block.code.strip("\n"), block.gap[-_GAP_CHARS:]
        earlier = set[str]().union(*map(top_level_names, parts))
        continues = bool(earlier & used_names(code))
        if parts and not continues and _CORRECTION.search(gap):
            parts = [code]
        elif not parts or continues or not _ALTERNATIVE.search(gap):
            parts = [*(parts if continues else _without_redefined(parts, code)), code]
    return "\n\n".join(parts)


def _without_excerpts(blocks: Sequence[Block]) -> list[Block]:
    """Leave out blocks whose lines stand in another one already."""
    texts = [f"\n{_unindented(block.code)}\n" for block in blocks]
    whole = "\0".join(dict.fromkeys(texts))
    result, names = dict[str, Block](), set[str]()
    for number, (block, text) in enumerate(zip(blocks, texts, strict=True)):
        is_excerpt = whole.count(text) > 1
        # A call that is repeated is no excerpt: it goes on with what earlier blocks made.
        is_repeated = text in result and names.isdisjoint(used_names(block.code))
        if not is_excerpt and not is_repeated:
            result[text if text not in result else f"{text}{number}"] = block
        names |= top_level_names(block.code)
    return list(result.values())


def _unindented(code: str) -> str:
    return "\n".join(filter(None, map(str.strip, code.split("\n"))))


def _without_redefined(parts: Sequence[str], code: str) -> Sequence[str]:
    """Leave earlier parts out if code makes anew each function and class of theirs, or each variable if they have none."""
    if earlier := _definitions(parts):
        return () if earlier <= _definitions([code]) else parts
    earlier = _variables(parts)
    return () if earlier and earlier <= _variables([code]) else parts


def _definitions(programs: Iterable[str]) -> set[str]:
    """Return the names of the functions and classes of programs."""
    return set(chain.from_iterable(map(partial(top_level_names, definitions=True), programs)))


def _variables(programs: Iterable[str]) -> set[str]:
    return set(chain.from_iterable(map(top_level_variables, programs)))
