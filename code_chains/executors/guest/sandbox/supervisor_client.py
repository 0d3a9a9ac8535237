"""What `session_server` has in place of the host: start the supervisor, give it programs, read what they print and make."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import io
import os
import shutil
import signal
import socket
import stat
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence

from .. import cell, wire
from ..collection import made_files
from ..kernel.polling import readable
from ..reports import encode_frame
from ..wire import Json
from . import filesystem, processes
from .config import WorkerConfig
from .pipes import ProgramPipes
from .snapshot import FOLDER_FLAGS
from .supervisor import supervise
from .talk import Talk

ROOT, MATPLOTLIB = "files", "matplotlib"
INPUTS = "box/"
"""The folder of files in a bundle."""
START_TIMEOUT_S = 10.0
REPLY_GRACE_S = 15.0
"""Time that the supervisor may take to reply, besides the program's."""
END_TIMEOUT_S, RETRY_INTERVAL_S = 5.0, 0.005
RUN_CHECK_INTERVAL_S = 0.1
"""Pause between looks at the folder during a run: once it is removed, nobody waits any more."""
PRESSING_INTERVAL_S = 0.005
"""Pause between attempts to pass on what a program has not taken yet."""
FILES_PER_MESSAGE = 50
OWN_PREFIX = "code_chains-"
"""How names of the folders of runs begin."""
DEVICES = ("null", "full", "random", "urandom", "nvidia*")
"""Devices of programs. Invariant: not `/dev/zero`, whose shared maps are memory that nobody counts."""
LISTS_OF_FONTS = ".cache/matplotlib/fontlist-*.json"
"""What matplotlib reads instead of all fonts, which takes seconds."""
MAX_LIST_BYTES = 1 << 20
LOST = "the process that supervises it has ended"
SEALS = 0x0001 | 0x0002 | 0x0004 | 0x0008
"""No more seals, and no change of a file's size or content."""


class SupervisorClient:
    """Starts a supervisor, and has it run programs.

    Args:
        folder: The folder of the run or session; files of programs are in a folder below.
        settings: Limits, what counts for the disk, and seconds without a request after which a session ends.

    Raises:
        OSError, RuntimeError: The supervisor did not start.

    Attributes:
        control: The socket to the supervisor.
        interrupts: What to do during a run when a descriptor is readable.
        layers: What of the kernel confines programs.
    """

    def __init__(self, folder: str, settings: Json) -> None:
        self._folder, self._limits = folder, settings["limits"]
        self._is_session: bool = settings["is_session"]
        self.interrupts: dict[int, Callable[[], None]] = {}
        self.layers: list[str] = []
        self._marks: dict[str, tuple[int, int, int]] = {}
        self._root = os.path.join(folder, ROOT)
        os.mkdir(self._root, 0o700)
        self._reply: Json | None = None
        self._is_cut_off = False
        self._start_supervisor(self._config(settings), settings["max_output_bytes"])
        self._copy_fonts()
        shutil.rmtree(os.path.join(self._folder, "guest"))  # It is loaded, and nobody is to change it.

    def _config(self, settings: Json) -> WorkerConfig:
        """Return the configuration of the supervisor.

        The sandbox isolates. Besides, its kernel keeps programs from what would outlive them, as far as it can.
        """
        return {
            "namespaces": False,
            "confined": settings["confines"],
            "hosted": settings["confines"],
            "network": [],
            "preload": (),
            "environment": {
                **os.environ,
                "TMPDIR": f"{self._root}/tmp",
                "MPLCONFIGDIR": f"{self._root}/tmp/{MATPLOTLIB}",
            },
            "cache": "",
            "probe": {},
            "commands": False,
            "visible": [],
            "readable": [*visible(os.path.dirname(self._folder)), self._root],
            "writable": [*(f"{self._root}/{name}" for name in filesystem.FOLDERS), *devices()],
            "session_timeout": settings["session_timeout"],
            "seed": None,
            "frozen_at": 0.0,
            "limits": settings["limits"],
            "uid": 0,
            "root": self._root,
            "libraries": 0,
            "own_modules": cell.own_modules(),
            "threads": 1,
        }

    def _start_supervisor(self, config: WorkerConfig, max_output_bytes: int) -> None:
        self.control, theirs = wire.pair()
        stack, writers = contextlib.ExitStack(), list[int]()
        self._pipes = ProgramPipes(
            stack, writers, max_output_bytes=max_output_bytes, max_view_bytes=self._limits["artifacts"]
        )
        own = os.pidfd_open(os.getpid())
        self._supervisor = os.fork()
        if self._supervisor == 0:
            self.control.close()
            stack.close()
            supervise(theirs, writers, config, own, {})
        theirs.close()
        for writer in writers:
            os.close(writer)
        self._await_reply(START_TIMEOUT_S)
        if not self._reply or "ready" not in self._reply:
            raise RuntimeError((self._reply or {}).get("failed", LOST))
        # Invariant: nothing runs yet, so that the first frame is that of the process which is to run programs.
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._pipes.probe is None and time.monotonic() < deadline:
            self._take(readable([*self._pipes.open], RUN_CHECK_INTERVAL_S))
        probe = self._pipes.probe or {"broken": LOST}
        if "broken" in probe:
            raise RuntimeError(probe["broken"])
        self.layers = [name for name in probe["layers"] if name != "rlimits"]

    def _copy_fonts(self) -> None:
        """Copy matplotlib's list of fonts.

        Invariants: programs share no folder that they may write to, and none could have made the list or put a link there.
        """
        if "landlock" not in self.layers:
            return
        place = os.path.join(self._root, "tmp", MATPLOTLIB)
        for path in glob.glob(os.path.join(os.path.expanduser("~"), LISTS_OF_FONTS)):
            with contextlib.suppress(OSError), open(path, "rb", opener=open_no_link) as file:
                content = file.read(MAX_LIST_BYTES + 1)
                if len(content) <= MAX_LIST_BYTES:
                    os.makedirs(place, exist_ok=True)
                    with open(os.path.join(place, os.path.basename(path)), "wb") as copy:
                        copy.write(content)

    # -- commands ---------------------------------------------------------------------------------------------

    def run_program(self, command: Json, bundle: bytes, talk: Talk | None = None) -> Json:
        """Run a program; return how it ended, with what it printed and made.

        Args:
            command: The supervisor's command: `run` for a single run, `cell` in a session.
            bundle: The program with its variables and files.
            talk: What it and the host say to each other meanwhile.
        """
        self._begin()
        is_session = command["op"] == "cell"
        with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
            inputs = [name for name in archive.namelist() if name.startswith(INPUTS)]
            self._send_files(archive, inputs, is_session=is_session)
            extra_seconds = talk.extra_seconds if talk else 0.0
            message = {**command, "extra_seconds": extra_seconds}
            self._send(message, [archive.read("request.json")], talk.theirs if talk else ())
        if talk:
            talk.start()
        reply = self._await_reply(self._limits["seconds"] + extra_seconds + REPLY_GRACE_S, talk)
        if "ended" not in reply:
            return {"broken": reply["failed"]} if "failed" in reply else reply
        self._pipes.drain_result()
        self._pipes.drain()
        ended: Json = reply["ended"]
        if not is_session:
            ended["ok"] = ended["exit"] == 0 and ended["reason"] is None
        return self._report(ended, {name.removeprefix(INPUTS) for name in inputs})

    def carry_out(self, command: Json) -> Json:
        """Let the supervisor roll back, save or restore the state."""
        self._begin()
        self._send(command)
        reply = self._await_reply(self._limits["seconds"] + REPLY_GRACE_S)
        self._collect_files(set(), 0)
        return reply

    def _begin(self) -> None:
        """Forget the last run, of which nothing is left."""
        self._pipes.begin()
        self._reply, self._is_cut_off = None, False

    def _send(self, message: Json, contents: list[bytes] | None = None, pipes: Sequence[int] = ()) -> None:
        """Send a command with files and pipes to the supervisor."""
        descriptors = [memory_file(content) for content in contents or ()]
        try:
            wire.send(self.control, message, [*descriptors, *pipes])
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _send_files(self, archive: zipfile.ZipFile, paths: list[str], *, is_session: bool) -> None:
        size = sum(archive.getinfo(path).file_size for path in paths)
        for start in range(0, len(paths), FILES_PER_MESSAGE):
            chunk = paths[start : start + FILES_PER_MESSAGE]
            names = [path.removeprefix(INPUTS) for path in chunk]
            # The first message announces the size of all files.
            message = {"op": "files", "names": names, "size": 0 if start else size, "is_session": is_session}
            self._send(message, [archive.read(path) for path in chunk])

    def _await_reply(self, seconds: float, talk: Talk | None = None) -> Json:
        """Wait for the supervisor's reply, and take in what is printed meanwhile."""
        deadline = time.monotonic() + seconds
        while self._reply is None and time.monotonic() < deadline and os.path.isdir(self._folder):
            said = talk.descriptors if talk else ()
            watched = [self.control.fileno(), *self._pipes.open, *self.interrupts, *said]
            is_pressing = talk is not None and talk.is_pressing
            ready = readable(watched, PRESSING_INTERVAL_S if is_pressing else RUN_CHECK_INTERVAL_S)
            for descriptor in ready.intersection(self.interrupts):
                self.interrupts[descriptor]()
            self._take(ready)
            if talk and self._reply is None:
                self._talk(talk, ready)
            # Invariant: what a program may do to its supervisor gains no time.
            if talk and talk.expired_at is not None:
                deadline = min(deadline, talk.expired_at + REPLY_GRACE_S)
        return self._reply or {"broken": "its supervisor did not reply"}

    def _talk(self, talk: Talk, ready: set[int]) -> None:
        """Pass on what the program and the host say, and cut the program off once its time is spent."""
        talk.read(ready)
        talk.step(self._pipes.take_stdout())
        if talk.expired_at is not None:
            if self._pipes.violation is None:
                self._pipes.cut_off("timeout")
            self._stop_program()

    def break_off(self, reason: str) -> None:
        """Wait for the current reply no longer."""
        self._reply = {"broken": reason}

    def _take(self, ready: set[int]) -> None:
        for pipe in ready & self._pipes.open:
            self._pipes.read(pipe)
        if self._pipes.violation in ("output", "protocol"):
            self._stop_program()
        if self.control.fileno() in ready:
            message, descriptors = wire.receive(self.control)
            for descriptor in descriptors:
                os.close(descriptor)
            self._reply = message or {"broken": LOST}

    def _stop_program(self) -> None:
        if not self._is_cut_off:
            self._is_cut_off = True
            with contextlib.suppress(OSError):
                self._send({"op": "stop"})

    # -- what a program has printed and made -----------------------------------------------------------------

    def _report(self, ended: Json, inputs: set[str]) -> Json:
        """Return how a program ended, as the supervisor of a single run reports it."""
        # A session that fails returns to its files; those of a single run stay.
        room = self._limits["artifacts"] if ended["ok"] or not self._is_session else 0
        frame = self._pipes.result or {}
        peak = frame.get("peak")
        reason = "timeout" if ended["signal"] in wire.OUT_OF_TIME else ended["reason"]
        if self._pipes.violation in ("output", "timeout"):
            reason = self._pipes.violation
        return {
            "exit": ended["exit"],
            "reason": reason,
            "peak": ended["peak"] or (peak if isinstance(peak, int) else 0),
            "seconds": ended["seconds"],
            "result": encode_frame(frame) if frame else "",
            "stdout": self._pipes.stdout,
            "stderr": self._pipes.stderr,
            "files": self._collect_files(inputs, room),
            "is_committed": ended["ok"],
        }

    def _collect_files(self, inputs: set[str], room: int) -> list[tuple[str, str | None]]:
        """Return the files that were made since the last time, as far as there is room, and remember all."""
        known, self._marks = self._marks, {}

        def is_known(name: str, status: os.stat_result) -> bool:
            mark = self._marks[name] = (status.st_ino, status.st_size, status.st_ctime_ns)
            is_input = name in inputs and stat.S_IMODE(status.st_mode) == 0o444
            return is_input or known.get(name) == mark

        try:
            os.chdir(self._root)
            # Invariant: a program may have replaced its folder by a link.
            box = os.open("box", FOLDER_FLAGS)
        except OSError:
            return []
        try:
            os.fchdir(box)
            files = list(made_files(".", is_known, room))
        finally:
            os.close(box)
            os.chdir("/")
        return files if room else []

    # -- the end ---------------------------------------------------------------------------------------------

    def end(self) -> bool:
        """Let the supervisor end everything, and end what it did not; return whether nothing is left.

        Invariant: the kernel says so, whatever a program may have done to this process or the supervisor.
        """
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + END_TIMEOUT_S
        while processes.parent(self._supervisor) == os.getpid() and time.monotonic() < deadline:
            time.sleep(RETRY_INTERVAL_S)
        if not processes.is_childless():
            processes.send_signal(self._supervisor, signal.SIGKILL)
        processes.kill_all()
        processes.reap()
        return processes.is_childless()

    def stop(self) -> bool:
        """End everything, and remove the folder; return whether nothing is left."""
        is_alone = self.end()
        filesystem.remove(self._folder)
        return is_alone and processes.is_childless()


def visible(parent: str) -> Iterator[str]:
    """Yield what programs may read: everything but devices, and the folders of runs in a folder."""
    folder = ""
    while folder != parent:
        folder = folder or "/"
        below = parent.removeprefix(folder).strip("/").partition("/")[0]
        yield from _entries(folder, (below, "dev") if folder == "/" else (below,))
        folder = os.path.join(folder, below)
    yield from (path for path in _entries(parent) if not os.path.basename(path).startswith(OWN_PREFIX))


def _entries(folder: str, but: Sequence[str] = ()) -> Iterator[str]:
    """Yield the entries of a folder, but links, which may lead to a folder that is left out."""
    with os.scandir(folder) as entries:
        yield from (entry.path for entry in entries if entry.name not in but and not entry.is_symlink())


def open_no_link(path: str, flags: int) -> int:
    """Open what is at a path itself, and wait for nobody."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def devices() -> Iterator[str]:
    """Yield the devices that programs may use."""
    for name in DEVICES:
        yield from glob.glob(f"/dev/{name}")


def memory_file(content: bytes) -> int:
    """Return the descriptor of a file in memory, sealed, as a program could otherwise grow it."""
    try:
        descriptor = os.memfd_create("request", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError:  # Some sandboxes have no such files.
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, 1033, SEALS)  # F_ADD_SEALS
    return descriptor
