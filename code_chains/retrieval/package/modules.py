"""The modules of an installed package, located here and analysed by griffe, without importing anything of it."""

from __future__ import annotations

import ast
import importlib.util
import logging
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, files
from itertools import islice
from pathlib import Path

import griffe

from code_chains.analysis.parsing import UNREADABLE, holds, names_in, syntax_tree
from code_chains.errors import InputError
from code_chains.storage.foreign import open_file

_log = logging.getLogger(__name__)

MAX_MODULE_BYTES, MAX_PACKAGE_BYTES = 1_000_000, 30_000_000
MAX_MODULES, MAX_FILES = 3_000, 30_000
"""Modules that are read, and files that are looked at to find them."""
_SUFFIXES = (".py", ".pyi")
"""What is read of a module, in this order: a stub completes its source."""
_SKIPPED = {
    *("__pycache__", "tests", "test", "node_modules", "site-packages"),
    *("vendor", "_vendor", "vendored", "_vendored", "third_party", "extern", "_extern", "externals"),
}
_SKIPPED_MODULE = re.compile(r"__main__|conftest|test_.*|.*_test")


def read_modules(name: str, search_path: Sequence[str | Path] | None = None) -> list[griffe.Module]:
    """Analyse the modules of an installed package, those of few parts first. Nothing of it is imported or run.

    Skipped without a word are tests and vendored folders; with a warning in the log, modules that are no
    Python or larger than 1 MB, and what is left of a package after 30 MB.

    Args:
        name: The name to import, dotted for a part of a package.
        search_path: Folders to look in, such as the `site-packages` of another environment; None for `sys.path`.

    Raises:
        InputError: The package is not installed, or has no source.
    """
    starts, roots = _locate(name, None if search_path is None else list(map(str, search_path)))
    paths: dict[str, list[Path]] = {}
    found = (item for start in starts for item in _files_of(start, name))
    for module, path in sorted(islice(found, MAX_FILES), key=lambda item: item[1].suffix):
        paths.setdefault(module, []).append(path)
    ordered = sorted(paths.items(), key=lambda item: (item[0].count("."), item[0]))
    if len(ordered) > MAX_MODULES:
        _log.warning("Of the %d modules of %r the first %d are read.", len(ordered), name, MAX_MODULES)
    modules = _analysed(ordered[:MAX_MODULES], roots)
    if not modules:
        raise InputError(
            f"The package {name!r} has no source that can be read: no .py and no .pyi file (or only some"
            " that are not Python, or too large). Pass its own examples, with SnippetStore.from_folder or from_texts."
        )
    return modules


# -- where it is ---------------------------------------------------------------------------------------------


def _locate(name: str, search_path: list[str] | None) -> tuple[list[Path], list[Path]]:
    """Return the folders or files of a package or a part of it, its stubs last, and the folders that they must be in."""
    parts = name.split(".") if isinstance(name, str) else [""]
    if not all(map(str.isidentifier, parts)):
        raise InputError(
            f'{name!r} is not a name of a package to import, such as "acme_tax".{_hint(str(name))}'
        )
    specs = [_spec(parts[0], search_path), _spec(f"{parts[0]}-stubs", search_path)]
    if not any(specs):
        raise InputError(
            f"The package {name!r} is not installed here. Install it, or pass the folder it is in as search_path."
            + _hint(name)
        )
    tops = [path for spec in specs for path in _places(spec)]
    starts = [top.joinpath(*parts[1:]) for top in tops]
    if len(parts) > 1 and not any(start.is_dir() or any(_files_of(start, name)) for start in starts):
        raise InputError(f"The package {parts[0]!r} has no part {name!r} with source or stubs.")
    return starts, [(top if top.is_dir() else top.parent).resolve() for top in tops]


def _spec(name: str, search_path: list[str] | None) -> ModuleSpec | None:
    """Return where a top-level name is found. For those alone nothing is imported."""
    try:
        if search_path is None and name.isidentifier():
            return importlib.util.find_spec(name)
        return PathFinder.find_spec(name, search_path)
    except (ImportError, ValueError, AttributeError):
        return None


def _places(spec: ModuleSpec | None) -> list[Path]:
    """Return the folders of a package, or the file of a module, compiled or not."""
    if spec is None or (spec.submodule_search_locations is None and not spec.has_location):
        return []
    if spec.submodule_search_locations is not None:
        return list(filter(Path.is_dir, map(Path, spec.submodule_search_locations)))
    return [Path(spec.origin or "").with_name(f"{spec.name}.py")]


def _hint(name: str) -> str:
    """Return what a distribution of this name installs, as a sentence."""
    try:
        paths = files(name) or []
    except (PackageNotFoundError, ValueError):
        return ""
    firsts = {
        path.parts[0].removesuffix(".py") for path in paths if path.suffix in (".py", *EXTENSION_SUFFIXES)
    }
    names = sorted(filter(str.isidentifier, firsts))
    return f" The distribution {name!r} installs {', '.join(map(repr, names[:5]))}." if names else ""


def _files_of(start: Path, package: str) -> Iterator[tuple[str, Path]]:
    """Yield the modules in a folder with their files, or the files of one module."""
    if not start.is_dir():
        paths = [start.with_suffix(suffix) for suffix in _SUFFIXES]
        yield from ((package, path) for path in paths if path.is_file())
    for parent, folders, names in os.walk(start):
        folders[:] = [name for name in folders if name.isidentifier() and name not in _SKIPPED]
        parts = Path(parent).relative_to(start).parts
        for path in (Path(parent, name) for name in names if _is_module(Path(name))):
            own = () if path.stem == "__init__" else (path.stem,)
            yield ".".join((package, *parts, *own)), path


def _is_module(path: Path) -> bool:
    is_wanted = path.suffix in _SUFFIXES and path.stem.isidentifier()
    return is_wanted and not _SKIPPED_MODULE.fullmatch(path.stem)


# -- what is in it -------------------------------------------------------------------------------------------


class _Visitor(griffe.Visitor):
    """Griffe's analysis, for which what a module defines counts more than what it imports or assigns later.

    Modules written in C are tried in that way: `def heappush(…)`, then `from _heapq import *` within a `try`.
    """

    def get_module(self) -> griffe.Module:
        """Return the analysed module."""
        self.visit(syntax_tree(self.code))
        return self.current.module

    def visit(self, node: ast.AST) -> None:
        """Visit a node of the tree, but none that is run in a loop."""
        if isinstance(node, ast.For | ast.While | ast.With):
            return
        names = _bound(node)
        members = self.current.members if names else {}
        kept = {name: members[name] for name in names if name in members and _is_callable(members[name])}
        super().visit(node)
        members.update(kept)
        if isinstance(node, ast.AsyncFunctionDef) and holds(node, ast.Yield):
            self.current.members[node.name].labels.add("generator")


def _bound(node: ast.AST) -> set[str]:
    """Return the names that an import or an assignment binds."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    return names_in(*node.targets) if isinstance(node, ast.Assign) else set()


def _is_callable(member: griffe.Object | griffe.Alias) -> bool:
    return isinstance(member, griffe.Function | griffe.Class)


def _analysed(paths: Sequence[tuple[str, list[Path]]], roots: Sequence[Path]) -> list[griffe.Module]:
    """Return the modules that can be read, each with the one that contains it as its parent."""
    known: dict[str, griffe.Module] = {}
    read: list[griffe.Module] = []
    total = 0
    for name, path in ((name, path) for name, of_module in paths for path in of_module):
        try:
            source, size = _source(path, roots)
            total += size
            if total > MAX_PACKAGE_BYTES:
                raise ValueError(f"the package is larger than {MAX_PACKAGE_BYTES:,} bytes")
            outer, _, last = name.rpartition(".")
            visitor = _Visitor(last, path, source, griffe.Extensions(), _parent(outer, known))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = visitor.get_module()
        except (OSError, LookupError, *UNREADABLE) as error:
            reason = "it is not Python" if isinstance(error, SyntaxError) else error
            _log.warning("The module %r is skipped: %s.", name, reason)
            continue
        if path.suffix == ".pyi" and known.get(name) in read:
            _complete(known[name], module)
        else:
            known[name] = module
            read.append(module)
    return read


def _complete(module: griffe.Module, stub: griffe.Module) -> None:
    """Add what the stub of a module declares: of one that finds its names when they are used, that is all it offers."""
    if module.exports is None or "__getattr__" in module.members:
        module.exports = stub.exports or [
            name for name in stub.members if name.isidentifier() and not name.startswith("_")
        ]
    module.overloads.update({name: one for name, one in stub.overloads.items() if name not in module.members})
    module.members.update({name: one for name, one in stub.members.items() if name not in module.members})


def _source(path: Path, roots: Sequence[Path]) -> tuple[str, int]:
    """Return the source of a module, and its size in bytes.

    Raises:
        ValueError: It is a link that leads out of the package, or too large.
    """
    # Invariant: a link in a package of strangers makes no reference of another file of the user.
    if not any(path.resolve().is_relative_to(root) for root in roots):
        raise ValueError("it is a link to a file that is not in the package")
    with open_file(path) as file:
        data = file.read(MAX_MODULE_BYTES + 1)
    if len(data) > MAX_MODULE_BYTES:
        raise ValueError(f"it is larger than {MAX_MODULE_BYTES:,} bytes")
    return importlib.util.decode_source(data), len(data)


def _parent(name: str, known: dict[str, griffe.Module]) -> griffe.Module | None:
    """Return the module of this name; an empty one for a folder without `__init__`."""
    if name and name not in known:
        outer, _, last = name.rpartition(".")
        known[name] = griffe.Module(last, filepath=[], parent=_parent(outer, known))
    return known.get(name)
