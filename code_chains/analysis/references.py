"""What a program imports, calls and refers to, by full dotted names. Nothing is run or imported.

It follows aliased imports, assignments, attributes, `getattr`, `__dict__`, and strings composed of constants.
A determined author can hide references: this informs, it does not protect.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from operator import attrgetter

from code_chains.analysis.bindings import Bindings, Import, Scope
from code_chains.analysis.dotted_names import (
    UNKNOWN,
    builtin,
    canonical,
    collection_of,
    match,
    member,
    module_name,
    words,
)
from code_chains.analysis.parsing import nodes, parse
from code_chains.analysis.work import spend

__all__ = ["Import", "Reading", "Use", "argument", "arguments_of", "canonical", "match", "read", "words"]

_NAMESPACE = "<globals>"
_GETTER = "<getter>"
_MAX_DEPTH = 60
_MAX_NAMES = 50
_MAX_TEXT_CHARS = 1000
_IMPORTERS = {"builtins.__import__", "importlib.import_module", "importlib.__import__"}


@dataclass(frozen=True)
class Use:
    """A reference in a program.

    Attributes:
        name: The full dotted name, e.g. `os.system` or `builtins.eval`. `?` stands for the unknown:
            `?.unlink` is an attribute of something, `os.?` is something of `os`. `os[]` is a collection that
            holds `os`. `?:name` is a name that the program does not define.
        line: The line, from 1.
        call: The call, if the name is called directly.
    """

    name: str
    line: int
    call: ast.Call | None = field(default=None, compare=False)

    @property
    def last(self) -> str:
        """The part after the last dot."""
        return self.name.rpartition(".")[2]


@lru_cache(maxsize=4)
def read(code: str) -> Reading | None:
    r"""Read a program; None where it does not parse. The last few readings are kept, so that checks share them.

    Example:
        >>> [use.name for use in read("from os import path as p\np.join('a')").uses]
        ['os.path', 'os.path.join', 'os.path']
    """
    tree = parse(code)
    return Reading(tree) if tree else None


class Reading(Bindings):
    """A program with its imports and references.

    Attributes:
        tree: Its tree.
        nodes: All nodes of the tree, parents before children; each check looks at these instead of the tree.
        imports: Its imports.
        uses: Its references, in order.
        defined: All names that it binds.
    """

    def __init__(self, tree: ast.Module) -> None:
        super().__init__(tree)
        self.uses: list[Use] = []
        self._names: dict[int, frozenset[str]] = {}
        self._texts: dict[int, str | None] = {}
        self._depth = 0
        self._imports_of: dict[ast.AST, list[Import]] = defaultdict(list)
        for item in self.imports:
            self._imports_of[item.node].append(item)
        for node in self.nodes:
            self.uses.extend(dict.fromkeys(self._uses(node)))
            self._evaluate_arguments(node)
        self.imports.sort(key=lambda imported: imported.line)
        self.uses.sort(key=lambda use: use.line)

    def names(self, node: ast.expr) -> frozenset[str]:
        """Return the dotted names that an expression may stand for."""
        spend()
        if id(node) not in self._names:
            if self._depth > _MAX_DEPTH:
                return UNKNOWN
            self._names[id(node)] = UNKNOWN  # A name that is bound to itself ends here.
            self._depth += 1
            names = frozenset(self._resolve(node)) or UNKNOWN
            self._depth -= 1
            self._names[id(node)] = (
                names if len(names) <= _MAX_NAMES else frozenset(sorted(names)[:_MAX_NAMES])
            )
        return self._names[id(node)]

    def text(self, node: ast.expr | None) -> str | None:
        """Return the string that an expression of constants yields; None if it is unknown."""
        spend()
        if node is None or self._depth > _MAX_DEPTH:
            return None
        if id(node) not in self._texts:
            self._texts[id(node)] = None
            self._depth += 1
            text = self._evaluate_text(node)
            self._depth -= 1
            self._texts[id(node)] = text if text is not None and len(text) <= _MAX_TEXT_CHARS else None
        return self._texts[id(node)]

    def _uses(self, node: ast.AST) -> Iterator[Use]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for item in self._imports_of[node]:
                yield Use(module_name(item.name), item.line)
        elif isinstance(node, ast.Match):
            yield from self._captured(node)
        elif isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            if isinstance(node, ast.Call):
                yield from self._imported(node)
            if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Load):
                call = self._called.get(id(node))
                names = self.names(node) if call else self.names(node) - UNKNOWN
                for name in sorted(names):
                    yield Use(name, node.lineno, call)

    def _evaluate_arguments(self, node: ast.AST) -> None:
        # Readings are shared between threads, so what checks ask for later is worked out now.
        if isinstance(node, ast.Call):
            for value in arguments_of(node):
                self.text(value)
            if isinstance(node.func, ast.Attribute):
                self.text(node.func.value)

    def _captured(self, node: ast.Match) -> Iterator[Use]:
        for case in node.cases:
            for pattern in nodes(case.pattern, ast.MatchClass):
                for attribute in pattern.kwd_attrs:
                    for name in _members(self.names(node.subject), attribute):
                        yield Use(name, pattern.lineno)

    def _imported(self, node: ast.Call) -> Iterator[Use]:
        if self.names(node.func) & _IMPORTERS:
            name = self.text(argument(node, 0, "name")) or "?"
            self.imports.append(Import(name, node.lineno, node))
            if name == "?":
                yield Use("importlib.import_module(?)", node.lineno, node)

    def _resolve(self, node: ast.expr) -> Iterable[str]:
        match node:
            case ast.Name(id=name):
                return self._lookup(name, self._scopes.get(id(node), self._module), node.lineno)
            case ast.Attribute(value=value, attr=attribute):
                return _members(self.names(value), attribute)
            case ast.Subscript(value=value, slice=key):
                return self._union(self._item(base, self.text(key)) for base in self.names(value))
            case ast.Call():
                return self._union(self._returned(name, node) for name in self.names(node.func))
            case ast.NamedExpr(value=value) | ast.Starred(value=value) | ast.Await(value=value):
                return self.names(value)
            case ast.IfExp(body=body, orelse=orelse):
                return self.names(body) | self.names(orelse)
            case ast.BoolOp(values=values):
                return self._union(map(self.names, values))
            case (
                ast.List(elts=values)
                | ast.Tuple(elts=values)
                | ast.Set(elts=values)
                | ast.Dict(values=values)
            ):
                return set(map(collection_of, self._union(map(self.names, values)) - UNKNOWN))
        return UNKNOWN

    @staticmethod
    def _union(iterable: Iterable[Iterable[str]]) -> set[str]:
        return set(chain.from_iterable(iterable))

    def _lookup(self, name: str, scope: Scope, line: int) -> Iterable[str]:
        owner = scope.find(name)
        if owner is None:
            outside = _members(self._stars, name)
            return outside | ({"builtins"} if name == "__builtins__" else builtin(name))
        names = set[str]()
        for _, value in owner.bound[name][-_MAX_NAMES:]:
            if isinstance(value, str):
                names.add(value)
            else:
                names |= self.names(value) if value else UNKNOWN
        is_early = scope is owner and (owner.is_class or not owner.parent) and line < owner.bound[name][0][0]
        return names | builtin(name) if is_early else names

    def _item(self, base: str, key: str | None) -> Iterable[str]:
        """Return what `base[key]` stands for."""
        if base.endswith("[]"):
            return {base[:-2]}
        if base == "sys.modules":
            return {module_name(key)} if key else UNKNOWN
        if base == "builtins" or base.endswith(".__dict__"):
            return {member(base.removesuffix(".__dict__"), key)}
        if base == _NAMESPACE and key:
            return self._lookup(key, self._module, sys.maxsize)
        return UNKNOWN

    def _returned(self, name: str, call: ast.Call) -> Iterable[str]:
        """Return what a call returns, as far as it leads to other names."""
        first = argument(call, 0, "name")
        base, _, method = name.rpartition(".")
        if base == _GETTER:
            return _members(self.names(first), method) if first else UNKNOWN
        if name in ("builtins.globals", "builtins.locals", "builtins.vars") and not first:
            return {_NAMESPACE}
        if not first:
            items = {"items": {collection_of(base)}, "values": {base}} if base.endswith("[]") else {}
            return items.get(method, UNKNOWN)
        if name == "builtins.vars":
            return set(map("{}.__dict__".format, self.names(first)))
        if name in _IMPORTERS:
            return self._module_of(name, call)
        return self._reached(base, method, call, first)

    def _reached(self, base: str, method: str, call: ast.Call, first: ast.expr) -> Iterable[str]:
        second = self.text(argument(call, 1))
        if f"{base}.{method}" == "builtins.getattr" or (method == "__getattribute__" and len(call.args) > 1):
            return _members(self.names(first), second)
        if method == "__getattribute__":
            return {member(base, self.text(first))}
        if base == "operator" and method in ("attrgetter", "methodcaller"):
            return {f"{_GETTER}.{self.text(first) or '?'}"}
        if method in ("get", "pop", "__getitem__", "setdefault"):
            return self._item(base, self.text(first))
        return UNKNOWN

    def _module_of(self, importer: str, call: ast.Call) -> Iterable[str]:
        name = self.text(argument(call, 0, "name"))
        if not name:
            return UNKNOWN
        return {module_name(name)} | (
            {module_name(name.partition(".")[0])} if importer != "importlib.import_module" else set()
        )

    def _evaluate_text(self, node: ast.expr) -> str | None:
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined("", [left, right])
            case ast.JoinedStr(values=parts):
                return self._joined("", parts)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self.text(value)
            case ast.Name(id=name):
                owner = self._scopes.get(id(node), self._module).find(name)
                only = owner.bound[name][0][1] if owner and len(owner.bound[name]) == 1 else None
                return self.text(only) if isinstance(only, ast.expr) else None
            case ast.Subscript(
                value=value, slice=ast.Slice(None, None, ast.UnaryOp(ast.USub(), ast.Constant(1)))
            ):
                return forward[::-1] if (forward := self.text(value)) else None
            case ast.Call(ast.Attribute(glue, "join"), [ast.List(elts=parts) | ast.Tuple(elts=parts)]):
                return self._joined(self.text(glue), parts)
        return None

    def _joined(self, glue: str | None, parts: Iterable[ast.expr]) -> str | None:
        texts = list[str]()
        for part in parts:
            if (text := self.text(part)) is None:
                return None
            texts.append(text)
        return None if glue is None else glue.join(texts)


def _members(owners: Iterable[str], attribute: str | None) -> set[str]:
    return {member(owner, attribute) for owner in owners}


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """Return all arguments of a call."""
    return [*call.args, *map(attrgetter("value"), call.keywords)]


def argument(call: ast.Call, position: int, keyword: str | None = None) -> ast.expr | None:
    """Return the argument of a call for a parameter, by position or keyword; None if there is none."""
    if len(call.args) > position:
        return call.args[position]
    for item in call.keywords:
        if keyword and item.arg == keyword:
            return item.value
    return None


_MAKING_CODE = words(
    "builtins.exec builtins.eval builtins.compile pickle.loads marshal.loads code.InteractiveInterpreter"
    " code.InteractiveConsole runpy.run_path runpy.run_module"
)


def makes_code(code: str) -> bool:
    """Return whether a program makes code from text, so that nothing is known of what it computes."""
    reading = read(code)
    return reading is not None and any(match(use.name, _MAKING_CODE) for use in reading.uses)
