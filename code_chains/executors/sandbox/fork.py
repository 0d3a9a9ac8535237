"""The host's side of one fork of a worker: a sandbox that runs one program, or holds a session."""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from enum import Enum, auto
from typing import Any, Literal, Self

from code_chains.errors import ExecutorError
from code_chains.executors.guest import wire
from code_chains.executors.guest.frames import FrameReader
from code_chains.executors.sandbox.supervisor_process import SupervisorProcess
from code_chains.executors.sandbox.worker import Worker
from code_chains.state import Isolation

MAX_PIPE_READS = 32
"""Reads that empty the largest pipe."""
READ_BYTES = 1 << 16
TEMPORARY_ERRORS = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ETOOMANYREFS)


Violation = Literal["output", "protocol", "deadline", "timeout"]


class ForkState(Enum):
    """The life of a fork; it only moves forward, except that a session goes from FINISHED back to RUNNING.

    STARTING -> IDLE -> RUNNING <-> FINISHED, and from each of them -> FAILED, and at last -> CLOSED.
    """

    STARTING = auto()
    """The sandbox is being built, and its probe has not reported."""
    IDLE = auto()
    """The probe has reported; no program was sent."""
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
        violation: Why the program was cut off: too much `output`, a broken `protocol` on its result pipe, a
            `deadline` besides its own limit of time, or that limit (`timeout`), where the host measures it.
        messages: The frames of the program's process: the report of the probe, then the result of the run.
        last_reply: The supervisor's last message about a run or a command; None while it is awaited.
        isolation: The probe's report, once it was accepted.
        output: What was printed to `stdout` and `stderr`, by descriptor.
        listening: Sockets in the sandbox on which connections to allowed addresses arrive.
        root: Descriptor of the directory with the folders that the program writes to; None until the sandbox
            is built.
    """

    control: socket.socket
    is_renewed: bool
    libraries: int
    stderr: int
    stdout: int
    threads: int

    def __init__(self, worker: Worker, max_output_bytes: int, max_view_bytes: int) -> None:
        self.worker = worker
        self.state: ForkState = ForkState.STARTING
        self.failure: str | None = None
        self.is_temporary: bool = False
        self.libraries, self.is_renewed, self.threads = 0, False, 1
        self.lacks_descriptors: bool = False
        self.violation: Violation | None = None
        self.messages: list[dict[str, Any]] = []
        self.last_reply: dict[str, Any] | None = None
        self.isolation: Isolation | None = None
        self.listening: list[int] = []
        self.root: int | None = None
        self._supervisor = SupervisorProcess(worker)
        self._stack, self._reading = ExitStack(), threading.RLock()
        try:
            self._open_all()
        except OSError as error:
            self._stack.close()
            raise ExecutorError(f"No sandbox can be made here: {error}.", is_retryable=True) from error
        self.output: dict[int, bytearray] = {self.stdout: bytearray(), self.stderr: bytearray()}
        self._max_output_bytes = max_output_bytes
        self._reader = FrameReader(max_view_bytes)
        self._open = {self._result, *self.output}

    def _open_all(self) -> None:
        self.control, theirs = wire.pair()
        self._stack.callback(self.control.close)
        self.control.setblocking(False)
        self._theirs = [theirs.detach()]
        self._stack.callback(self._close_theirs)
        self._result, self.stdout, self.stderr = (self._pipe() for _ in range(3))

    def _pipe(self) -> int:
        read, write = os.pipe()
        self._stack.callback(os.close, read)
        os.set_blocking(read, False)
        self._theirs.append(write)
        return read

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
        self.control.close()
        os.close(self._theirs.pop(0))
        self.control = spent._hand_over(self._supervisor)
        self._stack.callback(self.control.close)
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
        if self.state is not ForkState.FINISHED or self.violation is not None or self.result is None:
            return False
        reply = self.last_reply
        with contextlib.suppress(ExecutorError):
            self.send({"op": "leave", "is_collected": is_collected})
        if not is_collected:
            self.last_reply = reply
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

    def read_all(self) -> None:
        """Take in what has arrived on all descriptors, without waiting."""
        for descriptor in self.descriptors:
            self.read(descriptor)

    def _hand_over(self, successor: SupervisorProcess) -> socket.socket:
        """Close all but the supervisor and the socket to it, and return that."""
        control = socket.socket(fileno=self.control.detach())  # `dup` might fail.
        control.setblocking(False)
        self._supervisor.move_to(successor)
        self._stack.close()
        self.state = ForkState.CLOSED
        return control

    # -- conditions to wait for ------------------------------------------------------------------------------

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors to watch for reading."""
        return () if self._is_closed else (self.control.fileno(), *self._open)

    @property
    def _is_closed(self) -> bool:
        return self.control.fileno() < 0

    def is_started(self) -> bool:
        """Return whether the sandbox is built and its probe has reported, or that will never happen."""
        return self.state is not ForkState.STARTING

    def has_replied(self) -> bool:
        """Return whether the supervisor has replied, or never will."""
        return (
            self.last_reply is not None
            or self.state in (ForkState.FAILED, ForkState.CLOSED)
            or self._is_closed
        )

    def is_finished(self) -> bool:
        """Return whether a run is over: the program's process or the supervisor reports so, or it was cut off."""
        return self.state is ForkState.FINISHED or self.has_replied()

    @property
    def probe(self) -> dict[str, Any]:
        """The report of the probe."""
        return self.messages[0]

    @property
    def result(self) -> dict[str, Any] | None:
        """What the program's process reported about its run; None if it did not."""
        return self.messages[1] if len(self.messages) > 1 else None

    # -- reading ---------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Prepare for the next run: discard the last one's result and output, also what is left in the result pipe."""
        self._drain_result_pipe()
        del self.messages[1:]
        self.violation = None
        if self.state in (ForkState.IDLE, ForkState.FINISHED):
            self.state = ForkState.RUNNING
        for output in self.output.values():
            output.clear()
        self._taken, self._decoder = 0, codecs.getincrementaldecoder("utf-8")("replace")

    def _drain_result_pipe(self) -> None:
        # Invariant: nothing runs in a session between its runs, so nothing writes while the pipe is drained.
        with self._reading, contextlib.suppress(BlockingIOError):
            for _ in range(0 if self._is_closed else MAX_PIPE_READS):
                os.read(self._result, READ_BYTES)
        self._reader.clear()
        self._open.add(self._result)

    def read(self, descriptor: int) -> None:
        """Take in what has arrived on a descriptor, up to the limits; nothing once this is closed."""
        with self._reading:
            if self._is_closed:
                return
            if descriptor == self.control.fileno():
                self._read_control()
            elif descriptor in self._open:
                self._read_pipe(descriptor)

    def poll(self) -> None:
        """Notice a sandbox that has ended meanwhile."""
        self.read(self.control.fileno())

    def _read_control(self) -> None:
        try:
            message, descriptors = wire.receive(self.control)
        except BlockingIOError:
            return
        except OSError:
            message, descriptors = None, []
        if len(descriptors) > 1 and self.root is None:
            self.threads = (message or {}).get("threads", 1)
            self._adopt(descriptors)
        else:
            for stray in descriptors:
                os.close(stray)
        if message is None or "failed" in message:
            if self.failure is None:
                self.is_temporary = (message or {}).get("errno") in TEMPORARY_ERRORS
            self._fail(str((message or {}).get("failed", "")) or self.worker.log_tail)
            self.disconnect()
        elif "ready" not in message:
            self.last_reply = message
        elif self.root is None:  # Descriptors were sent, but this process could not take them.
            self.lacks_descriptors = True
            self._fail("too many files are open")
        self._check_started()

    def _adopt(self, descriptors: list[int]) -> None:
        """Take over the descriptors of a sandbox that is built."""
        self.root, pidfd, *self.listening = descriptors
        if self._supervisor.pidfd is None:
            self._supervisor.adopt(pidfd)
        else:
            os.close(pidfd)
        self._stack.callback(self.forget_files)
        self._stack.callback(self._close_listening)
        self._stack.callback(self._supervisor.release)

    def _read_pipe(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._open.discard(descriptor)
        if descriptor == self._result:
            self._read_messages(data)
            return
        output = self.output[descriptor]
        room = self._max_output_bytes - len(output)
        output += data[:room]
        if len(data) > room:
            self._cut_off("output")

    def _read_messages(self, data: bytes) -> None:
        """Parse frames of the program's process; after its result, or a broken one, nothing more is read."""
        self.messages = [*self.messages, *self._reader.feed(data)][:2]
        if self._reader.garbled:
            self._cut_off("protocol")
        elif self.result is not None and self.state is ForkState.RUNNING:
            self.state = ForkState.FINISHED
        if self._reader.garbled or self.result is not None:
            self._open.discard(self._result)
        if not self.messages and (self._reader.garbled or not data):
            self._fail("its first process ended before it was ready")
        self._check_started()

    def _check_started(self) -> None:
        if self.state is ForkState.STARTING and self.root is not None and self.messages:
            self.state = ForkState.IDLE

    def _cut_off(self, violation: Violation) -> None:
        # The limit of output is reported first, whatever else is wrong.
        self.violation = "output" if "output" in (violation, self.violation) else violation
        if self.state is ForkState.RUNNING:
            self.state = ForkState.FINISHED

    def _fail(self, failure: str) -> None:
        self.failure = self.failure or failure  # The first reason is the cause of the others.
        self.state = ForkState.FAILED

    def take_stdout(self) -> str:
        """Return what was printed to standard output since the last call, without an unfinished character at its end."""
        data = bytes(self.output[self.stdout][self._taken :])
        self._taken += len(data)
        return self._decoder.decode(data)

    def drain(self) -> None:
        """Read what was printed before the program reported its end."""
        for descriptor in (self.stdout, self.stderr):
            size = -1
            while (
                descriptor in self._open
                and size != len(self.output[descriptor])
                and self.violation != "output"
            ):
                size = len(self.output[descriptor])
                self.read(descriptor)

    # -- commands --------------------------------------------------------------------------------------------

    def send(self, message: dict[str, Any], descriptors: list[int] | None = None) -> None:
        """Send a command to the supervisor.

        Raises:
            ExecutorError: It is gone.
        """
        self.last_reply = None
        try:
            self.control.setblocking(True)
            wire.send(self.control, message, descriptors or ())
            self.control.setblocking(False)
        except OSError as error:
            raise ExecutorError("The sandbox ended before the program began.", is_retryable=True) from error

    def expire(self, violation: Literal["deadline", "timeout"] = "deadline") -> None:
        """Cut a program off that still runs at its deadline, or at its limit of time."""
        if not self.is_finished():
            self._cut_off(violation)

    def stop_program(self) -> None:
        """Stop a program that was cut off and still runs.

        Raises:
            ExecutorError: The sandbox is gone.
        """
        if self.violation and not self.has_replied():
            self.send({"op": "stop"})

    def take_listening(self) -> list[int]:
        """Hand over the sockets on which the program's connections arrive; the caller closes them."""
        sockets, self.listening = self.listening, []
        return sockets

    # -- its end ---------------------------------------------------------------------------------------------

    def on_close(self, action: Callable[[], object]) -> None:
        """Register an action for when this is closed."""
        self._stack.callback(action)

    def _close_listening(self) -> None:
        while self.listening:
            os.close(self.listening.pop())

    @property
    def supervisor(self) -> int | None:
        """The supervisor's pidfd; None until the sandbox is built, and once it is being ended."""
        return self._supervisor.pidfd

    def disconnect(self) -> None:
        """End everything in the sandbox at once."""
        if not self._is_closed:
            with contextlib.suppress(OSError):
                self.control.shutdown(socket.SHUT_RDWR)
            self._supervisor.end()

    def close(self) -> None:
        """End everything that was started and give back what it held. Idempotent."""
        if not self._is_closed:
            self.disconnect()  # A forked process may still hold this end.
            was_started = not self._theirs
            with (
                self._reading
            ):  # Another thread may be reading: a number that is free may be another file's at once.
                self._stack.close()
                self.state = ForkState.CLOSED
            if was_started:
                self.worker.release()

    def abandon(self) -> None:
        """Forget it in a process that was forked from its owner."""
        self._stack.close()
