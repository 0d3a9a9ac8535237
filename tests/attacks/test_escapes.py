"""Ways out of the sandbox, one row each. Whether one is open is seen from outside, by canaries, never by what the program
says of its failures.

Each row is a program, a file below `attacks/programs`, and a judge, which its first line names. The program finds `host`
among its variables: where the canaries are, but not what is in them. After every row all canaries are looked at
(`Host.harm`), then the row's own judge is asked. Where nothing outside can show that the kernel granted something, the
program itself says `GRANTED`: it has no reason to lie in that direction.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import platform
import re
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from code_chains.errors import InputError, SessionError
from code_chains.executors import Limits, ProcessExecutor, SandboxExecutor
from code_chains.records import ErrorReport, Execution
from tests import conftest
from tests.conftest import soon
from tests.support.other_user import NOBODY, READABLE, OtherUser

LIMITS = Limits(seconds=1.5, memory="256M", output="64K", processes=24, files=500, disk="8M")
MOST_MEMORY = 640 << 20
"""What a run may take of the machine: its memory, its three places on disk, two Pythons, and what others do meanwhile."""
MOST_DISK = 1 << 30
"""What the machine's disk may hold of a run that asks for more."""
TOKEN = secrets.token_hex(16)
SECRET = re.compile(rf"[a-z]{{4,12}}-{TOKEN}")
"""What every secret contains and no program may learn."""
CALLS = {
    "clone": (56, 220), "ptrace": (101, 117), "pivot_root": (155, 41), "chroot": (161, 51),
    "modify_ldt": (154, -1), "iopl": (172, -1),
    "rt_sigqueueinfo": (129, 138), "tgkill": (234, 131), "capset": (126, 91), "io_setup": (206, 0),
    "shmat": (30, 196), "syncfs": (306, 267), "timer_create": (222, 107),
    "kexec_load": (246, 104), "add_key": (248, 217), "keyctl": (250, 219), "unshare": (272, 97), "vmsplice": (278, 75),
    "perf_event_open": (298, 241), "fanotify_init": (300, 262), "kcmp": (312, 272), "bpf": (321, 280),
    "userfaultfd": (323, 282), "pidfd_send_signal": (424, 424), "io_uring_setup": (425, 425), "open_tree": (428, 428),
    "fsopen": (430, 430), "clone3": (435, 435), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "mount_setattr": (442, 442), "memfd_secret": (447, 447), "init_module": (175, 105), "memfd_create": (319, 279),
    "process_madvise": (440, 440),
}  # fmt: skip
COLUMN = {"x86_64": 0, "aarch64": 1}.get(platform.machine(), 0)

# A program may read its own source, as its session forks it with the request open: no row spells out the word.
PRELUDE = """
granted = "GRAN" "TED"
import ctypes, glob, json, mmap, os, resource, signal, socket, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for name in ("munmap", "madvise", "mprotect"):
    getattr(libc, name).argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int][:2 if name == "munmap" else 3]
libc.prctl(15, host["mark"].encode(), 0, 0, 0)

def go(action, *arguments):
    try:
        print(repr(action(*arguments))[:2000])
    except Exception as error:
        print(type(error).__name__, str(error)[:80])

forged = {"status": "ok", "result": "'forged'", "error": None}
forged |= {"exit": 0, "signal": None, "reason": None, "seconds": 0, "peak": 0}
forged = json.dumps(forged).encode()

def framed(data=b"'forged'", **more):
    head = {"status": "ok", "result": True, "views": [], "error": None, "sizes": [len(data)], **more}
    head = json.dumps(head).encode()
    return struct.pack("!I", len(head)) + head + data

def shout(data, numbers=range(3, 1024)):
    for number in numbers:
        try:
            os.write(number, data)
        except OSError:
            pass

def got(what, done):
    print(what, granted if done >= 0 else os.strerror(ctypes.get_errno()))
    return done

def call(name, *arguments):
    if host["calls"][name] >= 0:
        return got(name, libc.syscall(host["calls"][name], *arguments))

def peek(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    return os.read(descriptor, 4096)

def each(action, *more):
    for path in host["paths"]:
        go(action, path, *more)

everyone = [1, os.getppid(), host["pid"], host["decoy"], "self", "thread-self"]
numbers = [pid for pid in {1, os.getppid(), host["pid"], host["decoy"]} if pid > 0]
"""


# -- what is outside -----------------------------------------------------------------------------------------------------


class Queues:
    """Shared memory, semaphores and queues, which belong to a user and are reached by numbers or names."""

    def __init__(self, mark: str, user: int = 0) -> None:
        self._libc, self._name = ctypes.CDLL(None, use_errno=True), f"/{mark}".encode()
        self._libc.shmat.restype = ctypes.c_void_p
        self.numbers = [
            self._libc.shmget(0, 4096, 0o1600),
            self._libc.semget(0, 1, 0o1600),
            self._libc.msgget(0, 0o1600),
        ]
        self._memory = ctypes.c_void_p(self._libc.shmat(self.numbers[0], None, 0))
        text = f"shared-{TOKEN}".encode()
        ctypes.memmove(self._memory, text, len(text))
        self._libc.semctl(self.numbers[1], 0, 16, 1)
        self._libc.msgsnd(self.numbers[2], struct.pack("l", 1) + f"queued-{TOKEN}".encode(), len(text), 0)
        self._queue = self._libc.mq_open(self._name, 0o102, 0o600, None)
        self._libc.mq_send(self._queue, f"posted-{TOKEN}".encode(), len(text), 0)
        if user:
            self._give_to(user)

    def _give_to(self, user: int) -> None:
        """Each structure of the kernel begins with a key and the owner."""
        about, controls = (
            ctypes.create_string_buffer(256),
            (self._libc.shmctl, self._libc.semctl, self._libc.msgctl),
        )
        for control, number in zip(controls, self.numbers, strict=True):
            more = [0] if control is self._libc.semctl else []
            control(number, *more, 2, about)
            ctypes.memmove(ctypes.byref(about, 4), struct.pack("II", user, user), 8)
            control(number, *more, 1, about)
        if self._queue >= 0:
            os.fchown(self._queue, user, user)

    def state(self) -> object:
        """What is in them, and when the memory was last attached."""
        about = ctypes.create_string_buffer(256)
        waiting = self._libc.msgctl(self.numbers[2], 2, about), about.raw[:120]
        named = self._libc.mq_getattr(self._queue, about), about.raw[:32]
        attached = self._libc.shmctl(self.numbers[0], 2, about), about.raw[:100]
        return (
            ctypes.string_at(self._memory, 64),
            self._libc.semctl(self.numbers[1], 0, 12),
            waiting,
            named,
            attached,
        )

    def close(self) -> None:
        self._libc.shmdt(self._memory)
        self._libc.shmctl(self.numbers[0], 0, None)
        self._libc.semctl(self.numbers[1], 0, 0)
        self._libc.msgctl(self.numbers[2], 0, None)
        if self._queue >= 0:
            os.close(self._queue)
            self._libc.mq_unlink(self._name)


class Host:
    """The canaries: secrets in files, memory and environment, a process, and listeners. All are watched as victims too."""

    def __init__(self) -> None:
        self.mark = f"cc{secrets.token_hex(5)}"
        self.folders = [
            Path(tempfile.mkdtemp(prefix=self.mark, dir=environment))
            for environment in sorted(_writable_folders())
        ]
        for folder in self.folders:
            folder.chmod(0o755)
            for name, mode in (("open", 0o666), ("private", 0o600)):
                (folder / name).write_text(f"file-{TOKEN}")
                with contextlib.suppress(OSError):  # Not every file system has attributes.
                    os.setxattr(folder / name, "user.secret", f"attribute-{TOKEN}".encode())
                (folder / name).chmod(mode)
                os.utime(folder / name, (1, 1))
        self.memory = ctypes.create_string_buffer(f"memory-{TOKEN}".encode())
        self.decoy = subprocess.Popen(["sleep", "1000"])
        self.queues = Queues(self.mark)
        self.listeners = dict(self._listen())
        self._machine = _machine()
        self._before = self._snapshot()

    def _listen(self) -> Iterator[tuple[str, socket.socket]]:
        path = str(self.folders[0] / "socket")
        for name, family, kind, address in (
            ("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            ("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            ("tcp6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)),
            ("udp6", socket.AF_INET6, socket.SOCK_DGRAM, ("::1", 0)),
            ("unix", socket.AF_UNIX, socket.SOCK_STREAM, path),
            ("unix datagrams", socket.AF_UNIX, socket.SOCK_DGRAM, f"{path}-datagrams"),
            ("abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.mark}"),
        ):
            listener = socket.socket(family, kind)
            listener.setblocking(False)
            try:
                listener.bind(address)
            except OSError:  # Not every machine has IPv6.
                listener.close()
                continue
            if kind == socket.SOCK_STREAM:
                listener.listen()
            if family == socket.AF_UNIX and isinstance(address, str) and address.startswith("/"):
                os.chmod(address, 0o777)
            yield name, listener

    def give_away(self) -> None:
        """Let the canaries be those of an unprivileged user, whose app is attacked."""
        for folder in self.folders:
            for path in (folder, *folder.iterdir()):
                os.chown(path, NOBODY, NOBODY)
        self.decoy.kill()
        self.decoy.wait()
        self.queues.close()
        self.queues = Queues(self.mark, NOBODY)
        self.decoy = subprocess.Popen(["sleep", "1000"], user=NOBODY, group=NOBODY, extra_groups=())
        self._before = self._snapshot()

    def told(self) -> dict[str, Any]:
        """What a program is told: where everything is."""
        return {
            "mark": self.mark,
            "pid": os.getpid(),
            "decoy": self.decoy.pid,
            "paths": [str(folder / name) for folder in self.folders for name in ("open", "private")],
            "address": ctypes.addressof(self.memory),
            "ports": [s.getsockname()[1] for s in self.listeners.values() if s.family != socket.AF_UNIX],
            "socket": str(self.folders[0] / "socket"),
            "queues": self.queues.numbers,
            "calls": {name: numbers[COLUMN] for name, numbers in CALLS.items()},
        }

    def harm(self, done: Execution | None) -> list[str]:
        """What a run has reached or changed; empty if the box held."""
        told = (
            ""
            if done is None
            else done.to_json() + "".join(a.data.decode(errors="ignore") for a in done.artifacts)
        )
        harm = [f"learned {secret}" for secret in sorted(set(SECRET.findall(told)) if TOKEN in told else ())]
        after = self._snapshot()
        harm += [
            f"changed {path}"
            for path in sorted(self._before.keys() | after)
            if self._before.get(path) != after.get(path)
        ]
        harm += [f"reached {name}" for name, listener in self.listeners.items() if _was_reached(listener)]
        harm += [
            f"changed the machine: {name}"
            for name, value in _machine().items()
            if value != self._machine[name]
        ]
        harm += [
            f"left {path}"
            for environment in _writable_folders()
            for path in glob.glob(f"{environment}/*-left-{self.mark}")
        ]
        if not soon(lambda: not self._survivors()):
            harm += [f"left process {pid}" for pid in self._survivors()]
        return harm

    def _snapshot(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for folder in self.folders:
            for path in (folder, *folder.iterdir()):
                about = path.lstat()
                content = path.read_bytes() if path.is_file() else None
                found[str(path)] = (
                    content,
                    about.st_mode,
                    about.st_uid,
                    about.st_nlink,
                    about.st_mtime_ns,
                    about.st_ino,
                )
        found["queues"] = self.queues.state()
        state = Path(f"/proc/{self.decoy.pid}/stat").read_text().rpartition(")")[2].split()[0]
        for pid in (self.decoy.pid, os.getpid()):
            found[f"process {pid}"] = (
                state in "RSD",
                os.getpriority(os.PRIO_PROCESS, pid),
                os.sched_getaffinity(pid),
                os.sched_getscheduler(pid),
                Path(f"/proc/{pid}/limits").read_text(),
                Path(f"/proc/{pid}/oom_score_adj").read_text(),
            )
        return found

    def _survivors(self) -> list[str]:
        """Processes anywhere on the machine that carry the mark of this row's program."""
        found, mark = [], self.mark.encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if mark in _bytes(f"/proc/{pid}/comm") or mark in _bytes(f"/proc/{pid}/cmdline"):
                    alive = _bytes(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0] not in (b"Z", b"X")
                    found += [pid] if alive else []
        return found

    def close(self) -> None:
        for listener in self.listeners.values():
            listener.close()
        self.queues.close()
        self.decoy.kill()
        self.decoy.wait()
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)


def _writable_folders() -> set[str]:
    """Where secrets lie: temporary folders, homes, beside Python's own environment and beside the project."""
    places = {
        "/tmp",
        "/var/tmp",
        "/dev/shm",
        "/home",
        str(Path.home()),
        str(Path(sys.prefix).parent),
        os.getcwd(),
    }
    return {environment for environment in places if os.access(environment, os.W_OK)}


def _machine() -> dict[str, object]:
    """What belongs to the machine as a whole."""
    return {
        "name": os.uname().nodename,
        "clock": round((time.time() - time.monotonic()) / 60),
        "swaps": Path("/proc/swaps").read_text(),
        "mounts": _mounts(),
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
        "patterns": Path("/proc/sys/kernel/core_pattern").read_text(),
        "directory": os.getcwd(),
    }


def _bytes(path: str) -> bytes:
    """Read a file of `/proc` with as few calls as can be: for each row all processes are looked at."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return b"".join(iter(lambda: os.read(descriptor, 1 << 16), b""))
    finally:
        os.close(descriptor)


def _mounts() -> list[str]:
    """The mounts of this machine, but for those that other tests make in their temporary folders."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if "/pytest-of-" not in line]


def _was_reached(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_STREAM:
            listener.accept()[0].close()
        else:
            listener.recv(1)
    except BlockingIOError:
        return False
    return True


def _available() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


def _free() -> int:
    about = os.statvfs(tempfile.gettempdir())
    return about.f_bfree * about.f_frsize


# -- what judges see -----------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """One run as its judge sees it: how it ended, how long it took, how much memory and disk the machine had less."""

    executor: SandboxExecutor
    done: Execution
    seconds: float
    grown: int
    written: int


Judge = Callable[[Run], None]
Table = dict[str, tuple[str, Judge]]


def held(run: Run) -> None:
    """The canaries are all that matters, and that the kernel granted nothing."""
    assert {line for line in run.done.stdout.splitlines() if "GRANTED" in line} == set()


def bounded(run: Run) -> None:
    """The machine has lost no more memory than the limits allow."""
    assert run.grown < MOST_MEMORY, f"{run.grown >> 20} MB with {run.done.status}"


def stopped(run: Run) -> None:
    """The program did not get to its end, and took no more than it may."""
    assert not run.done.ok
    bounded(run)


def little_disk(run: Run) -> None:
    """The program did not get to its end, and the machine's disk held no gigabyte of what it asked for."""
    stopped(run)
    assert run.written < MOST_DISK, f"{run.written >> 20} MB"


def limited_disk(run: Run) -> None:
    """What the program wrote was noticed; where it has a file system of its own, that is full, and it waits for its end."""
    stopped(run)
    isolation = run.done.isolation
    assert run.done.status == "disk_limit" or (isolation is None or isolation.level == "kernel"), run.done


def few_files(run: Run) -> None:
    """There were no more files than are allowed, and one that shows it."""
    stopped(run)
    seen = re.search(r"files (\d+)", run.done.stdout)
    assert seen is None or int(seen[1]) <= LIMITS.files + 1


def counted(run: Run) -> None:
    """Memory was refused, or the run ended for it, or on a busy machine by the clock before it got so far."""
    assert run.done.status in ("memory", "error", "killed", "disk_limit", "timeout"), run.done.error
    bounded(run)


def never_came_back(run: Run) -> None:
    """The program did not get to its end, and the next one finds the executor well."""
    stopped(run)
    assert run.executor.run("6 * 7").result == "42"


def honest(run: Run) -> None:
    """How the run ended is the watcher's word, not the program's, and the next run is not confused by it."""
    assert (run.done.status, run.done.result) != ("ok", "'forged'"), run.done
    assert run.executor.run("6 * 7").result == "42"


def ended(run: Run) -> None:
    """A program may say that it ended, with any value, as it could have computed any; but then it has ended."""
    assert not run.done.ok or run.seconds < LIMITS.seconds
    harmless(run)


def harmless(run: Run) -> None:
    """Whatever this run says of itself, the next one is not confused by it."""
    assert run.executor.run("6 * 7").result == "42"


def clean(run: Run) -> None:
    """The next run finds a box as if nothing had been there."""
    assert run.executor.run(CHECKUP).stdout == _pristine(run.executor)


def plain_artifacts(run: Run) -> None:
    """Whatever comes out as a file is named below the working directory, is text, and is no more than the disk holds."""
    names = [artifact.name for artifact in run.done.artifacts]
    assert len(set(names)) == len(names) <= LIMITS.files
    assert sum(len(artifact.data) for artifact in run.done.artifacts) <= LIMITS.disk_bytes
    for name in names:
        assert not name.startswith("/")
        assert ".." not in name.split("/")
        assert name.isprintable()
    bounded(run)
    harmless(run)


CHECKUP = """
import atexit, builtins, collections, csv, decimal, gc, glob, json, linecache, locale, logging, math, os, random, re
import resource, signal, socket, string, sys, tempfile, threading, time, warnings
print(json.dumps({"a": [1, None]}), json.loads("[1]"), len("abc"), math.pi, random.random.__module__, re.sub("a", "b", "a"))
print(sorted(vars(builtins)), [type(vars(builtins)[name]).__name__ for name in sorted(vars(builtins))])
print(sorted(globals()), __name__, sys.path, [str(finder) for finder in sys.meta_path if "at 0x" not in str(finder)])
print(os.getcwd(), os.umask(0o022), sorted(os.environ.items()), os.listdir(), sorted(os.listdir("/tmp")))
print(sorted(os.listdir("/dev/shm")), sorted(glob.glob("/run/*")), os.getuid() == os.geteuid(), os.nice(0))
print([(n, str(signal.getsignal(n)) if "at 0x" not in str(signal.getsignal(n)) else "changed") for n in range(1, 32)])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getitimer(signal.ITIMER_REAL), threading.active_count())
print(sys.getrecursionlimit(), sys.gettrace(), sys.getprofile(), sys.flags, gc.isenabled(), gc.get_threshold())
print(decimal.getcontext().prec, locale.setlocale(locale.LC_ALL), socket.getdefaulttimeout(), tempfile.tempdir, time.tzname)
print(logging.root.level, len(logging.root.handlers), string.ascii_lowercase, collections.OrderedDict.__module__)
print([resource.getrlimit(kind) for kind in (4, 6, 7)], sys.stdout.encoding, sys.excepthook.__module__)
print([line.split()[-1] for line in open("/proc/net/unix") if "@" in line], len(glob.glob("/proc/[0-9]*")) <= 2 or "crowd")
for kind in ("shm", "sem", "msg"):
    print(len(open(f"/proc/sysvipc/{kind}").readlines()))
"""
_checkups: dict[int, str] = {}


def _pristine(executor: SandboxExecutor) -> str:
    """What `CHECKUP` says before any program has had a chance to poison the box."""
    if id(executor) not in _checkups:
        done = executor.run(CHECKUP)
        assert done.ok, done
        _checkups[id(executor)] = done.stdout
    return _checkups[id(executor)]


# -- the rows ------------------------------------------------------------------------------------------------------------

PROGRAMS = Path(__file__).parent / "programs"
JUDGES: dict[str, Judge] = {
    judge.__name__: judge
    for judge in (
        *(held, bounded, stopped, little_disk, limited_disk, few_files, counted, never_came_back),
        *(honest, ended, harmless, clean, plain_artifacts),
    )
}


def _row(path: Path) -> tuple[str, tuple[str, Judge]]:
    """Return the name of a row, its program and its judge: the first line of its file has the judge and the name."""
    head, _, program = path.read_bytes().decode().partition("\n")
    judge, _, name = head.removeprefix("# ").partition(": ")
    return name, (program, JUDGES[judge])


KINDS = (
    "files",
    "memory",
    "signals",
    "network",
    "kernel",
    "storms",
    "survivors",
    "forgeries",
    "poison",
    "artifacts",
)
GROUPS: dict[str, Table] = {
    kind: dict(_row(path) for path in sorted((PROGRAMS / kind).glob("*.py"))) for kind in KINDS
}
ROWS = [
    pytest.param(*row, id=f"{group}: {name}")
    for group, table in GROUPS.items()
    for name, row in table.items()
]


BESIDE_COMMANDS = {"setuid programs"}
"""Rows that mean something else where commands are to be seen: `su` may say its version."""


def held_beside_commands() -> list[Any]:
    """The rows that canaries judge, for shells whose commands are those of the machine."""
    return [
        pytest.param(program, id=f"{group}: {name}")
        for group, table in GROUPS.items()
        for name, (program, judge) in table.items()
        if judge is held and name not in BESIDE_COMMANDS
    ]


# -- the frame -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Environment:
    """Where a row runs: how its box is built, whose app it is, and whether it is a run of a session.

    Attributes:
        launcher: How the box is built.
        user: Whose app it is: that of who runs the tests, or, where this is root, of an unprivileged user.
        readable: Whether the interpreter is one that others can read: only then do programs of root become another user
            without namespaces.
        session: Whether the program is a run of a session.
    """

    launcher: str
    user: str = "caller"
    readable: bool = False
    session: bool = False

    def __str__(self) -> str:
        words = [self.launcher, self.user if self.user != "caller" else "", "session" if self.session else ""]
        return " ".join(word for word in words if word)


KERNEL_ENVIRONMENTS = [
    Environment("bubblewrap"),
    Environment("namespaces"),
    Environment("namespaces", session=True),
    Environment("namespaces", user="nobody"),
    Environment("bubblewrap", user="nobody", session=True),
]
LANDLOCK_ENVIRONMENTS = [
    Environment("landlock", readable=True),
    Environment("landlock", readable=True, session=True),
    Environment("landlock", user="nobody"),
    Environment("landlock", user="nobody", session=True),
]


@pytest.fixture(scope="module")
def executors() -> Iterator[Callable[[Environment], Any]]:
    """One executor for each launcher and user, for all rows. What it could inherit has a secret in it when it starts."""
    made: dict[Environment, Any] = {}

    def executor(environment: Environment) -> Any:
        environment = replace(environment, session=False)
        if environment.launcher == "bubblewrap" and not shutil.which("bwrap"):
            pytest.skip("bubblewrap is not installed")
        if environment.user == "nobody" and os.geteuid() != 0:
            pytest.skip("the caller is no other user than nobody")
        if (environment.user == "nobody" or environment.readable) and not os.path.exists(READABLE):
            pytest.skip("there is no interpreter that others can read")
        if environment not in made:
            made[environment] = _make_executor(environment)
            if environment.launcher != "landlock":
                _pristine(made[environment])
        return made[environment]

    with tempfile.TemporaryFile() as inherited:
        inherited.write(f"descriptor-{TOKEN}".encode())
        inherited.flush()
        os.set_inheritable(inherited.fileno(), True)
        os.environ["HOST_TOKEN"] = f"environment-{TOKEN}"
        yield executor
        del os.environ["HOST_TOKEN"]
    for used in made.values():
        used.close()


def _make_executor(environment: Environment) -> Any:
    require = "landlock" if environment.launcher == "landlock" else "kernel"
    options: dict[str, Any] = {
        "limits": LIMITS,
        "preload": (),
        "launcher": environment.launcher,
        "min_isolation": require,
    }
    if environment.user == "nobody":
        return OtherUser(options)
    if environment.readable and os.geteuid() == 0:
        options["python"] = READABLE
    return SandboxExecutor(**options)


@pytest.fixture
def executor(executors: Callable[[Environment], SandboxExecutor], launcher: str) -> SandboxExecutor:
    return executors(Environment(launcher))


def attack(
    executor: Any, host: Host, program: str, files: dict[str, Path] | None = None, *, session: bool = False
) -> Run:
    """Run a program and measure from outside what it takes."""
    ended, least, before = threading.Event(), [_available()], _available()
    free = [_free()]

    def measure() -> None:
        while not ended.wait(0.02):
            least.append(_available())
            free.append(_free())

    watch = threading.Thread(target=measure)
    watch.start()
    began = time.monotonic()
    try:
        told = {**host.told(), **getattr(executor, "told", {})}
        done = (run_in_session if session else run_alone)(
            executor, PRELUDE + program, files or {}, {"host": told}
        )
    finally:
        seconds = time.monotonic() - began
        ended.set()
        watch.join()
    return Run(executor, done, seconds, before - min(least), free[0] - min(free))


def run_alone(executor: Any, program: str, files: dict[str, Path], variables: dict[str, Any]) -> Execution:
    done: Execution = executor.run(program, files=files, variables=variables)
    return done


def run_in_session(
    executor: Any, program: str, files: dict[str, Path], variables: dict[str, Any]
) -> Execution:
    """Run a program in a session between two others; where that ends the session, nothing of the program is left."""
    with executor.session() as session:
        session.run("before = 1")
        try:
            done: Execution = session.run(program, files=files, variables=variables)
            session.run("after = 1")
        except SessionError as error:
            return Execution("killed", error=ErrorReport("SessionEnded", str(error)))
    return done


BESIDE_SESSIONS = {
    "survivors: exit handler",  # No run of a session is its end, so no such handler is called.
}
BESIDE_LANDLOCK = {
    "storms: attributes of files",  # Nothing happens there, so nothing has to be stopped.
}
"""Rows that mean something else without namespaces, as do those on poison: they look at places of the run's own."""


OF_SESSIONS = ("survivors", "forgeries", "poison")
"""What differs where the program's process lives on."""
OF_USERS = ("files", "memory", "signals")
"""What differs where the caller has no rights that could be taken from the program."""


OF_SUPERVISOR = ("storms",)
"""What the supervisor alone ends, so that one kernel launcher shows it for both."""


SHOWN_ELSEWHERE = {
    Environment("bubblewrap", user="nobody", session=True): ("forgeries", "poison"),
    Environment("landlock", user="nobody", session=True): ("forgeries", *OF_USERS),
}
"""What the same launcher, or the other one of the kernel, shows in sessions of the caller or in runs of another user."""


def soak(environment: Environment, row: str) -> list[pytest.MarkDecorator]:
    """Mark what only repeats: each launcher meets each row in a run of its own by the caller, and in sessions and for
    another user those groups that differ there."""
    group, other_user = row.partition(":")[0], environment.user != "caller"
    if group in OF_SUPERVISOR and environment.launcher == "bubblewrap":
        return [pytest.mark.soak]
    if group in SHOWN_ELSEWHERE.get(environment, ()):
        return [pytest.mark.soak]
    differs = (environment.session and group in OF_SESSIONS) or (other_user and group in OF_USERS)
    return [] if differs or not (environment.session or other_user) else [pytest.mark.soak]


def rows(places: list[Environment]) -> list[Any]:
    """Each row at each of these places where it means the same; what only repeats is a soak test."""
    return [
        pytest.param(
            environment, *row.values, id=f"{environment}: {row.id}", marks=soak(environment, str(row.id))
        )
        for environment in places
        for row in ROWS
        if not (environment.session and row.id in BESIDE_SESSIONS)
        and not (
            environment.launcher == "landlock"
            and (row.id in BESIDE_LANDLOCK or str(row.id).startswith("poison"))
        )
    ]


def test_a_grant_is_noticed_and_a_read_of_the_own_source_is_not(
    executors: Callable[[Environment], Any],
) -> None:
    executor = executors(KERNEL_ENVIRONMENTS[0])
    for program, noticed in (("go(lambda: granted)", True), ("print(PRELUDE)", False)):
        code = f"host = {{'mark': 'm', 'pid': 1, 'decoy': 1}}\nPRELUDE = {PRELUDE!r}\n{PRELUDE}\n{program}"
        done = executor.run(code)
        assert done.ok
        assert done.stdout
        run = Run(executor, done, 0, 0, 0)
        with pytest.raises(AssertionError) if noticed else contextlib.nullcontext():
            held(run)


def test_each_launcher_meets_each_row_without_soak_tests() -> None:
    tried = rows(KERNEL_ENVIRONMENTS + LANDLOCK_ENVIRONMENTS)
    every, without = (
        {(row.values[0].launcher, row.values[1]) for row in some} for some in (tried, _unmarked(tried))
    )
    storms = {row.values[1] for row in tried if str(row.id).split(": ")[1] in OF_SUPERVISOR}
    assert every - without == {("bubblewrap", program) for program in storms}


def test_each_group_is_met_in_sessions_and_by_another_user_without_soak_tests() -> None:
    """Where it differs there, with a launcher of the kernel and with Landlock alone."""
    for environments in (KERNEL_ENVIRONMENTS, LANDLOCK_ENVIRONMENTS):
        tried = rows(environments)
        for groups in (OF_SESSIONS, OF_USERS):
            every, without = (
                {row.values[1] for row in some if _differs(row, groups)} for some in (tried, _unmarked(tried))
            )
            assert every == without != set()


def _differs(row: Any, groups: tuple[str, ...]) -> bool:
    environment: Environment = row.values[0]
    is_elsewhere = environment.session if groups is OF_SESSIONS else environment.user != "caller"
    return is_elsewhere and row.id.split(": ")[1] in groups


def _unmarked(tried: list[Any]) -> list[Any]:
    return [row for row in tried if not row.marks]


@pytest.mark.attack
@pytest.mark.parametrize(("environment", "program", "judge"), rows(KERNEL_ENVIRONMENTS))
def test_no_known_technique_escapes(
    executors: Callable[[Environment], Any], host: Host, environment: Environment, program: str, judge: Judge
) -> None:
    attack_from(executors(environment), host, environment, program, judge)


def attack_from(executor: Any, host: Host, environment: Environment, program: str, judge: Judge) -> None:
    """Run a row's program at a place, look at all canaries, and ask the row's judge."""
    if environment.user == "nobody":
        host.give_away()
    run = attack_beside_others(executor, host, environment, program, alone=False)
    for _attempt in range(3):
        if run.grown < MOST_MEMORY and run.written < MOST_DISK:
            break
        run = attack_beside_others(executor, host, environment, program, alone=True)
    judge(run)


def attack_beside_others(
    executor: Any, host: Host, environment: Environment, program: str, *, alone: bool
) -> Run:
    """Run a program while others do, or alone: memory and disk are the machine's, and so is what others take of them."""
    import fcntl  # Not on Windows.

    with open(__file__) as gate, open(conftest.__file__) as lock:
        fcntl.flock(gate, fcntl.LOCK_EX)  # Who waits to be alone holds it, so that nobody passes.
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        run = attack(executor, host, program, session=environment.session)
    assert host.harm(run.done) == []
    assert run.seconds < LIMITS.seconds * 1.25 + 3
    return run


REACHES = {
    "learned file": "each(peek)",
    "changed": "each(lambda path: open(path, 'a').write('x'))",
    "changed process": "os.kill(host['decoy'], 19)",
    "reached tcp": "for port in host['ports']: go(socket.create_connection, ('127.0.0.1', port), 0.3)",
    "reached udp": "for port in host['ports']: go(lambda: socket.socket(2, 2).sendto(b'x', ('127.0.0.1', port)))",
    "reached unix": "socket.socket(socket.AF_UNIX).connect(host['socket'])",
    "reached abstract": "socket.socket(socket.AF_UNIX).connect('\\0' + host['mark'])",
    "learned memory": "print(os.pread(os.open(f'/proc/{host[\"pid\"]}/mem', 0), 64, host['address']))",
    "left": "open('/tmp/x-left-' + host['mark'], 'w')",
}


@pytest.mark.rows(3)
@pytest.mark.parametrize(("harm", "program"), REACHES.items(), ids=REACHES.keys())
def test_each_canary_detects_a_program_without_a_sandbox(host: Host, harm: str, program: str) -> None:
    """What stands between a program and the canaries is the box alone: without it each of them sings."""
    with ProcessExecutor(limits=LIMITS, preload=()) as environment:
        done = attack(environment, host, program).done
    if "Permission" in str(done) and harm == "learned memory":
        pytest.skip("this machine lets no process look into its parent")
    found = host.harm(done)
    for path in glob.glob(f"/tmp/x-left-{host.mark}"):
        os.unlink(path)
    assert any(line.startswith(harm) for line in found), (found, done)


TOGETHER = {
    "files": (
        "for place in ('/box', '/tmp', '/dev/shm'): open(f'{place}/{me}', 'w').write(me)",
        "sum((glob.glob(f'{place}/*') for place in ('/box', '/tmp', '/dev/shm', '/proc/*/root/box', '/proc/*/cwd')), [])",
    ),
    "processes": (
        "libc.prctl(15, me.encode(), 0, 0, 0)",
        "[open(path).read().strip() for path in glob.glob('/proc/[0-9]*/comm')]",
    ),
    "memory": (
        "text = ctypes.create_string_buffer(me.encode())",
        "[path for path in glob.glob('/proc/[0-9]*/mem') if path.split('/')[2] not in ('1', str(os.getpid()))]",
    ),
    "sockets": (
        "keep = [socket.socket(socket.AF_UNIX) for _ in range(2)]\nkeep[0].bind('\\0' + me); keep[1].bind('/tmp/' + me)",
        "[line for line in open('/proc/net/unix')]",
    ),
    "queues and shared memory": (
        "from multiprocessing.shared_memory import SharedMemory; keep = SharedMemory(me, True, 99)\n"
        "libc.mq_open(b'/' + me.encode(), 0o102, 0o666, None)",
        "[n for n in ('one', 'two') if libc.mq_open(b'/' + n.encode(), 0) >= 0] + os.listdir('/dev/shm')",
    ),
}  # fmt: skip


@pytest.mark.rows(2)
@pytest.mark.parametrize(("make", "look"), TOGETHER.values(), ids=TOGETHER.keys())
def test_runs_at_the_same_time_do_not_see_each_other(
    executor: SandboxExecutor, host: Host, make: str, look: str
) -> None:
    program = f"{PRELUDE}{make}\nfor _ in range(10):\n  print({look}, me); time.sleep(0.05)"
    with ThreadPoolExecutor() as pool:
        variables = [{"me": me, "host": host.told()} for me in ("one", "two")]
        one, two = pool.map(lambda given: executor.run(program, variables=given), variables)
    assert one.ok, one
    assert two.ok, two
    assert ("two" in one.stdout, "one" in two.stdout) == (False, False)


MEDDLE = """
for action in (lambda: open('in', 'a'), lambda: os.chmod('in', 0o777), lambda: os.truncate('in', 0),
               lambda: os.unlink('in'), lambda: open('in', 'w').write('x'), lambda: os.utime('in', (9, 9))):
    go(action)
"""


def test_an_input_file_is_not_changed_by_its_program(
    executor: SandboxExecutor, host: Host, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    given.write_text("given")
    before = given.stat()
    assert attack(executor, host, MEDDLE, {"in": given}).done.ok
    assert (given.read_text(), given.stat().st_mode, given.stat().st_mtime_ns) == (
        "given",
        before.st_mode,
        before.st_mtime_ns,
    )


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/../../x",
        "/tmp/x",
        "/",
        "..",
        ".",
        "",
        "a\nb",
        "a\0b",
        "\udce9",
        "x" * 256,
        "a/" * 999 + "b",
    ],
)
def test_a_name_that_leaves_the_working_directory_is_refused(
    executor: SandboxExecutor, host: Host, tmp_path: Path, name: str
) -> None:
    given = tmp_path / "given"
    given.write_text("given")
    with pytest.raises(InputError):
        executor.run("1", files={name: given})
    assert host.harm(None) == []


@pytest.mark.parametrize(
    "name", [".bashrc", "json.py", "sitecustomize.py", "-c", "a b", "~/x", "$HOME", "*", "worker.py"]
)
def test_an_unusual_file_name_is_no_problem(
    executor: SandboxExecutor, host: Host, tmp_path: Path, name: str
) -> None:
    given = tmp_path / "given"
    given.write_text("import os; os._exit(5)")
    done = executor.run(f"len(open({name!r}).read())", files={name: given})
    assert (done.status, done.result) == ("ok", "22")
    assert host.harm(done) == []


@pytest.mark.rows(4)
@pytest.mark.parametrize(
    "name", ["__builtins__", "__name__", "__import__", "a.b", "1a", "", "import", "x y", "a\nb"]
)
def test_a_variable_that_is_no_name_is_refused(executor: SandboxExecutor, name: str) -> None:
    with pytest.raises(InputError):
        executor.run("1", variables={name: 1})


@pytest.mark.parametrize("name", ["json", "os", "sys", "open", "request", "result", "code", "encode", "send"])
def test_a_variable_may_have_any_name(executor: SandboxExecutor, name: str) -> None:
    done = executor.run(f"({name}, 1)", variables={name: "'''\n\"\\\0\u2028"})
    assert done.ok, done
    assert executor.run("import json; json.dumps(1)").result == "'1'"
