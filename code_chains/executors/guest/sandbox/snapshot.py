"""Copies of the writable folders of a session, from which they are restored.

Their contents are untrusted. Invariants: no path is resolved by the kernel at once; each component is opened
by itself, without following links, so that a folder that became a link is an error and never a way out. No
file is opened that could block, and its type is checked again after it was opened.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Collection, Iterator
from typing import NamedTuple, Self

CHUNK_BYTES = 1 << 20
MAX_DEPTH = 100
"""Maximum nesting of folders; each level costs a descriptor."""
COPIES_FOLDER = "copies"
"""Name of the folder of the copies themselves."""
if sys.platform == "win32":  # It is imported there, and not used.
    FOLDER_FLAGS = FILE_FLAGS = os.O_RDONLY
else:
    FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Files are never opened through a link, and opening a pipe never blocks."""


class Mark(NamedTuple):
    """What distinguishes an entry from its earlier version; the time of change is the kernel's and cannot be forged."""

    mode: int
    inode: int
    size: int
    changed_ns: int

    @property
    def is_copied(self) -> bool:
        """Whether entries of its type are copied; sockets and devices are not."""
        return stat.S_IFMT(self.mode) in COPIERS


class Snapshot:
    """A copy of a directory in another directory, both by descriptor; only what changed is copied.

    Args:
        live: The directory.
        copy: The directory of the copy.
        name: Its name.
    """

    copy: int
    live: int
    name: str

    def __init__(self, live: int, copy: int, name: str = "") -> None:
        self.live, self.copy, self.name = live, copy, name
        self.marks: dict[str, Mark] = {}

    def save(self) -> None:
        """Update the copy."""
        marks = scan(self.live)
        with Folders(self.live) as live, Folders(self.copy) as copy:
            for path in sorted(self.marks.keys() - marks.keys(), reverse=True):
                if self.marks[path].is_copied:
                    remove_at(*copy.entry(path))
            for path in sorted(marks):
                if marks[path].is_copied and self.marks.get(path) != marks[path]:
                    copy_entry(live, copy, path)
        self.marks = marks

    def restore(self) -> None:
        """Restore the directory from the copy."""
        marks = scan(self.live, self.marks)
        with Folders(self.live) as live, Folders(self.copy) as copy:
            for path in sorted(marks.keys() - self.marks.keys(), reverse=True):
                remove_at(*live.entry(path))
            for path in sorted(self.marks):
                if self.marks[path].is_copied and marks.get(path) != self.marks[path]:
                    copy_entry(copy, live, path)
        self.marks = scan(self.live)


class Folders:
    """Opens folders below a directory one component at a time, none of which may be a link.

    Folders stay open while the next path lies below them, so that paths in sorted order cost a call or two
    each.

    Args:
        root: Descriptor of the directory.
    """

    def __init__(self, root: int) -> None:
        self._parts: list[str] = []
        self._descriptors = [os.dup(root)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())

    def entry(self, path: str) -> tuple[int, str]:
        """Return the folder of an entry and its name there; raise `OSError` if a folder above it is a link."""
        parent, _, name = path.rpartition("/")
        return self.folder(parent), name

    def folder(self, path: str) -> int:
        """Return the descriptor of a folder, which is valid until the next call."""
        parts = path.split("/") if path else []
        if len(parts) > MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, f"folders are nested more than {MAX_DEPTH} deep")
        common = 0
        while parts[common : common + 1] == self._parts[common : common + 1] != []:
            common += 1
        while len(self._parts) > common:
            self._parts.pop()
            os.close(self._descriptors.pop())
        for part in parts[common:]:
            self._descriptors.append(os.open(part, FOLDER_FLAGS, dir_fd=self._descriptors[-1]))
            self._parts.append(part)
        return self._descriptors[-1]


@contextlib.contextmanager
def open_folder(root: int, path: str) -> Iterator[int]:
    """Open a folder below a directory; see `Folders`."""
    with Folders(root) as folders:
        yield folders.folder(path)


def scan(root: int, known: Collection[str] | None = None) -> dict[str, Mark]:
    """Return the marks of all entries below a directory, without following links.

    Args:
        root: Descriptor of the directory.
        known: Paths of the folders to descend into; None for all.
    """
    marks: dict[str, Mark] = {}
    pending = [""]
    with Folders(root) as folders:
        while pending:
            parent = pending.pop()
            folder = folders.folder(parent)
            for name in os.listdir(folder):
                path = f"{parent}/{name}" if parent else name
                if path == COPIES_FOLDER:
                    continue
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                marks[path] = mark(status)
                if stat.S_ISDIR(status.st_mode) and (known is None or path in known):
                    pending.append(path)
    return marks


def mark(status: os.stat_result) -> Mark:
    """Return the mark of an entry; that of a folder does not depend on its entries, which have marks themselves."""
    if stat.S_ISDIR(status.st_mode):
        return Mark(status.st_mode, status.st_ino, 0, 0)
    return Mark(status.st_mode, status.st_ino, status.st_size, status.st_ctime_ns)


def remove_at(parent: int, name: str) -> None:
    """Remove an entry of an open folder, however deep it is: entries of a folder are moved up before it is removed."""
    pending = [name]
    while pending:
        entry = pending.pop()
        if not stat.S_ISDIR(os.stat(entry, dir_fd=parent, follow_symlinks=False).st_mode):
            os.unlink(entry, dir_fd=parent)
            continue
        with open_folder(parent, entry) as folder:
            for child in os.listdir(folder):
                pending.append(f".lifted-{time.monotonic_ns()}-{len(pending)}")
                os.rename(child, pending[-1], src_dir_fd=folder, dst_dir_fd=parent)
        os.rmdir(entry, dir_fd=parent)


def copy_entry(source: Folders, target: Folders, path: str) -> None:
    """Copy one entry, in place if the target is of the same type, so that open files stay the same files."""
    source_folder, name = source.entry(path)
    target_folder, _ = target.entry(path)
    kind = stat.S_IFMT(os.stat(name, dir_fd=source_folder, follow_symlinks=False).st_mode)
    target_kind = kind_at(target_folder, name)
    if target_kind is not None and target_kind != kind:
        remove_at(target_folder, name)
        target_kind = None
    COPIERS[kind](source_folder, target_folder, name, exists=target_kind is not None)


def kind_at(folder: int, name: str) -> int | None:
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


def copy_folder(source: int, target: int, name: str, *, exists: bool) -> None:
    """Copy a folder without its entries, or update the mode of an existing one."""
    status = os.stat(name, dir_fd=source, follow_symlinks=False)
    if not exists:
        os.mkdir(name, 0o700, dir_fd=target)
    with open_folder(target, name) as folder:
        copy_owner(folder, status)
        os.fchmod(folder, stat.S_IMODE(status.st_mode))


def copy_link(source: int, target: int, name: str, *, exists: bool) -> None:
    """Copy a symbolic link, wherever it points to; it is not followed here."""
    status = os.stat(name, dir_fd=source, follow_symlinks=False)
    if exists:
        os.unlink(name, dir_fd=target)
    os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    if os.geteuid() == 0:
        os.chown(name, status.st_uid, status.st_gid, dir_fd=target, follow_symlinks=False)


def copy_pipe(source: int, target: int, name: str, *, exists: bool) -> None:
    """Create a named pipe, without its contents."""
    status = os.stat(name, dir_fd=source, follow_symlinks=False)
    if not exists:
        os.mkfifo(name, stat.S_IMODE(status.st_mode), dir_fd=target)
        if os.geteuid() == 0:
            os.chown(name, status.st_uid, status.st_gid, dir_fd=target, follow_symlinks=False)


def copy_file(source: int, target: int, name: str, *, exists: bool) -> None:
    """Copy a regular file with its holes, owner, mode and times."""
    with (
        regular_file(os.open(name, os.O_RDONLY | FILE_FLAGS, dir_fd=source)) as read,
        regular_file(open_for_writing(target, name)) as write,
    ):
        status = os.fstat(read)
        os.ftruncate(write, 0)
        os.ftruncate(write, status.st_size)
        position = 0
        while (position := next_data(read, position, status.st_size)) < status.st_size:
            end = min(os.lseek(read, position, os.SEEK_HOLE), status.st_size)
            while position < end and (chunk := os.pread(read, min(CHUNK_BYTES, end - position), position)):
                position += os.pwrite(write, chunk, position)
        copy_owner(write, status)
        os.fchmod(write, stat.S_IMODE(status.st_mode))
        os.utime(write, ns=(status.st_atime_ns, status.st_mtime_ns))


COPIERS = {
    stat.S_IFREG: copy_file,
    stat.S_IFDIR: copy_folder,
    stat.S_IFLNK: copy_link,
    stat.S_IFIFO: copy_pipe,
}


@contextlib.contextmanager
def regular_file(descriptor: int) -> Iterator[int]:
    """Yield the descriptor of a regular file and close it; raise `OSError` if it was replaced by something else."""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.ESTALE, "a file became something else")
        yield descriptor
    finally:
        os.close(descriptor)


def open_for_writing(folder: int, name: str) -> int:
    """Open a file for writing; a file that is read-only for its owner is replaced."""
    flags = os.O_WRONLY | os.O_CREAT | FILE_FLAGS
    try:
        return os.open(name, flags, 0o600, dir_fd=folder)
    except PermissionError:
        os.unlink(name, dir_fd=folder)
        return os.open(name, flags, 0o600, dir_fd=folder)


def copy_owner(descriptor: int, status: os.stat_result) -> None:
    """Give a copy the owner of the original; only root can."""
    if os.geteuid() == 0:
        os.fchown(descriptor, status.st_uid, status.st_gid)


def next_data(descriptor: int, position: int, size: int) -> int:
    """Return where the next data begins; `size` if there is none."""
    try:
        return os.lseek(descriptor, position, os.SEEK_DATA)
    except OSError:
        return size
