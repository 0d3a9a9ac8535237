"""A program that runs: wait for its end, and kill it at a limit or if the host says so."""

from __future__ import annotations

import os
import signal
import socket
import time

from .. import wire
from ..kernel.polling import readable
from ..wire import Json
from . import processes
from .monitor import CHECK_INTERVAL_S, LimitMonitor
from .states import SessionStates, StateProcess

EXIT_TIMEOUT_S = 0.1
"""How long a program may take to exit once it has reported its result."""


class HostGoneError(Exception):
    """The host or the worker is gone, so the sandbox has to end."""


class RunningProgram:
    """The program that the supervisor is waiting for.

    The process of a session reports on its channel, as it lives on. That of a single run is trusted only to exit.

    Args:
        process: Its process.
        states: The states of the session, or of the single run.
        monitor: Checks limits.
        host: Socket to the host.
        worker: The worker's pidfd.
        seconds: When it times out.

    Attributes:
        is_collected: Whether the host needs its files no more.
    """

    def __init__(
        self,
        process: StateProcess,
        states: SessionStates,
        monitor: LimitMonitor,
        host: socket.socket,
        worker: int,
        *,
        seconds: float,
    ) -> None:
        self._process, self._states, self._monitor = process, states, monitor
        self._host, self._worker = host, worker
        self._deadline = time.monotonic() + seconds
        is_session = process is not states.current
        self._extra_processes = states.extra_processes if is_session else 0
        self._channel = process.channel.fileno() if is_session else -1
        self._late_reason = "timeout"
        self._reason: str | None = None
        self._report: Json | None = None
        self._exit: tuple[int, int] | None = None
        self.is_collected: bool = False

    def await_end(self) -> Json:
        """Wait until the program ends or exceeds a limit; return how it ended.

        Raises:
            HostGoneError: The host or the worker is gone.
            OSError: Nobody knows how it ended.
        """
        process = self._process
        self._monitor.set_base_memory()
        self._pidfd = process.pidfd if process.pidfd >= 0 else os.pidfd_open(process.pid)
        started = time.monotonic()
        while self._report is None and self._exit is None:
            self._observe()
        os.close(self._pidfd)
        if self._report:  # Its last allocations may not have been checked, and would persist.
            self._reason = self._reason or self._monitor.exceeded(self._extra_processes)
        if self._report and processes.is_descendant(self._report.get("pid")):
            process.pid = self._report["pid"]
        code, peak = self._exit or (0, 0)
        return {
            "ok": bool(self._report and self._report.get("ok")) and not self._reason,
            "exit": code,
            "signal": -code if code < 0 else None,
            "reason": self._reason,
            "has_lost_threads": process.has_lost_threads,
            "seconds": time.monotonic() - started,
            "peak": peak,
        }

    def _observe(self) -> None:
        """Wait for the next event, and kill the program if it is to stop."""
        remaining = self._deadline - time.monotonic()
        timeout = CHECK_INTERVAL_S if self._reason else max(0.0, min(self._monitor.interval, remaining))
        ready = readable([self._host.fileno(), self._pidfd, self._channel, self._worker], timeout)
        if self._channel in ready:
            self._report = wire.receive_untrusted(self._process.channel)
            self._channel = self._channel if self._report else -1
        self._obey_host(ready)
        if self._pidfd in ready and self._report is None:
            self._exit = _exit_of(self._process)
        if self._report is None and self._exit is None:
            if not ready:
                self._check_limits(remaining)
            if self._reason:
                self._kill()

    def _check_limits(self, remaining: float) -> None:
        """Note the limit that the program has reached, if any, with so many seconds left."""
        if self._process.exits is not None:
            processes.reap()  # Orphans that have ended count for the kernel's limit of processes.
        late = self._late_reason if remaining <= 0 else None
        self._reason = self._reason or late or self._exceeded()

    def _exceeded(self) -> str | None:
        reason = self._monitor.exceeded(self._extra_processes)
        if reason != "processes" or self._process.exits is not None:
            return reason
        processes.reap_orphans({self._process.pid, *self._states.pids()})
        return self._monitor.exceeded(self._extra_processes)

    def _kill(self) -> None:
        """Kill the program with all that it started, which could otherwise starve it and delay its end."""
        others = set(processes.tree()).difference(self._states.pids())
        for pid in {self._process.pid, *others}:
            processes.send_signal(pid, signal.SIGKILL)

    def _obey_host(self, ready: set[int]) -> None:
        """Do what the host requests."""
        if self._worker in ready:
            raise HostGoneError
        if self._host.fileno() not in ready:
            return
        message, _ = wire.receive(self._host)
        if message is None:
            raise HostGoneError
        if message["op"] == "leave":  # It has its result, and the program has nothing left to do but to exit.
            self._deadline = min(self._deadline, time.monotonic() + EXIT_TIMEOUT_S)
            self._late_reason = "left"
            self.is_collected = message["is_collected"]
        else:
            self._reason = "stopped"


def _exit_of(process: StateProcess) -> tuple[int, int]:
    """Return the exit code and, if known, the peak memory of a process that has ended."""
    if process.exits is not None:
        report, _ = wire.receive(process.exits)
        if report is None:  # Then nobody knows how it ended.
            raise ChildProcessError("the template has ended")
        return report["exit"], report["peak"]
    return processes.reap(process.pid) or (processes.exit_code(process.pid), 0)
