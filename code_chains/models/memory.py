"""How much memory this process may still use: the machine's, and what its control groups leave of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_MAX_FILE_BYTES = 1 << 16
_MAX_DEPTH = 32
_UNIFIED = ("memory.max", "memory.current", "inactive_file")
"""Version 2 of control groups: the files of limit and usage, and what of the usage is given back on demand."""
_LEGACY = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
"""The same of version 1."""


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes of memory that are available, or `None` if the system does not tell.

    That is the smaller of what the machine has and what is left below the limits of the control groups that
    this process belongs to, as containers have them.

    Args:
        root: The folder with `proc` and `sys`.
    """
    machine = _machine(root)
    return None if machine is None else max(0, min([machine, *_control_groups(root)]))


def _machine(root: Path) -> int | None:
    found = re.search(
        r"^MemAvailable:\s+(\d{1,15}) kB$", _read(root / "proc/meminfo"), re.MULTILINE | re.ASCII
    )
    return int(found[1]) * 1024 if found else _free_pages()


def _free_pages() -> int | None:
    """Return the memory that nothing uses, not even as a cache: less than is available, but known to more systems."""
    try:
        pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    return pages * size if pages > 0 and size > 0 else None


def _control_groups(root: Path) -> Iterator[int]:
    """Yield what each control group with a limit leaves."""
    base = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if (number, controllers) == ("0", ""):
            yield from _left_below(base, group, _UNIFIED)
        elif "memory" in controllers.split(","):
            yield from _left_below(base / "memory", group, _LEGACY)


def _left_below(base: Path, group: str, names: tuple[str, str, str]) -> Iterator[int]:
    """Yield what a group and those above it leave; a container may see its own as the topmost."""
    limit_name, usage_name, reclaimable_name = names
    parts = [part for part in PurePosixPath(group).parts if part not in ("/", "//", "..")][:_MAX_DEPTH]
    for depth in range(len(parts) + 1):
        folder = base.joinpath(*parts[:depth])
        limit = _number(_read(folder / limit_name))
        if limit is not None:
            used = _number(_read(folder / usage_name)) or 0
            yield limit - used + min(used, _statistic(folder, reclaimable_name))


def _statistic(folder: Path, name: str) -> int:
    found = re.search(rf"^{name} (\d{{1,20}})$", _read(folder / "memory.stat"), re.MULTILINE | re.ASCII)
    return int(found[1]) if found else 0


def _number(text: str) -> int | None:
    """Return the number in a file; `max` is none."""
    return int(text) if re.fullmatch(r"\d{1,20}\s*", text, re.ASCII) else None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE_BYTES).decode(errors="replace")
    except (OSError, ValueError):  # Not there, not readable, or a name that no file can have.
        return ""
