"""The process that supervises a sandbox, as its host can end it."""

from __future__ import annotations

import contextlib
import os
import signal

from code_chains.executors.sandbox.worker import Worker


class SupervisorProcess:
    """The pidfd of a supervisor, which only the first of several threads takes to end it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._pidfds: list[int] = []

    @property
    def pidfd(self) -> int | None:
        """The pidfd; None until the sandbox is built, and once somebody has taken it."""
        return next(iter(self._pidfds), None)

    def adopt(self, pidfd: int) -> None:
        """Take over the pidfd of a supervisor."""
        self._pidfds.append(pidfd)

    def _take(self) -> int | None:
        with contextlib.suppress(IndexError):
            return self._pidfds.pop()
        return None

    def move_to(self, other: SupervisorProcess) -> None:
        """Give the pidfd away."""
        if (pidfd := self._take()) is not None:
            other.adopt(pidfd)

    def release(self) -> None:
        """Close the pidfd and leave the supervisor to another process."""
        if (pidfd := self._take()) is not None:
            os.close(pidfd)

    def end(self) -> None:
        """Kill the supervisor: with namespaces the kernel kills the rest; without, it gets time to do so itself."""
        pidfd = self._take()
        if pidfd is None:
            return
        if self._worker.spec.config["namespaces"]:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        else:
            self._worker.reap(pidfd)
