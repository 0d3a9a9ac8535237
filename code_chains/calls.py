"""What a program imports, calls and reaches for, by full dotted names. It reads; nothing is run or imported.

It follows what people and models write: imports under other names, assignments, attributes, `getattr`, `__dict__`, and
texts put together of constants. Whoever wants to hide something can: this informs, it does not protect.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from code_chains.parsing import parse

__all__ = ["Import", "Reading", "Use", "argument", "canonical", "match", "read", "words"]

UNKNOWN = frozenset({"?"})
_NAMESPACE = "<globals>"
_GETTER = "<getter>"
_DEPTH = 60
_MOST = 50
_LONGEST_TEXT = 1000
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_LEAKED = {"os", "posix", "nt", "sys", "subprocess", "builtins", "shutil", "importlib", "socket", "ctypes"}
_IMPORTERS = {"builtins.__import__", "importlib.import_module", "importlib.__import__"}


@dataclass(frozen=True)
class Use:
    """A place where a program names something.

    Attributes:
        name: The full dotted name, e.g. `os.system` or `builtins.eval`. `?` stands for what cannot be known: `?.unlink` is
            an attribute of something, `os.?` is something of `os`. `os[]` is a collection that holds `os`.
            `?:name` is a name that the program does not define.
        line: The line, from 1.
        call: The call, where what is named is called on the spot.
    """

    name: str
    line: int
    call: ast.Call | None = field(default=None, compare=False)

    @property
    def last(self) -> str:
        """What stands behind the last dot."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Import:
    """A module, or something from one, that a program imports.

    Attributes:
        name: The full dotted name; ends with `.*` for all names, begins with a dot if relative, is `?` if computed.
        line: The line, from 1.
        node: The statement, or the call of `__import__` or `importlib.import_module`.
    """

    name: str
    line: int
    node: ast.AST = field(compare=False)


def words(text: str) -> frozenset[str]:
    """Several names, written as one text."""
    return frozenset(text.split())


@lru_cache(maxsize=4)
def read(code: str) -> Reading | None:
    r"""Read a program; None where it does not parse. The last few readings are kept, so that checks share them.

    Example:
        >>> [use.name for use in read("from os import path as p\np.join('a')").uses]
        ['os.path', 'os.path.join', 'os.path']
    """
    tree = parse(code)
    return Reading(tree) if tree else None


def canonical(name: str) -> str:
    """One name for what has several: `posix.system` is `os.system`, `_pickle.load` is `pickle.load`, `eval` a builtin."""
    root, dot, rest = name.partition(".")
    if not dot and hasattr(builtins, root):
        return f"builtins.{root}"
    if root in ("posix", "nt"):
        root = "os"
    if root.startswith("_") and root.lstrip("_") in sys.stdlib_module_names:
        root = root.lstrip("_")
    base = root
    for part in rest.split(".") if rest else ():
        base = _member(base, part)
    return base


def match(name: str, rules: Collection[str]) -> str | None:
    """The rule that a dotted name falls under: the name itself, what contains it, or what it may turn out to be.

    Example:
        >>> match("subprocess.run", {"subprocess"}), match("os.path", {"os.system"}), match("os.?", {"os.system"})
        ('subprocess', None, 'os.system')
    """
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        if (prefix := ".".join(parts[:length])) in rules:
            return prefix
    if len(parts) > 1 and parts[-1] == "?":
        return next((rule for rule in sorted(rules) if rule.startswith(name[:-1])), None)
    return None


def _member(base: str, attribute: str | None) -> str:
    if base.startswith("?"):
        return f"?.{attribute}" if attribute else "?"
    if attribute and attribute.lstrip("_") in _LEAKED and base != "builtins":
        return canonical(attribute.lstrip("_"))  # Modules carry the modules they import: random._os is os.
    return f"{base}.{attribute or '?'}"


def _holding(name: str) -> str:
    """A collection that holds something; how deep is of no interest beyond the third level."""
    return name if name.endswith("[][][]") else f"{name}[]"


class _Scope:
    """Names that are bound in one function, class, comprehension or module."""

    def __init__(self, parent: _Scope | None, *, is_class: bool = False) -> None:
        self.parent = parent
        self.is_class = is_class
        self.bound: dict[str, list[tuple[int, ast.expr | str | None]]] = {}
        self.elsewhere: dict[str, _Scope] = {}

    @property
    def module(self) -> _Scope:
        scope = self
        while scope.parent:
            scope = scope.parent
        return scope

    def bind(self, name: str, line: int, value: ast.expr | str | None) -> None:
        self.elsewhere.get(name, self).bound.setdefault(name, []).append((line, value))

    def find(self, name: str) -> _Scope | None:
        """The scope that a name is looked up in; None for builtins. Functions do not see the class around them."""
        scope: _Scope | None = self
        while scope and (name not in scope.bound or (scope.is_class and scope is not self)):
            scope = scope.elsewhere.get(name, scope.parent)
        return scope


class Reading:
    """A program, read.

    Attributes:
        tree: Its tree.
        imports: What it imports.
        uses: What it names, in order.
        defined: Names it binds, anywhere.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.imports: list[Import] = []
        self.uses: list[Use] = []
        self._module = _Scope(None)
        self._all = [self._module]
        self._stars: list[str] = []
        self._nodes: list[ast.AST] = []
        self._scopes: dict[int, _Scope] = {}
        self._targets: set[int] = set()
        self._called: dict[int, ast.Call] = {}
        self._made: list[ast.expr] = []
        self._names: dict[int, frozenset[str]] = {}
        self._texts: dict[int, str | None] = {}
        self._depth = 0
        self._walk()
        self.defined = frozenset(name for scope in self._all for name in scope.bound)
        for node in self._nodes:
            self.uses.extend(dict.fromkeys(self._uses(node)))
            self._spell_arguments(node)
        self.imports.sort(key=lambda found: found.line)
        self.uses.sort(key=lambda use: use.line)

    def names(self, node: ast.expr) -> frozenset[str]:
        """The dotted names that an expression may stand for."""
        if id(node) not in self._names:
            if self._depth > _DEPTH:
                return UNKNOWN
            self._names[id(node)] = UNKNOWN  # A name that is bound to itself ends here.
            self._depth += 1
            found = frozenset(self._resolve(node)) or UNKNOWN
            self._depth -= 1
            self._names[id(node)] = found if len(found) <= _MOST else frozenset(sorted(found)[:_MOST])
        return self._names[id(node)]

    def text(self, node: ast.expr | None) -> str | None:
        """The text that an expression of constants makes; None where it cannot be told."""
        if node is None or self._depth > _DEPTH:
            return None
        if id(node) not in self._texts:
            self._texts[id(node)] = None
            self._depth += 1
            text = self._spell(node)
            self._depth -= 1
            self._texts[id(node)] = text if text is not None and len(text) <= _LONGEST_TEXT else None
        return self._texts[id(node)]

    # First pass: which scope binds which name to what. A stack instead of recursion, for programs nested deeply.

    def _walk(self) -> None:
        stack: list[tuple[ast.AST, _Scope]] = [(self.tree, self._module)]
        while stack:
            node, scope = stack.pop()
            self._nodes.append(node)
            self._bind(node, scope)
            children = list(_children(node))
            inner = self._scope_of(node, scope) if any(new for _, new in children) else scope
            if isinstance(node, _SCOPES) and not isinstance(node, ast.ClassDef):
                self._bind_parameters(node.args, inner)
            stack.extend((child, inner if new else scope) for child, new in reversed(children))

    def _scope_of(self, node: ast.AST, parent: _Scope) -> _Scope:
        self._all.append(_Scope(parent, is_class=isinstance(node, ast.ClassDef)))
        return self._all[-1]

    def _bind(self, node: ast.AST, scope: _Scope) -> None:
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
                scope.elsewhere.update((name, outer) for name in names if outer is not scope)
            case _:
                self._bind_statement(node, scope)

    def _bind_statement(self, node: ast.AST, scope: _Scope) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind_target(target, value, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self._bind_target(target, value, scope)
            case ast.For(target=target, iter=several) | ast.AsyncFor(target=target, iter=several):
                self._bind_target(target, self._element(several), scope)
            case ast.comprehension(target=target, iter=several):
                self._bind_target(target, self._element(several), scope)
            case ast.MatchMapping(rest=str() as name):
                scope.bind(name, node.lineno, None)
            case _ if isinstance(own := getattr(node, "name", None), str) and not isinstance(node, ast.alias):
                scope.bind(own, getattr(node, "lineno", 0), None)

    def _bind_target(self, target: ast.expr, value: ast.expr, scope: _Scope) -> None:
        if isinstance(target, ast.Name):
            self._targets.add(id(target))
            scope.bind(target.id, target.lineno, value)
        elif isinstance(target, ast.Tuple | ast.List):
            pairs = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
            values = value.elts if pairs and isinstance(value, ast.Tuple | ast.List) else ()
            for number, part in enumerate(target.elts):
                if not isinstance(part, ast.Tuple | ast.List):
                    self._bind_target(part, values[number] if values else self._element(value), scope)

    def _element(self, several: ast.expr) -> ast.expr:
        element = ast.Subscript(several, ast.Constant(0), ast.Load())
        self._made.append(element)  # Kept, because what is remembered about a node goes by its identity.
        return element

    def _bind_parameters(self, arguments: ast.arguments, scope: _Scope) -> None:
        named = [*arguments.posonlyargs, *arguments.args]
        padding: list[ast.expr | None] = [None] * (len(named) - len(arguments.defaults))
        pairs = [*zip(named, [*padding, *arguments.defaults], strict=True)]
        pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        pairs += [(rest, None) for rest in (arguments.vararg, arguments.kwarg) if rest]
        for argument, default in pairs:
            scope.bind(argument.arg, argument.lineno, None)
            if default:
                scope.bind(argument.arg, argument.lineno, default)

    def _bind_imports(self, node: ast.Import | ast.ImportFrom, scope: _Scope) -> None:
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
                scope.bind(alias.asname or alias.name.partition(".")[0], node.lineno, _module(bound))

    # Second pass: what each expression stands for.

    def _uses(self, node: ast.AST) -> Iterator[Use]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (Use(_module(found.name), found.line) for found in self.imports if found.node is node)
        elif isinstance(node, ast.Match):
            yield from self._captured(node)
        elif isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            if isinstance(node, ast.Call):
                yield from self._imported(node)
            if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Load):
                call = self._called.get(id(node))
                yield from (Use(name, node.lineno, call) for name in sorted(self.names(node)) if name != "?" or call)

    def _spell_arguments(self, node: ast.AST) -> None:
        # Readings are shared between threads, so what checks ask for later is worked out now.
        if isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            for value in [*given, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]:
                self.text(value)

    def _captured(self, node: ast.Match) -> Iterator[Use]:
        for pattern in (part for case in node.cases for part in ast.walk(case.pattern)):
            if isinstance(pattern, ast.MatchClass):
                for attribute in pattern.kwd_attrs:
                    yield from (Use(_member(name, attribute), pattern.lineno) for name in self.names(node.subject))

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
                return {_member(base, attribute) for base in self.names(value)}
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
            case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values) | ast.Dict(values=values):
                return {_holding(name) for name in self._union(map(self.names, values)) if name != "?"}
        return UNKNOWN

    @staticmethod
    def _union(several: Iterable[Iterable[str]]) -> set[str]:
        return {name for names in several for name in names}

    def _lookup(self, name: str, scope: _Scope, line: int) -> Iterable[str]:
        owner = scope.find(name)
        if owner is None:
            outside = {_member(module, name) for module in self._stars}
            return outside | ({"builtins"} if name == "__builtins__" else _builtin(name))
        found = self._union(
            [value] if isinstance(value, str) else self.names(value) if value else UNKNOWN
            for _, value in owner.bound[name][-_MOST:]
        )
        is_early = scope is owner and (owner.is_class or not owner.parent) and line < owner.bound[name][0][0]
        return found | _builtin(name) if is_early else found

    def _item(self, base: str, key: str | None) -> Iterable[str]:
        """What stands behind `base[key]`."""
        if base.endswith("[]"):
            return {base[:-2]}
        if base == "sys.modules":
            return {_module(key)} if key else UNKNOWN
        if base == "builtins" or base.endswith(".__dict__"):
            return {_member(base.removesuffix(".__dict__"), key)}
        if base == _NAMESPACE and key:
            return self._lookup(key, self._module, sys.maxsize)
        return UNKNOWN

    def _returned(self, name: str, call: ast.Call) -> Iterable[str]:
        """What a call of something returns, as far as it leads to other names."""
        first = argument(call, 0, "name")
        base, _, method = name.rpartition(".")
        if base == _GETTER:
            return {_member(owner, method) for owner in self.names(first)} if first else UNKNOWN
        if name in ("builtins.globals", "builtins.locals", "builtins.vars") and not first:
            return {_NAMESPACE}
        if not first:
            return (
                {"items": {_holding(base)}, "values": {base}}.get(method, UNKNOWN) if base.endswith("[]") else UNKNOWN
            )
        if name == "builtins.vars":
            return {f"{owner}.__dict__" for owner in self.names(first)}
        if name in _IMPORTERS:
            return self._module_of(name, call)
        return self._reached(base, method, call, first)

    def _reached(self, base: str, method: str, call: ast.Call, first: ast.expr) -> Iterable[str]:
        second = self.text(argument(call, 1))
        if f"{base}.{method}" == "builtins.getattr" or (method == "__getattribute__" and len(call.args) > 1):
            return {_member(owner, second) for owner in self.names(first)}
        if method == "__getattribute__":
            return {_member(base, self.text(first))}
        if base == "operator" and method in ("attrgetter", "methodcaller"):
            return {f"{_GETTER}.{self.text(first) or '?'}"}
        if method in ("get", "pop", "__getitem__", "setdefault"):
            return self._item(base, self.text(first))
        return UNKNOWN

    def _module_of(self, importer: str, call: ast.Call) -> Iterable[str]:
        name = self.text(argument(call, 0, "name"))
        if not name:
            return UNKNOWN
        return {_module(name)} | ({_module(name.partition(".")[0])} if importer != "importlib.import_module" else set())

    def _spell(self, node: ast.expr) -> str | None:
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
            case ast.Subscript(value=value, slice=ast.Slice(None, None, ast.UnaryOp(ast.USub(), ast.Constant(1)))):
                return forward[::-1] if (forward := self.text(value)) else None
            case ast.Call(ast.Attribute(glue, "join"), [ast.List(elts=parts) | ast.Tuple(elts=parts)]):
                return self._joined(self.text(glue), parts)
        return None

    def _joined(self, glue: str | None, parts: Iterable[ast.expr]) -> str | None:
        texts = [self.text(part) for part in parts]
        return None if glue is None or None in texts else glue.join(text for text in texts if text is not None)


def _children(node: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """The nodes below one, in order, each with whether it belongs to a scope that the node opens."""
    inner: set[int] = set()
    if isinstance(node, _COMPREHENSIONS):
        inner = {id(child) for child in ast.iter_child_nodes(node)}
    elif isinstance(node, ast.Lambda):
        inner = {id(node.body)}
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        inner = {id(child) for child in node.body}
    for child in ast.iter_child_nodes(node):
        yield child, id(child) in inner


def argument(call: ast.Call, position: int, keyword: str | None = None) -> ast.expr | None:
    """What a call gives for a parameter, by position or by keyword; None where it gives nothing."""
    if len(call.args) > position:
        return call.args[position]
    return next((given.value for given in call.keywords if keyword and given.arg == keyword), None)


def _module(name: str) -> str:
    """The one name of something that was imported; unlike with `canonical`, a bare word is a module."""
    return canonical(f"{name}.").removesuffix(".") if "." not in name else canonical(name)


def _builtin(name: str) -> frozenset[str]:
    return frozenset({f"builtins.{name}" if hasattr(builtins, name) else f"?:{name}"})
