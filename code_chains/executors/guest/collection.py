"""Files that a program made in its working directory, and the space that it uses, on any system."""

from __future__ import annotations

import base64
import contextlib
import os
import stat
from collections.abc import Callable, Iterator

MAX_MADE_FILES = 1000
BLOCK_BYTES = 512
MAX_DEPTH, MAX_PATH_CHARS = 100, 3000
"""Deeper folders and longer paths are not looked at: the system has a limit as well, below which much can be hidden."""
UNCOUNTABLE = 1 << 40
READ_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


def files_below(folder: str) -> list[str]:
    """Return the regular files below a folder, without links, by names with slashes."""
    found = [entry.path for entry in entries_below(folder) if entry.is_file(follow_symlinks=False)]
    return [os.path.relpath(path, folder).replace(os.sep, "/") for path in found]


def entries_below(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield everything below a folder, without following links, and without what cannot be read or is too deep."""
    pending = [(folder, 0)]
    while pending:
        path, depth = pending.pop()
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                yield entry
                if depth < MAX_DEPTH and entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, depth + 1))


def made_files(
    folder: str, is_input: Callable[[str, os.stat_result], bool], room: int
) -> Iterator[tuple[str, str | None]]:
    """Yield the files that a program made or changed, in Base64; None for those that there is no room for.

    Files with names that cannot be printed, which no host takes, are left out, as such names would be the longest in JSON.

    Args:
        folder: The working directory.
        is_input: Returns whether a file is an unchanged input.
        room: Bytes that may be collected.
    """
    for name in sorted(filter(str.isprintable, files_below(folder)))[:MAX_MADE_FILES]:
        with contextlib.suppress(OSError):
            file = open(os.open(os.path.join(folder, name), READ_FLAGS), "rb")  # noqa: SIM115
            with file:
                status = os.fstat(file.fileno())
                is_made = stat.S_ISREG(status.st_mode) and not is_input(name, status)
                if is_made and status.st_size > room:
                    yield name, None
                elif is_made:
                    data = file.read(room)
                    room -= len(data)
                    yield name, base64.b64encode(data).decode()


def disk_usage(folders: list[str]) -> tuple[int, int]:
    """Return bytes and number of files and folders below some folders.

    Invariant: what is too deep to be counted counts as more than any limit allows.
    """
    size, count = 0, len(folders)
    for folder in folders:
        for entry in entries_below(folder):
            is_hidden = len(entry.path) > MAX_PATH_CHARS or entry.path.count(os.sep) > MAX_DEPTH
            count += UNCOUNTABLE if is_hidden else 1
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                size += 0 if stat.S_ISDIR(status.st_mode) else space(status)
    return size, count


def space(status: os.stat_result) -> int:
    """Return the bytes that a file takes on its disk."""
    blocks = getattr(status, "st_blocks", None)  # Not on Windows.
    return status.st_size if blocks is None else int(blocks) * BLOCK_BYTES
