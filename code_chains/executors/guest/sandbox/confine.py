"""Limit the program's process, and probe whether it can get out."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import resource
import socket
import struct
from collections.abc import Callable, Sequence

from ..kernel.syscalls import call, libc
from ..wire import SHORTAGES, Json
from .config import RunLimits

SPARE_FILES = 1024
"""Files that the worker and what it forks may open beyond the limit of a program; see `set_program_limits`."""
SPARE_PROCESSES = 16
"""Processes of a run beyond its limit that the kernel allows, as the supervisor counts them more precisely."""
MAX_NEW_PROCESSES = 128
"""Processes and threads that a user may start elsewhere while a sandbox of theirs without namespaces is open."""
MAX_PENDING_SIGNALS = 1024
"""Signals that wait to be received; the kernel counts them for all processes of the user, the app among them."""
STACK_BYTES = 8 << 20
"""Stack of a process; a program's arguments may take a quarter of it, which is noticed late."""
DEFAULT_MEMORY_BYTES = 256 << 20
"""Assumed memory of this process if it cannot be read."""
CONNECT_TIMEOUT_S = 0.5
SYS_process_vm_readv: dict[str, int] = {"x86_64": 310, "aarch64": 270}
IPC_STAT, SHM_RDONLY = 2, 0o10000
SOCKET_MAKERS: tuple[Callable[[int, int], Sequence[socket.socket]], ...] = (
    lambda family, kind: (socket.socket(family, kind),),
    socket.socketpair,
)
UNCONNECTED = [(kind, make) for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW) for make in SOCKET_MAKERS]
"""Sockets that need no connection, and how they are made."""
_BYTE = ctypes.create_string_buffer(1)
_VECTOR = ctypes.create_string_buffer(struct.pack("PL", ctypes.addressof(_BYTE), 1))


def allow_open_files(limits: RunLimits) -> None:
    """Let this process and its forks open more files than a program may; by default it is often fewer than it could."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limits["open_files"] + SPARE_FILES
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    if resource.RLIM_INFINITY != soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def set_limits(limits: RunLimits, *, confined: bool, others: int = 0, own_process: int | None = None) -> None:
    """Limit what this process and its forks may use from now on, except for what `set_program_limits` does.

    The supervisor limits all processes of a run together.

    Args:
        limits: The limits of the run.
        confined: Whether the program is isolated.
        others: Processes and threads that the kernel counts together with those of the run.
        own_process: Descriptor of this process's directory in /proc, if it is not in the /proc that it sees.
    """
    address_bytes, data_bytes = memory_in_use(own_process)
    for kind, value in (
        (resource.RLIMIT_CORE, 1),  # Not 0: with that, core dumps would still be piped to a handler.
        (resource.RLIMIT_FSIZE, limits["disk"]),
        (resource.RLIMIT_NPROC, limits["processes"] + SPARE_PROCESSES + others if confined else None),
        (resource.RLIMIT_DATA, limits["memory"] + data_bytes),
        (resource.RLIMIT_AS, limits["memory"] + address_bytes + (2 << 30)),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, MAX_PENDING_SIGNALS if confined else None),
        (resource.RLIMIT_STACK, STACK_BYTES if confined else None),
    ):
        if value is not None:
            set_limit(kind, value)


def set_program_limits(limits: RunLimits) -> None:
    """Limit what only a program's process may not use: processor time, which counts from its start, and open files.

    Invariant: what forks or supervises programs may open more files than any of them. The kernel refuses to pass descriptors
    on if so many are on their way between any processes of its user.
    """
    set_limit(resource.RLIMIT_CPU, int(limits["seconds"] * limits["processes"]) + 2)
    set_limit(resource.RLIMIT_NOFILE, max(32, limits["open_files"]))


def set_limit(kind: int, value: int) -> None:
    with contextlib.suppress(ValueError, OSError):  # A lower limit is in force already.
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def count_others() -> int:
    """Return an upper bound of the processes and threads of this process's user, which RLIMIT_NPROC counts as well.

    Invariant: a fork bomb ends at a number that can be killed, and a user's other programs never end a run.
    """
    count, user = MAX_NEW_PROCESSES, os.getuid()
    with os.scandir("/proc") as processes:
        for entry in processes:
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and entry.stat().st_uid == user:
                    count += os.stat(f"{entry.path}/task").st_nlink - 2
    return count


def memory_in_use(own_process: int | None = None) -> tuple[int, int]:
    """Return the bytes of this process's address space, and those of its data and stack; see `set_limits`."""
    path = "/proc/self/statm" if own_process is None else "statm"
    try:
        with open(os.open(path, os.O_RDONLY, dir_fd=own_process), "rb") as file:
            pages = file.read().split()
        return int(pages[0]) * mmap.PAGESIZE, int(pages[5]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return DEFAULT_MEMORY_BYTES, DEFAULT_MEMORY_BYTES


def probe(canaries: Json, *, is_namespaced: bool) -> dict[str, bool]:
    """Try to get out by ordinary means; True is what was found closed.

    Args:
        canaries: What to reach; empty for nothing.
        is_namespaced: Whether the supervisor is the first process of a pid namespace.
    """
    if not canaries:
        return {}
    path, pid = canaries["file"], canaries["pid"]
    # In a namespace of its own, the same pid is another process.
    is_foreign = pid not in (1, os.getpid(), os.getppid())
    return {
        "filesystem": not can_open(path, os.O_RDONLY)
        and not can_open(path + ".made", os.O_CREAT | os.O_WRONLY)
        and not succeeds(lambda: os.truncate(path, canaries["size"])),
        "network": not succeeds(lambda: connect(canaries["port"]))
        and not any(can_send_to(canaries["socket"], kind, make) for kind, make in UNCONNECTED),
        "processes": is_alone(is_namespaced=is_namespaced)
        or not succeeds(lambda: os.listdir(f"/proc/{pid}/fd")),
        "environment": os.environ.keys() <= set(canaries["environment"])
        and not has_inherited_variables(canaries),
        "signals": not (is_foreign and succeeds(lambda: os.kill(pid, 0))),
        "ptrace": not (is_foreign and can_read_memory(pid)),
        "ipc": not succeeds(lambda: attach(canaries["segment"]))
        and not succeeds(lambda: stat_segment(canaries["segment"]))
        and not can_send_to(f"{canaries['exposed']}/mailbox", *UNCONNECTED[0])
        and not can_open(f"{canaries['exposed']}/fifo", os.O_WRONLY | os.O_NONBLOCK),
    }


def can_open(path: str, flags: int) -> bool:
    """Return whether a file can be opened."""
    try:
        os.close(os.open(path, flags | os.O_CLOEXEC))
    except OSError as error:
        return is_undecided(error)
    return True


def succeeds(action: Callable[[], object]) -> bool:
    try:
        action()
    except OSError as error:
        return is_undecided(error)
    return True


def is_undecided(error: OSError) -> bool:
    """Raise an error that comes of a shortage, and so says nothing of what is closed; return False for any other."""
    if error.errno in SHORTAGES:
        raise error
    return False


def connect(port: int) -> None:
    """Connect to a port; a timeout counts as success."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client, contextlib.suppress(TimeoutError):
        client.settimeout(CONNECT_TIMEOUT_S)
        client.connect(("127.0.0.1", port))


def can_send_to(path: str, kind: int, make: Callable[[int, int], Sequence[socket.socket]]) -> bool:
    """Return whether a socket with a path can be reached from a socket that needs no connection."""
    try:
        sockets = make(socket.AF_UNIX, kind)
    except OSError as error:
        return is_undecided(error)
    try:
        sockets[0].sendto(b"", path)
    except OSError as error:
        return is_undecided(error)
    finally:
        for end in sockets:
            end.close()
    return True


def can_read_memory(pid: int) -> bool:
    """Return whether a process's memory may be read; an unmapped address does not count as denied."""
    number = SYS_process_vm_readv.get(platform.machine(), -1)
    is_refused = call(number, pid, _VECTOR, 1, _VECTOR, 1, 0) < 0
    return not (is_refused and ctypes.get_errno() in (errno.EPERM, errno.ESRCH))


def attach(segment: int) -> None:
    """Map a segment of System V shared memory; raise `OSError` if that is refused."""
    if segment < 0 or libc is None:
        raise OSError
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(segment, None, SHM_RDONLY)
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "shmat")
    libc.shmdt(ctypes.c_void_p(address))


def stat_segment(segment: int) -> None:
    """Read the status of a segment of System V shared memory; raise `OSError` if that is refused."""
    if segment < 0 or libc is None or libc.shmctl(segment, IPC_STAT, ctypes.create_string_buffer(256)) < 0:
        raise OSError


def is_alone(*, is_namespaced: bool) -> bool:
    """Return whether every visible process is the supervisor or this one.

    Args:
        is_namespaced: Whether the supervisor is the first process of a pid namespace.
    """
    try:
        visible = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    except OSError:
        return True
    expected = {os.getpid()}
    # Then its parent is in another pid namespace.
    if os.getppid() == 1 or (os.getppid() == 0 and is_namespaced):
        expected.add(1)
    return visible <= expected


def has_inherited_variables(canaries: Json) -> bool:
    """Return whether this process was started with environment variables of the host."""
    try:
        with open("/proc/self/environ", "rb") as file:
            names = {entry.partition(b"=")[0].decode() for entry in file.read().split(b"\0") if entry}
    except OSError:
        return False
    return not names <= set(canaries["environment"])
