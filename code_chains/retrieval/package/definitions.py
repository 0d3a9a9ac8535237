"""What the modules of a package define, and under which names a program should import it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

import griffe

Definition = griffe.Function | griffe.Class | griffe.Attribute
MAX_HOPS, MAX_BASES = 50, 20
"""Re-exports of re-exports that are followed, and base classes of a class that are looked at."""
MAX_NAMES = 200_000
"""Names of a package that are looked up; each re-export counts."""
MAX_LITERAL_CHARS = 200


class Definitions:
    """The definitions of all modules of a package, and the public names that they have.

    Names are resolved here and not by griffe's loader, which follows links, reads files of any size, asks git, and
    keeps no function that is named like its module.

    Args:
        modules: The modules.
    """

    def __init__(self, modules: Sequence[griffe.Module]) -> None:
        self._modules = {module.path: module for module in modules}
        self._resolved: dict[str, Definition | None] = {}
        self._stars: dict[str, list[griffe.Module]] = {}
        self._exported: dict[str, frozenset[str] | None] = {}
        for module in modules:
            _add_overloads(module)

    def public(self) -> dict[Definition, str]:
        """Return what is public, each with the shortest dotted name to import it by; those of few parts first."""
        best: dict[Definition, str] = {}
        public = [module for path, module in self._modules.items() if "._" not in path]
        names = (f"{module.path}.{name}" for module in public for name in self._offered(module))
        for dotted in islice(names, MAX_NAMES):
            found = self.resolve(dotted)
            if found is not None:
                best[found] = min(best.get(found, dotted), dotted, key=_length)
        return dict(sorted(best.items(), key=lambda item: _length(item[1])))

    def resolve(self, dotted: str, hops: int = MAX_HOPS) -> Definition | None:
        """Return what a dotted name means; None if it is nothing of the package."""
        if dotted not in self._resolved:
            self._resolved[dotted] = None  # What imports itself in a circle is nothing.
            self._resolved[dotted] = self._look_up(dotted, hops) if hops else None
        return self._resolved[dotted]

    def named(self, module: griffe.Module, name: griffe.ExprName) -> Definition | None:
        """Return what a name like `Invoice` or `rates.Table` in an annotation means in a module."""
        return self.resolve(f"{module.path}.{name.path}") or self.resolve(name.canonical_path)

    def lineage(self, node: griffe.Class) -> list[griffe.Class]:
        """Return a class and its base classes in the package, the nearest first."""
        found: dict[griffe.Class, None] = {}
        waiting = [node]
        while waiting and len(found) < MAX_BASES:
            current = waiting.pop(0)
            if current not in found:
                found[current] = None
                bases = (self._base(current, base) for base in current.bases)
                waiting += [base for base in bases if isinstance(base, griffe.Class)]
        return list(found)

    def _base(self, node: griffe.Class, base: str | griffe.Expr) -> Definition | None:
        left = base.left if isinstance(base, griffe.ExprSubscript) else base
        name = left.last if isinstance(left, griffe.ExprAttribute) else left
        return self.named(node.module, name) if isinstance(name, griffe.ExprName) else None

    def _look_up(self, dotted: str, hops: int) -> Definition | None:
        place, _, name = dotted.rpartition(".")
        module = self._modules.get(place)
        member = module.members.get(name) if module is not None else None
        if isinstance(member, griffe.Alias):
            return self.resolve(member.target_path, hops - 1)
        if module is None or member is not None:
            return _definition(member)
        for source in self._starred(module):
            if self._gives(source, name) and (found := self.resolve(f"{source.path}.{name}", hops - 1)):
                return found
        return None

    def _gives(self, module: griffe.Module, name: str) -> bool:
        names = self._exports(module)
        return not name.startswith("_") if names is None else name in names

    def _offered(self, module: griffe.Module) -> Iterator[str]:
        """Yield the public names of a module: what it defines, and what a package re-exports."""
        names = self._exports(module)
        if names is not None or not module.is_init_module:
            yield from self._own(module)
            return
        yield from (name for name in module.members if name.isidentifier() and not name.startswith("_"))
        for source in self._all_starred(module):
            yield from self._own(source)

    def _own(self, module: griffe.Module) -> Iterable[str]:
        """Return the names that a module gives to those that import everything from it."""
        names = self._exports(module)
        if names is None:
            return {name for name, member in module.members.items() if _is_own(name, member)}
        return names

    def _exports(self, module: griffe.Module, hops: int = MAX_HOPS) -> frozenset[str] | None:
        """Return the content of `__all__`; None if there is none, or if nothing of it can be told."""
        if module.path not in self._exported:
            self._exported[module.path] = None  # What names itself in a circle says nothing.
            self._exported[module.path] = self._written(module, hops) if hops else None
        return self._exported[module.path]

    def _written(self, module: griffe.Module, hops: int) -> frozenset[str] | None:
        found: set[str] = set()
        for one in module.exports or []:
            if isinstance(one, griffe.ExprName):
                paths = (
                    path.rpartition(".")[0] for path in (f"{module.path}.{one.path}", one.canonical_path)
                )
                others = [self._modules[path] for path in paths if path in self._modules]
                found |= (self._exports(others[0], hops - 1) if others else None) or set()
            else:
                found.add(str(one))
        written = module.members.get("__all__")
        value = written.value if isinstance(written, griffe.Attribute) else None
        is_told = bool(found) and not isinstance(value, griffe.ExprCall)
        return frozenset(found) if is_told or str(value) in ("[]", "()") else None

    def _starred(self, module: griffe.Module) -> list[griffe.Module]:
        """Return the modules that a module imports everything from."""
        if module.path not in self._stars:
            aliases = [one for one in module.members.values() if isinstance(one, griffe.Alias)]
            paths = [one.target_path for one in aliases if one.wildcard]
            self._stars[module.path] = [self._modules[path] for path in paths if path in self._modules]
        return self._stars[module.path]

    def _all_starred(self, module: griffe.Module) -> list[griffe.Module]:
        """Return the same, also by way of others."""
        found: dict[str, griffe.Module] = {}
        waiting = list(self._starred(module))
        while waiting:
            source = waiting.pop()
            if source.path not in found:
                found[source.path] = source
                waiting += self._starred(source) if self._exports(source) is None else []
        return list(found.values())


def literal(definition: griffe.Attribute) -> str | None:
    """Return the value of a constant as source if it is a short literal; else None."""
    text = str(definition.value)
    with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        if len(text) <= MAX_LITERAL_CHARS:
            ast.literal_eval(text)
            return text
    return None


def _definition(member: object) -> Definition | None:
    """Return a member of a module if it is a function, a class or a constant."""
    if isinstance(member, griffe.Attribute):
        is_special = member.name.startswith("__") and member.name.endswith("__")
        return None if is_special or member.value is None or literal(member) is None else member
    return member if isinstance(member, griffe.Function | griffe.Class) else None


def _is_own(name: str, member: griffe.Object | griffe.Alias) -> bool:
    return not name.startswith("_") and not isinstance(member, griffe.Alias)


def _add_overloads(owner: griffe.Module | griffe.Class) -> None:
    """Add the functions of stubs, which have overloads and nothing else."""
    for name, functions in owner.overloads.items():
        if functions and name not in owner.members:
            functions[-1].overloads = list(functions)
            owner.members[name] = functions[-1]
    for member in owner.members.values():
        if isinstance(member, griffe.Class):
            _add_overloads(member)


def _length(dotted: str) -> tuple[int, int, str]:
    return dotted.count("."), len(dotted), dotted
