"""Back shared memory with files of the sandbox, which are limited."""

from __future__ import annotations

import mmap
import tempfile
from typing import Any

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
