"""Warm workers, and the forks of them that wait for a program."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Self

from code_chains.errors import ExecutorError
from code_chains.executors.inside import wire
from code_chains.executors.inside.places import FOLDERS, remove
from code_chains.executors.interpreter import Interpreter
from code_chains.executors.launchers import LAUNCHERS, Box
from code_chains.state import Isolation

__all__ = ["Fork", "Plan", "Pool", "Worker"]

RUNS, AGE = 1000, 3600.0
"""Forks and seconds after which a worker is replaced by a fresh one."""
MEANT = {"probe", "broken", "status"}
"""What a frame of the program's process has one of; all else is noise that a program wrote."""
_users = itertools.count(os.getpid())
_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


@dataclass(frozen=True)
class Plan:
    """What workers are made from.

    Attributes:
        launcher: Name of the launcher.
        python: The interpreter in the box.
        config: What the worker is told.
        environment: Environment variables of the worker.
        standbys: Forks that wait ready for a program.
        hosts: Lines of the box's `/etc/hosts`.
    """

    launcher: str
    python: Interpreter
    config: Mapping[str, Any]
    environment: Mapping[str, str]
    standbys: int
    hosts: str = "127.0.0.1 localhost\n"


class Fork:
    """This side of one fork of a worker: a box that runs one program, or holds a session.

    It is driven from outside: `read` is called whenever one of `descriptors` is readable, until what is waited for holds.

    Attributes:
        frames: What the program's process said, as JSON objects.
        told: What the watcher said last about a run or a request.
        isolation: What the probe found, once that was judged.
        failed: Why there is no box, once that is known.
        starved: Whether that is because this process may open nothing more.
        listening: Sockets of the box on which connections to allowed addresses arrive.
        root: Descriptor of the directory with the places the program writes to; None until the box is built.
    """

    def __init__(self, worker: Worker, output: int, said: int) -> None:
        self.worker = worker
        self.frames: list[dict[str, Any]] = []
        self.told: dict[str, Any] | None = None
        self.failed: str | None = None
        self.starved = False
        self.root: int | None = None
        self.isolation: Isolation | None = None
        self.listening: list[int] = []
        self.flooded = False
        self._stack = ExitStack()
        try:
            self._open_all()
        except OSError as error:
            self._stack.close()
            raise ExecutorError(f"No box can be made here: {error}.", is_retryable=True) from error
        self.kept = {self._result: bytearray(), self.stdout: bytearray(), self.stderr: bytearray()}
        self._most = {self._result: said, self.stdout: output, self.stderr: output}
        self._open = set(self.kept)

    def _open_all(self) -> None:
        """Our ends and theirs."""
        self.control, theirs = wire.pair()
        self._stack.callback(self.control.close)
        self.control.setblocking(False)
        self._theirs = [theirs.detach()]
        self._stack.callback(self._drop_theirs)
        self._result, self.stdout, self.stderr = (self._pipe() for _ in range(3))

    def _pipe(self) -> int:
        read, write = os.pipe()
        self._stack.callback(os.close, read)
        os.set_blocking(read, False)
        self._theirs.append(write)
        return read

    def _drop_theirs(self) -> None:
        while self._theirs:
            os.close(self._theirs.pop())

    def ask(self) -> Self:
        """Let the worker make it."""
        self.worker.fork(self._theirs)
        self._drop_theirs()
        return self

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What is to be watched for reading."""
        return () if self._closed else (self.control.fileno(), *self._open)

    @property
    def _closed(self) -> bool:
        return self.control.fileno() < 0

    @property
    def ready(self) -> bool:
        """Whether the box is built and its probe has reported, or that will never be."""
        return self.failed is not None or (self.root is not None and bool(self.frames))

    @property
    def ended(self) -> bool:
        """Whether the watcher said how a run ended, or there is nobody left to say so."""
        return self.told is not None or self.failed is not None or self._closed

    @property
    def done(self) -> bool:
        """Whether a run is over: the program's process, the watcher or the limit of output says so."""
        return len(self.frames) > 1 or self.flooded or self.ended

    def begin(self) -> None:
        """Forget what came of the last run."""
        del self.frames[1:]
        self.flooded = False
        for kept in self.kept.values():
            kept.clear()

    def read(self, descriptor: int) -> None:
        """Take what is there, up to the limits."""
        if descriptor == self.control.fileno():
            self._hear()
        elif descriptor in self._open:
            self._take(descriptor)

    def _hear(self) -> None:
        try:
            message, descriptors = wire.receive(self.control)
        except BlockingIOError:
            return
        except OSError:
            message, descriptors = None, []
        if descriptors and self.root is None:
            self.root, *self.listening = descriptors
            self._stack.callback(os.close, self.root)
            self._stack.callback(self._shut)
        if message is None or "failed" in message:
            self.failed = str((message or {}).get("failed", "")) or self.worker.said
            self.hang_up()
        elif "ready" not in message:
            self.told = message
        elif self.root is None:  # It was sent; the kernel had no number left for it.
            self.failed, self.starved = "too many files are open", True

    def _take(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return
        kept = self.kept[descriptor]
        room = self._most[descriptor] - len(kept)
        kept += data[:room]
        self.flooded = self.flooded or len(data) > room
        if not data:
            self._open.discard(descriptor)
            if descriptor == self._result and not self.frames and not kept:
                self.failed = self.failed or "its first process ended before it was ready"
        if descriptor == self._result:
            *lines, rest = bytes(kept).split(b"\n") if b"\n" in data else (kept,)
            self.frames += [frame for line in lines if (frame := _frame(line)) and MEANT & frame.keys()]
            self.kept[descriptor] = bytearray(rest)

    def drain(self) -> None:
        """Take what was printed before the program said that it ended."""
        for descriptor in (self.stdout, self.stderr):
            size = -1
            while descriptor in self._open and size != len(self.kept[descriptor]) and not self.flooded:
                size = len(self.kept[descriptor])
                self._take(descriptor)

    def say(self, message: dict[str, Any], descriptors: list[int] | None = None) -> None:
        """Say something to the watcher.

        Raises:
            ExecutorError: It is gone.
        """
        self.told = None
        try:
            self.control.setblocking(True)
            wire.send(self.control, message, descriptors or ())
            self.control.setblocking(False)
        except OSError as error:
            raise ExecutorError("The sandbox ended before the program began.", is_retryable=True) from error

    def _shut(self) -> None:
        while self.listening:
            os.close(self.listening.pop())

    def hand_over(self) -> list[int]:
        """The sockets on which the program's connections arrive; whoever takes them closes them."""
        taken, self.listening = self.listening, []
        return taken

    def on_close(self, action: Callable[[], object]) -> None:
        """Do something when this is closed."""
        self._stack.callback(action)

    def hang_up(self) -> None:
        """Let the watcher end everything at once."""
        if not self._closed:
            with contextlib.suppress(OSError):
                self.control.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End everything that was started and give back what it held. Closing twice is fine."""
        if not self._closed:
            self.hang_up()  # A forked process may still hold this end.
            asked = not self._theirs
            self._stack.close()
            if asked:
                self.worker.let_go()


def _user() -> int:
    """A user of the host that is likely nobody else's, to be instead of root."""
    return 61184 + next(_users) % 4335


def _frame(line: bytes) -> dict[str, Any] | None:
    """A JSON object, whatever the program wrote; half characters (lone surrogates) become "?"."""
    try:
        clean = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")
        frame = json.loads(clean)
    except (ValueError, RecursionError):
        return None
    return frame if isinstance(frame, dict) else None


class Worker:
    """A box with a worker in it that can be forked.

    Raises:
        ExecutorError: It could not even be started.
    """

    def __init__(self, plan: Plan, folder: str) -> None:
        self.plan, self.folder = plan, folder
        self.began, self.forks, self.active, self.retired = time.monotonic(), 0, 0, False
        self.hello: dict[str, Any] | None = None
        self._lock = threading.Lock()
        self._stack = ExitStack()
        as_root = os.geteuid() == 0
        self.uid = _user() if as_root and plan.launcher != "none" else 0
        self._line, theirs = wire.pair()
        self._stack.callback(self._line.close)
        self._log, log = os.pipe()
        self._stack.callback(os.close, self._log)
        os.set_blocking(self._log, False)
        box = Box(plan.python, theirs.fileno(), as_root, plan.hosts)
        try:
            command = LAUNCHERS[plan.launcher](box)
            self._process = self._spawn(command, (theirs.fileno(), *box.own), log)
            config = {**plan.config, "uid": self.uid}
            if not config["namespaces"]:
                config["cache"] = os.path.join(folder, "cache")
                os.makedirs(config["cache"], exist_ok=True)
            wire.send(self._line, config)
        except BaseException:
            self._stack.close()
            raise
        finally:
            theirs.close()
            for descriptor in (log, *box.own):
                os.close(descriptor)

    def _spawn(self, command: list[str], inherited: tuple[int, ...], log: int) -> subprocess.Popen[bytes]:
        program = shutil.which(command[0]) or command[0]
        try:
            return subprocess.Popen(
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=dict(self.plan.environment),
                cwd="/",
                pass_fds=inherited,
                start_new_session=True,
            )
        except OSError as error:
            raise ExecutorError(f"The sandbox could not be started: {error}.", is_retryable=True) from error

    def fork(self, descriptors: list[int]) -> None:
        """Ask for a fork that owns these descriptors: its line, and where it writes results and output."""
        message: dict[str, Any] = {"op": "fork"}
        if not self.plan.config["namespaces"]:
            message["root"] = root = tempfile.mkdtemp(dir=self.folder)
            box, temporary, shared = (f"{root}/{folder}" for folder in FOLDERS)
            message["environment"] = {**self.plan.config["environment"], "HOME": box, "TMPDIR": temporary}
            message["writable"] = [*self.plan.config["writable"], box, temporary, shared]
            message["uid"] = _user() if self.uid else 0
            if self.uid:
                os.chmod(root, 0o711)  # noqa: S103 - the run's user must come through
        with self._lock:
            self.forks += 1
            self.active += 1
            with contextlib.suppress(OSError):  # It is gone: the fork's line will say so.
                wire.send(self._line, message, descriptors)

    def let_go(self) -> None:
        """One fork less; a worker that is retired ends with its last."""
        with self._lock:
            self.active -= 1
            last = self.retired and self.active <= 0
        if last:
            self.close()

    @property
    def worn(self) -> bool:
        """Whether it should be replaced: gone, or old."""
        gone = self._process.poll() is not None
        return gone or self.forks >= RUNS or time.monotonic() - self.began > AGE

    @property
    def said(self) -> str:
        """The end of what it wrote to its log."""
        with contextlib.suppress(OSError):
            self._text = getattr(self, "_text", "") + os.read(self._log, 1 << 16).decode(errors="replace")
        return " ".join(getattr(self, "_text", "").split())[-500:]

    def greeting(self) -> dict[str, Any]:
        """What it said when it was ready; empty while it is not."""
        with self._lock, contextlib.suppress(OSError):
            if self.hello is None:
                self._line.setblocking(False)
                try:
                    self.hello, _ = wire.receive(self._line)
                finally:
                    self._line.setblocking(True)
        return self.hello or {}

    def retire(self) -> None:
        """End it as soon as nothing runs in it."""
        with self._lock:
            self.retired = True
            now = self.active <= 0
        if now:
            self.close()

    def close(self) -> None:
        """End it with all that runs in it. Closing twice is fine."""
        self._stack.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def abandon(self) -> None:
        """Forget it in a process that was forked from the one that owns it."""
        self._stack.close()
        self._process.returncode = 0


@dataclass
class _Held:
    """What a pool owns, apart from it, so that it can be given back when the pool is forgotten."""

    worker: Worker | None = None
    ready: list[Fork] = field(default_factory=list)
    spare: Fork | None = None
    forks: weakref.WeakSet[Fork] = field(default_factory=weakref.WeakSet)
    folder: str | None = None
    pid: int = field(default_factory=os.getpid)


class Pool:
    """One warm worker, replaced when it is old or gone, with forks that wait ahead of need.

    Args:
        plan: Makes the plan of the next worker.
        fork: Makes a fork of a worker.
    """

    def __init__(self, plan: Callable[[], Plan], fork: Callable[[Worker], Fork]) -> None:
        self._plan, self._fork = plan, fork
        self._lock = threading.Lock()
        self._held = _Held()
        self._closed = False
        self._finalizer = weakref.finalize(self, _give_back, self._held)
        _pools.add(self)

    def take(self) -> Fork:
        """A fork that nobody else has; it may still be on its way."""
        with self._lock:
            worker = self._worker()
            return self._held.ready.pop(0) if self._held.ready else self._make(worker).ask()

    def prepare(self) -> None:
        """Do what the next fork needs on this side, while a program keeps the others busy."""
        with self._lock:
            if self._held.worker is not None and self._held.spare is None:
                self._held.spare = self._make(self._held.worker)

    def _make(self, worker: Worker) -> Fork:
        spare, self._held.spare = self._held.spare, None
        if spare is not None and spare.worker is worker:
            return spare
        if spare is not None:
            spare.close()
        fork = self._fork(worker)
        self._held.forks.add(fork)
        return fork

    def warm(self) -> None:
        """Start what will be needed, without waiting for it."""
        with self._lock:
            self._refill(self._worker())

    def _refill(self, worker: Worker) -> None:
        while len(self._held.ready) < worker.plan.standbys:
            self._held.ready.append(self._make(worker).ask())

    def _worker(self) -> Worker:
        if self._closed:
            raise ExecutorError("This executor is closed. Make a new one.")
        held = self._held
        if held.worker is not None and held.worker.worn:
            self._drop()
        if held.worker is None:
            try:
                held.folder = held.folder or tempfile.mkdtemp(prefix="code_chains-")
                os.chmod(held.folder, 0o711)  # noqa: S103 - runs as another user must come through
                held.worker = Worker(self._plan(), held.folder)
            except OSError as error:
                raise ExecutorError(f"No sandbox can be started here: {error}.", is_retryable=True) from error
        return held.worker

    def drop(self, *, at_once: bool = False) -> None:
        """Let the worker go, with all that runs in it if `at_once`; the next run gets a fresh one."""
        with self._lock:
            self._drop(at_once=at_once)

    def _drop(self, *, at_once: bool = False) -> None:
        worker, self._held.worker = self._held.worker, None
        ready, self._held.ready[:] = list(self._held.ready), []
        for fork in ready:
            fork.close()
        if worker and at_once:
            worker.close()
        elif worker:
            worker.retire()

    def close(self) -> None:
        """End everything; nothing is started any more, not for a run that had begun to wait either."""
        with self._lock:
            self._closed = True
            for fork in list(self._held.forks):
                if fork not in self._held.ready and fork is not self._held.spare:
                    fork.hang_up()  # Whoever drives it closes it.
                    self._held.forks.discard(fork)
            _give_back(self._held)

    def forget(self) -> None:
        """In a forked process: everything here is the parent's."""
        self._lock = threading.Lock()
        for fork in list(self._held.forks):
            fork._stack.close()
        if self._held.worker:
            self._held.worker.abandon()
        self._finalizer.detach()
        self._held = _Held()
        self._finalizer = weakref.finalize(self, _give_back, self._held)


def _give_back(held: _Held) -> None:
    if held.pid != os.getpid():
        return
    for fork in list(held.forks):
        fork.close()
    held.ready.clear()
    held.spare = None
    if held.worker:
        held.worker.close()
    if held.folder:
        remove(held.folder)
    held.worker = held.folder = None


def _after_fork() -> None:
    for pool in list(_pools):
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
