"""System calls that Python does not offer."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable
from typing import Any

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_NOATIME = 1, 2, 4, 8, 32, 1024
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = (
    1,
    4,
    36,
    38,
    22,
)
PR_CAPBSET_DROP, PR_SET_PTRACER = 24, 0x59616D61
SYS_capset: dict[str, int] = {"x86_64": 126, "aarch64": 91}
SYS_sched_setattr: dict[str, int] = {"x86_64": 314, "aarch64": 274}
SCHED_FLAG_RESET_ON_FORK, SLICE_NS = 1, 100_000
"""Time that a process gets at once if it wants to wait least."""
LINUX_CAPABILITY_VERSION_3 = 0x20080522
CAPABILITY_DATA_BYTES = 24
"""Size of two `struct __user_cap_data_struct`."""
MAX_CAPABILITIES = 64
SANDBOX_UID = 1000
MAX_DESCRIPTORS = 1 << 16

libc: ctypes.CDLL | None = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


def check(result: int, name: str) -> int:
    """Return the result of a system call; raise `OSError` if it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def call(number: int, *arguments: Any) -> int:
    """Make a system call by its number; return -1 if it fails or this is not Linux."""
    if libc is None:
        return -1
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return int(libc.syscall(ctypes.c_long(number), *converted))


def prctl(option: int, *values: Any) -> int:
    """Call Linux's prctl; return -1 elsewhere."""
    if libc is None:
        return -1
    arguments = [value if isinstance(value, ctypes.Array) else ctypes.c_ulong(value) for value in values]
    arguments += [ctypes.c_ulong(0)] * (4 - len(arguments))
    return int(libc.prctl(option, *arguments))


def unshare(flags: int) -> None:
    """Leave shared namespaces for new ones."""
    check(libc.unshare(flags) if libc else -1, "unshare")


def setns(namespace: int, kind: int) -> None:
    """Join a namespace by its descriptor."""
    check(libc.setns(namespace, kind) if libc else -1, "setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Mount a file system, or a part of one, in this process's mount namespace."""
    texts = [None if text is None else text.encode() for text in (source, target, kind)]
    data = None if options is None else options.encode()
    check(libc.mount(*texts, ctypes.c_ulong(flags), data) if libc else -1, f"mount of {target}")


def unmount(target: str) -> None:
    """Unmount a file system, even if it is in use."""
    check(libc.umount2(target.encode(), MNT_DETACH) if libc else -1, f"umount of {target}")


def map_user(uid: int, gid: int, own_process: int | None = None) -> None:
    """Map a user and a group of the parent namespace to 1000 in a new user namespace.

    Args:
        uid: The user.
        gid: The group.
        own_process: Descriptor of this process's directory in /proc, if it is not in the /proc that it sees.
    """
    maps = (
        ("setgroups", "deny"),
        ("uid_map", f"{SANDBOX_UID} {uid} 1"),
        ("gid_map", f"{SANDBOX_UID} {gid} 1"),
    )
    for path, text in maps:
        name = path if own_process is not None else f"/proc/self/{path}"
        descriptor = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=own_process)
        os.write(descriptor, text.encode())
        os.close(descriptor)


def set_file_user(uid: int, gid: int) -> None:
    """Change the user and the group of this process's accesses to files, such as those in `/proc`."""
    if libc is not None:
        libc.setfsgid(ctypes.c_uint(gid))
        libc.setfsuid(ctypes.c_uint(uid))


def wake_early() -> None:
    """Ask for a processor soon whenever there is something to do, for a short time; older kernels ignore it.

    What this process forks is scheduled as usual.
    """
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = struct.pack("IIQiIQQQ", 48, 0, SCHED_FLAG_RESET_ON_FORK, nice, 0, SLICE_NS, 0, 0)
    call(SYS_sched_setattr.get(platform.machine(), -1), 0, ctypes.create_string_buffer(attributes), 0)


def close_others(kept: Iterable[int]) -> None:
    """Close all descriptors but those of the standard streams, and `kept`."""
    low = 3
    for descriptor in sorted(kept):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, MAX_DESCRIPTORS)


def drop_capabilities() -> None:
    """Drop every capability irrevocably."""
    header = ctypes.create_string_buffer(struct.pack("Ii", LINUX_CAPABILITY_VERSION_3, 0))
    number = SYS_capset.get(platform.machine(), -1)
    check(call(number, header, ctypes.create_string_buffer(CAPABILITY_DATA_BYTES)), "capset")


def change_user(uid: int) -> None:
    """Become another user than root irrevocably, without any capability."""
    os.setgroups([])
    for number in range(MAX_CAPABILITIES):
        prctl(PR_CAPBSET_DROP, number)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    drop_capabilities()
