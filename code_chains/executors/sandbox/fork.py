"""The host's side of one fork of a worker: a sandbox that runs one program, or holds a session."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from enum import Enum, auto
from typing import Any, Literal, Self

from code_chains.errors import ExecutorError
from code_chains.executors.guest import wire
from code_chains.executors.guest.sandbox.pipes import ProgramPipes
from code_chains.executors.sandbox.launchers import names_shortage
from code_chains.executors.sandbox.supervisor_process import SupervisorProcess
from code_chains.executors.sandbox.worker import Worker

TEMPORARY_ERRORS = (*wire.SHORTAGES, errno.ETOOMANYREFS)


class ForkState(Enum):
    """The life of a fork; it only moves forward, except that a session goes from FINISHED back to RUNNING.

    STARTING -> IDLE -> RUNNING <-> FINISHED, and from each of them -> FAILED, and at last -> CLOSED.
    """

    STARTING = auto()
    """The sandbox is being built, or its probe has not reported."""
    IDLE = auto()
    """It is built, and its probe has reported or is not awaited; no program was sent."""
    RUNNING = auto()
    """A program runs."""
    FINISHED = auto()
    """The program's process has reported its result, or was cut off for a violation; nothing more is read from it."""
    FAILED = auto()
    """There is no sandbox (any more)."""
    CLOSED = auto()
    """Everything is given back."""


class Fork:
    """A sandbox as its host sees it.

    It is driven from outside: `read` is called whenever one of `descriptors` is readable, until a condition
    holds.

    Attributes:
        worker: The worker that it is a fork of.
        state: See `ForkState`.
        failure: Why it is FAILED.
        is_temporary: Whether that is because something was used up that others may give back.
        libraries: How many of the preloaded libraries its program has, from the first one.
        is_renewed: Whether its supervisor has had another sandbox before.
        threads: Threads of the process that its program's process was forked from.
        lacks_descriptors: Whether that is because this process has too many files open.
        last_reply: The supervisor's last message about a run or a command; None while it is awaited.
        listening: Sockets in the sandbox on which connections to allowed addresses arrive.
        root: Descriptor of the directory with the folders that the program writes to; None until the sandbox
            is built.
        pipes: What arrives from the program.
        supervisor: Its supervisor.
    """

    is_renewed: bool
    libraries: int
    pipes: ProgramPipes
    supervisor: SupervisorProcess
    threads: int

    def __init__(self, worker: Worker, max_output_bytes: int, max_view_bytes: int) -> None:
        self.worker = worker
        self.state: ForkState = ForkState.STARTING
        self.failure: str | None = None
        self.is_temporary: bool = False
        self.libraries, self.is_renewed, self.threads = 0, False, 1
        self.lacks_descriptors: bool = False
        self.last_reply: dict[str, Any] | None = None
        self.listening: list[int] = []
        self.root: int | None = None
        self._stack, self._reading = ExitStack(), threading.RLock()
        try:
            self._open_all(max_output_bytes, max_view_bytes)
        except OSError as error:
            self._stack.close()
            raise ExecutorError(f"No sandbox can be made here: {error}.", is_retryable=True) from error

    def _open_all(self, max_output_bytes: int, max_view_bytes: int) -> None:
        self.supervisor = SupervisorProcess(self.worker)
        self._stack.callback(self.supervisor.close)
        self._theirs = [self.supervisor.theirs]
        self._stack.callback(self._close_theirs)
        self.pipes = ProgramPipes(
            self._stack, self._theirs, max_output_bytes=max_output_bytes, max_view_bytes=max_view_bytes
        )
        for descriptor in self._theirs[2:]:
            with contextlib.suppress(PermissionError):  # gVisor has pipes without modes.
                os.fchmod(descriptor, 0o622)  # For a program of another user that opens /dev/stdout.

    def _close_theirs(self) -> None:
        while self._theirs:
            os.close(self._theirs.pop())

    def start(self, *, libraries: int) -> Self:
        """Make the worker fork, for a program with so many of the preloaded libraries."""
        self.libraries = libraries
        self.worker.fork(self._theirs, libraries=libraries)
        self._close_theirs()
        return self

    def renew(self, spent: Fork, *, libraries: int) -> Self:
        """Make the supervisor of a spent fork build a new sandbox for this one, which is quicker than to start.

        Args:
            spent: A fork that `is_reusable`; it is closed.
            libraries: How many of the preloaded libraries its program has.
        """
        self.libraries, self.is_renewed = libraries, True
        os.close(self._theirs.pop(0))
        spent._hand_over(self.supervisor)
        self.worker.count_renewal()
        try:
            self.send({"op": "renew", "libraries": libraries}, self._theirs)
        except ExecutorError:
            self._fail("its supervisor has ended")
        self._close_theirs()
        return self

    def leave(self, *, is_collected: bool) -> bool:
        """Leave a program alone that has reported its result; return whether its supervisor may serve another one.

        Args:
            is_collected: Whether its files are needed no more; then the supervisor drops them once it has ended.
        """
        has_reported = self.pipes.violation is None and self.pipes.result is not None
        if self.state is not ForkState.FINISHED or not has_reported:
            return False
        with contextlib.suppress(ExecutorError):
            self.send({"op": "leave", "is_collected": is_collected}, expects_reply=is_collected)
        return True

    def forget_files(self) -> None:
        """Close the directory of the files, which are gone with its last descriptor."""
        if self.root is not None:
            os.close(self.root)
            self.root = None

    def is_reusable(self) -> bool | None:
        """Return whether its supervisor has cleared the sandbox for another program; None while that is open."""
        seen: object = self
        while not self._is_closed and seen is not self.last_reply:
            seen = self.last_reply
            self.poll()
        reply = self.last_reply or {}
        if self.state is not ForkState.FINISHED or "broken" in reply:
            return False
        reusable: bool | None = reply.get("reusable")
        return reusable

    def _hand_over(self, successor: SupervisorProcess) -> None:
        """Give the supervisor away, and close everything else."""
        self.supervisor.move_to(successor)
        self._stack.close()
        self.state = ForkState.CLOSED

    # -- conditions to wait for ------------------------------------------------------------------------------

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors to watch for reading."""
        return () if self._is_closed else (self.supervisor.control.fileno(), *self.pipes.open)

    @property
    def _is_closed(self) -> bool:
        return self.supervisor.control.fileno() < 0

    def is_started(self) -> bool:
        """Return whether the sandbox is built and its probe has reported, or that will never happen."""
        return self.state is not ForkState.STARTING

    def has_replied(self) -> bool:
        """Return whether the supervisor has replied, or never will."""
        has_ended = self._is_closed or self.state in (ForkState.FAILED, ForkState.CLOSED)
        return has_ended or self.last_reply is not None

    def is_finished(self) -> bool:
        """Return whether a run is over: the program's process or the supervisor reports so, or it was cut off."""
        return self.state is ForkState.FINISHED or self.has_replied()

    # -- reading ---------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Prepare for the next run: discard the last one's result and output, also what is left in the result pipe."""
        with self._reading:
            if not self._is_closed:
                self.pipes.begin()
        if self.state in (ForkState.IDLE, ForkState.FINISHED):
            self.state = ForkState.RUNNING

    def read(self, descriptor: int) -> None:
        """Take in what has arrived on a descriptor, up to the limits; nothing once this is closed."""
        with self._reading:
            if self._is_closed:
                return
            if descriptor == self.supervisor.control.fileno():
                self._read_control()
            elif descriptor in self.pipes.open:
                self.pipes.read(descriptor)
                if self.pipes.has_ended_early:
                    self._fail("its first process ended before it was ready")
            self._advance()

    def poll(self) -> None:
        """Notice a sandbox that has ended meanwhile."""
        self.read(self.supervisor.control.fileno())

    def _read_control(self) -> None:
        try:
            message, descriptors = wire.receive(self.supervisor.control)
        except BlockingIOError:
            return
        except OSError:
            message, descriptors = None, []
        if len(descriptors) > 1 and self.root is None:
            self._adopt(message or {}, descriptors)
        else:
            for stray in descriptors:
                os.close(stray)
        if message is None or "failed" in message:
            if self.failure is None:
                self.is_temporary = (message or {}).get("errno") in TEMPORARY_ERRORS
            self._fail(str((message or {}).get("failed", "")) or self.worker.ending())
            self.is_temporary |= names_shortage(self.failure or "") or self.worker.was_killed
            self.disconnect()
        elif "ready" not in message:
            self.last_reply = message
        elif self.root is None:  # Descriptors were sent, but this process could not take them.
            self.lacks_descriptors = True
            self._fail("too many files are open")

    def _adopt(self, message: dict[str, Any], descriptors: list[int]) -> None:
        """Take over the descriptors of a sandbox that is built."""
        self.threads = message.get("threads", 1)
        if message.get("is_proven"):
            self.pipes.probe = {}
        self.root, pidfd, *self.listening = descriptors
        if self.supervisor.pidfd is None:
            self.supervisor.adopt(pidfd)
        else:
            os.close(pidfd)
        self._stack.callback(self.forget_files)
        self._stack.callback(self._close_listening)
        self._stack.callback(self.supervisor.release)

    def _advance(self) -> None:
        """Move on to the state that follows from what has arrived."""
        if self.state is ForkState.STARTING and self.root is not None and self.pipes.probe is not None:
            self.state = ForkState.IDLE
        elif self.state is ForkState.RUNNING and self.pipes.is_over:
            self.state = ForkState.FINISHED

    def _fail(self, failure: str) -> None:
        self.failure = self.failure or failure  # The first reason is the cause of the others.
        self.state = ForkState.FAILED

    def drain(self) -> None:
        """Read what was printed before the program reported its end."""
        with self._reading:
            if not self._is_closed:
                self.pipes.drain()
                self._advance()

    # -- commands --------------------------------------------------------------------------------------------

    def send(
        self, message: dict[str, Any], descriptors: Sequence[int] = (), *, expects_reply: bool = True
    ) -> None:
        """Send a command to the supervisor.

        Raises:
            ExecutorError: It is gone.
        """
        if expects_reply:
            self.last_reply = None
        self.supervisor.send(message, descriptors)

    def expire(self, violation: Literal["deadline", "timeout"] = "deadline") -> None:
        """Cut a program off that still runs at its deadline, or at its limit of time."""
        if not self.is_finished():
            self.pipes.cut_off(violation)
            self._advance()

    def stop_program(self) -> None:
        """Stop a program that was cut off and still runs.

        Raises:
            ExecutorError: The sandbox is gone.
        """
        if self.pipes.violation and not self.has_replied():
            self.send({"op": "stop"})

    def connect(self, open_proxy: Callable[[list[int]], Callable[[], object]]) -> None:
        """Hand over the sockets on which the program's connections arrive, until this is closed.

        Args:
            open_proxy: Takes the sockets, which it closes, and returns what to call at the end.
        """
        sockets, self.listening = self.listening, []
        self._stack.callback(open_proxy(sockets))

    # -- its end ---------------------------------------------------------------------------------------------

    def _close_listening(self) -> None:
        while self.listening:
            os.close(self.listening.pop())

    def disconnect(self) -> None:
        """End everything in the sandbox at once."""
        if not self._is_closed:
            self.supervisor.end()

    def close(self) -> None:
        """End everything that was started and give back what it held. Idempotent."""
        if not self._is_closed:
            self.disconnect()  # A forked process may still hold this end.
            was_started = not self._theirs
            # Another thread may be reading: a number that is free may be another file's at once.
            with self._reading:
                self._stack.close()
                self.state = ForkState.CLOSED
            if was_started:
                self.worker.release()

    def abandon(self) -> None:
        """Forget it in a process that was forked from its owner."""
        self._stack.close()
