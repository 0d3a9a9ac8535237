"""What a program has in place of a column or row that its data may lack: a zero, a default or what stood there before."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from code_chains.analysis.columns import columns_of
from code_chains.analysis.dotted_names import words
from code_chains.analysis.parsing import names_in, nodes, parse, texts_in
from code_chains.verification.letters import folded
from code_chains.verification.provenance.columns import listed
from code_chains.verification.provenance.synonyms import holds, parts

_PARTLY_SHOWN = re.compile(r"and \d+ more$|^\s*structure:|\((?:list|dict)", re.MULTILINE)
"""What a profile says of data whose names it does not show all."""
_CHANCE = words("random rand randint randn randrange uniform normal gauss choice choices integers")
_REGROUPING = words("groupby value_counts pivot pivot_table unstack crosstab sum count to_dict T")
"""What makes columns or keys of values."""
_AGGREGATES = words("mean median max min mode sum iloc")
_SAYS_WHAT_ELSE = re.compile(
    r"\b(?:if|otherwise|else|or all|unless|wenn|falls|sonst|si|sino|sinon|se|altrimenti|jesli)\b"
)
_LEFT_TO_CHANCE = re.compile(r"random|chance|simulat|assign|draw|shuffl|\blots?\b|pick")


def unread_column(query: str, code: str, profile: str) -> str:
    r"""Return as a sentence which column a question asks for and a program goes on without; empty if there is none.

    The data has none of that name. Other rows that it takes where it finds none are told as well. A program that says so in
    words of its own is left alone, and a question that says what else to take.

    Args:
        query: The question, in any language.
        code: The program, which ran without error.
        profile: What the model was shown of the data.

    Example:
        >>> code = "df = pd.read_csv('a.csv')\nprint(df['discount'].sum() if 'discount' in df else 0)"
        >>> unread_column("What is the total discount?", code, "columns: `price` (int)")
        'Nothing in the data is called discount; the program goes on without it. There are: price.'
    """
    tree, shown, asked, columns = parse(code), folded(profile), folded(query), columns_of(profile)
    if tree is None or _SAYS_WHAT_ELSE.search(asked):
        return ""
    if other := next(_other_rows(tree, asked), ""):
        return f"The program selects `{other}`, which the question does not name."
    if not columns or _PARTLY_SHOWN.search(profile):
        return ""
    stand_ins = _stand_ins(tree, set(_tables(tree)))
    missing = (name for name, stand_in in stand_ins if _is_only_read(tree, name) and not _says(stand_in))
    made_up = () if _LEFT_TO_CHANCE.search(asked) else _made_up(tree, asked)
    for name in (*missing, *made_up):
        if folded(name) not in shown and any(holds(asked, part) for part in parts(name)):
            return f"Nothing in the data is called {name}; the program goes on without it. There are: {listed(columns)}."
    return ""


def _other_rows(tree: ast.AST, asked: str) -> Iterator[str]:
    """Yield what a program takes of other rows where it does not find those that it selects."""
    selected = {name for node in nodes(tree, ast.Assign) for name in _selection(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=table), attr="get"),
                args=[
                    ast.Constant(value=str() as key),
                    ast.Subscript(slice=ast.Constant(value=int())) as other,
                ],
            ) if table in names_in(other) and not any(texts_in(other)):
                if any(holds(asked, part) for part in parts(key)):
                    yield ast.unparse(other)
            case ast.IfExp(test=test, body=ast.Subscript() | ast.Call(), orelse=other) if (
                _tested_for_rows(test) in selected
            ):
                if _AGGREGATES & {part.attr for part in nodes(other, ast.Attribute)}:
                    yield ast.unparse(other)


def _selection(node: ast.Assign) -> Iterator[str]:
    """Yield the name that an assignment gives to rows of a table that are compared with something."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if any(
            any(nodes(part.slice, ast.Compare)) for part in nodes(value, ast.Subscript)
        ):
            yield name


def _tested_for_rows(test: ast.expr) -> str:
    """Return the name of what a condition asks whether it has rows; empty for other conditions."""
    match test:
        case (
            ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)])
            | ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(value=ast.Name(id=name), attr="empty"))
            | ast.Compare(
                left=ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]),
                ops=[ast.Gt()],
                comparators=[ast.Constant(value=0)],
            )
        ):
            return name
    return ""


def _made_up(tree: ast.AST, asked: str) -> Iterator[str]:
    """Yield the columns that a program adds by chance, or with one value of its own for all, other than to count by."""
    for node in nodes(tree, ast.Assign):
        match node:
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=str() as name))], value=value):
                called = {getattr(part.func, "attr", "") for part in nodes(value, ast.Call)}
                is_chance = bool(called & _CHANCE) and not any(nodes(value, ast.Subscript))
                is_own = isinstance(value, ast.Constant) and value.value not in (0, 1, None, "")
                is_same = (
                    is_own
                    and _times_written(tree, name) == 1
                    and folded(ast.unparse(value).strip("'")) not in asked
                )
                if is_chance or is_same:
                    yield name


def _times_written(tree: ast.AST, name: str) -> int:
    """Return how often a program has a text, but for where it is only looked up."""
    return sum(constant.value == name for constant in nodes(tree, ast.Constant)) - [*_looked_up(tree)].count(
        name
    )


def _tables(tree: ast.AST) -> Iterator[str]:
    """Yield the names of tables that a program reads, and of rows: not of counts, whose keys are values and not columns."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value):
                called = {part.attr for part in nodes(value, ast.Attribute)}
                if any(method.startswith("read_") for method in called) and not called & _REGROUPING:
                    yield name
            case ast.For(target=ast.Name(id=name)) | ast.comprehension(target=ast.Name(id=name)):
                yield name


def _is_of(node: ast.expr, tables: Collection[str]) -> bool:
    """Return whether an expression is a table or row, its columns, or where its cells are looked up."""
    while isinstance(node, ast.Attribute) and node.attr in ("columns", "loc", "at"):
        node = node.value
    return isinstance(node, ast.Name) and node.id in tables


def _stand_ins(tree: ast.AST, tables: Collection[str]) -> Iterator[tuple[str, Sequence[ast.AST]]]:
    """Yield the columns that a program looks up where they may be missing, with what happens then."""
    for node in ast.walk(tree):
        match node:
            case ast.Try(body=body, handlers=handlers):
                caught = [statement for handler in handlers for statement in handler.body]
                subscripts = (part for statement in body for part in nodes(statement, ast.Subscript))
                for part in subscripts:
                    yield from ((name, caught) for name in _keys(part) if _is_of(part.value, tables))
            case ast.If(test=ast.Compare() as test, body=body, orelse=orelse) if _is_of(
                test.comparators[0], tables
            ):
                yield from _tested(test, body, orelse)
            case ast.IfExp(test=ast.Compare() as test, body=value, orelse=other) if _is_of(
                test.comparators[0], tables
            ):
                yield from _tested(test, [value], [other])
            case ast.Call(
                func=ast.Attribute(value=row, attr="get"), args=[ast.Constant(value=str() as name), default]
            ) if _is_of(row, tables):
                yield name, [default]


def _tested(
    test: ast.Compare, held: Sequence[ast.AST], other: Sequence[ast.AST]
) -> Iterator[tuple[str, Sequence[ast.AST]]]:
    match test:
        case ast.Compare(left=ast.Constant(value=str() as name), ops=[ast.In()]) if other:
            yield name, other
        case ast.Compare(left=ast.Constant(value=str() as name), ops=[ast.NotIn()]):
            yield name, held


def _keys(node: ast.Subscript) -> list[str]:
    """Return the texts that an item is looked up by."""
    keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    texts = (key.value for key in keys if isinstance(key, ast.Constant))
    return [text for text in texts if isinstance(text, str) and isinstance(node.ctx, ast.Load)]


def _looked_up(tree: ast.AST) -> Iterator[str]:
    return itertools.chain.from_iterable(map(_keys, nodes(tree, ast.Subscript)))


def _is_only_read(tree: ast.AST, name: str) -> bool:
    """Return whether a program has a text only where it looks it up, and so makes nothing of that name itself."""
    read = [*_looked_up(tree)]
    for node in ast.walk(tree):
        match node:
            case (
                ast.Compare(left=ast.Constant(value=str() as text), ops=[ast.In() | ast.NotIn()])
                | ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as text), *_])
                | ast.Assign(
                    targets=[ast.Subscript(slice=ast.Constant(value=str() as text))], value=ast.Constant()
                )
            ):
                read.append(text)
    return read.count(name) == sum(constant.value == name for constant in nodes(tree, ast.Constant))


def _says(statements: Iterable[ast.AST]) -> bool:
    """Return whether there are words, or an error, in what happens without a column, but for the names of others."""
    parts_of = [node for statement in statements for node in ast.walk(statement)]
    keys = {part for node in parts_of if isinstance(node, ast.Subscript) for part in ast.walk(node.slice)}
    texts = (node.value for node in parts_of if isinstance(node, ast.Constant) and node not in keys)
    has_words = any(isinstance(text, str) and re.search(r"[^\W\d_]", text) for text in texts)
    return has_words or any(isinstance(node, ast.Raise) for node in parts_of)
