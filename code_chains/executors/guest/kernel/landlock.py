"""Restrict a process to paths with Landlock. See https://docs.kernel.org/userspace-api/landlock.html."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from .syscalls import PR_SET_NO_NEW_PRIVS, call, prctl

SYS_landlock_create_ruleset = 444
SYS_landlock_add_rule = 445
SYS_landlock_restrict_self = 446
LANDLOCK_CREATE_RULESET_VERSION, LANDLOCK_RULE_PATH_BENEATH = 1, 1
ACCESS_FS_EXECUTE, ACCESS_FS_WRITE_FILE, ACCESS_FS_READ_FILE, ACCESS_FS_READ_DIR = (
    1 << 0,
    1 << 1,
    1 << 2,
    1 << 3,
)
ACCESS_FS_REMOVE_DIR, ACCESS_FS_REMOVE_FILE, ACCESS_FS_MAKE_CHAR, ACCESS_FS_MAKE_DIR = (
    1 << 4,
    1 << 5,
    1 << 6,
    1 << 7,
)
ACCESS_FS_MAKE_REG, ACCESS_FS_MAKE_SOCK, ACCESS_FS_MAKE_FIFO, ACCESS_FS_MAKE_BLOCK = (
    1 << 8,
    1 << 9,
    1 << 10,
    1 << 11,
)
ACCESS_FS_MAKE_SYM, ACCESS_FS_REFER, ACCESS_FS_TRUNCATE, ACCESS_FS_IOCTL_DEV = (
    1 << 12,
    1 << 13,
    1 << 14,
    1 << 15,
)
ACCESS_NET_BIND_TCP, ACCESS_NET_CONNECT_TCP = 1 << 0, 1 << 1
SCOPE_ABSTRACT_UNIX_SOCKET, SCOPE_SIGNAL = 1 << 0, 1 << 1

READ_RIGHTS = ACCESS_FS_EXECUTE | ACCESS_FS_READ_FILE | ACCESS_FS_READ_DIR
FILE_RIGHTS = (
    ACCESS_FS_EXECUTE | ACCESS_FS_WRITE_FILE | ACCESS_FS_READ_FILE | ACCESS_FS_TRUNCATE | ACCESS_FS_IOCTL_DEV
)
"""What a rule for a single file can grant."""
RIGHTS_SINCE: dict[int, tuple[int, ...]] = {
    1: (
        *(
            ACCESS_FS_EXECUTE,
            ACCESS_FS_WRITE_FILE,
            ACCESS_FS_READ_FILE,
            ACCESS_FS_READ_DIR,
            ACCESS_FS_REMOVE_DIR,
        ),
        *(
            ACCESS_FS_REMOVE_FILE,
            ACCESS_FS_MAKE_CHAR,
            ACCESS_FS_MAKE_DIR,
            ACCESS_FS_MAKE_REG,
            ACCESS_FS_MAKE_SOCK,
        ),
        *(ACCESS_FS_MAKE_FIFO, ACCESS_FS_MAKE_BLOCK, ACCESS_FS_MAKE_SYM),
    ),
    2: (ACCESS_FS_REFER,),
    3: (ACCESS_FS_TRUNCATE,),
    5: (ACCESS_FS_IOCTL_DEV,),
}
"""Rights on files by the version of Landlock that introduced them."""
NETWORK_VERSION, SCOPE_VERSION = 4, 6
"""Versions that introduced rights on TCP, and scopes of signals and abstract sockets."""
MIN_VERSION = 3
"""The first version that also protects read-only files from `truncate`: Linux 6.2."""
RULESET_BYTES = {1: 8, NETWORK_VERSION: 16, SCOPE_VERSION: 24}
"""Size of `struct landlock_ruleset_attr`, by the version that introduced it."""


def version() -> int:
    """Return the kernel's version of Landlock; below 1 if it has none."""
    return call(SYS_landlock_create_ruleset, None, 0, LANDLOCK_CREATE_RULESET_VERSION)


def restrict(readable: Iterable[str], writable: Iterable[str], *, network: bool) -> int:
    """Restrict this process irrevocably to these paths, and to its own signals and abstract sockets if possible.

    Returns:
        The version in force; 0 if there is none.
    """
    supported = version()
    if supported < 1:
        return 0
    files = _file_rights(supported)
    net = ACCESS_NET_BIND_TCP | ACCESS_NET_CONNECT_TCP if supported >= NETWORK_VERSION and not network else 0
    scopes = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL if supported >= SCOPE_VERSION else 0
    attributes = ctypes.create_string_buffer(struct.pack("QQQ", files, net, scopes))
    size = max(size for since, size in RULESET_BYTES.items() if since <= supported)
    ruleset = call(SYS_landlock_create_ruleset, attributes, size, 0)
    if ruleset < 0:
        return 0
    try:
        for paths, rights in ((readable, READ_RIGHTS & files), (writable, files)):
            for path in paths:
                _allow(ruleset, path, rights)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        return supported if call(SYS_landlock_restrict_self, ruleset, 0) == 0 else 0
    finally:
        os.close(ruleset)


def _file_rights(supported: int) -> int:
    """Return all rights on files that a version can restrict."""
    return sum(right for since, rights in RIGHTS_SINCE.items() if since <= supported for right in rights)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= FILE_RIGHTS
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, descriptor))
        call(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)
