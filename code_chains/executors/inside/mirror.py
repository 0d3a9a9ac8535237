"""A copy of the places of a session, from which they are put back as they were."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

CHUNK = 1 << 20
HIDDEN = "copies"
"""Where the copies themselves are kept."""


class Mark(NamedTuple):
    """What tells whether an entry has changed; the time of change is the kernel's and cannot be forged."""

    mode: int
    inode: int
    size: int
    changed: int


class Mirror:
    """Keeps a directory's contents in another directory. Both are given by descriptor; only what changed is copied."""

    def __init__(self, live: int, copy: int, name: str = "") -> None:
        self.live, self.copy, self.name = live, copy, name
        self.marks: dict[str, Mark] = {}

    def save(self) -> None:
        """Make the copy equal to what is there now."""
        now = scan(self.live)
        for path in sorted(self.marks.keys() - now.keys(), reverse=True):
            remove(self.copy, path)
        for path in sorted(now):
            if self.marks.get(path) != now[path]:
                put(self.live, self.copy, path)
        self.marks = now

    def restore(self) -> None:
        """Make what is there equal to the copy again."""
        now = scan(self.live)
        for path in sorted(now.keys() - self.marks.keys(), reverse=True):
            remove(self.live, path)
        for path in sorted(self.marks):
            if now.get(path) != self.marks[path]:
                put(self.copy, self.live, path)
        self.marks = scan(self.live)


def scan(root: int) -> dict[str, Mark]:
    """Everything below a directory, without following links."""
    found: dict[str, Mark] = {}
    for folder, names, files, at in os.fwalk(".", dir_fd=root, follow_symlinks=False):
        if folder == "." and HIDDEN in names:
            names.remove(HIDDEN)
        for name in (*names, *files):
            known = os.stat(name, dir_fd=at, follow_symlinks=False)
            size, changed = (0, 0) if stat.S_ISDIR(known.st_mode) else (known.st_size, known.st_ctime_ns)
            if not stat.S_ISSOCK(known.st_mode):
                found[os.path.normpath(f"{folder}/{name}")] = Mark(known.st_mode, known.st_ino, size, changed)
    return found


def remove(root: int, path: str) -> None:
    """Remove one entry; a directory must be empty of all that was scanned."""
    known = os.stat(path, dir_fd=root, follow_symlinks=False)
    if stat.S_ISDIR(known.st_mode):
        for name in os.listdir(f"/proc/self/fd/{root}/{path}"):
            remove(root, f"{path}/{name}")
        os.rmdir(path, dir_fd=root)
    else:
        os.unlink(path, dir_fd=root)


def put(source: int, target: int, path: str) -> None:
    """Copy one entry, in place where it is of the same kind, so that open files stay the same files."""
    known = os.stat(path, dir_fd=source, follow_symlinks=False)
    there = kind(target, path)
    if there is not None and there != stat.S_IFMT(known.st_mode):
        remove(target, path)
        there = None
    if stat.S_ISREG(known.st_mode):
        copy_file(source, target, path, known)
    elif stat.S_ISDIR(known.st_mode):
        if there is None:
            os.mkdir(path, dir_fd=target)
        os.chmod(path, stat.S_IMODE(known.st_mode), dir_fd=target)
    elif stat.S_ISLNK(known.st_mode):
        if there is not None:
            os.unlink(path, dir_fd=target)
        os.symlink(os.readlink(path, dir_fd=source), path, dir_fd=target)
    elif stat.S_ISFIFO(known.st_mode) and there is None:
        os.mkfifo(path, stat.S_IMODE(known.st_mode), dir_fd=target)


def kind(root: int, path: str) -> int | None:
    try:
        return stat.S_IFMT(os.stat(path, dir_fd=root, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


def copy_file(source: int, target: int, path: str, known: os.stat_result) -> None:
    """Copy a regular file with its holes, mode and time."""
    read = os.open(path, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=source)
    write = writable(target, path)
    try:
        os.ftruncate(write, 0)
        os.ftruncate(write, known.st_size)
        place = 0
        while (place := data_from(read, place, known.st_size)) < known.st_size:
            end = min(os.lseek(read, place, os.SEEK_HOLE), known.st_size)
            while place < end and (chunk := os.pread(read, min(CHUNK, end - place), place)):
                place += os.pwrite(write, chunk, place)
        os.fchmod(write, stat.S_IMODE(known.st_mode))
        os.utime(write, ns=(known.st_atime_ns, known.st_mtime_ns))
    finally:
        os.close(read)
        os.close(write)


def writable(root: int, path: str) -> int:
    """A file to write to; one that its owner may only read is made anew."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600, dir_fd=root)
    except PermissionError:
        os.unlink(path, dir_fd=root)
        return os.open(path, flags, 0o600, dir_fd=root)


def data_from(descriptor: int, place: int, size: int) -> int:
    """Where the next data begins."""
    try:
        return os.lseek(descriptor, place, os.SEEK_DATA)
    except OSError:
        return size
