"""Restrict system calls with seccomp: a classic BPF filter.

Calls that are not on the list are denied, including those that nobody has thought of. The list is what
ordinary programs, numeric libraries and the interpreter need. See
https://docs.kernel.org/userspace-api/seccomp_filter.html.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import signal
import socket
import struct
import sys
from collections.abc import Collection, Iterable
from functools import cache

from .syscalls import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    PR_SET_PTRACER,
    PR_SET_SECCOMP,
    prctl,
)

# Numbers on x86_64 and aarch64; None where the call does not exist.
ALLOWED: dict[str, tuple[int | None, int | None]] = {
    # Files and folders.
    "read": (0, 63), "write": (1, 64), "pread64": (17, 67), "pwrite64": (18, 68), "readv": (19, 65),
    "writev": (20, 66), "preadv": (295, 69), "pwritev": (296, 70), "preadv2": (327, 286), "pwritev2": (328, 287),
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "creat": (85, None), "close": (3, 57),
    "close_range": (436, 436), "lseek": (8, 62), "stat": (4, None), "fstat": (5, 80), "lstat": (6, None),
    "newfstatat": (262, 79), "statx": (332, 291), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "getdents": (78, None), "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49),
    "fchdir": (81, 50), "readlink": (89, None), "readlinkat": (267, 78), "mkdir": (83, None), "mkdirat": (258, 34),
    "rmdir": (84, None), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "link": (86, None),
    "linkat": (265, 37), "unlink": (87, None), "unlinkat": (263, 35), "symlink": (88, None), "symlinkat": (266, 36),
    "mknod": (133, None), "mknodat": (259, 33), "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "umask": (95, 166), "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "truncate": (76, 45), "ftruncate": (77, 46), "fallocate": (285, 47), "fsync": (74, 82), "fdatasync": (75, 83),
    "sync_file_range": (277, 84), "copy_file_range": (326, 285), "sendfile": (40, 71), "splice": (275, 76),
    "tee": (276, 77), "readahead": (187, 213), "fadvise64": (221, 223), "cachestat": (451, 451), "flock": (73, 32),
    "statfs": (137, 43), "fstatfs": (138, 44), "fcntl": (72, 25), "ioctl": (16, 29), "dup": (32, 23),
    "dup2": (33, None), "dup3": (292, 24), "getxattr": (191, 8), "lgetxattr": (192, 9), "fgetxattr": (193, 10),
    "listxattr": (194, 11), "llistxattr": (195, 12), "flistxattr": (196, 13), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    # Memory.
    "brk": (12, 214), "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226),
    "madvise": (28, 233), "msync": (26, 227), "mincore": (27, 232), "mlock": (149, 228), "mlock2": (325, 284),
    "munlock": (150, 229), "mseal": (462, 462), "membarrier": (324, 283), "pkey_alloc": (330, 289),
    "pkey_free": (331, 290), "pkey_mprotect": (329, 288), "get_mempolicy": (239, 236), "set_mempolicy": (238, 237),
    "mbind": (237, 235), "map_shadow_stack": (453, None),
    # Processes and threads.
    "clone": (56, 220), "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "exit": (60, 93), "exit_group": (231, 94), "wait4": (61, 260), "waitid": (247, 95), "getpid": (39, 172),
    "getppid": (110, 173), "gettid": (186, 178), "getpgid": (121, 155), "setpgid": (109, 154), "getpgrp": (111, None),
    "getsid": (124, 156), "setsid": (112, 157), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176),
    "getegid": (108, 177), "getresuid": (118, 148), "getresgid": (120, 150), "getgroups": (115, 158),
    "capget": (125, 90), "set_tid_address": (218, 96), "set_robust_list": (273, 99), "get_robust_list": (274, 100),
    "rseq": (334, 293), "arch_prctl": (158, None), "prctl": (157, 167), "getrlimit": (97, 163),
    "setrlimit": (160, 164), "prlimit64": (302, 261), "getrusage": (98, 165), "times": (100, 153),
    "sysinfo": (99, 179), "uname": (63, 160), "getcpu": (309, 168), "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123), "sched_setaffinity": (203, 122), "sched_getscheduler": (145, 120),
    "sched_setscheduler": (144, 119), "sched_getparam": (143, 121), "sched_setparam": (142, 118),
    "sched_getattr": (315, 275), "sched_setattr": (314, 274), "sched_get_priority_max": (146, 125),
    "sched_get_priority_min": (147, 126), "sched_rr_get_interval": (148, 127), "getpriority": (140, 141),
    "setpriority": (141, 140), "ioprio_get": (252, 31), "ioprio_set": (251, 30), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    # Signals and time.
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "rt_sigsuspend": (130, 133), "sigaltstack": (131, 132), "signalfd": (282, None), "signalfd4": (289, 74),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "pause": (34, None), "restart_syscall": (219, 128),
    "alarm": (37, None), "getitimer": (36, 102), "setitimer": (38, 103), "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115), "clock_gettime": (228, 113), "clock_getres": (229, 114), "gettimeofday": (96, 169),
    "time": (201, None), "timerfd_create": (283, 85), "timerfd_settime": (286, 86), "timerfd_gettime": (287, 87),
    # Waiting and communication.
    "pipe": (22, None), "pipe2": (293, 59), "socketpair": (53, 199), "socket": (41, 198), "connect": (42, 203),
    "bind": (49, 200), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242), "getsockname": (51, 204),
    "getpeername": (52, 205), "getsockopt": (55, 209), "setsockopt": (54, 208), "sendto": (44, 206),
    "recvfrom": (45, 207), "sendmsg": (46, 211), "recvmsg": (47, 212), "sendmmsg": (307, 269), "recvmmsg": (299, 243),
    "shutdown": (48, 210), "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "epoll_create": (213, None), "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None),
    "epoll_pwait": (281, 22), "epoll_pwait2": (441, 441), "eventfd": (284, None), "eventfd2": (290, 19),
    "futex": (202, 98), "futex_waitv": (449, 449), "futex_wake": (454, 454), "futex_wait": (455, 455),
    "futex_requeue": (456, 456), "getrandom": (318, 278),
}  # fmt: skip
CLONE, CLONE3 = (56, 220), (435, 435)
SOCKET, SOCKETPAIR, MMAP, FCNTL, IOCTL, PRCTL = (41, 198), (53, 199), (9, 222), (72, 25), (16, 29), (157, 167)
SETSOCKOPT, SENDTO = (54, 208), (44, 206)
LAST_SYSCALL = 469
"""Newer calls are reported as missing, so that libraries fall back."""

# -- in the host's own namespaces, where only Landlock protects the host's files and sockets

WITHOUT_EFFECT = """
    chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat
"""
"""Landlock does not cover changes of modes, owners and times: they have no effect, and the program sees success."""
UNSUPPORTED = """
    getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr fsetxattr removexattr lremovexattr
    fremovexattr fallocate
"""
"""Nor does it cover extended attributes, which can be read of every file with a path. Disk that is reserved without being
written fills faster than the supervisor checks; libraries write zeros instead."""
DENIED = "socket connect bind listen accept accept4 sendmsg sendmmsg"
"""Nor does it cover connections to sockets that have a path. A descriptor that is sent and not received keeps a file alive
that nothing can see."""

DENIED_WITH_NETWORK = "sendmsg sendmmsg"
"""Where a program may have connections, its sockets are of the Internet alone, so that none has a path."""
SIGNALLING = ("tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
LEAVING_SESSION = ("setsid", "tkill", "pidfd_send_signal")
"""Denied where Landlock does not limit signals, and the caller's other processes belong to the same user."""

# -- calls whose arguments decide

# Calls that may name another process, with the index of the argument that must be 0 (the caller itself), and
# the required
# kind of identifier where there are several: the supervisor runs as the same user.
ON_CALLER: dict[str, tuple[int, int | None]] = {
    "prlimit64": (0, None), "sched_setscheduler": (0, None), "sched_setparam": (0, None), "sched_setattr": (0, None),
    "sched_setaffinity": (0, None), "setpriority": (1, 0), "ioprio_set": (1, 1),
}  # fmt: skip
F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY = 8, 10, 15, 1024, 1026
TCGETS, TCSETS, TCSETSW, TCSETSF, TIOCGPGRP, TIOCGWINSZ = 0x5401, 0x5402, 0x5403, 0x5404, 0x540F, 0x5413
FIONREAD, FIONBIO, FIONCLEX, FIOCLEX = 0x541B, 0x5421, 0x5450, 0x5451
SIOCGIFNAME, SIOCGIFCONF, SIOCGIFFLAGS, SIOCGIFADDR = 0x8910, 0x8912, 0x8913, 0x8915
SIOCGIFNETMASK, SIOCGIFMTU, SIOCGIFHWADDR, SIOCGIFINDEX = 0x891B, 0x8921, 0x8927, 0x8933
IOCTLS = (
    *(TCGETS, TCSETS, TCSETSW, TCSETSF, TIOCGPGRP, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX),
    *(
        SIOCGIFNAME,
        SIOCGIFCONF,
        SIOCGIFFLAGS,
        SIOCGIFADDR,
        SIOCGIFNETMASK,
        SIOCGIFMTU,
        SIOCGIFHWADDR,
        SIOCGIFINDEX,
    ),
)
"""Attributes and width of a terminal, modes of descriptors, and properties of network interfaces."""
SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE = 7, 8, 32, 33
CLONE_NAMESPACES = (
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
)
CLONE_PARENT, CSIGNAL = 0x8000, 0xFF
MAP_SHARED, MAP_ANONYMOUS = 0x01, 0x20
MAP_SHARED_ANONYMOUS = MAP_SHARED | MAP_ANONYMOUS
"""Such memory stays allocated after all but one page is unmapped, where nothing sees it; files in /dev/shm are limited."""
SOCK_TYPE_MASK = 0xF

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Index of the call's number, and `AUDIT_ARCH_*`."""
X32_SYSCALL_BIT = 0x40000000
SECCOMP_MODE_FILTER = 2
SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
RET_EPERM = SECCOMP_RET_ERRNO | errno.EPERM
RET_ENOSYS = SECCOMP_RET_ERRNO | errno.ENOSYS
RET_ENOTSUP = SECCOMP_RET_ERRNO | errno.ENOTSUP
RET_ENOTTY = SECCOMP_RET_ERRNO | errno.ENOTTY
RET_SUCCESS = SECCOMP_RET_ERRNO
"""Error number 0: the call has no effect and succeeds."""
BPF_LD, BPF_ALU, BPF_JMP, BPF_RET = 0x00, 0x04, 0x05, 0x06
BPF_W, BPF_ABS, BPF_K, BPF_AND, BPF_JEQ, BPF_JGE, BPF_JSET = 0x00, 0x20, 0x00, 0x50, 0x10, 0x30, 0x40
JUMP_IF_EQUAL, JUMP_IF_AT_LEAST = BPF_JMP | BPF_JEQ | BPF_K, BPF_JMP | BPF_JGE | BPF_K
JUMP_IF_ANY_BIT, MASK = BPF_JMP | BPF_JSET | BPF_K, BPF_ALU | BPF_AND | BPF_K
OFFSET_NR, OFFSET_ARCH, OFFSET_ARGS, ARG_BYTES = 0, 4, 16, 8
"""Layout of `struct seccomp_data`; the lower word of an argument comes first."""
Instruction = tuple[int, int, int, int]


def filter_program(machine: str, *, namespaces: bool = True, network: bool = False) -> list[Instruction]:
    """Return the filter as classic BPF instructions `(code, jump if true, jump if false, value)`.

    Args:
        machine: The processor's architecture, a key of `MACHINES`.
        namespaces: Whether the process is in a mount and a network namespace of its own.
        network: Whether it may open connections.
    """
    column, arch = MACHINES[machine]
    program = [load(OFFSET_ARCH), (JUMP_IF_EQUAL, 1, 0, arch), ret(SECCOMP_RET_KILL_PROCESS), load(OFFSET_NR)]
    if machine == "x86_64":  # The numbers of the x32 ABI would bypass the list.
        program += [(JUMP_IF_AT_LEAST, 0, 1, X32_SYSCALL_BIT), ret(SECCOMP_RET_KILL_PROCESS)]
    program += [(JUMP_IF_AT_LEAST, 0, 1, LAST_SYSCALL + 1), ret(RET_ENOSYS)]
    # Its flags are behind a pointer; libraries fall back to clone.
    program += if_equal([CLONE3[column]], RET_ENOSYS)
    decided = set(ON_CALLER)
    if not namespaces:
        denied = DENIED_WITH_NETWORK if network else DENIED
        for names, action in ((WITHOUT_EFFECT, RET_SUCCESS), (UNSUPPORTED, RET_ENOTSUP), (denied, RET_EPERM)):
            program += if_equal(numbers(names.split(), column), action)
            decided |= set(names.split())
    program += by_arguments(column, namespaces=namespaces, network=network)
    program += if_equal(numbers(ALLOWED.keys() - decided, column), SECCOMP_RET_ALLOW)
    return [*program, ret(RET_EPERM)]


def signal_filter(machine: str, pid: int) -> list[Instruction]:
    """Return a filter that allows no signals but to one process, to its group, and to the caller's group.

    Invariant: that process leads a session, which no process may leave, so that its number stays what it is while any of
    them lives, and every group of theirs is theirs alone.

    Args:
        machine: The processor's architecture, a key of `MACHINES`.
        pid: The process.
    """
    column = MACHINES[machine][0]
    targets = if_equal([pid], SECCOMP_RET_ALLOW)
    groups = if_equal([0, -pid & 0xFFFFFFFF], SECCOMP_RET_ALLOW)
    program = [load(OFFSET_NR), *if_equal(numbers(LEAVING_SESSION, column), RET_EPERM)]
    program += for_calls(numbers(["kill"], column), 0, [*targets, *groups, ret(RET_EPERM)])
    program += for_calls(numbers(SIGNALLING, column), 0, [*targets, ret(RET_EPERM)])
    return [*program, ret(SECCOMP_RET_ALLOW)]


def by_arguments(column: int, *, namespaces: bool, network: bool) -> list[Instruction]:
    """Return the part of the filter that checks arguments."""
    shared_memory = [(MASK, 0, 0, MAP_SHARED_ANONYMOUS), *if_equal([MAP_SHARED_ANONYMOUS], RET_EPERM)]
    program = [
        *on_caller_rules(column),
        *denied_value_rules(column),
        # Other commands type into terminals, or change attributes of files that are read-only.
        *for_calls([IOCTL[column]], 1, [*if_equal(IOCTLS, SECCOMP_RET_ALLOW), ret(RET_ENOTTY)]),
        *prctl_rules(column),
        *clone_rules(column),
        *for_calls([MMAP[column]], 3, shared_memory),
    ]
    if not namespaces and not network:
        program += sendto_rules(column)
    program += socketpair_rules(column, namespaces=namespaces)
    families = [socket.AF_UNIX] if namespaces or not network else []
    if network:
        families += [socket.AF_INET, socket.AF_INET6]
    return program + for_calls([SOCKET[column]], 0, [*if_equal(families, SECCOMP_RET_ALLOW), ret(RET_EPERM)])


def on_caller_rules(column: int) -> list[Instruction]:
    """Allow calls that may name another process only for the caller itself."""
    program: list[Instruction] = []
    for name, (argument, kind) in ON_CALLER.items():
        steps = [(JUMP_IF_EQUAL, 1, 0, 0), ret(RET_EPERM)]
        if kind is not None:
            steps += [load_argument(0), (JUMP_IF_EQUAL, 1, 0, kind), ret(RET_EPERM)]
        program += for_calls(numbers([name], column), argument, steps)
    return program


def denied_value_rules(column: int) -> list[Instruction]:
    """Deny some values of options and commands."""
    rules = (
        (
            SETSOCKOPT,
            2,
            (SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE),
        ),  # Buffers above the default size.
        (
            FCNTL,
            1,
            (F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY),
        ),  # Arbitrary signals to any process.
    )
    program: list[Instruction] = []
    for call, argument, values in rules:
        program += for_calls([call[column]], argument, if_equal(values, RET_EPERM))
    return program


def prctl_rules(column: int) -> list[Instruction]:
    """Deny options that undermine the supervisor.

    Invariants: it can read every process, and it alone adopts orphans, whose deaths would otherwise be
        missed; nothing
    resumes a stopped process when another one ends.
    """
    denied = if_equal([PR_SET_DUMPABLE, PR_SET_PTRACER, PR_SET_CHILD_SUBREAPER], RET_EPERM)
    return for_calls([PRCTL[column]], 0, [*denied, *if_equal([PR_SET_PDEATHSIG], RET_SUCCESS)])


def clone_rules(column: int) -> list[Instruction]:
    """Allow new processes and threads, without new namespaces, another parent or another exit signal."""
    steps = [
        (JUMP_IF_ANY_BIT, 0, 1, CLONE_NAMESPACES | CLONE_PARENT),
        ret(RET_EPERM),
        (MASK, 0, 0, CSIGNAL),
        *if_equal([0, signal.SIGCHLD], SECCOMP_RET_ALLOW),
        ret(RET_EPERM),
    ]
    return for_calls([CLONE[column]], 0, steps)


def sendto_rules(column: int) -> list[Instruction]:
    """Deny `sendto` with an address: both words of the pointer must be 0."""
    is_zero = [(JUMP_IF_EQUAL, 1, 0, 0), ret(RET_EPERM)]
    return for_calls([SENDTO[column]], 4, [*is_zero, load(OFFSET_ARGS + 4 * ARG_BYTES + 4), *is_zero])


def socketpair_rules(column: int, *, namespaces: bool) -> list[Instruction]:
    """Allow pairs of local sockets; without namespaces only connected ones, as others can still send to a path."""
    steps = [(JUMP_IF_EQUAL, 1, 0, socket.AF_UNIX), ret(RET_EPERM)]
    if not namespaces:
        connected = if_equal([socket.SOCK_STREAM, socket.SOCK_SEQPACKET], SECCOMP_RET_ALLOW)
        steps += [load_argument(1), (MASK, 0, 0, SOCK_TYPE_MASK), *connected, ret(RET_EPERM)]
    return for_calls([SOCKETPAIR[column]], 0, steps)


def numbers(names: Collection[str], column: int) -> list[int]:
    """Return the sorted numbers of calls on a machine; some calls do not exist there."""
    return sorted(number for name in names if (number := ALLOWED[name][column]) is not None)


def load(offset: int) -> Instruction:
    """Load a word of `struct seccomp_data`."""
    return (BPF_LD | BPF_W | BPF_ABS, 0, 0, offset)


def load_argument(index: int) -> Instruction:
    """Load the lower word of an argument."""
    return load(OFFSET_ARGS + ARG_BYTES * index)


def ret(action: int) -> Instruction:
    """Return an action."""
    return (BPF_RET | BPF_K, 0, 0, action)


def if_equal(values: Iterable[int], action: int) -> list[Instruction]:
    """Return an action if the loaded word is one of these values."""
    return [step for value in values for step in ((JUMP_IF_EQUAL, 0, 1, value), ret(action))]


def for_calls(calls: list[int], argument: int, steps: list[Instruction]) -> list[Instruction]:
    """For these calls, load an argument and take these steps; what they do not decide is allowed."""
    steps = [load_argument(argument), *steps, ret(SECCOMP_RET_ALLOW)]
    return [step for call in calls for step in ((JUMP_IF_EQUAL, 0, len(steps), call), *steps)]


@cache
def packed_filter(machine: str, *, namespaces: bool, network: bool) -> ctypes.Array[ctypes.c_char]:
    """Return the filter as the kernel reads it; the worker computes it for all of its forks."""
    return packed(filter_program(machine, namespaces=namespaces, network=network))


def packed(program: Iterable[Instruction]) -> ctypes.Array[ctypes.c_char]:
    """Return instructions as the kernel reads them."""
    return ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in program))


def install_filter(*, namespaces: bool, network: bool) -> bool:
    """Install the filter; return False if this machine is not supported."""
    machine = platform.machine()
    if machine not in MACHINES or sys.maxsize < 2**32:
        return False
    return install(packed_filter(machine, namespaces=namespaces, network=network))


def install_signal_filter(pid: int) -> bool:
    """Install the filter that allows signals to a session's first process alone; see `signal_filter`."""
    machine = platform.machine()
    return machine in MACHINES and install(packed(signal_filter(machine, pid)))


def install(packed_program: ctypes.Array[ctypes.c_char]) -> bool:
    """Install a filter, besides those that are in force."""
    header = struct.pack("HxxxxxxP", (len(packed_program) - 1) // 8, ctypes.addressof(packed_program))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.create_string_buffer(header)) == 0
