"""What the modules of a package define, and under which names a program should import it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from code_chains.retrieval.package_files import Module
from code_chains.retrieval.signatures import Function, decorators

__all__ = ["Definition", "Definitions", "literal", "statements"]

MAX_HOPS, MAX_BASES = 50, 20
"""Re-exports of re-exports that are followed, and base classes of a class that are looked at."""
MAX_LITERAL_CHARS = 200
_ALL = "__all__"


@dataclass(eq=False)
class Definition:
    """A function, class or constant of a module.

    Attributes:
        module: The module that defines it.
        name: Its name there.
        nodes: Where it is defined; of a function with overloads each of them.
    """

    module: str
    name: str
    nodes: list[ast.stmt] = field(default_factory=list)

    @property
    def functions(self) -> list[Function]:
        """The functions that are called: the overloads if there are any, else the last definition."""
        found = [node for node in self.nodes if isinstance(node, Function)]
        return [node for node in found if "overload" in decorators(node)] or found[-1:]

    @property
    def class_node(self) -> ast.ClassDef | None:
        """The last class of this name."""
        last = self.nodes[-1]
        return last if isinstance(last, ast.ClassDef) else None

    @property
    def doc(self) -> str:
        """The docstring; empty if there is none."""
        nodes = [node for node in self.nodes if isinstance(node, Function | ast.ClassDef)]
        return next(filter(None, map(ast.get_docstring, reversed(nodes))), "") or ""


@dataclass
class _Names:
    """The names of a module.

    Attributes:
        module: The module.
        exported: The content of `__all__`; None if there is none, or if it is computed.
        defined: Its own definitions.
        imported: Names from elsewhere, with their module and their name there; an empty name is the module itself.
        starred: Modules from which it imports everything.
    """

    module: Module
    exported: frozenset[str] | None
    defined: dict[str, Definition] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    starred: list[str] = field(default_factory=list)

    def is_public(self, name: str) -> bool:
        if self.exported is not None:
            return name in self.exported
        return not name.startswith("_")


class Definitions:
    """The definitions of all modules of a package, and the public names that they have.

    Args:
        modules: The modules.
    """

    def __init__(self, modules: Sequence[Module]) -> None:
        self._names = {module.name: _names(module) for module in modules}
        self._resolved: dict[tuple[str, str], Definition | None] = {}

    def public(self) -> Iterator[tuple[Definition, str]]:
        """Yield what is public, each with the shortest dotted name to import it by; those of few parts first."""
        best: dict[Definition, str] = {}
        for place, names in self._names.items():
            if _is_private(place):
                continue
            for name in self._offered(names):
                found = self.resolve(place, name)
                if found is not None:
                    dotted = f"{place}.{name}"
                    best[found] = min(best.get(found, dotted), dotted, key=_length)
        yield from sorted(best.items(), key=lambda item: _length(item[1]))

    def resolve(self, module: str, name: str, hops: int = MAX_HOPS) -> Definition | None:
        """Return what a name means in a module; None if it is nothing of the package."""
        key = module, name
        if key not in self._resolved:
            self._resolved[key] = None  # What imports itself in a circle is nothing.
            self._resolved[key] = self._look_up(module, name, hops) if hops else None
        return self._resolved[key]

    def _look_up(self, module: str, name: str, hops: int) -> Definition | None:
        names = self._names.get(module)
        if names is None:
            return None
        if name in names.defined:
            return names.defined[name]
        if name in names.imported:
            source, original = names.imported[name]
            return self.resolve(source, original, hops - 1) if original else None
        found = (
            self.resolve(source, name, hops - 1) for source in names.starred if self._gives(source, name)
        )
        return next(filter(None, found), None)

    def named(self, module: str, node: ast.expr) -> Definition | None:
        """Return what an expression like `Invoice` or `rates.Table` means in a module."""
        if isinstance(node, ast.Name):
            return self.resolve(module, node.id)
        names = self._names.get(module)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and names is not None:
            source, original = names.imported.get(node.value.id, ("", ""))
            return self.resolve(f"{source}.{original}".rstrip("."), node.attr)
        return None

    def lineage(self, definition: Definition) -> list[ast.ClassDef]:
        """Return a class and its base classes in the package, the nearest first."""
        found: dict[ast.ClassDef, None] = {}
        waiting = [definition]
        while waiting and len(found) < MAX_BASES:
            current = waiting.pop(0)
            node = current.class_node
            if node is None or node in found:
                continue
            found[node] = None
            waiting += filter(None, (self.named(current.module, _unsubscripted(base)) for base in node.bases))
        return list(found)

    def _gives(self, module: str, name: str) -> bool:
        return module in self._names and self._names[module].is_public(name)

    def _offered(self, names: _Names) -> Iterator[str]:
        """Yield the public names of a module: what it defines, and what a package re-exports."""
        yield from self._own(names)
        if names.exported is None and names.module.is_package:
            yield from filter(names.is_public, names.imported)
            for starred in self._starred(names):
                yield from self._own(starred)

    @staticmethod
    def _own(names: _Names) -> Iterable[str]:
        return filter(names.is_public, names.defined) if names.exported is None else names.exported

    def _starred(self, names: _Names) -> list[_Names]:
        """Return the modules that a module imports everything from, also by way of others."""
        found: dict[str, _Names] = {}
        waiting = list(names.starred)
        while waiting:
            source = waiting.pop()
            if source in self._names and source not in found:
                found[source] = self._names[source]
                waiting += found[source].starred if found[source].exported is None else []
        return list(found.values())


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body, and those within `if` and `try`."""
    waiting = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If):
            waiting += reversed([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            handled = [inner for handler in node.handlers for inner in handler.body]
            waiting += reversed([*handled, *node.orelse, *node.body])
        else:
            yield node


def literal(node: ast.stmt) -> str | None:
    """Return the value of an assignment as source if it is a short literal; else None."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return None
    with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        ast.literal_eval(node.value)
        text = ast.unparse(node.value)
        return text if len(text) <= MAX_LITERAL_CHARS else None
    return None


# -- the names of a module -----------------------------------------------------------------------------------


def _names(module: Module) -> _Names:
    names = _Names(module, _exported(module.tree))
    for node in statements(module.tree.body):
        if isinstance(node, Function | ast.ClassDef):
            _define(names, node.name, node)
        elif literal(node) is not None:
            for name in _targets(node):
                _define(names, name, node)
        elif isinstance(node, ast.ImportFrom):
            _import_from(names, node)
        elif isinstance(node, ast.Import):
            names.imported |= {alias.asname: (alias.name, "") for alias in node.names if alias.asname}
    return names


def _define(names: _Names, name: str, node: ast.stmt) -> None:
    if not (name.startswith("__") and name.endswith("__")):
        found = names.defined.setdefault(name, Definition(names.module.name, name))
        if found.nodes and type(found.nodes[-1]) is not type(node):
            found.nodes.clear()
        found.nodes.append(node)


def _targets(node: ast.stmt) -> list[str]:
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _import_from(names: _Names, node: ast.ImportFrom) -> None:
    source = _absolute(names.module, node)
    for alias in node.names:
        if alias.name == "*":
            names.starred.append(source)
        else:
            names.imported[alias.asname or alias.name] = (source, alias.name)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    """Return the module that is imported from, of which a relative name counts from the importing one."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    kept = len(parts) - node.level + module.is_package
    return ".".join([*parts[: max(0, kept)], *(node.module or "").split(".")]).strip(".")


def _exported(tree: ast.Module) -> frozenset[str] | None:
    """Return the content of `__all__` as far as it is written down; None if there is none, or if some is computed."""
    found: frozenset[str] | None = None
    for node in statements(tree.body):
        if _ALL in _targets(node) and isinstance(node, ast.Assign | ast.AnnAssign):
            found = _texts(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == _ALL:
            more = _texts(node.value)
            found = None if found is None or more is None else found | more
    return found


def _texts(node: ast.expr | None) -> frozenset[str] | None:
    """Return the elements of a list of texts, or of several that are added up; None if some are computed."""
    found: frozenset[str] = frozenset()
    while isinstance(node, ast.BinOp):
        more = _literal_texts(node.right)
        if more is None:
            return None
        found, node = found | more, node.left
    first = _literal_texts(node)
    return None if first is None else found | first


def _literal_texts(node: ast.expr | None) -> frozenset[str] | None:
    with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(node) if node is not None else None
        return frozenset(map(str, value)) if isinstance(value, list | tuple | set) else None
    return None


def _unsubscripted(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node


def _is_private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split(".")[1:])


def _length(dotted: str) -> tuple[int, int, str]:
    return dotted.count("."), len(dotted), dotted
