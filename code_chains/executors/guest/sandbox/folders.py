"""Let the folders of a sandbox serve one program after the other: notice what was changed, and remove it."""

from __future__ import annotations

import fcntl
import os
import sys
from dataclasses import dataclass

from . import filesystem
from .config import WorkerConfig
from .snapshot import FOLDER_FLAGS, open_folder, remove_at

MAX_REMOVED_ENTRIES = 64
"""Files and folders of a program that are removed one by one; with more, a new file system is quicker."""
FS_IOC_GETFLAGS = 0x80086601


@dataclass(frozen=True)
class FolderState:
    """What the folders are like between programs.

    Attributes:
        contents: Blocks and entries in the file system; of each folder owner, mode, size, attributes and extended ones.
        times: When each folder, and what it contains, was last changed.
    """

    contents: tuple[object, ...]
    times: tuple[tuple[int, int], ...]


def state(root: int) -> FolderState:
    """Return what the folders are like, so that any change is noticed."""
    system = os.fstatvfs(root)
    contents: list[object] = [(system.f_blocks, system.f_bfree, system.f_files, system.f_ffree)]
    times = []
    for name in filesystem.FOLDERS:
        folder = os.open(name, FOLDER_FLAGS, dir_fd=root)
        status = os.fstat(folder)
        contents += [status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_size]
        contents += [attributes(folder), tuple(os.listxattr(folder))]
        times.append((status.st_mtime_ns, status.st_ctime_ns))
        os.close(folder)
    return FolderState(tuple(contents), tuple(times))


def attributes(folder: int) -> int:
    """Return attributes such as "no dump"; 0 where the file system has none."""
    try:
        return int.from_bytes(fcntl.ioctl(folder, FS_IOC_GETFLAGS, bytes(8)), sys.byteorder)
    except OSError:
        return 0


def restore(root: int, fresh: FolderState | None, config: WorkerConfig) -> FolderState | None:
    """Let the folders be as they were before a program; return their state, or None if they must be made anew.

    Invariant: no process of the program is left.

    Args:
        root: Descriptor of the directory with the folders.
        fresh: What they were like.
        config: The configuration of the run.
    """
    if config["visible"]:  # There are folders on the way to these paths, which a program can change as well.
        return None
    current = state(root)
    if fresh is None or current == fresh:
        return fresh
    if filesystem.entries(root) > MAX_REMOVED_ENTRIES:
        return None
    for name in filesystem.FOLDERS:
        with open_folder(root, name) as folder:
            for entry in os.listdir(folder):
                remove_at(folder, entry)
            os.utime(folder)  # A program can set any times.
    filesystem.resize(config["limits"]["disk"], filesystem.entries(root) + config["limits"]["files"] + 1)
    current = state(root)
    return current if current.contents == fresh.contents else None
