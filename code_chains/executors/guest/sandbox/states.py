"""The states of a session: stopped processes that hold variables, each with the files that belong to it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from dataclasses import dataclass

from .. import wire
from ..kernel.polling import readable
from ..wire import Json
from . import filesystem, processes
from .config import WorkerConfig
from .monitor import CHECK_INTERVAL_S, LimitMonitor
from .snapshot import FOLDER_FLAGS, Snapshot, remove_at

FORK_TIMEOUT_S, IDLE_FORK_TIMEOUT_S = 5.0, 0.5


@dataclass
class StateProcess:
    """A process that holds the state of a session, or runs a program.

    Attributes:
        pid: Its pid.
        channel: The supervisor's end of the socket to it.
        snapshot: The files that belong to it; None for the live ones.
        exits: Socket on which its parent reports how it ended, which belongs to that; None if its parent is the supervisor.
        has_lost_threads: Whether it is a fork of a process that had threads of libraries.
        pidfd: Its pidfd if another process reaps it, which may be done before it is waited for; else -1.
    """

    pid: int
    channel: socket.socket
    snapshot: Snapshot | None = None
    exits: socket.socket | None = None
    pidfd: int = -1
    has_lost_threads: bool = False


class ProcessesRemainError(Exception):
    """Processes of a program could not be killed."""

    def __str__(self) -> str:
        return "processes that it started could not be ended"


class SessionStates:
    """The current, the previous and the saved states of a session.

    Invariants: a state's process is stopped except while it forks; files are copied only while nothing but these processes
    is left, and all of them are stopped.

    Args:
        root: Descriptor of the directory with the writable folders.
        config: The configuration of the run.
        current: The process that waits for a program.
        monitor: Checks limits.

    Attributes:
        current: The process that holds the current state.
        previous: The process that holds the state before the last successful run.
        checkpoints: Processes that hold saved states, by name.
    """

    def __init__(self, root: int, config: WorkerConfig, current: StateProcess, monitor: LimitMonitor) -> None:
        self._root, self._config, self._monitor = root, config, monitor
        self.current = current
        self.previous: StateProcess | None = None
        self.checkpoints: dict[str, StateProcess] = {}
        self._next: StateProcess | None = None
        self._outdated: StateProcess | None = None
        self._is_verified = False
        self._may_fork_ahead = True
        self._snapshot: Snapshot | None = None
        self._copies = -1
        self._is_saved = False

    @property
    def has_snapshots(self) -> bool:
        """Whether files were copied: then this is a session."""
        return self._copies >= 0

    @property
    def extra_processes(self) -> int:
        """Number of processes that do not count for the limit."""
        return len(self.checkpoints) + 2 + sum(state is not None for state in (self._next, self._outdated))

    def pids(self) -> list[int]:
        """Return the pids of the processes that hold a state."""
        others = [state for state in (self.previous, self._next, self._outdated) if state is not None]
        return [state.pid for state in (self.current, *others, *self.checkpoints.values())]

    def start(self, descriptors: list[int], number: int) -> StateProcess | None:
        """Start a program in a fork of the current process; see `fork`."""
        forked, self._next, self._is_verified = self._next, None, False
        if forked is None or not _hand_over(forked, descriptors, number):
            return self.fork(descriptors, number)
        for descriptor in descriptors:
            os.close(descriptor)
        processes.send_signal(forked.pid, signal.SIGCONT)
        return forked

    def rest(self) -> None:
        """Do while nobody waits what the next program would wait for: kill the outdated state, and fork in advance.

        Raises:
            ProcessesRemainError: Something else is running, and cannot be killed.
        """
        if self._next is None and self._may_fork_ahead and not processes.has_threads(self.current.pid):
            self._next = self.fork([], 0, IDLE_FORK_TIMEOUT_S)
            self._may_fork_ahead = self._next is not None
        self._outdated = None
        self.kill_others()

    def fork(
        self, descriptors: list[int], number: int, timeout: float = FORK_TIMEOUT_S
    ) -> StateProcess | None:
        """Let the current process fork one that runs a program, or with number 0 only holds the state.

        The current process is resumed for just that time, and monitored meanwhile, as a program may control
        it.

        Returns:
            The new process; None if there is none, or a limit was exceeded.
        """
        ours, theirs = wire.pair()
        ours.setblocking(False)
        reply, self._is_verified = None, False
        with contextlib.suppress(OSError):
            message = {"is_session": True, "is_forked": False, "number": number}
            wire.send(self.current.channel, message, [*descriptors, theirs.fileno()])
            processes.send_signal(self.current.pid, signal.SIGCONT)
            reply = self._reply(timeout)
        reply = reply or {}
        pid = reply.get("pid", 0)
        forked = StateProcess(pid, ours, has_lost_threads=bool(reply.get("has_lost_threads")))
        if number > 0 and reply.get("is_swapped") and processes.is_descendant(pid):
            # The process with the threads runs the program, and the fork holds the state.
            forked, self.current = self.current, forked
        processes.send_signal(self.current.pid, signal.SIGSTOP)
        theirs.close()
        for descriptor in descriptors:
            os.close(descriptor)
        return forked if processes.is_descendant(pid) else None

    def _reply(self, timeout: float) -> Json | None:
        channel, deadline = self.current.channel, time.monotonic() + timeout
        while time.monotonic() < deadline:
            if readable([channel.fileno()], CHECK_INTERVAL_S):
                return wire.receive_untrusted(channel)
            if self._monitor.exceeded(self.extra_processes):
                break
        return None

    # -- transitions -----------------------------------------------------------------------------------------

    def save_files(self) -> None:
        """Copy the files before a run, once for each run.

        Raises:
            OSError: They cannot be copied.
            ProcessesRemainError: They could still be changed.
        """
        if not self._is_saved:
            if not self._is_verified:
                self._outdated = None
                self.kill_others()
            self._current_snapshot().save()
            self._is_saved = True

    def start_run(self) -> None:
        """Let the next `save_files` copy again."""
        self._is_saved = False

    def restore_files(self) -> None:
        """Restore the files from before the run."""
        self._current_snapshot().restore()

    def commit(self, fork: StateProcess) -> None:
        """Make a fork the current state; the current one becomes the previous one, which is discarded."""
        discarded, self.previous = self.previous, self.current
        self.previous.snapshot, self._snapshot = self._snapshot, None
        if discarded is not None:
            discarded.channel.close()
            self._snapshot = discarded.snapshot  # It is reused, as only what changed is copied.
        self.current, self._outdated = fork, discarded

    def roll_back(self) -> bool:
        """Return to the previous state; return False if there is none."""
        if self.previous is None:
            return False
        self._discard(self.current)
        self._drop_next()
        self._outdated = None
        self.current, self.previous = self.previous, None
        self.kill_others()
        if self.current.snapshot:
            self.current.snapshot.restore()
            self._discard_snapshot(self.current)
        return True

    def add_checkpoint(self, name: str, fork: StateProcess) -> str | None:
        """Save a fork of the current state under a name; return why its files could not be copied, if so."""
        self._discard(self.checkpoints.pop(name, None))
        self.kill_others(fork)
        fork.snapshot = self._new_snapshot()
        try:
            fork.snapshot.save()
        except OSError as error:
            self._discard(fork)
            return str(error.strerror)
        self.checkpoints[name] = fork
        return None

    def restore_checkpoint(self, name: str) -> bool:
        """Return to a saved state, which stays saved; return False if its process is gone."""
        saved = self.checkpoints[name]
        replaced, self.current = self.current, saved
        fork = self.fork([], 0)
        if fork is None:
            self.current = replaced
            return False
        self._discard(replaced)
        self._discard(self.previous)
        self._drop_next()
        self.previous, self.current = None, fork
        self.kill_others()
        if saved.snapshot:
            saved.snapshot.restore()
        return True

    def kill_others(self, *spare: StateProcess) -> None:
        """Stop all processes that hold a state and kill all others, so that nobody changes files while they are copied.

        Raises:
            ProcessesRemainError: They could not be killed.
        """
        if not processes.kill_all([*self.pids(), *(state.pid for state in spare)]):
            raise ProcessesRemainError
        # The end of an outdated state may resume others. Without a process namespace, so may programs of other runs.
        self._is_verified = self._config["namespaces"] and self._outdated is None

    # -- snapshots -------------------------------------------------------------------------------------------

    def _drop_next(self) -> None:
        """Give up the process of the next program; `kill_others` kills it."""
        if self._next is not None:
            self._next.channel.close()
            self._next = None

    def _discard(self, state: StateProcess | None) -> None:
        if state is not None:
            state.channel.close()
            self._discard_snapshot(state)

    def _discard_snapshot(self, state: StateProcess) -> None:
        if state.snapshot:
            os.close(state.snapshot.copy)
            with contextlib.suppress(OSError):
                remove_at(self._copies_folder(), state.snapshot.name)
            state.snapshot = None

    def _copies_folder(self) -> int:
        """Return the folder of the copies, which the program cannot reach."""
        if self._copies < 0:
            self._copies = filesystem.make_copies(self._root, self._config)
        return self._copies

    def _current_snapshot(self) -> Snapshot:
        if self._snapshot is None:
            self._snapshot = self._new_snapshot()
        return self._snapshot

    def _new_snapshot(self) -> Snapshot:
        name = str(time.monotonic_ns())
        os.mkdir(name, dir_fd=self._copies_folder())
        return Snapshot(self._root, os.open(name, FOLDER_FLAGS, dir_fd=self._copies_folder()), name)


def _hand_over(process: StateProcess, descriptors: list[int], number: int) -> bool:
    """Send a program to a process that was forked for it; return False if that has ended."""
    if processes.parent(process.pid) is None:
        return False
    try:
        message = {"is_session": True, "is_forked": True, "number": number}
        wire.send(process.channel, message, descriptors)
    except OSError:
        return False
    return True
