"""Bindings: which scope of a program binds which name to what."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from code_chains.analysis.dotted_names import module_name
from code_chains.analysis.work import spend

_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True)
class Import:
    """An import of a module, or of something from one.

    Attributes:
        name: The full dotted name; ends with `.*` for all names, begins with a dot if relative, is `?` if
            computed.
        line: The line, from 1.
        node: The statement, or the call of `__import__` or `importlib.import_module`.
    """

    name: str
    line: int
    node: ast.AST = field(compare=False)


class Scope:
    """The names bound in one function, class, comprehension or module."""

    def __init__(self, parent: Scope | None, *, is_class: bool = False) -> None:
        self.parent = parent
        self.is_class = is_class
        self.bound: dict[str, list[tuple[int, ast.expr | str | None]]] = {}
        self.elsewhere: dict[str, Scope] = {}

    @property
    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.parent:
            scope = scope.parent
        return scope

    def bind(self, name: str, line: int, value: ast.expr | str | None) -> None:
        """Bind a name in this scope, or in the one that `global` or `nonlocal` names."""
        self.elsewhere.get(name, self).bound.setdefault(name, []).append((line, value))

    def find(self, name: str) -> Scope | None:
        """Return the scope that binds a name; None for builtins. Functions do not see the class around them."""
        scope: Scope | None = self
        while scope and (name not in scope.bound or (scope.is_class and scope is not self)):
            scope = scope.elsewhere.get(name, scope.parent)
        return scope


class Bindings:
    """The scopes of a program with the names that they bind.

    Attributes:
        tree: Its tree.
        nodes: All nodes of the tree, parents before children.
        imports: Its imports.
        defined: All names that it binds.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.imports: list[Import] = []
        self._module = Scope(None)
        self._all = [self._module]
        self._stars: list[str] = []
        self.nodes: list[ast.AST] = []
        self._scopes: dict[int, Scope] = {}
        self._targets: set[int] = set()
        self._called: dict[int, ast.Call] = {}
        self._made: list[ast.expr] = []
        self._walk()
        self.defined: frozenset[str] = frozenset().union(*map(attrgetter("bound"), self._all))

    def _walk(self) -> None:
        # A stack instead of recursion, for deeply nested programs.
        stack: list[tuple[ast.AST, Scope]] = [(self.tree, self._module)]
        while stack:
            spend()
            node, scope = stack.pop()
            self.nodes.append(node)
            self._bind(node, scope)
            children = list(_children(node))
            opens_scope = any(new for _, new in children)
            inner = self._scope_of(node, scope) if opens_scope else scope
            if isinstance(node, _SCOPES) and not isinstance(node, ast.ClassDef):
                self._bind_parameters(node.args, inner)
            scopes = (scope, inner)
            stack.extend((child, scopes[new]) for child, new in reversed(children))

    def _scope_of(self, node: ast.AST, parent: Scope) -> Scope:
        self._all.append(Scope(parent, is_class=isinstance(node, ast.ClassDef)))
        return self._all[-1]

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Name(id=name, ctx=context):
                self._scopes[id(node)] = scope
                if not isinstance(context, ast.Load) and id(node) not in self._targets:
                    scope.bind(name, node.lineno, None)
            case ast.Call(func=function):
                self._called[id(function)] = node
            case ast.Import() | ast.ImportFrom():
                self._bind_imports(node, scope)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                outer = scope.module if isinstance(node, ast.Global) or not scope.parent else scope.parent
                if outer is not scope:
                    scope.elsewhere.update(dict.fromkeys(names, outer))
            case _:
                self._bind_statement(node, scope)

    def _bind_statement(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind_target(target, value, scope)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
            ):
                self._bind_target(target, value, scope)
            case ast.For(target=target, iter=iterable) | ast.AsyncFor(target=target, iter=iterable):
                self._bind_target(target, self._element(iterable), scope)
            case ast.comprehension(target=target, iter=iterable):
                self._bind_target(target, self._element(iterable), scope)
            case ast.MatchMapping(rest=str() as name):
                scope.bind(name, node.lineno, None)
            case _ if isinstance(own := getattr(node, "name", None), str) and not isinstance(node, ast.alias):
                scope.bind(own, getattr(node, "lineno", 0), None)

    def _bind_target(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            self._targets.add(id(target))
            scope.bind(target.id, target.lineno, value)
        elif isinstance(target, ast.Tuple | ast.List):
            pairs = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
            values = value.elts if pairs and isinstance(value, ast.Tuple | ast.List) else ()
            for number, part in enumerate(target.elts):
                if not isinstance(part, ast.Tuple | ast.List):
                    self._bind_target(part, values[number] if values else self._element(value), scope)

    def _element(self, iterable: ast.expr) -> ast.expr:
        element = ast.Subscript(iterable, ast.Constant(0), ast.Load())
        self._made.append(element)  # Kept, because what is remembered about a node goes by its identity.
        return element

    def _bind_parameters(self, arguments: ast.arguments, scope: Scope) -> None:
        named = [*arguments.posonlyargs, *arguments.args]
        padding: list[ast.expr | None] = [None] * (len(named) - len(arguments.defaults))
        pairs = [*zip(named, [*padding, *arguments.defaults], strict=True)]
        pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        pairs += zip(filter(None, (arguments.vararg, arguments.kwarg)), itertools.repeat(None), strict=False)
        for argument, default in pairs:
            scope.bind(argument.arg, argument.lineno, None)
            if default:
                scope.bind(argument.arg, argument.lineno, default)

    def _bind_imports(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.name
                bound = name if alias.asname else name.partition(".")[0]
            else:
                name = bound = "." * node.level + f"{node.module or ''}.{alias.name}".lstrip(".")
            self.imports.append(Import(name, node.lineno, node))
            if name.startswith("."):
                scope.bind(alias.asname or alias.name, node.lineno, None)
            elif alias.name == "*":
                self._stars.append(name[:-2])
            else:
                scope.bind(alias.asname or alias.name.partition(".")[0], node.lineno, module_name(bound))


def _children(node: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Yield the child nodes in order, each with whether it belongs to a scope that the node opens."""
    inner: set[int] = set()
    if isinstance(node, _COMPREHENSIONS):
        inner = set(map(id, ast.iter_child_nodes(node)))
    elif isinstance(node, ast.Lambda):
        inner = {id(node.body)}
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        inner = set(map(id, node.body))
    for child in ast.iter_child_nodes(node):
        yield child, id(child) in inner
