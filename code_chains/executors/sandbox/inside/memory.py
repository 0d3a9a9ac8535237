"""Back shared memory with files of the sandbox, which are limited; back a heap with huge pages."""

from __future__ import annotations

import ctypes
import mmap
import tempfile
from typing import Any

from .syscalls import libc

MADV_COLLAPSE = 25
HUGE_PAGE_BYTES = 1 << 21
MAX_HUGE_PAGES = 512
Mmap = mmap.mmap


class BoundedMmap(Mmap):
    """Like `mmap.mmap`, but anonymous memory that is shared with children lies in a limited, unnamed file."""

    folder: str | None = None
    """Directory of these files; None for that of temporary files."""

    def __new__(cls, fileno: int, length: int, *arguments: Any, **options: Any) -> BoundedMmap:
        """Map memory; see `mmap.mmap`."""
        flags = arguments[0] if arguments else options.get("flags", mmap.MAP_SHARED)
        if fileno != -1 or not flags & mmap.MAP_SHARED:
            return super().__new__(cls, fileno, length, *arguments, **options)
        with tempfile.TemporaryFile(dir=cls.folder) as file:
            file.truncate(length)
            if arguments:
                arguments = (flags & ~mmap.MAP_ANONYMOUS, *arguments[1:])
            elif "flags" in options:
                options["flags"] = flags & ~mmap.MAP_ANONYMOUS
            return super().__new__(cls, file.fileno(), length, *arguments, **options)


def replace_mmap(folder: str | None) -> None:
    """Replace `mmap.mmap` by the limited class, with files in a directory."""
    BoundedMmap.folder = folder
    BoundedMmap.__name__ = BoundedMmap.__qualname__ = "mmap"
    BoundedMmap.__module__ = "mmap"
    mmap.mmap = BoundedMmap  # type: ignore[misc]


def use_huge_pages() -> None:
    """Move this process's heap into huge pages, where the kernel (6.1 or newer) can: forks then copy fewer page tables."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        mappings = [line.split(None, 5) for line in file]
    for addresses, mode, _, _, inode, *path in mappings:
        if mode.startswith("rw") and inode == "0" and not (path and path[0].startswith(("[stack", "[v"))):
            first, last = (int(address, 16) for address in addresses.split("-"))
            _collapse(-(-first // HUGE_PAGE_BYTES), last // HUGE_PAGE_BYTES)


def _collapse(first: int, last: int) -> None:
    for number in range(first, min(last, first + MAX_HUGE_PAGES)):
        if libc is not None:
            libc.madvise(
                ctypes.c_void_p(number * HUGE_PAGE_BYTES), ctypes.c_size_t(HUGE_PAGE_BYTES), MADV_COLLAPSE
            )
