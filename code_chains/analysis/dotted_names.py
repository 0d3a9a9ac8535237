"""Dotted names of what programs use: one canonical name for each thing, and rules that match it."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Collection

UNKNOWN = frozenset({"?"})
_LEAKED = {"os", "posix", "nt", "sys", "subprocess", "builtins", "shutil", "importlib", "socket", "ctypes"}


def words(text: str) -> frozenset[str]:
    """Split a text into names."""
    return frozenset(text.split())


def canonical(name: str) -> str:
    """Return the one name of what has several: `posix.system` is `os.system`, `_pickle.load` is `pickle.load`."""
    root, dot, rest = name.partition(".")
    if not dot and hasattr(builtins, root):
        return f"builtins.{root}"
    if root in ("posix", "nt"):
        root = "os"
    if root.startswith("_") and root.lstrip("_") in sys.stdlib_module_names:
        root = root.lstrip("_")
    base = root
    for part in rest.split(".") if rest else ():
        base = member(base, part)
    return base


def root_of(name: str) -> str:
    """Return the first part of a dotted name."""
    return name.partition(".")[0]


def match(name: str, rules: Collection[str]) -> str | None:
    """Return the rule that a dotted name matches: the name itself, what contains it, or what it may turn out to be.

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


def member(base: str, attribute: str | None) -> str:
    """Return the name of an attribute; `?` if it is unknown."""
    if base.startswith("?"):
        return f"?.{attribute}" if attribute else "?"
    if attribute and attribute.lstrip("_") in _LEAKED and base != "builtins":
        return canonical(attribute.lstrip("_"))  # Modules carry the modules they import: random._os is os.
    return f"{base}.{attribute or '?'}"


def collection_of(name: str) -> str:
    """Return the name of a collection that holds something; nesting is tracked to the third level."""
    return name if name.endswith("[][][]") else f"{name}[]"


def module_name(name: str) -> str:
    """Return the canonical name of something imported; unlike in `canonical`, a bare word is a module."""
    return canonical(f"{name}.").removesuffix(".") if "." not in name else canonical(name)


def builtin(name: str) -> frozenset[str]:
    """Return the name of a builtin, or `?:name` if there is none of this name."""
    return frozenset({f"builtins.{name}" if hasattr(builtins, name) else f"?:{name}"})
