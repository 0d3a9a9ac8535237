"""Names of a package that are imported when they are first used, listed in the stub beside it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def names_of_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose stub, `__init__.pyi`, imports its names.

    Type checkers and editors read the stub itself, so that each name is listed once. (The idea is that of `lazy_loader`,
    which a program in a container or in WebAssembly would have to install.)

    Args:
        package: The name of the package.
        file: Its `__file__`.
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = (node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom) and node.level == 1)
    module_of = {alias.name: node.module for node in imports for alias in node.names if alias.name[0] != "_"}

    names = sorted(module_of)

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return get, lambda: names, names
