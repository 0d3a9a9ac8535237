"""How the program's process locks itself in, and the probe that tries to get out again."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from .kernel import PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, call, prctl
from .wire import Json

# -- limits of one process ------------------------------------------------------------------------------------------------


def limit(limits: Json, *, confined: bool) -> None:
    """Bound what this process may use from now on; the watcher bounds all of a run's processes together."""
    for kind, value in (
        (resource.RLIMIT_CORE, 1),  # Not 0: with that, a program that takes cores would still be fed.
        (resource.RLIMIT_FSIZE, limits["disk"]),
        (resource.RLIMIT_NOFILE, max(32, limits["open_files"])),
        (resource.RLIMIT_NPROC, limits["processes"] + 16 if confined else None),
        (resource.RLIMIT_DATA, limits["memory"] + own("VmData:")),
        (resource.RLIMIT_AS, limits["memory"] + own("VmSize:") + (2 << 30)),
        (resource.RLIMIT_CPU, int(limits["seconds"] * limits["processes"]) + 2),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        if value is not None:
            with contextlib.suppress(ValueError, OSError):  # It was bounded more tightly before.
                hard = resource.getrlimit(kind)[1]
                value = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.setrlimit(kind, (value, value))


def own(name: str) -> int:
    """A figure of this process, in bytes."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(name))
    except (OSError, ValueError):
        return 256 << 20


# -- Landlock: which files --------------------------------------------------------------------------------------------------

READ, FILE, WRITE = 0b1101, 0b1100000000000111, 0b111111111111111111  # Of a tree; what a single file can have; all.
FILE_RIGHTS = (13, 13, 14, 15, 15, 16)  # How many rights each version of Landlock knows, from the first.


def landlock(readable: Iterable[str], writable: Iterable[str], *, network: bool) -> bool:
    """Bind this process to these paths for good, and to its own signals and abstract sockets where the kernel can.

    See https://docs.kernel.org/userspace-api/landlock.html. Returns False where the kernel has no Landlock.
    """
    version = call(444, None, 0, 1)
    if version < 1:
        return False
    files = (1 << FILE_RIGHTS[min(version, 6) - 1]) - 1
    net = 0b11 if version >= 4 and not network else 0
    scopes = 0b11 if version >= 6 else 0
    attributes = ctypes.create_string_buffer(struct.pack("QQQ", files, net, scopes))
    ruleset = call(444, attributes, 8 if version < 4 else 16 if version < 6 else 24, 0)
    if ruleset < 0:
        return False
    try:
        for paths, rights in ((readable, READ), (writable, WRITE)):
            for path in paths:
                allow(ruleset, path, rights & files)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        return call(446, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights &= -1 if os.path.isdir(path) else FILE
        call(445, ruleset, 1, ctypes.create_string_buffer(struct.pack("=Qi", rights, place)), 0)
    finally:
        os.close(place)


# -- seccomp: which system calls --------------------------------------------------------------------------------------------

# Numbers on x86_64 and aarch64; None where the call does not exist.
DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "pidfd_getfd": (438, 438), "personality": (135, 92),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "uselib": (134, None),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "syslog": (103, 116), "vhangup": (153, 58), "sethostname": (170, 161), "setdomainname": (171, 162),
    "fanotify_init": (300, 262), "move_pages": (279, 239), "migrate_pages": (256, 238), "process_madvise": (440, 440),
    "lookup_dcookie": (212, 18), "nfsservctl": (180, 42),
    # Memory that belongs to no process and that no limit of one counts.
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180), "vmsplice": (278, 75),
    "io_setup": (206, 0),
    # Files are shown to many: what is opened of them is nobody else's business.
    "inotify_init": (253, None), "inotify_init1": (294, 26),
}  # fmt: skip
# Calls that may name another process, with the argument that must be 0, "myself", and where there are several kinds of
# names the one that must be: the watcher is of the same user.
ON_ITSELF = {
    "prlimit64": (302, 261, 0, None), "sched_setscheduler": (144, 119, 0, None), "sched_setparam": (142, 118, 0, None),
    "sched_setattr": (314, 274, 0, None), "sched_setaffinity": (203, 122, 0, None), "setpriority": (141, 140, 1, 0),
    "ioprio_set": (251, 30, 1, 1),
}  # fmt: skip
# Options that are refused: buffers beyond the usual, and hiding one's memory from the watcher. (call, argument, values)
OPTIONS = {
    "setsockopt": (54, 208, 2, (7, 8, 32, 33)),
    "prctl": (157, 167, 0, (PR_SET_DUMPABLE,)),
    "fcntl": (72, 25, 1, (1024, 1026)),  # Leases, and notices of what others read in a directory.
    "ioctl": (16, 29, 1, (0x5412, 0x541C, 0x5423)),  # Typing into terminals, and their drivers.
}
LAST_KNOWN = 469
# Without a mount namespace, files of the same user could be changed in ways that Landlock does not see: nothing happens.
UNCHANGED: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "setxattrat": (463, 463), "removexattrat": (466, 466), "file_setattr": (469, 469),
}  # fmt: skip
# Nor does it see connections to sockets that have a path.
UNCONNECTED = {"socket": (41, 198), "connect": (42, 203), "bind": (49, 200)}
SOCKETPAIR, MMAP = (53, 199), (9, 222)
SHARED_ANONYMOUS = 0x21
"""Such memory stays in use when all but a page of it is unmapped, where nothing sees it; files in /dev/shm are bounded."""
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
CLONE, CLONE3, SOCKET = (56, 220), (435, 435), (41, 198)
NEW_NAMESPACES = 0x7E020000
ALLOW, KILL, EPERM, ENOSYS, NOTHING = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026, 0x00050000
LOAD, EQUAL, AT_LEAST, ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
Instruction = tuple[int, int, int, int]


def filter_program(machine: str, *, namespaces: bool = True, network: bool = False) -> list[Instruction]:
    """The filter as classic BPF instructions `(code, jump if true, jump if false, value)`.

    Args:
        machine: Name of the processor's architecture, as in `MACHINES`.
        namespaces: Whether the process is in a mount and a network namespace of its own.
        network: Whether it may open connections.
    """
    column, arch = MACHINES[machine]
    program: list[Instruction] = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, arch), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    if machine == "x86_64":
        program += [(AT_LEAST, 0, 1, 0x40000000), (RETURN, 0, 0, KILL)]  # The x32 numbers would slip past the list.
    program += [(AT_LEAST, 0, 1, LAST_KNOWN + 1), (RETURN, 0, 0, ENOSYS)]
    program += answer(DENIED, column, EPERM)
    if not namespaces:
        program += answer(UNCHANGED, column, NOTHING) + answer(UNCONNECTED, column, EPERM)
    for x86, arm, argument, kind in ON_ITSELF.values():
        steps = [(EQUAL, 1, 0, 0), (RETURN, 0, 0, EPERM)]
        if kind is not None:
            steps += [(LOAD, 0, 0, 16), (EQUAL, 1, 0, kind), (RETURN, 0, 0, EPERM)]
        program += when((x86, arm)[column], argument, steps)
    for x86, arm, argument, values in OPTIONS.values():
        program += when((x86, arm)[column], argument, equal(values, EPERM))
    program += answer({"clone3": CLONE3}, column, ENOSYS)  # Its flags are behind a pointer; clone follows.
    program += when(CLONE[column], 0, [(ANY_BIT, 0, 1, NEW_NAMESPACES), (RETURN, 0, 0, EPERM)])
    program += when(MMAP[column], 3, [(AND, 0, 0, SHARED_ANONYMOUS), *equal([SHARED_ANONYMOUS], EPERM)])
    pairs = [(EQUAL, 1, 0, socket.AF_UNIX), (RETURN, 0, 0, EPERM)]
    if not namespaces:  # A pair of datagram sockets could still send to a path.
        pairs += [(LOAD, 0, 0, 16 + 8), (AND, 0, 0, 0xF), *equal([socket.SOCK_DGRAM], EPERM)]
    program += when(SOCKETPAIR[column], 0, pairs)
    families = [socket.AF_UNIX, *([socket.AF_INET, socket.AF_INET6] if network else [])]
    program += when(SOCKET[column], 0, [*equal(families, ALLOW), (RETURN, 0, 0, EPERM)])
    return [*program, (RETURN, 0, 0, ALLOW)]


def answer(calls: Mapping[str, tuple[int | None, ...]], column: int, what: int) -> list[Instruction]:
    """Return the same for each of these calls."""
    numbers = [call[column] for call in calls.values()]
    return equal([number for number in numbers if number is not None], what)


def equal(values: Iterable[int], what: int) -> list[Instruction]:
    """Return something where the loaded word is one of these values."""
    return [step for value in values for step in ((EQUAL, 0, 1, value), (RETURN, 0, 0, what))]


def when(number: int, argument: int, steps: list[Instruction]) -> list[Instruction]:
    """For one call, load an argument and take these steps; what they do not end is allowed."""
    steps = [(LOAD, 0, 0, 16 + 8 * argument), *steps, (RETURN, 0, 0, ALLOW)]
    return [(EQUAL, 0, len(steps), number), *steps]


@cache
def packed_filter(machine: str, *, namespaces: bool, network: bool) -> ctypes.Array[ctypes.c_char]:
    """The filter as the kernel reads it; made by the worker, for all of its forks."""
    program = filter_program(machine, namespaces=namespaces, network=network)
    return ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in program))


def filter_calls(*, namespaces: bool, network: bool) -> bool:
    """Install the filter; False where this machine is not known."""
    machine = platform.machine()
    if machine not in MACHINES or sys.maxsize < 2**32:
        return False
    packed = packed_filter(machine, namespaces=namespaces, network=network)
    header = struct.pack("HxxxxxxP", (len(packed) - 1) // 8, ctypes.addressof(packed))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    return prctl(PR_SET_SECCOMP, 2, ctypes.create_string_buffer(header)) == 0


# -- the probe ------------------------------------------------------------------------------------------------------------


def probe(canaries: Json) -> dict[str, bool]:
    """Try to get out, the plain way; True is what was found closed."""
    pid = canaries["pid"]
    stranger = pid not in (1, os.getpid(), os.getppid())  # Numbers repeat in a box of its own.
    return {
        "filesystem": not can(lambda: open(canaries["file"]).close())
        and not can(lambda: os.close(os.open(canaries["file"] + ".made", os.O_CREAT | os.O_WRONLY))),
        "network": not can(lambda: connect(canaries["port"])),
        "processes": alone() or not can(lambda: os.listdir(f"/proc/{pid}/fd")),
        "environment": set(os.environ) <= set(canaries["environment"]) and not inherited(canaries),
        "signals": not (stranger and can(lambda: os.kill(pid, 0))),
        "ptrace": not (stranger and can(lambda: look_into(pid))),
    }


def can(action: Callable[[], object]) -> bool:
    try:
        action()
    except OSError:
        return False
    return True


def connect(port: int) -> None:
    """Reach a port; what is merely slow counts as reached."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as end, contextlib.suppress(TimeoutError):
        end.settimeout(0.5)
        end.connect(("127.0.0.1", port))


def look_into(pid: int) -> None:
    """Read a byte of another process's memory; `OSError` when that is refused."""
    number = DENIED["process_vm_readv"][platform.machine() == "aarch64"]
    byte = ctypes.create_string_buffer(1)
    here = ctypes.create_string_buffer(struct.pack("PL", ctypes.addressof(byte), 1))
    if call(number or -1, pid, here, 1, here, 1, 0) < 0 and ctypes.get_errno() in (errno.EPERM, errno.ESRCH):
        raise PermissionError


def alone() -> bool:
    """Whether every process that can be seen is the watcher or this one."""
    try:
        seen = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    except OSError:
        return True
    return seen <= {os.getpid(), *([1] if os.getppid() == 1 else [])}


def inherited(canaries: Json) -> bool:
    """Whether the environment this process was started with holds anything of the host's."""
    try:
        with open("/proc/self/environ", "rb") as file:
            names = {entry.partition(b"=")[0].decode() for entry in file.read().split(b"\0") if entry}
    except OSError:
        return False
    return not names <= set(canaries["environment"])
