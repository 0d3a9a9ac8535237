"""Files that a program made in its working directory, and the space that it uses, on any system."""

from __future__ import annotations

import base64
import contextlib
import os
import stat
from collections.abc import Callable, Iterator

MAX_MADE_FILES = 1000
BLOCK_BYTES = 512
READ_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


def files_below(folder: str) -> list[str]:
    """Return the regular files below a folder, without links, by names with slashes."""
    found = [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names]
    return [
        os.path.relpath(path, folder).replace(os.sep, "/")
        for path in found
        if os.path.isfile(path) and not os.path.islink(path)
    ]


def made_files(
    folder: str, is_input: Callable[[str, os.stat_result], bool], room: int
) -> Iterator[tuple[str, str]]:
    """Yield the files that a program made or changed, in Base64, as far as there is room.

    Args:
        folder: The working directory.
        is_input: Returns whether a file is an unchanged input.
        room: Bytes that may be collected.
    """
    for name in sorted(files_below(folder))[:MAX_MADE_FILES]:
        with contextlib.suppress(OSError):
            file = open(os.open(os.path.join(folder, name), READ_FLAGS), "rb")  # noqa: SIM115
            with file:
                status = os.fstat(file.fileno())
                is_made = stat.S_ISREG(status.st_mode) and not is_input(name, status)
                if is_made and status.st_size <= room:
                    data = file.read(room)
                    room -= len(data)
                    yield name, base64.b64encode(data).decode()


def disk_usage(folders: list[str]) -> tuple[int, int]:
    """Return bytes and number of files and folders below some folders."""
    size = count = 0
    for root in folders:
        for folder, _, names in os.walk(root):
            count += len(names) + 1
            for name in names:
                with contextlib.suppress(OSError):
                    status = os.lstat(os.path.join(folder, name))
                    blocks = getattr(status, "st_blocks", None)
                    size += status.st_size if blocks is None else blocks * BLOCK_BYTES
    return size, count
