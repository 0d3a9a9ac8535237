"""Open files of a session's state, which its forks share: what a failed run did to them is undone before the next one.

Processes that are forked share positions, flags and locks of open files, the contents of pipes, and memory that is mapped
by both. A state that is to run a program in a fork notes them first; if it is asked again, they are restored.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import sys
from collections.abc import Collection
from dataclasses import dataclass

from ..kernel.polling import readable

if sys.platform != "win32":  # It is imported there, and not used.
    import fcntl
    import resource

FIRST = 3
MAX_BYTES = 64 << 20
"""Bytes of all unnamed and mapped files that are kept."""
LOCKS = {"": 8, "READ": 1 | 4, "WRITE": 2 | 4}
"""Operations of `flock` by the kernel's name of a lock: release it, or take it without waiting."""
Kept = dict[int, "File | Stream | str"]
"""What is restored, by its descriptor; the name of what cannot be."""


@dataclass
class File:
    """A regular file as it was.

    Attributes:
        path: Its path.
        links: Number of its names.
        position: The position.
        flags: The flags of its descriptor.
        lock: The kernel's name of its lock; empty without one.
        content: What is in it if nobody else could restore that, as it is mapped or has no name.
    """

    path: str
    links: int
    position: int
    flags: int
    lock: str
    content: bytes | None = None

    def restore(self, descriptor: int) -> None:
        """Make an open file what it was."""
        with contextlib.suppress(OSError):
            if self.links and identity(os.stat(self.path)) != identity(os.fstat(descriptor)):
                self.reopen(descriptor)
        if self.content is not None and os.pread(descriptor, len(self.content) + 1, 0) != self.content:
            os.pwrite(descriptor, self.content, 0)
            os.ftruncate(descriptor, len(self.content))
        os.lseek(descriptor, self.position, os.SEEK_SET)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, self.flags)
        if lock_of(descriptor) != self.lock:
            fcntl.flock(descriptor, LOCKS[self.lock])

    def reopen(self, descriptor: int) -> None:
        """Open it anew, as another file was restored in its place."""
        file = os.open(self.path, self.flags & ~(os.O_CREAT | os.O_EXCL | os.O_TRUNC))
        os.dup2(file, descriptor, inheritable=os.get_inheritable(descriptor))
        os.close(file)


@dataclass
class Stream:
    """The reading end of a pipe, or of a pair of sockets, whose other end is in this process, too.

    Attributes:
        writer: Descriptor of the other end.
        flags: The flags of its descriptor.
        content: What waits in it.
    """

    writer: int
    flags: int
    content: bytes

    def restore(self, descriptor: int) -> None:
        """Put back what was in it."""
        drain(descriptor)
        if self.content:
            os.write(self.writer, self.content)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, self.flags)


def keep(kept: Kept | None, own: Collection[int]) -> Kept:
    """Note what is open, or restore it if it was noted before. Nothing else of this session may run.

    Args:
        kept: What was noted.
        own: Descriptors that are not the program's.
    """
    if kept is None:
        kept = {}
        with contextlib.suppress(OSError):
            kept = note(own)
        return kept
    for descriptor, file in kept.items():
        # Invariant: a library that closes its files in a fork, as matplotlib does its fonts, leaves their numbers to ours.
        if descriptor not in own and not isinstance(file, str):
            with contextlib.suppress(OSError):
                file.restore(descriptor)
    return kept


def warn(kept: Kept | None) -> None:
    """Say which open files of the state keep what a failed run did to them."""
    names = [file for file in (kept or {}).values() if isinstance(file, str)]
    if names:
        os.write(2, f"\nNot rolled back, if this run used it: {', '.join(names)}\n".encode())


def note(own: Collection[int]) -> Kept:
    """Return what is open."""
    statuses: dict[int, os.stat_result] = {}
    for descriptor in descriptors():
        with contextlib.suppress(OSError):  # That of the listing is closed by now.
            if descriptor >= FIRST and descriptor not in own:
                statuses[descriptor] = os.fstat(descriptor)
    kept: Kept = {}
    is_writable = any(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_RDWR for descriptor in statuses)
    room, mapped = MAX_BYTES, mapped_files(statuses) if is_writable else set[int]()
    for descriptor, status in statuses.items():
        with contextlib.suppress(OSError):
            if stat.S_ISREG(status.st_mode):
                is_lost = not status.st_nlink or status.st_ino in mapped
                kept[descriptor] = note_file(descriptor, status, room if is_lost else None)
                room -= status.st_size if is_lost and isinstance(kept[descriptor], File) else 0
            elif (writer := other_end(descriptor, statuses)) is not None:
                kept[descriptor] = note_stream(descriptor, writer)
            elif stat.S_ISSOCK(status.st_mode):
                kept[descriptor] = path_of(descriptor)
    return kept


def note_file(descriptor: int, status: os.stat_result, room: int | None) -> File | str:
    """Return a regular file as it is, or its name if it is too large.

    The locks of this process are released, as its forks believe to have them.

    Args:
        descriptor: Its descriptor.
        status: Its status.
        room: Bytes that may be kept of what nobody else restores; None if somebody does.
    """
    fcntl.lockf(descriptor, fcntl.LOCK_UN)
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    is_kept = room is not None and bool(flags & os.O_RDWR)
    path = path_of(descriptor)
    if is_kept and status.st_size > (room or 0):
        return path
    return File(
        path,
        status.st_nlink,
        os.lseek(descriptor, 0, os.SEEK_CUR),
        flags,
        lock_of(descriptor),
        os.pread(descriptor, status.st_size, 0) if is_kept else None,
    )


def note_stream(descriptor: int, writer: int) -> Stream:
    """Return a stream as it is."""
    stream = Stream(writer, fcntl.fcntl(descriptor, fcntl.F_GETFL), drain(descriptor))
    stream.restore(descriptor)
    return stream


def identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


# Under Landlock alone there is no /proc.


def descriptors() -> list[int]:
    with contextlib.suppress(OSError):
        return list(map(int, os.listdir("/proc/self/fd")))
    return list(range(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))


def path_of(descriptor: int) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/self/fd/{descriptor}")
    return "a file"


def lock_of(descriptor: int) -> str:
    with contextlib.suppress(OSError), open(f"/proc/self/fdinfo/{descriptor}") as file:
        found = re.search(r"FLOCK +ADVISORY +(READ|WRITE)", file.read())
        return found[1] if found else ""
    return ""


def mapped_files(statuses: dict[int, os.stat_result]) -> set[int]:
    """Return the inodes of files that are mapped so that others see what is written; where that is unknown, of all."""
    with contextlib.suppress(OSError), open("/proc/self/maps") as file:
        return {int(inode) for inode in re.findall(r"^\S+ .w.s \S+ \S+ (\d+)", file.read(), re.MULTILINE)}
    return {status.st_ino for status in statuses.values()}


def other_end(descriptor: int, statuses: dict[int, os.stat_result]) -> int | None:
    """Return the descriptor that what can be read from this one is written to; None if it is not in this process.

    The two sockets of a pair are made one after the other, and so are their inodes numbered.
    """
    status = statuses[descriptor]
    if stat.S_ISFIFO(status.st_mode):
        ends = [other for other, found in statuses.items() if identity(found) == identity(status)]
        is_reader = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
        writers = [end for end in ends if fcntl.fcntl(end, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY]
        return writers[0] if is_reader and writers else None
    if not stat.S_ISSOCK(status.st_mode) or not is_nameless(descriptor):
        return None
    places = [
        other
        for other, found in statuses.items()
        if stat.S_ISSOCK(found.st_mode) and abs(found.st_ino - status.st_ino) == 1 and is_nameless(other)
    ]
    return places[0] if len(places) == 1 else None


def is_nameless(descriptor: int) -> bool:
    """Return whether it is a stream between two sockets of this machine that have no address."""
    with socket.socket(fileno=os.dup(descriptor)) as end:
        return end.family == socket.AF_UNIX and end.type == socket.SOCK_STREAM and not end.getsockname()


def drain(descriptor: int) -> bytes:
    """Return what waits in a stream, which is empty then."""
    content = b""
    while readable([descriptor], 0) and (part := os.read(descriptor, 1 << 20)):
        content += part
    return content
