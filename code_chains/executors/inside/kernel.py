"""The kernel's calls that Python has no words for."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from typing import Any

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 4, 36, 38, 22
PR_CAPBSET_DROP = 24

libc = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


def check(result: int, what: str) -> int:
    """The result of a call, or its `OSError`."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def call(number: int, *arguments: Any) -> int:
    """A system call by its number; -1 when it fails or this is not Linux."""
    if libc is None:
        return -1
    plain = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return int(libc.syscall(ctypes.c_long(number), *plain))


def prctl(option: int, *values: Any) -> int:
    """Linux's prctl; -1 elsewhere."""
    if libc is None:
        return -1
    arguments = [value if isinstance(value, ctypes.Array) else ctypes.c_ulong(value) for value in values]
    arguments += [ctypes.c_ulong(0)] * (4 - len(arguments))
    return int(libc.prctl(option, *arguments))


def unshare(flags: int) -> None:
    """Leave shared namespaces for new ones."""
    check(libc.unshare(flags) if libc else -1, "unshare")


def enter(namespace: int, kind: int) -> None:
    """Join a namespace by its descriptor."""
    check(libc.setns(namespace, kind) if libc else -1, "setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Mount a file system, or a part of one, in this process's view."""
    texts = [None if text is None else text.encode() for text in (source, target, kind)]
    data = None if options is None else options.encode()
    check(libc.mount(*texts, ctypes.c_ulong(flags), data) if libc else -1, f"mount of {target}")


def map_user(uid: int, gid: int) -> None:
    """Be user 1000 in a new user namespace."""
    for path, text in (("setgroups", "deny"), ("uid_map", f"1000 {uid} 1"), ("gid_map", f"1000 {gid} 1")):
        with open(f"/proc/self/{path}", "w", encoding="ascii") as file:
            file.write(text)


def drop_capabilities() -> None:
    """Give up every capability for good."""
    header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    check(
        call({"x86_64": 126, "aarch64": 91}.get(platform.machine(), -1), header, ctypes.create_string_buffer(24)),
        "capset",
    )
