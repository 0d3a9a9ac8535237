"""Let the folders of a sandbox serve one program after the other: notice what was changed, and remove it."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterable
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
        contents: Blocks and entries in the file system; of each folder owner, mode, size, attributes and extended ones; and
            of those on the way to what stays visible in them also which they are, and when they were last changed.
        times: When each folder, and what it contains, was last changed.
    """

    contents: tuple[object, ...]
    times: tuple[tuple[int, int], ...]


def state(root: int, visible: Iterable[str]) -> FolderState:
    """Return what the folders are like, so that any change is noticed.

    Args:
        root: Descriptor of the directory with the folders.
        visible: Paths of the host below one of them.
    """
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
    contents += map(_way, ways(visible))
    return FolderState(tuple(contents), tuple(times))


def ways(visible: Iterable[str]) -> list[str]:
    """Return the folders on the way to paths of the host below the folders, which a program can change as well."""
    found = set[str]()
    for path in visible:
        for _, mount_point in filesystem.MOUNT_POINTS:
            parent = os.path.dirname(path)
            while parent.startswith(f"{mount_point}/"):
                found.add(parent)
                parent = os.path.dirname(parent)
    return sorted(found)


def _way(path: str) -> tuple[object, ...]:
    # Invariant: nobody can set the time of the last change of its entries or of itself, so that none goes unnoticed.
    try:
        folder = os.open(path, FOLDER_FLAGS)
    except OSError:
        return ()
    try:
        return (
            *os.fstat(folder)[:7],
            os.fstat(folder).st_ctime_ns,
            attributes(folder),
            tuple(os.listxattr(folder)),
        )
    finally:
        os.close(folder)


def _first_parts(folder: str, visible: Iterable[str]) -> set[str]:
    """Return the entries of a folder that lead to paths of the host."""
    return {path[len(folder) + 1 :].split("/")[0] for path in visible if path.startswith(f"{folder}/")}


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
    current = state(root, config["visible"])
    if fresh is None or current == fresh:
        return fresh
    if filesystem.entries(root) > MAX_REMOVED_ENTRIES:
        return None
    mount_points, kept = dict(filesystem.MOUNT_POINTS), ways(config["visible"])
    if current.contents[-len(kept) :] != fresh.contents[-len(kept) :] and kept:
        return None
    for name in filesystem.FOLDERS:
        with open_folder(root, name) as folder:
            # What stays visible is on mounts within these.
            for entry in set(os.listdir(folder)).difference(
                _first_parts(mount_points[name], config["visible"])
            ):
                remove_at(folder, entry)
            os.utime(folder)  # A program can set any times.
    filesystem.resize(config["limits"]["disk"], filesystem.entries(root) + config["limits"]["files"] + 1)
    current = state(root, config["visible"])
    return current if current.contents == fresh.contents else None
