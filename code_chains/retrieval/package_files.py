"""The modules of an installed package, located and parsed without importing anything of it."""

from __future__ import annotations

import ast
import importlib.util
import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from code_chains.analysis.parsing import parse
from code_chains.errors import InputError
from code_chains.storage.files import open_regular

__all__ = ["Module", "read_modules"]

_log = logging.getLogger(__name__)

MAX_MODULE_BYTES = 200_000
MAX_MODULES = 3_000
_SUFFIXES = (".py", ".pyi")
"""What is read of a module, in this order: a stub only where there is no source."""
_SKIPPED = {
    *("__pycache__", "tests", "test", "node_modules", "site-packages"),
    *("vendor", "_vendor", "vendored", "_vendored", "third_party", "extern", "_extern", "externals"),
}
_SKIPPED_MODULE = re.compile(r"__main__|conftest|test_.*|.*_test")


@dataclass(frozen=True)
class _Place:
    """Where a module may be.

    Attributes:
        name: Its dotted name.
        folders: The folders of a package, those of its stubs last; empty for a module of one file.
        file: The file of a module.
        roots: The folders that the package is installed in, with links resolved.
    """

    name: str
    folders: tuple[Path, ...] = ()
    file: Path | None = None
    roots: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Module:
    """A parsed module.

    Attributes:
        name: Its dotted name.
        is_package: Whether it is the `__init__` of a package.
        tree: Its syntax tree, which is shared: never mutate it.
    """

    name: str
    is_package: bool
    tree: ast.Module


def read_modules(name: str, search_path: Sequence[str | Path] | None = None) -> list[Module]:
    """Parse the modules of an installed package, those of few parts first. Nothing of it is imported or run.

    Skipped without a word are tests and vendored folders; with a warning in the log, modules that are no
    Python or larger than 200 KB.

    Args:
        name: The name to import, dotted for a part of a package.
        search_path: Folders to look in, such as the `site-packages` of another environment; None for `sys.path`.

    Raises:
        InputError: The package is not installed, or has no source.
    """
    place = _locate(name, None if search_path is None else [str(folder) for folder in search_path])
    paths = dict(_paths(place))
    ordered = sorted(paths.items(), key=lambda item: (item[0].count("."), item[0]))
    if len(ordered) > MAX_MODULES:
        _log.warning("Of the %d modules of %r the first %d are read.", len(ordered), name, MAX_MODULES)
    parsed = (_parsed(module, path, place.roots) for module, path in ordered[:MAX_MODULES])
    modules = [module for module in parsed if module is not None]
    if not modules:
        raise InputError(
            f"The package {name!r} has no source that can be read: no .py and no .pyi file (or only some"
            " that are not Python, or too large). Pass its own examples, with SnippetStore.from_folder or from_texts."
        )
    return modules


# -- where it is ---------------------------------------------------------------------------------------------


def _locate(name: str, search_path: list[str] | None) -> _Place:
    parts = name.split(".") if isinstance(name, str) else [""]
    if not all(part.isidentifier() for part in parts):
        raise InputError(
            f'{name!r} is not a name of a package to import, such as "acme_tax".{_hint(str(name))}'
        )
    spec = _spec(parts[0], search_path)
    stubs = _spec(f"{parts[0]}-stubs", search_path)
    if spec is None and stubs is None:
        raise InputError(
            f"The package {name!r} is not installed here. Install it, or pass the folder it is in as search_path."
            + _hint(name)
        )
    folders, file = (*_folders(spec), *_folders(stubs)), _file(spec)
    roots = folders if file is None else (*folders, file.parent)
    place = _Place(parts[0], folders, file, tuple(root.resolve() for root in roots))
    for part in parts[1:]:
        place = _below(place, part)
    if len(parts) > 1 and not place.folders and place.file is None:
        raise InputError(f"The package {parts[0]!r} has no part {name!r} with source or stubs.")
    return place


def _spec(name: str, search_path: list[str] | None) -> ModuleSpec | None:
    """Return where a top-level name is found. For those alone nothing is imported."""
    try:
        if search_path is None and name.isidentifier():
            return importlib.util.find_spec(name)
        return PathFinder.find_spec(name, search_path)
    except (ImportError, ValueError, AttributeError):
        return None


def _folders(spec: ModuleSpec | None) -> tuple[Path, ...]:
    if spec is None or spec.submodule_search_locations is None:
        return ()
    return tuple(path for path in map(Path, spec.submodule_search_locations) if path.is_dir())


def _file(spec: ModuleSpec | None) -> Path | None:
    if (
        spec is None
        or spec.submodule_search_locations is not None
        or not spec.has_location
        or not spec.origin
    ):
        return None
    return _readable(Path(spec.origin).parent, spec.name)


def _readable(folder: Path, name: str) -> Path | None:
    """Return the source or the stub of a module in a folder."""
    return next((path for suffix in _SUFFIXES if (path := folder / f"{name}{suffix}").is_file()), None)


def _below(place: _Place, part: str) -> _Place:
    name = f"{place.name}.{part}"
    folders = tuple(path for folder in place.folders if (path := folder / part).is_dir())
    found = (_readable(folder, part) for folder in place.folders)
    return _Place(name, folders, None if folders else next(filter(None, found), None), place.roots)


def _hint(name: str) -> str:
    """Return what a distribution of this name installs, as a sentence."""
    try:
        paths = files(name) or []
    except (PackageNotFoundError, ValueError):
        return ""
    firsts = {
        path.parts[0].removesuffix(".py") for path in paths if path.suffix in (".py", *EXTENSION_SUFFIXES)
    }
    names = sorted(first for first in firsts if first.isidentifier())
    return f" The distribution {name!r} installs {', '.join(map(repr, names[:5]))}." if names else ""


# -- what is in it -------------------------------------------------------------------------------------------


def _paths(place: _Place) -> Iterator[tuple[str, Path]]:
    """Yield modules with their files; of a module with several, the one that counts comes last."""
    if place.file is not None:
        yield place.name, place.file
    found = [item for folder in reversed(place.folders) for item in _walk(folder, place.name)]
    for suffix in reversed(_SUFFIXES):
        yield from (item for item in found if item[1].suffix == suffix)


def _walk(root: Path, package: str) -> Iterator[tuple[str, Path]]:
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name.isidentifier() and name not in _SKIPPED]
        parts = Path(parent).relative_to(root).parts
        for path in (Path(parent, name) for name in names):
            if (
                path.suffix in _SUFFIXES
                and path.stem.isidentifier()
                and not _SKIPPED_MODULE.fullmatch(path.stem)
            ):
                own = () if path.stem == "__init__" else (path.stem,)
                yield ".".join((package, *parts, *own)), path


def _parsed(name: str, path: Path, roots: Sequence[Path]) -> Module | None:
    """Return a module; None, with a warning in the log, if it cannot be read."""
    try:
        # Invariant: a link in a package of strangers makes no reference of another file of the user.
        if not any(path.resolve().is_relative_to(root) for root in roots):
            raise ValueError("it is a link to a file that is not in the package")
        with open_regular(path) as file:
            data = file.read(MAX_MODULE_BYTES + 1)
        if len(data) > MAX_MODULE_BYTES:
            raise ValueError(f"it is larger than {MAX_MODULE_BYTES:,} bytes")
        tree = parse(importlib.util.decode_source(data))
        if tree is None:
            raise ValueError("it is not Python")
    except (OSError, ValueError, SyntaxError, LookupError) as error:
        _log.warning("The module %r is skipped: %s.", name, error)
        return None
    return Module(name, path.stem == "__init__", tree)
