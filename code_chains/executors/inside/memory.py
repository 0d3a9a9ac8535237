"""Shared memory as a file of the box, where it is bounded."""

from __future__ import annotations

import mmap
import tempfile
from typing import Any

Plain = mmap.mmap


class BoundedMmap(Plain):
    """Like `mmap.mmap`, but anonymous memory that is shared with children lies in a bounded file without a name."""

    place: str | None = None
    """Directory of these files; None for that of temporary files."""

    def __new__(cls, fileno: int, length: int, *arguments: Any, **options: Any) -> BoundedMmap:
        """Map memory; see `mmap.mmap`."""
        flags = arguments[0] if arguments else options.get("flags", mmap.MAP_SHARED)
        if fileno != -1 or not flags & mmap.MAP_SHARED:
            return super().__new__(cls, fileno, length, *arguments, **options)
        with tempfile.TemporaryFile(dir=cls.place) as file:
            file.truncate(length)
            if arguments:
                arguments = (flags & ~mmap.MAP_ANONYMOUS, *arguments[1:])
            elif "flags" in options:
                options["flags"] = flags & ~mmap.MAP_ANONYMOUS
            return super().__new__(cls, file.fileno(), length, *arguments, **options)


def bound(place: str | None) -> None:
    """Put the bounded kind, with files in a directory, in the place of the other."""
    BoundedMmap.place = place
    BoundedMmap.__name__ = BoundedMmap.__qualname__ = "mmap"
    BoundedMmap.__module__ = "mmap"
    mmap.mmap = BoundedMmap  # type: ignore[misc]
