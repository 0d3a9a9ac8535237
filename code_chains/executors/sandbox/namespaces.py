"""Build a sandbox out of Linux namespaces and start a program in it, as bubblewrap does, where bubblewrap is missing.

Usage: namespaces.py SPEC (number of an open descriptor with the sandbox as JSON). It needs no privileges: if
    the caller is
not root, a user namespace grants them. The steps are those of bubblewrap: new namespaces, a small root on a
tmpfs with read-only binds, `pivot_root`, and a first process whose death ends everything else.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER = 0x00020000, 0x04000000, 0x08000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_RDONLY, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 1, 4096, 16384, 1 << 18
MNT_DETACH, AT_FDCWD, AT_RECURSIVE = 2, -100, 0x8000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
SYS_pivot_root: dict[str, int] = {"x86_64": 155, "aarch64": 41}
SYS_mount_setattr = 442
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
NOBODY = 65534
DEVICES = ("null", "full", "random", "urandom")
DEVICE_LINKS = (("/proc/self/fd", "fd"), ("/proc/self/fd/0", "stdin"), ("/proc/self/fd/1", "stdout"))
ZERO_BYTES = 1 << 20
HOSTNAME = b"sandbox"

libc: ctypes.CDLL = ctypes.CDLL(None, use_errno=True)


def main(argv: list[str]) -> None:
    with os.fdopen(int(argv[0]), encoding="utf-8") as file:
        file.seek(0)
        spec = json.load(file)
    unshare_all()
    check(libc.sethostname(HOSTNAME, len(HOSTNAME)), "sethostname")
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        try:
            build(spec)
            os.execv(spec["argv"][0], spec["argv"])
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(71)
    for descriptor in spec["descriptors"]:
        os.close(descriptor)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


def unshare_all() -> None:
    """Enter new namespaces: as root, or if it may not, as another user in a user namespace of its own."""
    flags = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
    if os.geteuid() == 0:
        if libc.unshare(flags) == 0:
            return
        become_nobody()
    uid, gid = os.geteuid(), os.getegid()
    check(libc.unshare(flags | CLONE_NEWUSER), "unshare")
    map_user(uid, gid)


def become_nobody() -> None:
    """Become another user: root without capabilities, as in most containers, still owns the kernel's settings."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # Otherwise its map of users cannot be written.


def map_user(uid: int, gid: int) -> None:
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"1000 {uid} 1")
    write("/proc/self/gid_map", f"1000 {gid} 1")


def build(spec: dict[str, Any]) -> None:
    """Create the root file system of the sandbox and enter it."""
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")
    os.mkdir("/tmp/old")
    os.mkdir("/tmp/new")
    pivot_root("/tmp", "/tmp/old")  # Now every source is below /old, including what was in /tmp.
    os.chdir("/")
    mount("/new", "/new", None, MS_BIND)
    for path in spec["folders"]:
        os.makedirs("/new" + path, exist_ok=True)
    for source, target in spec["binds"]:
        bind("/old" + source, "/new" + target)
    for target, link in spec["links"]:
        os.makedirs(os.path.dirname("/new" + link), exist_ok=True)
        os.symlink(target, "/new" + link)
    for path, text in spec["files"]:
        os.makedirs(os.path.dirname("/new" + path), exist_ok=True)
        write("/new" + path, text)
    make_devices()
    os.makedirs("/new/proc", exist_ok=True)
    mount("proc", "/new/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    set_attributes("/new", MOUNT_ATTR_RDONLY, recursive=False)
    os.chdir("/new")
    pivot_root(".", ".")
    check(libc.umount2(b".", MNT_DETACH), "umount of the old root")
    os.chdir("/")


def make_devices() -> None:
    os.makedirs("/new/dev", exist_ok=True)
    for name in DEVICES:
        write(f"/new/dev/{name}", "")
        mount(f"/old/dev/{name}", f"/new/dev/{name}", None, MS_BIND)
    write("/new/dev/zero", "\0" * ZERO_BYTES)  # Shared memory of the real device would escape every limit.
    for target, link in DEVICE_LINKS:
        os.symlink(target, f"/new/dev/{link}")


def bind(source: str, target: str) -> None:
    """Bind a file or directory of the host at a path in the sandbox, read-only with everything below it."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        write(target, "")
    mount(source, target, None, MS_BIND | MS_REC)
    set_attributes(target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, recursive=True)


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    arguments = [None if value is None else value.encode() for value in (source, target, kind)]
    data = options.encode() if options else None
    check(libc.mount(*arguments, ctypes.c_ulong(flags), data), f"mount of {target}")


def set_attributes(target: str, attributes: int, *, recursive: bool) -> None:
    attr = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    flags = AT_RECURSIVE if recursive else 0
    result = libc.syscall(SYS_mount_setattr, AT_FDCWD, target.encode(), flags, attr, ctypes.sizeof(attr))
    check(result, f"read-only mount of {target}")


def pivot_root(new: str, old: str) -> None:
    check(libc.syscall(SYS_pivot_root[os.uname().machine], new.encode(), old.encode()), "pivot_root")


def check(result: int, name: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as failure:
        sys.stderr.write(f"{failure.strerror}\n")
        os._exit(71)
