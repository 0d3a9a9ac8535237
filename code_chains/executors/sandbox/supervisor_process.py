"""The process that supervises a sandbox, as its host speaks to it and can end it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Sequence
from typing import Any

from code_chains.errors import ExecutorError
from code_chains.executors.guest import wire
from code_chains.executors.sandbox.worker import Worker
from code_chains.records import Isolation


class SupervisorProcess:
    """The socket to a supervisor, and its pidfd, which only the first of several threads takes to end it.

    Args:
        worker: The worker that it is a fork of.

    Attributes:
        control: The socket.
        theirs: Descriptor of the supervisor's end of it, for the worker.
        isolation: What the last probe in its sandbox reported, once that was accepted.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._pidfds: list[int] = []
        self.isolation: Isolation | None = None
        ours, theirs = wire.pair()
        ours.setblocking(False)
        self.control: socket.socket = ours
        self.theirs: int = theirs.detach()

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
        """Give socket, pidfd and proof away, in place of those that another one has."""
        other.isolation = self.isolation
        other.control.close()
        other.control = socket.socket(fileno=self.control.detach())  # `dup` might fail.
        other.control.setblocking(False)
        if (pidfd := self._take()) is not None:
            other.adopt(pidfd)

    def send(self, message: dict[str, Any], descriptors: Sequence[int]) -> None:
        """Send a command.

        Raises:
            ExecutorError: The supervisor is gone.
        """
        try:
            self.control.setblocking(True)
            wire.send(self.control, message, descriptors)
            self.control.setblocking(False)
        except OSError as error:
            raise ExecutorError("The sandbox ended before the program began.", is_retryable=True) from error

    def close(self) -> None:
        """Close the socket, at which the supervisor ends everything."""
        self.control.close()

    def release(self) -> None:
        """Close the pidfd and leave the supervisor to another process."""
        if (pidfd := self._take()) is not None:
            os.close(pidfd)

    def end(self) -> None:
        """Kill the supervisor: with namespaces the kernel kills the rest; without, it gets time to do so itself."""
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)
        pidfd = self._take()
        if pidfd is None:
            return
        if self._worker.spec.config["namespaces"]:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        else:
            self._worker.reap(pidfd)
