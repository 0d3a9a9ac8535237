"""Ways out of the sandbox, one row each. Whether one is open is seen from outside, by canaries, never by what the program
says of its failures.

Each row is a program and a judge. The program finds `host` among its variables: where the canaries are, but not what is in
them. After every row all canaries are looked at (`Host.harm`), then the row's own judge is asked. Where nothing outside can
show that the kernel granted something, the program itself says `GRANTED`: it has no reason to lie in that direction.
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
from code_chains.state import ErrorReport, Execution

from . import conftest
from .conftest import soon
from .other_user import NOBODY, READABLE, OtherUser

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

FILES: Table = {
    "read": ("each(peek); print(sys.prefix)", held),
    "read by a library": ("""
import numpy, pandas; each(pandas.read_csv); each(lambda p: numpy.fromfile(p, 'S1').tobytes())
""", held),
    "read by mmap and by sendfile": ("""
each(lambda p: mmap.mmap(os.open(p, 0), 0, prot=1)[:]); each(lambda p: os.sendfile(1, os.open(p, 0), 0, 99))
""", held),
    "read through a root of /proc": ("""
for pid in everyone:
  for way in ('root', 'cwd', 'task/%s/root' % pid): each(lambda path: peek(f'/proc/{pid}/{way}{path}'))
""", held),
    "read through descriptors of /proc": ("""
for pid in everyone:
  for way in glob.glob(f'/proc/{pid}/fd/*') + glob.glob(f'/proc/{pid}/map_files/*'):
    go(peek, way)
    each(lambda path: peek(way + '/..' + path))
""", held),
    "read through an inherited descriptor": ("""
for n in range(1024):
  try: print(os.pread(n, 4096, 0))
  except OSError: pass
""", held),
    "read upwards from a directory": ("""
for n in range(3, 1024):
  try: os.fchdir(n)
  except OSError: continue
  each(lambda path: peek('../' * 20 + path[1:]))
os.chdir('/'); each(lambda path: peek('../' * 20 + path[1:]))
""", held),
    "read by a handle": ("""
handle = struct.pack('IiQQ', 8, 1, 2, 0)
for place in ('/', '/proc', '/usr/lib', sys.prefix):
  got('handle', libc.open_by_handle_at(os.open(place, 0), handle, 0))
each(lambda path: got('name', libc.name_to_handle_at(-100, path.encode(), handle, mmap.mmap(-1, 8)[:], 0)))
""", held),
    "read by a link": ("""
each(lambda path: (os.symlink(path, 'link' + str(hash(path))), peek('link' + str(hash(path)))))
""", held),
    "read by a hard link": ("""
each(lambda path: (os.link(path, 'x'), peek('x'))); each(lambda p: os.link(p, '/tmp/x'))
""", held),
    "read the disk": ("""
for name in ('vda', 'vda1', 'sda', 'sda1', 'nvme0n1', 'mem', 'kmem', 'port', 'kmsg', 'fuse', 'kvm', 'dm-0', 'loop0'):
  go(lambda: (peek('/dev/' + name), granted))
  go(lambda: (os.mknod(name, 0o60666, os.makedev(254, 0)), peek(name)))
""", held),
    "read kernel memory": ("""
for path in ('/proc/kcore', '/proc/kmsg', '/proc/kallsyms', '/proc/1/mem', '/proc/vmallocinfo', '/sys/kernel/debug'):
  go(lambda: (b' T ' in peek(path) and b'0000000000000000 T' not in peek(path) or 'kcore' in path) and granted)
""", held),
    "read the machine's users": ("""
go(lambda: [line for line in open('/etc/passwd') if line.startswith('root')] and granted)
for name in ('shadow', 'machine-id', 'ssh/sshd_config', 'fstab', 'sudoers'):
  go(lambda: peek('/etc/' + name) and granted)
""", held),
    "list what is not for it": ("""
each(lambda path: os.listdir(os.path.dirname(path)) and granted)
each(lambda path: [n for n in os.listdir(os.path.dirname(os.path.dirname(path))) if host['mark'] in n] and granted)
for place in ('/sys', '/boot', '/mnt', '/srv', '/var/lib'): go(lambda: os.listdir(place) and granted)
""", held),
    "write": ("each(lambda path: open(path, 'w').write('x')); each(lambda path: open(path, 'r+b').write(b'x'))", held),
    "write by a library": ("""
import pandas, sqlite3; each(lambda path: pandas.DataFrame({'a': [1]}).to_csv(path))
each(lambda path: sqlite3.connect(path).execute('create table t (a)'))
""", held),
    "append and truncate": ("each(os.truncate, 0); each(lambda path: open(path, 'a').write('x'))", held),
    "remove": ("import shutil; each(os.unlink); each(lambda path: shutil.rmtree(os.path.dirname(path)))", held),
    "rename": ("each(lambda path: os.rename(path, path + '2')); each(lambda path: os.rename(path, '/box/x'))", held),
    "change the mode": ("each(os.chmod, 0o777); each(lambda path: os.chmod(os.path.dirname(path), 0))", held),
    "change the owner": ("each(os.chown, 1000, 1000); each(os.lchown, os.getuid(), -1)", held),
    "change the times": ("each(os.utime, (5, 5)); each(os.setxattr, 'user.x', b'x')", held),
    "make files next to others": ("""
each(lambda path: open(path + '2', 'w')); each(lambda path: os.mkfifo(path + '3'))
each(lambda path: os.mkdir(path + '4'))
each(lambda path: os.symlink('/', path + '5'))
""", held),
    "write into packages": ("""
name = '/x-left-' + host['mark']
for place in [*filter(os.path.isdir, sys.path), '/usr/lib', '/etc', '/run', '/', '/dev', '/proc']:
  go(lambda: (open(place + name, 'w').close(), place.startswith(('/usr', sys.prefix, sys.base_prefix)) and granted))
for module in (json, os, threading): go(lambda: (open(module.__file__, 'a').close(), granted))
""", held),
    "write into a running interpreter": ("""
go(lambda: (open(os.path.realpath(sys.executable), 'r+b'), granted))
""", held),
    "write kernel settings": ("""
for name, value in (('kernel/hostname', 'x'), ('kernel/core_pattern', '|/x'), ('vm/overcommit_memory', '1'),
    ('kernel/sysrq', '1'), ('net/ipv4/ip_forward', '1'), ('fs/protected_symlinks', '0'), ('kernel/modprobe', '/box/x')):
  go(lambda: open('/proc/sys/' + name, 'w').write(value))
go(lambda: open('/proc/sysrq-trigger', 'w').write('h'))
go(lambda: open('/proc/1/oom_score_adj', 'w').write('1000'))
""", held),
    "write through a root of /proc": ("""
for pid in everyone:
  each(lambda path: open(f'/proc/{pid}/root{path}', 'w')); each(lambda p: os.chmod(f'/proc/{pid}/root{p}', 0))
""", held),
    "lock what others use": ("""
import fcntl
each(lambda path: fcntl.flock(os.open(path, 0), fcntl.LOCK_EX))
each(lambda p: fcntl.fcntl(os.open(p, 0), 1024, 1))
""", held),
}  # fmt: skip

MEMORY: Table = {
    "environment": ("print(dict(os.environ), libc.getenv(b'HOST_TOKEN')); import posix; print(posix.environ)", held),
    "environment in /proc": ("""
for pid in everyone: go(peek, f'/proc/{pid}/environ'); go(peek, f'/proc/{pid}/cmdline')
""", held),
    "memory in /proc": ("""
for pid in everyone:
  def read():
    with open(f'/proc/{pid}/mem', 'rb', 0) as file: file.seek(host['address']); return file.read(64)
  go(read)
""", held),
    "memory by process_vm_readv": ("""
class Piece(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
text = ctypes.create_string_buffer(64)
for pid in numbers:
  libc.process_vm_readv(pid, ctypes.byref(Piece(ctypes.addressof(text), 64)), ctypes.c_ulong(1),
    ctypes.byref(Piece(host['address'], 64)), ctypes.c_ulong(1), ctypes.c_ulong(0))
  print(text.raw)
""", held),
    "own memory of before": ("""
import gc; print([o for o in gc.get_objects() if isinstance(o, dict) and 'HOST_TOKEN' in o][:1])
""", held),
    "ptrace": ("""
for pid in numbers:
  for request in (16, 0x4206): call('ptrace', request, pid, 0, 0)
""", held),
    "ptrace of the watcher": ("""
for pid in (1, os.getppid()):
  call('ptrace', 16, pid, 0, 0); go(lambda: open(f'/proc/{pid}/mem', 'r+b') and granted)
""", held),
    "descriptors of others": ("""
for pid in numbers:
  handle = libc.syscall(434, pid, 0)
  for n in range(20): call('pidfd_getfd', handle, n, 0)
""", held),
    "comparing kernel objects": ("for pid in numbers: call('kcmp', os.getpid(), pid, 0, 0, 0)", held),
    "advice for others": ("call('process_madvise', libc.syscall(434, 1, 0), b' ' * 16, 1, 4, 0)", held),
    "what others open": ("""
listener = libc.inotify_init()
for path in (sys.base_prefix, os.path.dirname(json.__file__), '/usr/lib', '/proc'):
  if libc.inotify_add_watch(listener, path.encode(), 0x21) > 0: print(path, granted)
""", held),
    "moving others' pages": ("""
for pid in numbers: go(lambda: got('pages', libc.syscall(279, pid, 1, b' ' * 8, 0, b' ' * 8, 0)) )
""", held),
}  # fmt: skip

SIGNALS: Table = {
    "kill everyone": ("for n in (15, 2, 1, 19, 9): go(os.kill, -1, n)", harmless),
    "kill the parent": ("for n in (19, 15, 2, 9): go(os.kill, os.getppid() or 1, n)", harmless),
    "kill the watcher": ("""
for n in range(1, 65): go(os.kill, 1, n)
time.sleep(0.3); print('alive')
""", harmless),
    "kill by number": ("""
for pid in numbers:
  if pid != 1: go(os.kill, pid, 9)
""", held),
    "stop every number": ("""
for pid in range(2, 40000):
  if pid != os.getpid():
    try: os.kill(pid, 19)
    except OSError: pass
""", held),
    "kill a group": ("""
for pid in numbers:
  if pid != 1: go(os.killpg, pid, 9)
""", held),
    "signal a thread": ("for pid in numbers: libc.syscall(host['calls']['tgkill'], pid, pid, 9)", harmless),
    "signal by a descriptor": ("for pid in numbers: libc.syscall(424, libc.syscall(434, pid, 0), 9, 0, 0)", harmless),
    "queue a signal": (r"""
info = struct.pack('iiiiI', 19, 0, -1, 0, 0).ljust(128, b'\0')
for pid in numbers: libc.syscall(host['calls']['rt_sigqueueinfo'], pid, 19, info)
""", harmless),
    "signal by ownership of a pipe": ("""
import fcntl
read, write = os.pipe()
for pid in numbers:
  go(fcntl.fcntl, read, 8, pid); go(fcntl.fcntl, read, 10, 9); go(fcntl.fcntl, read, 4, 0o20000)
  os.write(write, b'x')
""", harmless),
    "join a group of others": ("for pid in numbers: go(os.setpgid, pid, 0); go(os.setpgid, 0, pid)", held),
    "type into the terminal": ("""
import fcntl
for path in ('/dev/tty', '/dev/console', '/dev/tty0', '/proc/self/fd/0'):
  go(lambda: (fcntl.ioctl(os.open(path, os.O_RDWR | os.O_NONBLOCK), 0x5412, b'x'), granted))
""", held),
    "slow others down": ("""
for pid in numbers:
  if pid != 1: go(os.sched_setaffinity, pid, {0}); go(os.setpriority, os.PRIO_PROCESS, pid, 19)
  go(resource.prlimit, pid, resource.RLIMIT_NOFILE, (3, 3))
""", held),
    "slow the watcher down": ("""
before = os.getpriority(os.PRIO_PROCESS, 1)
go(os.setpriority, os.PRIO_USER, 0, 19); go(os.setpriority, os.PRIO_PROCESS, 1, 19)
go(os.setpriority, os.PRIO_PGRP, 1, 19)
print(granted if os.getpriority(os.PRIO_PROCESS, 1) != before else 'no')
""", held),
}  # fmt: skip

NETWORK: Table = {
    "sockets of a pair": ("""
for kind in (1, 2, 3, 4, 5, 2 | 0o4000, 3 | 0o2000000):
  for path in (host['socket'], host['socket'] + '-datagrams', '\\0' + host['mark']):
    go(lambda: socket.socketpair(1, kind)[0].sendto(b'x', path))
    go(lambda: socket.socketpair(1, kind)[0].sendmsg([b'x'], [], 0, path))
    go(lambda: socket.socketpair(1, kind)[0].connect(path))
""", held),
    "tcp": ("for port in host['ports']: go(socket.create_connection, ('127.0.0.1', port), 0.3)", held),
    "tcp over IPv6": ("for port in host['ports']: go(socket.create_connection, ('::1', port), 0.3)", held),
    "udp": ("""
for family, to in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
  for port in host['ports']: go(lambda: socket.socket(family, socket.SOCK_DGRAM).sendto(b'x', (to, port)))
""", held),
    "a page": ("""
import urllib.request, pandas
for port in host['ports']:
  go(urllib.request.urlopen, f'http://127.0.0.1:{port}/', None, 0.3)
  go(pandas.read_csv, f'http://127.0.0.1:{port}/x.csv')
""", held),
    "a name": ("go(socket.getaddrinfo, 'example.org', 80); go(socket.gethostbyname, 'example.org')", held),
    "unix socket by its path": ("""
for end in ('', '-datagrams'):
  for root in ('', '/proc/1/root', f'/proc/{os.getppid()}/root'):
    go(lambda: socket.socket(socket.AF_UNIX).connect(root + host['socket'] + end))
    go(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', root + host['socket'] + end))
""", held),
    "unix socket without a path": (r"go(socket.socket(socket.AF_UNIX).connect, '\0' + host['mark'])", held),
    "sockets of the machine": ("""
for path in [*glob.glob('/run/*.sock'), '/run/docker.sock', '/run/dbus/system_bus_socket', '/dev/log']:
  go(lambda: (socket.socket(socket.AF_UNIX).connect(path), granted))
""", held),
    "sockets of every other kind": ("""
for family in range(2, 46):
  for kind in (1, 2, 3, 5, 10):
    if libc.socket(family, kind, 0) >= 0: print(family, kind, granted)
""", held),
    "pairs of sockets of every other kind": ("""
pair = (ctypes.c_int * 2)()
for family in range(2, 46):
  for kind in (1, 2, 5):
    libc.socketpair(family, kind, 0, pair)
    if ctypes.get_errno() != 1: print(family, kind, os.strerror(ctypes.get_errno()), granted)
""", held),
    "raw packets": ("""
for family, protocol in ((2, 1), (2, 255), (10, 58), (17, 0x300), (16, 0), (16, 9), (16, 15)):
  go(lambda: (socket.socket(family, socket.SOCK_RAW, protocol), granted))
""", held),
    "the hypervisor": ("""
for cid in (0, 1, 2, 3): go(lambda: (socket.socket(40, 1).connect((cid, 22)), granted))
""", held),
    "descriptors sent to others": ("""
a, b = socket.socketpair()
socket.send_fds(a, [b'x'], [os.open('.', 0)]); fds = socket.recv_fds(b, 1, 9)[1]
each(lambda path: os.open('../' * 9 + path[1:], 0, dir_fd=fds[0]) and granted)
go(lambda: socket.send_fds(socket.socket(socket.AF_UNIX), [b'x'], fds, 0, host['socket']))
""", held),
    "descriptors of standard streams as sockets": (r"""
for n in range(1024):
  try: s = socket.socket(fileno=os.dup(n))
  except OSError: continue
  go(s.getpeername); go(s.send, b'junk\n'); go(lambda: socket.send_fds(s, [b'x'], [0]))
""", harmless),
}  # fmt: skip

KERNEL: Table = {
    "System V shared memory by its number": ("""
libc.shmat.restype = ctypes.c_void_p
for number in range(max(0, host['queues'][0] - 2), host['queues'][0] + 3):
  place = libc.shmat(number, None, 0)
  if place not in (None, 2**64 - 1): print(ctypes.string_at(place, 64)); ctypes.memset(place, 65, 99)
  libc.shmctl(number, 0, None)
  libc.syscall(host['calls']['shmat'], number, None, 0)
""", held),
    "System V semaphores by their number": ("""
for number in range(max(0, host['queues'][1] - 2), host['queues'][1] + 3):
  libc.semop(number, struct.pack('Hhh', 0, 5, 0o4000), 1); libc.semtimedop(number, struct.pack('Hhh', 0, 3, 0o4000), 1, None)
  libc.semctl(number, 0, 16, 7); libc.semctl(number, 0, 0)
""", held),
    "System V queues by their number": ("""
text = ctypes.create_string_buffer(200)
for number in range(max(0, host['queues'][2] - 2), host['queues'][2] + 3):
  if libc.msgrcv(number, text, 100, 0, 0o24000) >= 0: print(text.raw[8:])
  if libc.msgrcv(number, text, 100, 0, 0o4000) >= 0: print(text.raw[8:])
  libc.msgsnd(number, struct.pack('l', 1) + b'x', 1, 0o4000); libc.msgctl(number, 0, None)
""", held),
    "POSIX queues by their name": ("""
name, text = ('/' + host['mark']).encode(), ctypes.create_string_buffer(8192)
queue = libc.mq_open(name, 0o4002)
if queue >= 0: libc.mq_receive(queue, text, 8192, None); print(text.value); libc.mq_send(queue, b'x', 1, 0)
got('unlink', libc.mq_unlink(name))
""", held),
    "mounts by the newest calls": ("""
for number in (428, 429, 430, 432, 433, 442, 457, 458, 467): got(str(number), libc.syscall(number, -100, b'/', 0, 0, 0, 0))
""", held),
    "the machine's disks": ("got('sync', libc.syscall(host['calls']['syncfs'], 1))", held),
    "flags of files": ("""
import fcntl
for path in (os.__file__, json.__file__, sys.executable, *host['paths']):
  for request in (0x40086602, 0x40087602, 0x40046602, 0x401C5820, 0x40806685, 0x5000940E, 0x40049409):
    go(lambda: (fcntl.ioctl(os.open(path, 0), request, struct.pack('l', 0x40) + b'\\0' * 120), granted))
""", held),
    "terminals": ("for n in range(3): go(lambda: (os.open('/dev/ptmx', n), granted))", held),
    "attributes of files": ("each(lambda path: (os.getxattr(path, 'user.secret'), granted))", held),
    "timers and signals that nobody else sends": ("""
got('timer', libc.syscall(host['calls']['timer_create'], 1, None, ctypes.byref(ctypes.c_int())))
import fcntl
pair = socket.socketpair()
for command, value in ((8, host['pid']), (8, -host['pid']), (10, 18), (15, 0)):
  go(lambda: (fcntl.fcntl(pair[0], command, value), granted))
for request in (0x8901, 0x8902): go(lambda: (fcntl.ioctl(pair[0], request, struct.pack('i', host['pid'])), granted))
got('clone', libc.syscall(host['calls']['clone'], 18, 0, 0, 0, 0))
got('clone as a sibling', libc.syscall(host['calls']['clone'], 0x8000 | 17, 0, 0, 0, 0))
got('be given orphans', libc.prctl(36, 1, 0, 0, 0))
""", held),
    "new namespaces": ("""
for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000, 0x80):
  got('unshare', libc.unshare(flag))
""", held),
    "other namespaces": ("""
for pid in everyone:
  for path in glob.glob(f'/proc/{pid}/ns/*'):
    try: got('setns', libc.setns(os.open(path, 0), 0))
    except OSError: pass
""", held),
    "clone with a namespace": ("""
for flag in (0x10000000, 0x20000, 0x40000000):
  pid = libc.syscall(host['calls']['clone'], flag | 17, 0, 0, 0, 0)
  if pid == 0: os._exit(0)
  got('clone', pid)
""", held),
    "clone3 with a namespace": ("""
for flag in (0x10000000, 0x20000, 0x80):
  pid = libc.syscall(435, struct.pack('8Q', flag, 0, 0, 0, 17, 0, 0, 0), 64)
  if pid == 0: os._exit(0)
  got('clone3', pid)
""", held),
    "mount": ("""
got('tmpfs', libc.mount(b'tmpfs', b'/box', b'tmpfs', 0, None))
got('proc', libc.mount(b'proc', b'/box', b'proc', 0, None))
got('bind', libc.mount(b'/', b'/box', None, 4096, None))
got('writable', libc.mount(b'/', b'/', None, 32, None))
got('writable', libc.mount(sys.prefix.encode(), sys.prefix.encode(), None, 32 | 4096, None))
""", held),
    "umount": ("""
for path in (b'/proc', b'/tmp', b'/box', b'/dev/shm', b'/'): got('umount', libc.umount2(path, 2))
""", held),
    "pivot_root and chroot": ("call('pivot_root', b'.', b'.'); call('chroot', b'/box'); go(os.chroot, '.')", held),
    "new ways to mount": ("""
call('open_tree', -100, b'/', 1); call('fsopen', b'tmpfs', 0)
call('mount_setattr', -100, b'/', 0x8000, struct.pack('4Q', 0, 1, 0, 0), 32)
for number in (429, 431, 432, 433, 467): got(str(number), libc.syscall(number, -100, b'/', 1, 0, 0))
""", held),
    "setuid programs": ("""
for path in ('/bin/su', '/usr/bin/su', '/usr/bin/sudo', '/usr/bin/passwd', '/usr/bin/newuidmap', '/usr/bin/mount'):
  go(lambda: (subprocess.run([path, '--version']), granted))
import shutil; shutil.copy(os.path.realpath(sys.executable), 'x'); os.chmod('x', 0o6755)
code = 'import os; os.geteuid() == 0 and print("GRAN" + "TED")'
go(lambda: subprocess.run(['./x', '-c', code], env={**os.environ, 'PYTHONHOME': sys.base_prefix}))
""", held),
    "another user": ("""
go(lambda: os.setresuid(0, 0, 0) or granted); go(lambda: os.setgid(0) or granted)
go(lambda: os.setgroups([0]) or granted)
""", held),
    "capabilities": ("""
full = struct.pack('6I', *[0xFFFFFFFF] * 6); call('capset', struct.pack('Ii', 0x20080522, 0), full)
got('ambient', libc.prctl(47, 2, 21, 0, 0))
for line in open('/proc/self/status'):
  if line.startswith(('CapPrm', 'CapEff', 'CapAmb')) and int(line.split()[1], 16): print(line, granted)
""", held),
    "privileges by an executable": ("""
print([line for line in open('/proc/self/status') if line.split() == ['NoNewPrivs:', '0'] and granted])
""", held),
    "io_uring": (r"call('io_uring_setup', 8, b'\0' * 120)", held),
    "bpf": (r"""
call('bpf', 0, struct.pack('IIII', 2, 4, 4, 1).ljust(128, b'\0'), 128); call('bpf', 5, b'\0' * 128, 128)
""", held),
    "keys": ("""
key = call('add_key', b'user', host['mark'].encode(), b'x', 1, -4); call('keyctl', 0, -4, 1)
call('keyctl', 1, 0)
call('keyctl', 11, -5, ctypes.create_string_buffer(99), 99)
""", held),
    "page faults": ("""
call('userfaultfd', 0); call('userfaultfd', 1); go(lambda: os.open('/dev/userfaultfd', os.O_RDWR) and granted)
""", held),
    "performance events": (r"""
for pid in (0, -1, 1):
  call('perf_event_open', struct.pack('IIQ', 1, 112, 0).ljust(112, b'\0'), pid, 0 if pid == -1 else -1, -1, 0)
""", held),
    "personality": ("""
got('personality', libc.personality(0x0040000)); got('personality', libc.personality(0x0400000))
""", held),
    "segments and ports": (r"""
call('modify_ldt', 1, b'\0' * 16, 16); call('iopl', 3)
got('ioperm', libc.ioperm(0x378, 3, 1)) if hasattr(libc, 'ioperm') else None
""", held),
    "another kernel": ("""
call('kexec_load', 0, 0, None, 0); call('init_module', b'', 0, b'')
got('delete', libc.delete_module(b'ext4', 0))
""", held),
    "reboot": ("""
got('reboot', libc.reboot(0)); got('swapon', libc.swapon(b'/box/x', 0)); got('swapoff', libc.swapoff(b'/box/x'))
got('acct', libc.acct(None))
""", held),
    "the clock and the name": (r"""
go(time.clock_settime, time.CLOCK_REALTIME, 0); go(lambda: socket.sethostname(host['mark']))
got('zone', libc.settimeofday(None, b'\0' * 8))
got('domain', libc.setdomainname(b'x', 1))
""", held),
    "watching files of all": ("call('fanotify_init', 0, 0); call('fanotify_init', 0x200, 0)", held),
    "secret memory": ("call('memfd_secret', 0); call('memfd_create', b'x', 0)", held),
    "asynchronous requests of the whole machine": ("""
for _ in range(64): call('io_setup', 1000, ctypes.byref(ctypes.c_ulong(0)))
""", held),
    "system calls of 32 bits": (r"""
place = libc.mmap(None, 4096, 7, 0x62, -1, 0)
for path in host['paths']:
  if host['calls']['iopl'] < 0: break
  name = path.encode() + b'\0'
  code = b'\x53\xb8\x05\0\0\0\xbb' + struct.pack('I', place + 512) + b'\x31\xc9\x31\xd2\xcd\x80\x5b\xc3'
  ctypes.memmove(place, code, len(code)); ctypes.memmove(place + 512, name, len(name))
  if not os.fork():
    n = ctypes.CFUNCTYPE(ctypes.c_int)(place)(); print(n, os.read(n, 99) if n > 0 else '', flush=True)
    os._exit(0)
  os.wait()
""", held),
    "namespaces by 32 bits": (r"""
place = libc.mmap(None, 4096, 7, 0x62, -1, 0)
code = b'\x53\xb8\x36\x01\0\0\xbb\0\0\0\x10\xcd\x80\x5b\xc3'
ctypes.memmove(place, code, len(code))
if host['calls']['iopl'] > 0: print(granted if ctypes.CFUNCTYPE(ctypes.c_int)(place)() == 0 else 'no')
""", held),
    "system calls of x32": ("""
for path in host['paths']:
  if not os.fork():
    n = libc.syscall(0x40000002, path.encode(), 0, 0); print(os.read(n, 99), flush=True); os._exit(0)
  os.wait()
for number in (0x40000000 + 272, 0x40000000 + 101):
  if not os.fork(): got('x32', libc.syscall(number, 0x10000000, 0)); os._exit(0)
  os.wait()
""", held),
    "a terminal's discipline": ("""
import fcntl
for n in (1, 2, 3, 13, 15, 17, 21, 22, 27):
  go(lambda: (fcntl.ioctl(os.openpty()[1], 0x5423, struct.pack('i', n)), granted))
""", held),
    "huge pages": ("""
def huge(): return ctypes.memset(libc.mmap(None, 1 << 21, 3, 0x40022, -1, 0), 1, 1 << 21)
if libc.mmap(None, 1 << 21, 3, 0x40022, -1, 0) not in (None, 2**64 - 1): print(granted)
""", held),
}  # fmt: skip

STORMS: Table = {
    "forks": ("""
while True:
  try: os.fork()
  except OSError: pass
""", never_came_back),
    "forks that end at once": ("""
while True:
  try:
    if not os.fork(): os._exit(0)
  except OSError: pass
""", never_came_back),
    "vforks": ("""
while True:
  try: subprocess.Popen([sys.executable, '-c', 'input()', host['mark']])
  except OSError: pass
""", never_came_back),
    "threads": ("""
while True:
  try: threading.Thread(target=time.sleep, args=(99,)).start()
  except RuntimeError: pass
""", never_came_back),
    "memory": ("""
keep = []
while True: keep.append(b'x' * (1 << 22))
""", counted),
    "memory at once": ("keep = bytearray(1 << 40)", counted),
    "memory of children": ("""
for n in range(6):
  if not os.fork(): keep = b'x' * (200 << 20); time.sleep(99)
time.sleep(99)
""", counted),
    "memory of grandchildren in sessions of their own": ("""
for n in range(6):
  if not os.fork():
    os.setsid()
    if os.fork(): os._exit(0)
    keep = b'x' * (200 << 20); time.sleep(99)
time.sleep(99)
""", counted),
    "memory of threads": ("""
def grow(): keep = b'x' * (64 << 20); time.sleep(99)
for n in range(20): threading.Thread(target=grow).start()
""", stopped),
    "memory by numpy": ("""
import numpy
keep = []
while True: keep.append(numpy.ones(1 << 20))
""", counted),
    "shared memory": ("""
keep = [mmap.mmap(-1, 100 << 20) for _ in range(12)]
for m in keep: m.write(b'x' * (100 << 20))
time.sleep(99)
""", counted),
    "shared memory that is forgotten": ("""
for _ in range(12):
  m = mmap.mmap(-1, 100 << 20); m.write(b'x' * (100 << 20)); m.madvise(mmap.MADV_DONTNEED)
  go(lambda: globals().setdefault('m%d' % _, m))
time.sleep(99)
""", counted),
    "shared memory but for one page": ("""
size = 64 << 20
for _ in range(18):
  place = libc.mmap(None, size, 3, 0x21, -1, 0)
  if place in (None, 2**64 - 1): break
  ctypes.memset(place, 1, size); libc.munmap(place + 4096, size - 4096)
time.sleep(99)
""", bounded),
    "shared memory of /dev/zero but for one page": ("""
size, zero = 64 << 20, os.open('/dev/zero', os.O_RDWR)
for _ in range(18):
  place = libc.mmap(None, size, 3, 1, zero, 0)
  if place in (None, 2**64 - 1): break
  ctypes.memset(place, 1, size); libc.munmap(place + 4096, size - 4096)
time.sleep(99)
""", counted),
    "shared memory of a program that cannot be read": (r"""
import shutil; shutil.copy(os.path.realpath(sys.executable), host['mark']); os.chmod(host['mark'], 0o111)
code = '''import mmap, time
keep = [mmap.mmap(-1, 100 << 20) for _ in range(12)]
for m in keep: m.write(b'x' * (100 << 20)); m.madvise(mmap.MADV_DONTNEED)
time.sleep(99)'''
subprocess.run(['./' + host['mark'], '-c', code], env={**os.environ, 'PYTHONHOME': sys.base_prefix})
""", bounded),
    "huge pages held by one byte in a pipe": ("""
class Piece(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
two, size, pipes = 2 << 20, 64 << 20, []
place = -(-libc.mmap(None, size + two, 3, 0x22, -1, 0) // two) * two
libc.madvise(place, size, 14)
for _ in range(18):
  for n in range(32):
    ctypes.memset(place + n * two, 1, 1)
    if n % 16 == 0: pipes.append(os.pipe())
    if libc.vmsplice(pipes[-1][1], ctypes.byref(Piece(place + n * two, 1)), ctypes.c_size_t(1), 0) < 0:
      os._exit(1)
  libc.madvise(place, size, 4)
time.sleep(99)
""", counted),
    "buffers of sockets": ("""
def fill(keep=[]):
  try:
    while True: keep += socket.socketpair()
  except OSError: pass
  for s in keep:
    s.setblocking(False)
    try:
      while True: s.send(b'x' * 4096)
    except OSError: pass
  time.sleep(99)
for _ in range(20):
  if not os.fork(): fill()
time.sleep(99)
""", counted),
    "buffers of sockets in flight": ("""
end, far = socket.socketpair()
while True:
  a, b = socket.socketpair(); a.setblocking(False)
  try:
    while True: a.send(b'x' * 4096)
  except OSError: pass
  end.setblocking(False)
  try: socket.send_fds(end, [b'x'], [a.fileno(), b.fileno()])
  except OSError: time.sleep(99)
""", bounded),
    "buffers of pipes": ("""
import fcntl
def fill():
  while True:
    try:
      r, w = os.pipe(); os.set_blocking(w, False)
      try: fcntl.fcntl(w, 1031, 1 << 20)
      except OSError: pass
      while True: os.write(w, b'x' * 4096)
    except BlockingIOError: pass
    except OSError: time.sleep(99)
for _ in range(20):
  if not os.fork(): fill()
time.sleep(99)
""", bounded),
    "pieces of address space": ("""
def tear():
  place = libc.mmap(None, 65000 * 4096, 0, 0x22, -1, 0)
  for n in range(0, 65000, 2): libc.mprotect(place + n * 4096, 4096, 1)
  time.sleep(99)
for _ in range(20):
  if not os.fork(): tear()
time.sleep(99)
""", bounded),
    "pieces of address space that the watcher must read": ("""
place = libc.mmap(None, 65000 * 4096, 0, 0x22, -1, 0)
for n in range(0, 65000, 2): libc.mprotect(place + n * 4096, 4096, 1)
for _ in range(20):
  if not os.fork(): break
while True: pass
""", bounded),
    "locks of files": ("""
import fcntl
for _ in range(4):
  if not os.fork():
    files = [os.open(f'f{os.getpid()}-{n}', 66) for n in range(20)]; n = 0
    while True:
      for f in files: fcntl.fcntl(f, fcntl.F_SETLK, struct.pack('hhqqi', 1, 0, n * 2, 1, 0))
      n += 1
time.sleep(99)
""", bounded),
    "memory without a name": ("""
keep = [os.memfd_create('x') for _ in range(9)]
for f in keep: os.write(f, b'x' * (100 << 20))
""", counted),
    "System V memory": ("""
import ctypes
for _ in range(12):
  number = libc.shmget(0, 100 << 20, 0o1600)
  if number >= 0: libc.shmat.restype = ctypes.c_void_p; ctypes.memset(libc.shmat(number, None, 0), 1, 100 << 20)
""", bounded),
    "message queues": ("""
class Size(ctypes.Structure):
  _fields_ = [('flags', ctypes.c_long), ('most', ctypes.c_long), ('size', ctypes.c_long), ('now', ctypes.c_long)]
for n in range(9999):
  queue = libc.mq_open(b'/q%d' % n, 0o102, 0o600, ctypes.byref(Size(0, 10, 8192, 0)))
  if queue < 0: break
  for _ in range(10): libc.mq_send(queue, b'x' * 8192, 8192, 0)
print(n)
""", bounded),
    "disk": ("open('x', 'wb').write(b'x' * (1 << 30))", stopped),
    "disk in small files": ("for n in range(10**6): open(f'{n}', 'wb').write(b'x' * 100000)", stopped),
    "disk everywhere": ("""
for place, folders, _ in os.walk('/'):
  if place in ('/proc', '/sys') or place.startswith(('/usr', sys.base_prefix, sys.prefix)):
    folders.clear(); continue
  for n in range(120):
    try:
      with open(f'{place}/{n}', 'wb') as file: file.write(b'x' * (8 << 20))
    except OSError: break
time.sleep(99)
""", bounded),
    "disk in files that were unlinked": ("""
keep = []
for n in range(99):
  try: keep.append(open(f'{n}', 'wb')); os.unlink(f'{n}'); keep[-1].write(b'x' * (7 << 20)); keep[-1].flush()
  except OSError: break
time.sleep(99)
""", limited_disk),
    "disk in files that were unlinked, of many": ("""
for _ in range(10):
  if not os.fork():
    for n in range(99):
      name = f'{os.getpid()}-{n}'; file = open(name, 'wb'); globals()[name] = file; os.unlink(name)
      try: file.write(b'x' * (7 << 20)); file.flush()
      except OSError: break
    time.sleep(99)
time.sleep(99)
""", limited_disk),
    "disk that is taken without being written": ("""
file = os.open('x', 66)
for n in range(400): libc.fallocate(file, 0, ctypes.c_long(n << 23), ctypes.c_long(8 << 20))
for n in range(400): libc.fallocate(os.open(f'y{n}', 66), 1, ctypes.c_long(0), ctypes.c_long(8 << 20))
time.sleep(99)
""", little_disk),
    "disk in files that are mapped alone": ("""
for n in range(40):
  file = os.open(f'{n}', 66); os.unlink(f'{n}')
  try: os.write(file, b'x' * (7 << 20))
  except OSError: break
  libc.mmap(None, 4096, 1, 1, file, 0); os.close(file)
time.sleep(99)
""", limited_disk),
    "disk in files that are on their way": ("""
pairs = []
for n in range(40):
  file = os.open(f'{n}', 66); os.unlink(f'{n}')
  try: os.write(file, b'x' * (7 << 20))
  except OSError: break
  pairs.append(socket.socketpair())
  try: socket.send_fds(pairs[-1][0], [b'x'], [file])
  except OSError: continue
  os.close(file)
time.sleep(99)
""", limited_disk),
    "disk without a name": ("""
keep = []
for place in ('/box', '/tmp', '/dev/shm', '/dev', '/run', '/'):
  for _ in range(99):
    try: keep.append(os.open(place, os.O_TMPFILE | os.O_RDWR)); os.write(keep[-1], b'x' * (8 << 20))
    except OSError: break
""", bounded),
    "disk in holes": ("""
for place in ('/box', '/tmp'):
  go(os.truncate, open(place + '/x', 'wb').name, 1 << 40)
  go(os.posix_fallocate, os.open(place + '/y', 66), 0, 1 << 36)
""", bounded),
    "attributes of files": ("""
open('x', 'w')
for n in range(10**5): os.setxattr('x', f'user.{n}', b'x' * 60000)
""", stopped),
    "files": ("for n in range(10**7): open(f'{n}', 'w').close()", stopped),
    "files at once": ("""
print('files', end=' '); n = 0
try:
  while True: os.mknod(f'{n}'); n += 1
finally: print(len(os.listdir('.')))
""", few_files),
    "memory of arguments": ("""
more = ['x' * 100000] * 17
for _ in range(20):
  if not os.fork():
    while True:
      if not os.fork(): os.execv(sys.executable, [sys.executable, '-c', 'pass', *more])
      os.wait()
time.sleep(99)
""", bounded),
    "folders in folders": ("while True: os.mkdir('d'); os.chdir('d')", stopped),
    "names for one file": ("""
open('x', 'w')
for n in range(10**7): os.link('x', f'{n}')
""", stopped),
    "names that do not exist": ("""
for n in range(10**9):
  try: os.stat(sys.prefix + f'/{n}' + 'x' * 200)
  except OSError: pass
""", bounded),
    "descriptors": ("""
def take():
  try:
    while True: os.dup(0); os.eventfd(0); os.pidfd_open(os.getpid())
  except OSError: time.sleep(99)
for _ in range(20):
  if not os.fork(): take()
time.sleep(99)
""", bounded),
    "watches": ("""
import select
def watch():
  n = libc.inotify_init()
  for place, _, names in os.walk('/usr'):
    for name in names: libc.inotify_add_watch(n, os.path.join(place, name).encode(), 2)
for _ in range(4):
  if not os.fork(): watch(); time.sleep(99)
time.sleep(99)
""", bounded),
    "polls of polls": ("""
import select
def nest():
  all = [select.epoll() for _ in range(100)]
  for a in all:
    for b in all:
      try: a.register(b, 1)
      except OSError: pass
  time.sleep(99)
for _ in range(9):
  if not os.fork(): nest()
time.sleep(99)
""", bounded),
    "timers": ("""
def start():
  for n in range(10**6):
    if libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) < 0: break
  time.sleep(99)
for _ in range(9):
  if not os.fork(): start()
time.sleep(99)
""", bounded),
    "signals that wait": (r"""
signal.pthread_sigmask(0, range(34, 64)); info = struct.pack('iiiiI', 34, 0, -1, 0, 0).ljust(128, b'\0')
for _ in range(10**6):
  if libc.syscall(host['calls']['rt_sigqueueinfo'], os.getpid(), 34, info) < 0: break
time.sleep(99)
""", bounded),
    "output": ("while True: print('x' * 60000)", stopped),
    "output of errors": ("while True: os.write(2, b'x' * 60000)", stopped),
    "output of children": ("""
for _ in range(8): os.fork()
while True: os.write(1, b'x' * 60000)
""", stopped),
    "output into every descriptor": ("""
for n in range(1024):
  if not os.fork():
    while True: os.write(n, b'x' * 60000)
  if n > 20: time.sleep(99)
""", stopped),
    "processors": ("""
for _ in range(20):
  if not os.fork(): break
while True: pass
""", stopped),
    "processors in C": ("9 ** 9 ** 9", stopped),
    "processors by an expression": ("import re; re.match('(a+)+$', 'a' * 50 + 'b')", stopped),
    "processors with all signals blocked": ("""
signal.pthread_sigmask(0, range(1, 65))
while True: pass
""", stopped),
    "deep result": ("""
x = []
for _ in range(10**6): x = [x]
result = x
""", harmless),
    "huge result": ("result = 'x' * (64 << 20)", harmless),
    "huge error": ("raise ValueError('x' * (64 << 20))", harmless),
    "deep error": ("""
error = None
for n in range(10**5): new = ValueError(n); new.__cause__ = error; error = new
raise error
""", harmless),
    "result that takes for ever": ("""
class X:
  def __repr__(self):
    while True: pass
X()
""", stopped),
    "error that takes for ever": ("""
class X(Exception):
  def __str__(self):
    while True: pass
raise X
""", stopped),
    "deep program": ("eval('(' * 99999 + ')' * 99999)", harmless),
    "crash": ("ctypes.string_at(0)", never_came_back),
    "crash of the stack": ("""
sys.setrecursionlimit(10**9)
def f(): f()
f()
""", never_came_back),
}  # fmt: skip

SURVIVORS: Table = {
    "daemon": ("""
if not os.fork():
  os.setsid()
  if os.fork(): os._exit(0)
  for n in range(3): os.close(n)
  time.sleep(99)
print(1)
""", harmless),
    "daemon that started another program": ("""
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)', host['mark']], start_new_session=True)
""", harmless),
    "daemon that holds the output": ("""
if not os.fork(): os.setsid(); time.sleep(99)
print(1)
""", harmless),
    "daemon that writes on": ("""
if not os.fork():
  os.setsid()
  while True: os.write(1, b'x'); time.sleep(0.01)
print(1)
""", harmless),
    "exit handler": ("import atexit; atexit.register(time.sleep, 99)", stopped),
    "exit handler that forks": ("import atexit; atexit.register(lambda: os.fork() or time.sleep(99))", harmless),
    "thread": ("threading.Thread(target=time.sleep, args=(99,)).start()", stopped),
    "thread that ends last": ("""
def stay():
  while True: time.sleep(0.1)
threading.Thread(target=stay, daemon=True).start()
""", harmless),
    "first thread ends alone": ("""
def stay():
  while True: time.sleep(0.1)
threading.Thread(target=stay).start(); libc.syscall(60 if host['calls']['iopl'] > 0 else 93, 0)
""", stopped),
    "signals ignored": ("""
for n in range(1, 65):
  try: signal.signal(n, signal.SIG_IGN)
  except (OSError, ValueError): pass
while True: time.sleep(9)
""", stopped),
    "child that never stops forking": ("""
while True:
  if os.fork(): os._exit(0)
""", never_came_back),
    "stopped": ("""
if not os.fork(): os.kill(os.getpid(), 19)
os.kill(os.getpid(), 19)
""", stopped),
    "destructor": ("""
class X:
  def __del__(self):
    while True: pass
x = X(); del x
""", stopped),
}  # fmt: skip

FORGERIES: Table = {
    "a result and a kill": (r"shout(forged + b'\n'); os.kill(os.getpid(), 9)", ended),
    "a result and no end": (r"""
shout(b'\n' + forged + b'\n')
while True: pass
""", ended),
    "a result with a length": ("""
for kind in ('<I', '>I', '<Q', '>Q'): shout(struct.pack(kind, len(forged)) + forged)
os.kill(os.getpid(), 9)
""", honest),
    "a result of a child after the end": (r"""
if not os.fork():
  os.setsid(); time.sleep(0.05)
  while True: shout(forged + b'\n')
5
""", harmless),
    "isolation that is not": (r"""
shout(json.dumps({'probe': {'filesystem': False}, 'layers': [], 'isolation': 'none'}).encode() + b'\n')
""", harmless),
    "frames without end": (r"shout(b'{}\n' * 20000)", harmless),
    "a whole frame": ("shout(framed()); time.sleep(60)", ended),
    "a whole frame, and on it goes": ("shout(framed())\nwhile True: pass", ended),
    "a whole frame and a kill": ("shout(framed()); os.kill(os.getpid(), 9)", ended),
    "frames that announce too much": ("""
shout(framed(sizes=[1 << 40])); shout(framed(sizes=[0, 1 << 30])); shout(struct.pack('!I', 1 << 31))
""", honest),
    "sizes that are none": ("""
for sizes in ([-1], [True], ['1'], None, 5, [[]], [1e9], {}): shout(framed(sizes=sizes))
""", harmless),
    "views that are none": ("""
for views in ([5], [None], [{}], 'x', {'a': 1}, [[]] * 9): shout(framed(views=views, sizes=[8, 0]))
""", harmless),
    "half a frame": ("shout(framed()[:20]); time.sleep(0.2)", honest),
    "a frame of brackets": ("data = b'[' * 100000; shout(struct.pack('!I', len(data)) + data)", honest),
    "a frame without end": ("while True: shout(b'x' * 60000, range(3, 256))", bounded),
    "junk": (r"""
shout(b'[' * 60000 + b'\n'); shout(b'\xff' * 99 + b'\n'); shout(b'{"status": 5}\n'); shout(b'\0' * 99)
shout(b'NaN\n'); shout(b'1' * 9999 + b'\n'); shout(b'\x80\x04.')
""", harmless),
    "a pickle": (r"""
import pickle
class X:
  def __reduce__(self): return os.kill, (host['decoy'], 9)
shout(pickle.dumps(X()) + b'\n'); result = X()
""", harmless),
    "descriptors closed": ("os.closerange(0, 1024)", harmless),
    "descriptors replaced": ("""
read, write = os.pipe()
for n in range(1024):
  if n not in (read, write): os.dup2(write, n)
""", harmless),
    "descriptors read empty": ("""
for n in range(1024):
  try: os.set_blocking(n, False); os.read(n, 99)
  except OSError: pass
""", harmless),
    "descriptors set to another mode": ("""
import fcntl
for n in range(1024):
  try: os.set_blocking(n, False); fcntl.fcntl(n, 1031, 4096)
  except OSError: pass
print('x' * 30000)
result = 'y' * 30000
""", harmless),
    "an exit that looks well": ("os._exit(0)", stopped),
    "another program in its place": ("os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])", stopped),
    "names of the worker": ("""
frame = sys._getframe()
while frame:
  print(sorted(frame.f_locals)); go(lambda: frame.f_locals.clear())
  go(lambda: frame.f_globals.update(os=None, json=None, send=None)); frame = frame.f_back
""", harmless),
    "an error that lies": ("""
class E(Exception):
  __class__ = property(lambda self: 1 / 0)
  __str__ = __repr__ = lambda self: chr(0xd800) * 9
  __traceback__ = property(lambda self: 5)
E.__name__ = 'x' * 99999
raise E
""", harmless),
    "text that looks like an end": (r"""
print('\0\n' + json.dumps({'exit': 0, 'signal': 9, 'reason': 'memory'})); sys.stderr.write('\x1b[2J')
""", harmless),
}  # fmt: skip

POISON: Table = {
    "builtins": ("""
import builtins
for name in ('print', 'len', 'open', 'repr', 'eval', 'compile', '__import__', 'isinstance'):
  setattr(builtins, name, None)
""", clean),
    "modules": ("""
import random, math
json.dumps = json.loads = json.JSONEncoder = os.write = time.monotonic = None; math.pi = 3
for name in list(sys.modules):
  if name != '__main__': sys.modules[name] = None
""", clean),
    "paths of imports": ("""
sys.path[:] = ['/tmp']; sys.meta_path.clear(); sys.path_hooks.clear(); sys.path_importer_cache.clear()
""", clean),
    "finder": ("""
class Finder:
  @staticmethod
  def find_spec(name, *_): print('POISON', name)
sys.meta_path.insert(0, Finder)
""", clean),
    "modules beside the program": ("""
for place in ('/box', '/tmp', '.', '/dev/shm'):
  for name in ('json', 'csv', 'sitecustomize', 'usercustomize', 'pandas'):
    try: open(f'{place}/{name}.py', 'w').write('print("POISON")')
    except OSError: pass
""", clean),
    "packages": ("""
for place in [p for p in sys.path if os.path.isdir(p)]:
  for name in ('x.pth', 'sitecustomize.py', 'usercustomize.py'):
    go(lambda: open(os.path.join(place, name), 'w').write('print("POISON")'))
home = os.path.expanduser('~/.local/lib/python%d.%d/site-packages' % sys.version_info[:2])
go(os.makedirs, home); go(lambda: open(home + '/usercustomize.py', 'w').write('print("POISON")'))
""", clean),
    "compiled modules": ("""
import csv
for module in (csv, json, threading):
  go(lambda: open(module.__cached__, 'r+b').write(b'x')); go(os.unlink, module.__cached__)
""", clean),
    "lines for tracebacks": ("""
import linecache
linecache.cache.clear(); linecache.getlines = linecache.getline = None
""", clean),
    "exit handlers": ("""
import atexit
atexit.register(lambda: open('/tmp/left', 'w').write('x'))
""", clean),
    "signals": ("""
for n in (2, 10, 12, 14, 15, 17): signal.signal(n, signal.SIG_IGN)
signal.pthread_sigmask(0, range(1, 65)); signal.setitimer(0, 60, 1)
""", clean),
    "environment": ("""
os.environ.clear(); os.environ.update(PATH='/x', PYTHONSTARTUP='/tmp/x', LD_PRELOAD='/tmp/x')
os.environ['POISON'] = '1'
""", clean),
    "working directory and mask": ("os.chdir('/tmp'); os.umask(0o777); os.rmdir('/box') if 0 else None", clean),
    "working directory that is gone": ("os.mkdir('x'); os.chdir('x'); os.rmdir('/box/x'); go(os.rmdir, '/box')", clean),
    "left files": ("""
for place in ('/box', '/tmp', '/dev/shm', '/run', '/var/tmp', '/dev', '/dev/mqueue', '/'):
  go(lambda: open(place + '/left', 'w').write('x'))
""", clean),
    "mode of the working directory": ("for place in ('/box', '/tmp', '/dev/shm'): go(os.chmod, place, 0)", clean),
    "limits": ("for kind in range(16): go(resource.setrlimit, kind, (0, 0))", clean),
    "priority": ("""
os.nice(19); go(os.sched_setaffinity, 0, {0}); go(os.sched_setscheduler, 0, os.SCHED_IDLE, os.sched_param(0))
""", clean),
    "garbage collector and hooks": ("""
import gc; gc.disable(); gc.freeze(); sys.settrace(lambda *_: None); sys.setprofile(lambda *_: None)
sys.setrecursionlimit(77)
sys.excepthook = sys.displayhook = sys.unraisablehook = None
sys.addaudithook(lambda *_: print('POISON') if 0 else None)
""", clean),
    "settings of libraries": ("""
import decimal, locale, logging, random, tempfile, warnings
decimal.getcontext().prec = 2; decimal.DefaultContext.prec = 2; locale.setlocale(0, 'C')
logging.basicConfig(level=0); random.seed(1); tempfile.tempdir = '/x'; warnings.simplefilter('error')
socket.setdefaulttimeout(0.1); time.tzset()
""", clean),
    "settings of numpy and pandas": ("""
import numpy, pandas
numpy.set_printoptions(precision=1); pandas.set_option('display.max_rows', 1)
pandas.DataFrame.sum = numpy.sum = None
""", clean),
    "memory of the interpreter": ("ctypes.memset(id(5) + 24, 7, 1)", clean),
    "code of functions": ("""
for f in (json.dumps, json.loads, os.makedirs, threading.Thread.start):
  f.__code__ = (lambda *a, **k: 'POISON').__code__
""", clean),
    "shared memory that stays": ("""
from multiprocessing.shared_memory import SharedMemory
SharedMemory('left', True, 99); libc.shmget(77, 4096, 0o1666); libc.semget(77, 1, 0o1666)
libc.msgget(77, 0o1666)
libc.sem_open(b'/left', 0o100, 0o666, 1); libc.mq_open(b'/left', 0o102, 0o666, None)
""", clean),
    "process that stays": ("""
if not os.fork():
  os.setsid()
  for n in range(1024):
    try: os.close(n)
    except OSError: pass
  while True: time.sleep(1)
""", clean),
    "socket that stays": (r"""
s = socket.socket(socket.AF_UNIX); s.bind('\0left'); s.listen()
if not os.fork(): os.setsid(); time.sleep(99)
""", clean),
    "descriptors that stay": ("""
for n in range(99): os.open('/tmp', 0)
for n in range(3): os.set_blocking(n, False)
""", clean),
    "a crash half way": ("open('/tmp/left', 'w'); sys.path.clear(); os.kill(os.getpid(), 11)", clean),
}  # fmt: skip

ARTIFACTS: Table = {
    "link to a secret": ("""
each(lambda path: os.symlink(path, 'a%d.txt' % abs(hash(path)))); os.symlink('/etc/passwd', 'b.txt')
""", plain_artifacts),
    "link to a folder with secrets": ("""
each(lambda path: os.symlink(os.path.dirname(path), 'd%d' % abs(hash(path)))); os.symlink('/', 'root')
os.symlink('/proc/self', 'p')
""", plain_artifacts),
    "link that turns while it is collected": ("""
open('x.txt', 'w').write('x')
if not os.fork():
  os.setsid()
  while True:
    for path in host['paths']:
      try: os.unlink('x.txt'); os.symlink(path, 'x.txt'); os.unlink('x.txt'); open('x.txt', 'w').write('x')
      except OSError: pass
""", plain_artifacts),
    "hard link to a file of the machine": ("""
each(lambda path: os.link(path, 'x.txt')); go(os.link, os.path.realpath(sys.executable), 'python.txt')
go(os.link, '/proc/self/environ', 'e.txt')
""", plain_artifacts),
    "pipe": ("os.mkfifo('x.csv'); os.mkfifo('y.png')", plain_artifacts),
    "pipe with a writer": ("""
os.mkfifo('x.csv')
if not os.fork(): os.setsid(); open('x.csv', 'w').write('x' * 99); time.sleep(99)
""", plain_artifacts),
    "device": ("""
go(os.mknod, 'zero.png', 0o20666, os.makedev(1, 5)); os.symlink('/dev/zero', 'zero.csv')
""", plain_artifacts),
    "socket": ("s = socket.socket(socket.AF_UNIX); s.bind('x.csv'); s.listen()", plain_artifacts),
    "10 GB of nothing": ("""
go(os.truncate, open('x.csv', 'wb').name, 10 << 30); go(os.truncate, 'x.csv', 7 << 20)
""", plain_artifacts),
    "too many": ("for n in range(10000): open(f'{n}.csv', 'w').write('x')", plain_artifacts),
    "many": ("for n in range(400): open(f'{n}.csv', 'w').write('x')", plain_artifacts),
    "big": ("for n in range(8): open(f'{n}.csv', 'wb').write(b'x' * 1000000)", plain_artifacts),
    "names that lead out": (r"""
os.makedirs('a/b'); go(lambda: open('a/..\\..\\x.csv', 'w')); go(lambda: open('..%2fx.csv', 'w'))
go(lambda: open('a/...', 'w')); go(lambda: open(' /x.csv', 'w'))
open('~', 'w'); open('C:x.csv', 'w'); open('a/b/\u202ecsv.exe', 'w')
""", plain_artifacts),
    "names with lines": (r"""
open('a\nb.csv', 'w'); open('a\rb.csv', 'w'); open('a\x1b[2Jb.csv', 'w'); open('\t', 'w')
""", plain_artifacts),
    "names that are not text": (r"""
open(b'\xff\xfe.csv', 'w'); open(b'caf\xe9.csv', 'w'); os.mkdir(b'\x80'); open(b'\x80/x.csv', 'w')
""", plain_artifacts),
    "huge names": ("""
open('x' * 255, 'w'); os.makedirs('/'.join(['y' * 250] * 15)); open('/'.join(['y' * 250] * 15) + '/x.csv', 'w')
""", plain_artifacts),
    "folders in a loop": ("""
os.makedirs('a/b'); os.symlink('..', 'a/b/c'); os.symlink('.', 'd'); os.symlink('e', 'e')
""", plain_artifacts),
    "folders in folders": ("""
for n in range(400): os.mkdir('d'); os.chdir('d')
open('x.csv', 'w').write('x')
""", plain_artifacts),
    "files without a right to read": ("""
open('x.csv', 'w').write('x'); os.chmod('x.csv', 0); os.mkdir('d'); open('d/y.csv', 'w'); os.chmod('d', 0)
""", plain_artifacts),
    "working directory moved away": ("""
os.makedirs('/tmp/y'); os.chdir('/tmp'); go(os.rename, '/box', '/tmp/z'); go(os.symlink, '/', '/box')
go(os.chmod, '/box', 0)
""", plain_artifacts),
    "file that grows while it is collected": ("""
open('x.csv', 'w').write('x')
if not os.fork():
  os.setsid()
  while True:
    try: open('x.csv', 'a').write('x' * 99999)
    except OSError: pass
""", plain_artifacts),
    "picture that is none": (r"""
open('x.png', 'wb').write(b'\x89PNG\r\n' + b'\xff' * 9999)
open('y.svg', 'w').write('<!ENTITY a SYSTEM "file:///etc/passwd">')
""", plain_artifacts),
}  # fmt: skip

GROUPS = {
    "files": FILES,
    "memory": MEMORY,
    "signals": SIGNALS,
    "network": NETWORK,
    "kernel": KERNEL,
    "storms": STORMS,
    "survivors": SURVIVORS,
    "forgeries": FORGERIES,
    "poison": POISON,
    "artifacts": ARTIFACTS,
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


@pytest.mark.parametrize(
    "name", ["json", "os", "sys", "print", "open", "request", "result", "code", "encode", "send"]
)
def test_a_variable_may_have_any_name(executor: SandboxExecutor, name: str) -> None:
    done = executor.run(f"({name}, 1)", variables={name: "'''\n\"\\\0\u2028"})
    assert done.ok, done
    assert executor.run("import json; json.dumps(1)").result == "'1'"
