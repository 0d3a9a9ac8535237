"""Workers: sandboxed processes that fork supervisors, and have spawners with libraries loaded."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from code_chains.errors import ExecutorError
from code_chains.executors.guest import wire
from code_chains.executors.guest.sandbox.config import WorkerConfig
from code_chains.executors.guest.sandbox.filesystem import FOLDERS
from code_chains.executors.guest.sandbox.processes import kill_descendants, pid_of
from code_chains.executors.sandbox.interpreter import Interpreter
from code_chains.executors.sandbox.launchers import CANARY_FOLDER, LAUNCHERS, SandboxSpec, has_privileges

_ENDING_S = 0.2
"""How long a launcher whose streams are closed may take to end."""
MAX_FORKS, MAX_AGE_S = 10_000, 3600.0
"""After so many forks or seconds a worker is replaced."""
SUPERVISOR_EXIT_TIMEOUT_S, WORKER_EXIT_TIMEOUT_S = 5.0, 5.0
_FIRST_UID, _UIDS = 61184, 4335
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkerSpec:
    """What workers are made from.

    Attributes:
        launcher: Name of the launcher.
        python: The interpreter in the sandbox.
        config: The configuration that the worker receives.
        environment: Environment variables of the worker.
        min_idle: Number of forks that wait for a program.
        hosts: Content of the sandbox's `/etc/hosts`.
        commands: Whether programs may run the commands of the machine.
    """

    launcher: str
    python: Interpreter
    config: WorkerConfig
    environment: Mapping[str, str]
    min_idle: int
    hosts: str = "127.0.0.1 localhost\n"
    commands: bool = False


class Worker:
    """The host's side of a worker.

    Invariant: a worker outlives its forks. `retire` lets them finish, and the last one that is released
        closes it.

    Raises:
        ExecutorError: It could not be started.
    """

    folder: str
    spec: WorkerSpec

    def __init__(self, spec: WorkerSpec, folder: str) -> None:
        self.spec, self.folder = spec, folder
        self._started, self._forks, self._active, self._is_retired = time.monotonic(), 0, 0, False
        self._log_text = ""
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._reapers: list[threading.Thread] = []
        # Otherwise `namespaces.py` has become another user already.
        is_root = os.geteuid() == 0 and (spec.launcher != "namespaces" or has_privileges())
        self.uid: int = _random_uid() if is_root and spec.launcher != "none" else 0
        self._socket, theirs = wire.pair()
        self._stack.callback(self._socket.close)
        self._log_descriptor, log = os.pipe()
        self._stack.callback(os.close, self._log_descriptor)
        os.set_blocking(self._log_descriptor, False)
        canary = spec.config["probe"]["exposed"]
        sandbox = SandboxSpec(spec.python, theirs.fileno(), is_root, spec.hosts, spec.commands, canary)
        try:
            command = LAUNCHERS[spec.launcher](sandbox)
            self._process = self._spawn(command, (theirs.fileno(), *sandbox.descriptors), log)
            config: WorkerConfig = {**spec.config, "uid": self.uid}
            if config["namespaces"]:
                config["shared"] = [target for _, target in sandbox.binds]
                config["probe"] = {**config["probe"], "exposed": CANARY_FOLDER}
            else:
                config["cache"] = os.path.join(folder, "cache")
                os.makedirs(config["cache"], exist_ok=True)
            wire.send(self._socket, dict(config))
        except BaseException:
            self._stack.close()
            raise
        finally:
            theirs.close()
            for descriptor in (log, *sandbox.descriptors):
                os.close(descriptor)

    def _spawn(self, command: list[str], inherited: tuple[int, ...], log: int) -> subprocess.Popen[bytes]:
        program = shutil.which(command[0]) or command[0]
        try:
            return subprocess.Popen(
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=dict(self.spec.environment),
                cwd="/",
                pass_fds=inherited,
                start_new_session=True,
            )
        except OSError as error:
            raise ExecutorError(f"The sandbox could not be started: {error}.", is_retryable=True) from error

    def fork(self, descriptors: list[int], *, libraries: int) -> None:
        """Request a fork.

        Args:
            descriptors: What it owns: its socket, and the pipes for results and output.
            libraries: How many of the preloaded libraries its program has.
        """
        message: dict[str, Any] = {"libraries": libraries}
        if not self.spec.config["namespaces"]:
            message["root"] = root = tempfile.mkdtemp(dir=self.folder)
            home, temporary, shared = (f"{root}/{folder}" for folder in FOLDERS)
            message["environment"] = {**self.spec.config["environment"], "HOME": home, "TMPDIR": temporary}
            message["writable"] = [*self.spec.config["writable"], home, temporary, shared]
            message["uid"] = _random_uid() if self.uid else 0
            if self.uid:
                os.chmod(root, 0o711)  # noqa: S103 - the run's user must come through
        with self._lock:
            self._forks += 1
            self._active += 1
            with contextlib.suppress(OSError):  # The worker is gone; the fork's socket reports it.
                wire.send(self._socket, message, descriptors)

    def count_renewal(self) -> None:
        """Count a fork that goes on in the place of another one."""
        with self._lock:
            self._forks += 1

    def release(self) -> None:
        """Count a fork that has ended; a retired worker is closed with its last one."""
        with self._lock:
            self._active -= 1
            is_last = self._is_retired and self._active <= 0
        if is_last:
            self.close()

    def reap(self, supervisor: int) -> None:
        """Make sure that a supervisor without namespaces ends, with all that it started.

        Args:
            supervisor: Its pidfd, which is closed.
        """
        self._reapers = [thread for thread in self._reapers if thread.is_alive()]
        self._reapers.append(threading.Thread(target=_reap, args=(supervisor,), daemon=True))
        self._reapers[-1].start()

    @property
    def is_worn(self) -> bool:
        """Whether it should be replaced: it is gone or old."""
        is_gone = self._process.poll() is not None
        return is_gone or self._forks >= MAX_FORKS or time.monotonic() - self._started > MAX_AGE_S

    @property
    def was_killed(self) -> bool:
        """Whether the kernel has killed it for want of memory, or another process did; launchers have numbers for that."""
        return self._process.poll() in (-signal.SIGKILL, 0x80 | signal.SIGKILL, -signal.SIGKILL & 0xFF)

    def ending(self) -> str:
        """Return how its launcher ended by itself: its last words, or its exit code; empty if it was killed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDING_S)  # Its streams may be closed first.
        code = self._process.poll()
        is_own = code is not None and code > 0 and not self.was_killed
        return self.log_tail or (f"it ended with exit code {code}" if is_own else "")

    @property
    def log_tail(self) -> str:
        """The end of its log, in one line."""
        with contextlib.suppress(OSError):
            self._log_text += os.read(self._log_descriptor, 1 << 16).decode(errors="replace")
        return " ".join(self._log_text.split())[-500:]

    def retire(self) -> None:
        """Close it as soon as it has no fork."""
        with self._lock:
            self._is_retired = True
            is_unused = self._active <= 0
        if is_unused:
            self.close()

    def close(self) -> None:
        """Kill it with all that runs in it. Idempotent."""
        self._stack.close()
        for reaper in self._reapers:
            reaper.join()
        try:
            self._process.wait(WORKER_EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def abandon(self) -> None:
        """Forget it in a process that was forked from its owner."""
        self._stack.close()
        self._process.returncode = 0


def _reap(supervisor: int) -> None:
    """Wait for a supervisor to exit; if it does not, kill first what it started and then itself."""
    poll = select.poll()
    poll.register(supervisor, select.POLLIN)
    try:
        if not poll.poll(SUPERVISOR_EXIT_TIMEOUT_S * 1000):
            if not kill_descendants(pid_of(supervisor)):
                _log.error("Processes of a program could not be killed; their supervisor keeps trying.")
                return
            signal.pidfd_send_signal(supervisor, signal.SIGKILL)
    except OSError:
        return  # It is gone.
    finally:
        os.close(supervisor)


def _random_uid() -> int:
    """Return a user id of the host that is likely unused; other processes of an app choose theirs as well."""
    return _FIRST_UID + secrets.randbelow(_UIDS)
