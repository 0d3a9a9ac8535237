"""The supervisor: first process of a run's sandbox, out of the program's reach.

It starts, limits and ends all others.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Mapping
from typing import NoReturn

from .. import wire
from ..kernel import loopback
from ..kernel.polling import readable
from ..kernel.syscalls import (
    CLONE_NEWNET,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    prctl,
    unshare,
    wake_early,
)
from ..wire import Json
from . import filesystem, folders, processes, program, template
from .config import WorkerConfig
from .monitor import LimitMonitor
from .running import HostGoneError, RunningProgram
from .states import ProcessesRemainError, SessionStates, StateProcess

FORK_AHEAD_DELAY_S = 0.01
"""How long a session waits for its next program before it forks the process of that in advance."""
SPENT_TIMEOUT_S = 3.0
"""How long a supervisor waits for another program: it is quicker than a new one, but takes memory."""
IDLE_CHECK_INTERVAL_S = 1.0
"""Pause between checks that nothing of an idle session runs."""
HEADER_LINES = 1
"""Lines of the kernel's list of sockets besides those of sockets."""
STATE_LOST = "the process that held its state is gone"
CHECKPOINT_LOST = "the process that held the checkpoint is gone"


class Supervisor:
    """Supervises the sandbox of one run or session, from its creation to its end.

    Replies to the host: `ended` with how a program ended, `done`; `input_error` and `session_error` if a
    command was refused without effect; `broken` if the session is lost.

    Args:
        host: Socket to the host; the sandbox ends when it is closed.
        config: The configuration of the run.
        worker: The worker's pidfd; the sandbox ends with the worker.
        spawners: Sockets to the processes that fork templates, by how many of the preloaded libraries they have.
    """

    def __init__(
        self, host: socket.socket, config: WorkerConfig, worker: int, spawners: Mapping[int, socket.socket]
    ) -> None:
        self._host, self._config, self._worker = host, config, worker
        self._spawners, self._templates = spawners, dict[int, template.Template]()
        self._input_error: str | None = None
        self._last_pid = 0
        self._root = -1
        self._has_ended_well = self._is_collected = self._is_clear = False

    def build(self, streams: list[int], *, libraries: int) -> None:
        """Build what a run needs, start the process of its program, and tell the host.

        Args:
            streams: Descriptors of the program's results, output and errors.
            libraries: How many of the preloaded libraries the program has.
        """
        config = self._config
        self._has_ended_well = self._is_collected = self._is_clear = False
        if self._root < 0:
            self._root = filesystem.make(config)
            self._fresh = folders.state(self._root, config["visible"]) if config["namespaces"] else None
        entries = filesystem.entries(self._root) if config["namespaces"] else 0
        listening = loopback.listen(config["network"])
        shared_bytes, threads, is_proven = 0, config["threads"], False
        if config["namespaces"]:
            parent = self._template(libraries)
            shared_bytes, threads, is_proven = parent.shared_bytes, parent.threads, parent.is_proven
            process = parent.start(streams)
        else:
            process = _start_process(streams, config)
        # With its pidfd the host can end this process, whatever it is waiting for.
        handed_over = [os.pidfd_open(os.getpid()), *listening]
        report = {"ready": True, "threads": threads, "is_proven": is_proven}
        wire.send(self._host, report, [self._root, *handed_over])
        for descriptor in (*handed_over, *streams):
            os.close(descriptor)
        self._monitor = LimitMonitor(self._root, config, entries, shared_bytes)
        self._states = SessionStates(self._root, config, process, self._monitor)

    def _template(self, libraries: int) -> template.Template:
        """Return the process to fork a program's process from."""
        if libraries not in self._templates:
            self._templates[libraries] = template.request(self._spawners[libraries])
        return self._templates[libraries]

    # -- the host's commands ---------------------------------------------------------------------------------

    def serve(self) -> NoReturn:
        """Carry out the host's commands until it disconnects, or the session times out."""
        while self._has_command():
            message, descriptors = wire.receive(self._host)
            if message is None:
                break
            try:
                reply = getattr(self, f"on_{message.pop('op')}")(descriptors, **message)
            except ProcessesRemainError as error:
                reply = {"broken": str(error)}
            except OSError as error:
                reply = {"broken": f"{type(error).__name__}: {error}"}
            with contextlib.suppress(OSError):  # The host is gone, which is noticed next.
                if reply:
                    wire.send(self._host, reply)
        self.end()

    def _has_command(self) -> bool:
        """Wait for the host; return False if this process is to end.

        That is so if the worker is gone, no other program came in time, or a session timed out or is not at rest.
        """
        if self._states.has_snapshots and not readable([self._host.fileno()], FORK_AHEAD_DELAY_S):
            try:
                self._states.rest()
            except ProcessesRemainError:
                return False
        deadline = time.monotonic() + self._config["session_timeout"]
        if self._states.has_snapshots:
            self._last_pid = processes.last_pid()
        while True:
            interval = IDLE_CHECK_INTERVAL_S if self._states.has_snapshots else None
            if self._is_clear:
                interval = SPENT_TIMEOUT_S
            ready = readable([self._host.fileno(), self._worker], interval)
            if ready:
                return self._worker not in ready
            if self._is_clear or time.monotonic() > deadline or not self._is_at_rest():
                return False

    def _is_at_rest(self) -> bool:
        """Return whether nothing but stopped states is left of a session, within its limits."""
        if self._config["namespaces"] and processes.last_pid() != self._last_pid:
            return False  # A process was forked, even if it is gone.
        pids = self._states.pids()
        if set(processes.tree()) - set(pids) or not all(map(processes.is_stopped, pids)):
            return False
        return not self._monitor.exceeded(self._states.extra_processes)

    def end(self) -> NoReturn:
        """Kill everything, and then exit."""
        if not self._config["namespaces"]:  # Otherwise the kernel kills everything with its first process.
            while not processes.kill_all():
                continue  # Invariant: it does not exit before, as nobody would adopt the orphans.
            filesystem.remove(self._config["root"])
        os._exit(0)

    def on_files(self, descriptors: list[int], names: list[str], size: int, is_session: bool) -> None:
        """Copy files into the working directory; a session that fails removes them again."""
        if is_session:
            self._states.save_files()
        existing = self._monitor.entries()
        self._monitor.reserve(size, sum(name.count("/") + 1 for name in names))
        uid = 0 if self._config["namespaces"] else self._config["uid"]
        for name, descriptor in zip(names, descriptors, strict=True):
            try:
                filesystem.put(self._root, name, descriptor, uid)
            except OSError as error:
                reason = error.strerror
                self._input_error = f"The file {name!r} cannot be put into the working directory: {reason}."
        self._monitor.count_inputs(self._monitor.entries() - existing)

    def on_run(self, descriptors: list[int], extra_seconds: float) -> Json:
        """Run one program until it and everything that it started has ended.

        The host measures the time of a program that calls tools, as time in which it works on calls does not count;
        `extra_seconds` is how long that may be.
        """
        wire.send(self._states.current.channel, {"is_session": False}, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        try:
            ending = self._await_end(self._states.current, extra_seconds)
        except OSError:  # Nobody knows how it ended, but it has to end.
            processes.kill_all()
            raise
        has_ended = processes.kill_all()
        self._has_ended_well = has_ended and ending["reason"] is None and self._config["namespaces"]
        # Files that the host has not collected yet must stay.
        is_open = self._has_ended_well and not self._is_collected
        return {"ended": ending, "reusable": None if is_open else self._clear()}

    def _clear(self) -> bool:
        """Drop what a program has left on its channel and in its files; return whether another one can be served."""
        if not self._has_ended_well:
            return False
        with contextlib.suppress(OSError):
            self._states.current.channel.close()
            fresh = folders.restore(self._root, self._fresh, self._config)
            if fresh is None:
                self._drop_folders()
            self._fresh, self._is_clear = fresh, True
        return self._is_clear

    def _drop_folders(self) -> None:
        """Unmount the folders, and end the templates, which may use no others."""
        os.close(self._root)
        self._root = -1
        filesystem.clear()
        self._drop_templates()

    def _drop_templates(self) -> None:
        for parent in self._templates.values():
            parent.channel.close()
        self._templates.clear()

    def on_renew(self, streams: list[int], libraries: int) -> None:
        """Build the sandbox of another program.

        Invariant: nothing of the last program is left: no process, file or socket. What it could have changed is new unless
        it is as it was. It cannot have changed this process or a template, which it may neither inspect nor name in a
        system call that changes them.
        """
        if not self._is_clear:
            self.end()
        self._input_error = None
        try:
            self._renew_network()
            self.build(streams, libraries=libraries)
        except OSError as error:
            wire.send_failure(self._host, error)
            self.end()

    def _renew_network(self) -> None:
        """Replace the network, unless there is nothing in it: names of sockets stay for a while when nobody has them."""
        own_sockets = 2 * len(self._templates)
        if self._config["network"] or processes.sockets([]) != HEADER_LINES + own_sockets:
            unshare(CLONE_NEWNET)
            self._drop_templates()  # They are in the network that is given up.

    def on_stop(self, descriptors: list[int]) -> None:
        """Ignore a request to stop a program that has ended already."""

    def on_leave(self, descriptors: list[int], is_collected: bool) -> Json | None:
        """Drop the files of a program that has ended already, unless the host still needs them."""
        return {"reusable": self._clear()} if is_collected else None

    def on_cell(self, descriptors: list[int], number: int, extra_seconds: float) -> Json:
        """Run one program of a session in a fork of its state, which becomes the state if it succeeds.

        One with a negative number leaves the state as it is.
        """
        self._states.save_files()
        self._states.start_run()
        input_error, self._input_error = self._input_error, None
        if input_error:
            self._states.restore_files()
            return {"input_error": input_error}
        fork = self._states.start(descriptors, number)
        if fork is None:
            return {"broken": STATE_LOST}
        ending = self._await_end(fork, extra_seconds)
        is_kept = ending["ok"] and number > 0
        if is_kept:
            self._states.commit(fork)
        self._states.kill_others()
        if not is_kept:
            self._states.restore_files()
        return {"ended": ending, "has_lost_threads": self._states.current.has_lost_threads}

    def on_rollback(self, descriptors: list[int]) -> Json:
        """Return to the state before the last successful run."""
        if not self._states.roll_back():
            return {"session_error": "There is no run to roll back: none succeeded since the last rollback."}
        return {"done": True, "has_lost_threads": self._states.current.has_lost_threads}

    def on_checkpoint(self, descriptors: list[int], name: str) -> Json:
        """Save the state under a name."""
        fork = self._states.fork([], 0)
        if fork is None:
            return {"broken": STATE_LOST}
        if reason := self._states.add_checkpoint(name, fork):
            return {"session_error": f"The checkpoint could not be saved: {reason}."}
        return {"done": True}

    def on_restore(self, descriptors: list[int], name: str) -> Json:
        """Return to a saved state, which stays saved."""
        if not self._states.restore_checkpoint(name):
            return {"broken": CHECKPOINT_LOST}
        return {"done": True, "has_lost_threads": self._states.current.has_lost_threads}

    def _await_end(self, process: StateProcess, extra_seconds: float) -> Json:
        """Wait until a program ends or exceeds a limit; return how it ended."""
        seconds = self._config["limits"]["seconds"] + extra_seconds
        running = RunningProgram(
            process, self._states, self._monitor, self._host, self._worker, seconds=seconds
        )
        try:
            return running.await_end()
        except HostGoneError:
            self.end()
        finally:
            self._is_collected |= running.is_collected


def supervise(
    host: socket.socket,
    streams: list[int],
    config: WorkerConfig,
    worker: int,
    spawners: Mapping[int, socket.socket],
) -> NoReturn:
    """Build what a run needs, start the process of its program, and supervise it. It never returns.

    Args:
        host: Socket to the host.
        streams: Descriptors of the program's results, output and errors.
        config: The configuration of the run.
        worker: The worker's pidfd.
        spawners: Sockets to the processes that fork templates, by how many of the preloaded libraries they have; without
            namespaces there are none.
    """
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        wake_early()
        prctl(PR_SET_DUMPABLE, 0)  # Other processes of the same user cannot inspect this one.
        if config["namespaces"]:
            filesystem.enter()
        else:
            config["uid"] = filesystem.usable_uid(config["uid"])
        supervisor = Supervisor(host, config, worker, spawners)
        supervisor.build(streams, libraries=config["libraries"])
        supervisor.serve()
    except BaseException as error:
        wire.send_failure(host, error)
    finally:
        os._exit(70)


def _start_process(streams: list[int], config: WorkerConfig) -> StateProcess:
    """Fork the process of the program from this one."""
    ours, theirs = wire.pair()
    ours.setblocking(False)
    pid = os.fork()
    if pid == 0:
        program.main(theirs.detach(), streams, config)
    theirs.close()
    return StateProcess(pid, ours)
