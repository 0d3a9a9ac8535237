"""Where what a program shows comes from: what is given, literals of its own, or chance. Nothing is run.

Parameters and results of functions hold origins as names do, until nothing changes. So it is cheap, and errs towards more
origins.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from code_chains.analysis.dotted_names import words
from code_chains.analysis.parsing import captured_names, nodes, positional_parameters
from code_chains.verification.provenance.expressions import Expressions, is_call_of
from code_chains.verification.provenance.given import Given
from code_chains.verification.provenance.tokens import COMPUTED, KEEPING, LABELLING, NONE, Tokens

_MAX_ROUNDS = 5
_READING = re.compile(r"open|read_(?!sql)\w+|load(?!s)\w*")
_WRITING = KEEPING | words("write_text write_bytes to_excel to_json savez save")
_FILE = re.compile(r"^[^:*?]*\.\w{1,8}$")


class Flow(Expressions):
    """The origins of what a program shows; see `Expressions`."""

    def __init__(
        self, tree: ast.Module, given: Given, *, files: Collection[str], names: Collection[str]
    ) -> None:
        super().__init__(tree, given, files=files, names=names)
        self._has_own_files = any(map(_writes_file, nodes(tree, ast.Call)))
        for _ in range(_MAX_ROUNDS):
            before, self.shown, self._evaluated = dict(self._names), [], {}
            self._run(tree.body, NONE)
            if before == self._names:
                break
        if (
            tree.body
            and isinstance(last := tree.body[-1], ast.Expr)
            and not is_call_of(last.value, LABELLING)
        ):
            self._show(self._tokens(last.value), NONE)

    def _run(self, body: Iterable[ast.stmt], condition: Tokens) -> None:
        for statement in body:
            self._condition = condition
            self._statement(statement, condition)

    def _statement(self, node: ast.stmt, condition: Tokens) -> None:
        match node:
            case ast.Expr(value=value):
                self._tokens(value)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, self._named(target, value) | condition)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, self._named(target, value) | condition)
            case ast.AugAssign(target=target, value=value):
                self._bind(target, self._tokens(value) | condition | COMPUTED)
            case ast.Return(value=ast.expr() as value):
                self._add(f"{self._function}()", self._tokens(value) | condition)
            case _:
                self._block(node, condition)

    def _block(self, node: ast.stmt, condition: Tokens) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node)
            case ast.For() | ast.AsyncFor():
                tokens = self._tokens(node.iter) | condition
                self._bind(node.target, tokens)
                self._run([*node.body, *node.orelse], tokens | COMPUTED)
            case ast.While() | ast.If():
                self._run([*node.body, *node.orelse], condition | self._test(node.test))
            case ast.With() | ast.AsyncWith():
                self._open(node, condition)
            case ast.Try() | ast.TryStar():
                self._try(node, condition)
            case ast.Match():
                self._match(node, condition)
            case ast.ClassDef():
                self._run(node.body, condition)

    def _try(self, node: ast.Try | ast.TryStar, condition: Tokens) -> None:
        body = [*node.body, *node.orelse]
        # What stands in handlers is for another case, which the run decides: it is there if a file is not.
        if self._reads_nothing(node):
            body = [statement for handler in node.handlers for statement in handler.body]
        self._run([*body, *node.finalbody], condition)

    def _reads_nothing(self, node: ast.Try | ast.TryStar) -> bool:
        """Return whether a block reads a file that was not given, and no other; what it tries within is left out.

        A program that writes files may read one of its own.
        """
        parts = list(_parts_of(node.body))
        values = [part.value for part in parts if isinstance(part, ast.Constant)]
        texts = [value.casefold() for value in values if isinstance(value, str)]
        if self._has_own_files or any(name in text for text in texts for name in self._files):
            return False
        return any(isinstance(part, ast.Call) and _reads_file(part) for part in parts)

    def _open(self, node: ast.With | ast.AsyncWith, condition: Tokens) -> None:
        for item in node.items:
            tokens = self._tokens(item.context_expr) | condition
            if item.optional_vars is not None:
                self._bind(item.optional_vars, tokens)
        self._run(node.body, condition)

    def _match(self, node: ast.Match, condition: Tokens) -> None:
        tokens = self._tokens(node.subject) | condition | COMPUTED
        for case in node.cases:
            for name in captured_names(case.pattern):
                self._add(name, tokens)
            self._run(case.body, tokens)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        positional = reversed(positional_parameters(node))
        for parameter, default in zip(positional, reversed(node.args.defaults), strict=False):
            self._add(parameter, self._as_quantity(parameter, default))
        outer, self._function = self._function, node.name
        self._run(node.body, self._names[f"{node.name}?"])
        self._function = outer


def _parts_of(body: Iterable[ast.AST]) -> Iterator[Any]:
    """Yield the nodes of a block, but for those of what it tries within."""
    for node in body:
        if not isinstance(node, ast.Try | ast.TryStar):
            yield node
            yield from _parts_of(ast.iter_child_nodes(node))


def _reads_file(call: ast.Call) -> bool:
    """Return whether a call reads a file whose name it spells out."""
    match call:
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str() as path), *_]
        ):
            return _READING.fullmatch(name) is not None and _FILE.search(path) is not None
    return False


def _writes_file(call: ast.Call) -> bool:
    """Return whether a call may make a file that the program reads again."""
    match call:
        case ast.Call(func=ast.Name(id="open"), args=[_, ast.Constant(value=str() as mode), *_]):
            return mode[:1] in ("w", "a", "x")
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in _WRITING
    return False
