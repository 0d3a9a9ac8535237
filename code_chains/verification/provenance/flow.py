"""Where what a program shows comes from: what is given, literals of its own, or chance. Nothing is run.

Parameters and results of functions hold origins as names do, until nothing changes. So it is cheap, and errs towards more
origins.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable

from code_chains.analysis.parsing import captured_names, nodes, positional_parameters
from code_chains.verification.provenance.expressions import Expressions
from code_chains.verification.provenance.given import Given
from code_chains.verification.provenance.tokens import COMPUTED, NONE, Tokens

_MAX_ROUNDS = 5
_READING = re.compile(r"open|read_(?!sql)\w+|load\w*")
_FILE = re.compile(r"^[^:*?]*\.\w{1,8}$")


class Flow(Expressions):
    """The origins of what a program shows; see `Expressions`."""

    def __init__(
        self, tree: ast.Module, given: Given, *, files: Collection[str], names: Collection[str]
    ) -> None:
        super().__init__(tree, given, files=files, names=names)
        texts = [node.value for node in nodes(tree, ast.Constant) if isinstance(node.value, str)]
        # A name that stands in a program more than once may be that of a file of its own.
        self._written = {text.casefold() for text, count in Counter(texts).items() if count > 1}
        for _ in range(_MAX_ROUNDS):
            before, self.shown = dict(self._names), []
            self._run(tree.body, NONE)
            if before == self._names:
                break
        if tree.body and isinstance(last := tree.body[-1], ast.Expr):
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
        """Return whether a block reads a file by a name that was not given, and that the program does not write."""
        calls = (call for part in node.body for call in nodes(part, ast.Call))
        paths = {path for call in calls if (path := _read_path(call)) and path not in self._written}
        return any(not any(name in path for name in self._files) for path in paths)

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


def _read_path(call: ast.Call) -> str:
    """Return the path that a call reads if it spells that out; empty for any other."""
    match call:
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str() as path), *more]
        ) if _READING.fullmatch(name) and _FILE.search(path) and not (name == "open" and more):
            return path.casefold()
    return ""
