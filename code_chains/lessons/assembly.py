"""Programs that a learner could assemble from hints, completed with the starter and with the learner's own program."""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, permutations, product

from code_chains.analysis.parsing import names_in, nodes, parse
from code_chains.lessons.fragments import Fragments

_HOLE = re.compile(r"_{2,}|\.\.\.|…|<[a-z ]+>|\?{2,}|(?<=[ (])#.*(?:TODO|your).*", re.IGNORECASE)
_CALLED_HOLE = re.compile(r"(?:_{2,}|\.\.\.|…|\?{2,})\(")
_TELLING = (
    ast.BinOp | ast.BoolOp | ast.Call | ast.Compare | ast.IfExp | ast.ListComp | ast.GeneratorExp | ast.Lambda
)
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_JOINED = 4
_MAX_FILLS = 30
_MAX_NAMES = 20
_MAX_PAIRS = 20
_ALIKE = 0.6
_MIN_EXPRESSION = 8
_OBVIOUS = "sum len any all max min sorted list set str int float print range".split()
"""What anybody would try in the place of a function that is left out."""


def assemble(fragments: Fragments, *, learner: str, starter: str, asked: Sequence[str]) -> Iterator[str]:
    """Yield the programs, the likeliest first, some of them twice.

    Args:
        fragments: The code in all hints.
        learner: The learner's program.
        starter: The program that the learner began with.
        asked: The names that the tests use.
    """
    frame = _Frame(learner, starter, asked)
    blocks = list(fragments.blocks)
    joined = [*_runs(blocks, 2), *_runs(blocks, 3)]
    together = "\n".join([*blocks, *filter(_is_statement, fragments.inline)])
    for block in dict.fromkeys([*blocks, *joined, together]):
        yield from frame.programs(block)
    for block in blocks:
        for filled in _fill(block, fragments, learner):
            yield from frame.programs(filled)
    yield from _expressions(fragments, frame)
    yield from _repaired(fragments, learner)
    for piece in _pieces_to_insert(fragments, learner):
        yield from frame.inserted(learner, piece)
        yield from frame.inserted(starter, piece)
    for block in blocks:
        yield from frame.merged(block)


class _Frame:
    """What an assembled program is completed with."""

    def __init__(self, learner: str, starter: str, asked: Sequence[str]) -> None:
        self._asked = list(asked)
        self._functions = dict[str, ast.FunctionDef]()
        for tree in filter(None, map(parse, (starter, learner))):
            self._functions |= {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}

    @property
    def headers(self) -> list[str]:
        """The first lines of the functions that are asked for."""
        named = [node for name, node in self._functions.items() if name in self._asked]
        return [f"def {node.name}({ast.unparse(node.args)}):" for node in named or self._functions.values()]

    def programs(self, block: str) -> Iterator[str]:
        """Yield a block as a program, renamed to what is asked for; or as the body of that."""
        tree = parse(block)
        if tree is not None:
            defined = [name for name in _defined(tree) if name not in self._asked]
            if not defined:
                yield block
            for name, other in product(self._asked, defined):
                yield f"{block}\n{name} = {other}\n"
        body = textwrap.dedent(block)
        for header in self.headers:
            if tree is None or any(nodes(tree, ast.Return)) or "yield" in block:
                yield f"{header}\n{textwrap.indent(body, '    ')}\n"

    def returning(self, expression: str, imports: str = "") -> Iterator[str]:
        """Yield functions that return an expression."""
        for header in self.headers:
            yield f"{imports}{header}\n    return {expression}\n"

    def inserted(self, base: str, piece: str) -> Iterator[str]:
        """Yield a program with statements put at the beginning of its function, before the end of that, or behind it all."""
        lines = base.splitlines()
        starts = [number for number, line in enumerate(lines) if line.rstrip() in self.headers]
        for number in (starts[0] + 1, len(lines) - 1) if starts else ():
            body = textwrap.indent(textwrap.dedent(piece), "    ")
            yield "\n".join([*lines[:number], body, *lines[number:]]) + "\n"
        if not starts:
            yield f"{base}\n{piece}\n"

    def merged(self, block: str) -> Iterator[str]:
        """Yield a function of a block with each statement of the learner's function put before it."""
        tree = parse(block)
        for function in tree.body if tree else ():
            own = self._functions.get(getattr(function, "name", ""))
            if isinstance(function, ast.FunctionDef) and own:
                header = f"def {function.name}({ast.unparse(function.args)}):\n"
                for statement in own.body:
                    body = "\n".join(map(ast.unparse, [statement, *function.body]))
                    yield f"{header}{textwrap.indent(body, '    ')}\n"


def _defined(tree: ast.Module) -> Iterator[str]:
    """Yield what a block defines that could be called, methods of classes included."""
    for node in tree.body:
        if isinstance(node, _FUNCTIONS):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            methods = [item.name for item in node.body if isinstance(item, _FUNCTIONS)]
            yield from (f"{node.name}.{name}" for name in methods)
            yield from (f"{node.name}().{name}" for name in methods)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            yield ast.unparse(node.targets[0])


def _runs(blocks: list[str], size: int) -> Iterator[str]:
    """Yield blocks that follow each other, also those of different hints."""
    for start in range(min(len(blocks), _MAX_JOINED) - size + 1):
        yield "\n".join(blocks[start : start + size])


def _expressions(fragments: Fragments, frame: _Frame) -> Iterator[str]:
    """Yield functions that return an expression of a hint."""
    for line in fragments.lines:
        tree = parse(line)
        for node in tree.body if tree and len(tree.body) == 1 else ():
            value = node.value if isinstance(node, ast.Expr) else None
            if isinstance(value, _TELLING | ast.Subscript):
                imports = f"import {line.partition('.')[0]}\n" if re.match(r"\w+\.\w+\(", line) else ""
                yield from frame.returning(line, imports)

    for left, right in pairwise(fragments.inline):
        if all(map(parse, (left, right))) and max(len(left), len(right)) > _MIN_EXPRESSION:
            yield from frame.returning(f"({left}) == ({right})")


def _pieces_to_insert(fragments: Fragments, learner: str) -> Iterator[str]:
    """Yield statements that the learner lacks: blocks, all lines together, and conditions with what may follow them."""
    present = {line.strip() for line in learner.splitlines()}
    lines = [line for line in fragments.lines if line not in present and _is_statement(line)]
    simple = [line for line in lines if not line.endswith(":")]
    yield from fragments.blocks
    yield "\n".join(simple)
    yield "\n".join([*fragments.blocks, *(piece for piece in fragments.inline if piece in simple)])
    heads = [line for line in lines if line.endswith(":")]
    yield from (f"{head}\n    {line}" for head, line in product(heads[:3], simple[:4]))
    ranges = [line for line in fragments.inline if line.startswith("range(")]
    for numbers, line in product(ranges[:2], simple[:4]):
        free = names_in(parse(line) or ast.Module([], [])) - {
            *names_in(parse(numbers) or ast.Module([], [])),
            *_OBVIOUS,
        }
        yield from (f"for {name} in {numbers}:\n    {line}" for name in sorted(free))


def _fill(block: str, fragments: Fragments, learner: str) -> Iterator[str]:
    """Yield a block with its hole filled by what the learner has, or could easily think of."""
    if not _HOLE.search(block):
        return
    called = _OBVIOUS if _CALLED_HOLE.search(block) else []
    pieces = [*called, *_pieces(learner), *fragments.inline, *_pieces(_HOLE.sub("x", block))]
    names = islice(dict.fromkeys(filter(str.isidentifier, pieces)), _MAX_NAMES)
    simple = (f"{left} {sign} {right}" for left, right in permutations(names, 2) for sign in ("+=", "+"))
    indent = re.compile(r"^([ \t]*)(?:" + _HOLE.pattern + r")\s*$", re.MULTILINE | re.IGNORECASE)
    statements = [line.strip() for line in learner.splitlines() if not line.rstrip().endswith(":")]
    for piece in islice(dict.fromkeys([*statements, *pieces, *simple]), _MAX_FILLS):
        if indent.search(block):
            yield indent.sub(lambda match, piece=piece: f"{match[1]}{piece}", block)  # type: ignore[misc]
        else:
            yield _HOLE.sub(lambda match, piece=piece: piece, block)  # type: ignore[misc]


def _pieces(code: str) -> Iterator[str]:
    """Yield the expressions of a program, the longest first."""
    tree = parse(code)
    short = (node for node in (nodes(tree, ast.expr) if tree else ()) if _is_short(node))
    found = set(map(ast.unparse, short))
    yield from sorted((piece for piece in found if len(piece) < 40), key=lambda piece: (-len(piece), piece))


def _is_short(node: ast.expr) -> bool:
    """Return whether an expression may have less than forty characters; unparsing long ones takes long."""
    return node.end_lineno == node.lineno and (node.end_col_offset or 0) - node.col_offset < 80


# -- the learner's program, repaired -------------------------------------------------------------------------


def _repaired(fragments: Fragments, learner: str) -> Iterator[str]:
    """Yield the learner's program with pieces of hints in the place of its own."""
    yield from (_exchanged(learner, old, new) for old, new in fragments.diffs)
    pieces = fragments.inline
    for old, new in islice(permutations(pieces, 2), _MAX_PAIRS):
        yield from _replaced(learner, old, new)
    yield _all_replaced(learner, pieces)
    fixed = learner
    for statement in filter(_is_statement, fragments.lines):
        yield from _with_line(learner, statement, may_move=statement in pieces and len(pieces) > 1)
        fixed = _with_similar_line(fixed, statement)
        yield fixed


def _replaced(learner: str, old: str, new: str) -> Iterator[str]:
    """Yield the learner's program with each occurrence of a piece replaced, one at a time."""
    pattern = rf"(?<!\w){re.escape(old)}(?!\w)" if old.isidentifier() else re.escape(old)
    for match in re.finditer(pattern, learner):
        yield learner[: match.start()] + new + learner[match.end() :]


def _all_replaced(learner: str, pieces: Sequence[str]) -> str:
    """Return the learner's program with the first of each two pieces replaced by the second one."""
    for old, new in zip(pieces[::2], pieces[1::2], strict=False):
        learner = learner.replace(old, new, 1)
    return learner


def _exchanged(learner: str, old: str, new: str) -> str:
    """Return the learner's program with the lines of a diff exchanged, whatever their indentation."""
    lines, wanted = learner.splitlines(), list(map(str.strip, old.splitlines()))
    size = len(wanted)
    for start in range(len(lines) - size + 1):
        if list(map(str.strip, lines[start : start + size])) == wanted:
            added = _at_indent(new, lines[start])
            return "\n".join([*lines[:start], added, *lines[start + size :]]) + "\n"
    return new


def _at_indent(text: str, line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.indent(textwrap.dedent(text), indent)


def _with_line(learner: str, statement: str, *, may_move: bool) -> Iterator[str]:
    """Yield the learner's program with a line replaced by another, added, or moved if the learner has it already."""
    lines = learner.splitlines()
    others = [line for line in lines if line.strip() != statement]
    is_there = len(others) < len(lines)
    if is_there and not may_move:
        return
    for index, line in enumerate(others):
        new = _at_indent(statement, line)
        yield "\n".join([*others[:index], new, *others[index:]]) + "\n"
        if not is_there and (not line.rstrip().endswith(":") or statement.endswith(":")):
            yield "\n".join([*lines[:index], new, *lines[index + 1 :]]) + "\n"


def _with_similar_line(code: str, statement: str) -> str:
    """Return a program with the line that is most like a statement replaced by it."""
    lines = code.splitlines()
    if statement in map(str.strip, lines):
        return code
    kind = _kind(statement)
    alike = [
        difflib.SequenceMatcher(None, line.strip(), statement).ratio() + (_kind(line.strip()) == kind)
        for line in lines
    ]
    index = alike.index(max(alike, default=0.0)) if alike else 0
    if not alike or alike[index] < _ALIKE:
        return code
    return "\n".join([*lines[:index], _at_indent(statement, lines[index]), *lines[index + 1 :]]) + "\n"


def _kind(line: str) -> type[ast.AST] | None:
    """Return what kind of statement a line is; None if it is none."""
    tree = parse(f"{line}\n    pass" if line.endswith(":") else line) or parse(f"def _():\n    {line}")
    if tree is None or not tree.body:
        return None
    node = tree.body[0]
    return type(node.value) if isinstance(node, ast.Expr) else type(node)


def _is_statement(line: str) -> bool:
    """Return whether a piece may stand in a line of its own, and says more than a name or a value."""
    kind = _kind(line)
    return kind is not None and (issubclass(kind, ast.stmt) or kind is ast.Call)
