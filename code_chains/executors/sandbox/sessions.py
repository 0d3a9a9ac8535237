"""Sessions: runs that share a state. A success commits, anything else leaves the state unchanged."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from code_chains.errors import ExecutorError, InputError, SessionError
from code_chains.executors.base import discard
from code_chains.executors.guest.sandbox.filesystem import MAX_SNAPSHOTS
from code_chains.executors.limiter import ConcurrencyLimiter
from code_chains.executors.process_session import ProcessSession
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.artifacts import ArtifactCollector
from code_chains.executors.sandbox.fork import Fork
from code_chains.executors.sandbox.provider import SandboxProvider
from code_chains.executors.sandbox.request import Request
from code_chains.executors.sandbox.results import build_execution
from code_chains.executors.sandbox.runs import GRACE_S, await_program
from code_chains.executors.tool_calls import GivenTools, ToolCalls
from code_chains.executors.waiting import Operation, Wait, drive
from code_chains.records import Execution

if TYPE_CHECKING:
    from code_chains.executors.sandbox.tool_server import Reply

T = TypeVar("T")
Check = Callable[[Execution], object]


class SandboxSession(ProcessSession):
    """A session of a `SandboxExecutor`; made by its `session()`.

    The state is a process. Each run is a fork of it, which replaces it if the program succeeded, and is
    discarded otherwise, with the files it changed. What does not survive from one run to the next, whatever
    its outcome: threads, processes that the program started, timers, and running event loops with their tasks
    and asynchronous generators. Positions of open files, shared memory and pipes are rolled back as well;
    SECURITY.md names the exceptions.

    Args:
        provider: Provides the sandbox, at the first run.
        limiter: Limits the runs of the executor.
        on_end: Called when the session has ended.

    Attributes:
        collects_files: Whether runs return the files that they make; what needs none saves the time of looking.
    """

    returns_values = takes_tools = takes_stdin = streams_output = True

    def __init__(
        self,
        provider: SandboxProvider,
        limiter: ConcurrencyLimiter,
        on_end: Callable[[SandboxSession], object],
    ) -> None:
        super().__init__(provider.settings.limits)
        self._provider, self._limiter, self._on_end = provider, limiter, on_end
        self._timeout_s = self._limits.seconds + GRACE_S
        self._fork: Fork | None = None
        self.collects_files = True
        self._known_files: Mapping[str, tuple[int, int, int]] = {}

    @property
    def alive(self) -> bool:
        """Whether it can be used."""
        if self._fork is not None and self._end_reason is None and not self._lock.locked():
            self._check_fork()
        return self._end_reason is None

    def _operation(self, program: Program) -> Operation[Execution]:
        # Cancelling it while it waits for a slot of the executor leaves the state unchanged.
        return self._exclusive(self._run(program), self._limiter)

    def _open_calls(
        self, tools: GivenTools, loop: asyncio.AbstractEventLoop | None
    ) -> ToolCalls[Reply] | None:
        from code_chains.executors.sandbox.tool_server import open_sandbox_calls

        return open_sandbox_calls(tools, self._limits, loop)

    def check_size(self, size: int) -> None:
        """Raise `InputError` if the files of a run could not be copied, which rolling back takes."""
        if size > (room := MAX_SNAPSHOTS * self._limits.disk_bytes // 3):
            raise InputError(
                f"The files take {size >> 20:,} MB, and those of a session may take {room >> 20:,} MB, as they are copied to"
                " be rolled back. Pass them without a session, or raise Limits(disk=…)."
            )

    def _change(self, command: dict[str, Any]) -> None:
        drive(self._exclusive(self._command(command)))

    # -- operations ------------------------------------------------------------------------------------------

    def _exclusive(self, operation: Operation[T], limiter: ConcurrencyLimiter | None = None) -> Operation[T]:
        """Run one operation at a time."""
        self._occupy()
        try:
            whole = self._all_or_nothing(operation)
            return (yield from limiter.limit(whole) if limiter else whole)
        finally:
            self._lock.release()

    def _all_or_nothing(self, operation: Operation[T]) -> Operation[T]:
        """End the session if an operation broke or was cancelled half way."""
        try:
            return (yield from operation)
        except (ExecutorError, GeneratorExit, KeyboardInterrupt, asyncio.CancelledError) as error:
            if isinstance(error, SessionError):
                raise
            if isinstance(error, ExecutorError):  # It broke as the session was closed.
                self._check_open()
            self._end(f"a run was interrupted ({type(error).__name__})")
            raise

    def _run(self, program: Program) -> Operation[Execution]:
        with Request(program, self._limits) as request:
            self.check_size(request.size)
            # If it needs any, later programs may need others.
            needs_libraries = self._provider.count_libraries(request) > 0
            fork = yield from self._acquire(needs_libraries=needs_libraries)
            started = time.monotonic()
            self._number += 1
            discards = program.check is discard
            request.send(fork, {"op": "cell", "number": -self._number if discards else self._number})
            yield from await_program(fork, request, self._limits.seconds)
            fork.stop_program()
            yield Wait(fork, fork.has_replied, GRACE_S)
            reply = self._reply(fork)
            if message := reply.get("input_error"):
                raise InputError(str(message))
            is_committed = bool(reply.get("ended", {}).get("ok")) and not discards
            seconds = time.monotonic() - started
            execution = self._execution(fork, seconds, set(request.files), is_committed=is_committed)
            execution = request.finish(execution)
        # It succeeded, but had printed too much before that was noticed.
        if is_committed and not execution.ok:
            yield from self._command({"op": "rollback"})
        undo = partial(self._undo, is_committed=is_committed)
        return (yield from self._checked(execution, program.check, undo))

    def _undo(self, *, is_committed: bool) -> Operation[None]:
        """Return to the state before a run whose outcome was not accepted."""
        if is_committed:
            yield from self._command({"op": "rollback"})

    def _execution(self, fork: Fork, seconds: float, inputs: set[str], *, is_committed: bool) -> Execution:
        fork.drain()
        collector = ArtifactCollector(self._limits.artifacts_bytes)
        if fork.root is not None and is_committed and self.collects_files:
            collector.collect_files(fork.root, inputs=inputs, known=self._known_files)
        collector.collect_views(fork.pipes.result)
        self._note_files(fork)
        return build_execution(fork, self._limits, seconds, collector)

    def _note_files(self, fork: Fork) -> None:
        """Remember which files exist, to distinguish those of the next run from them."""
        if fork.root is not None and self.collects_files:
            collector = ArtifactCollector(0)
            collector.collect_files(fork.root)
            self._known_files = collector.marks

    def _command(self, message: dict[str, Any]) -> Operation[None]:
        fork = yield from self._acquire()
        fork.send(message)
        yield Wait(fork, fork.has_replied, self._timeout_s)
        if error := self._reply(fork).get("session_error"):
            raise SessionError(str(error))
        self._note_files(fork)

    def _acquire(self, *, needs_libraries: bool = True) -> Generator[Wait, None, Fork]:
        self._check_owner()
        if self._fork is not None:
            self._check_fork()
        self._check_open()
        if self._fork is None:
            fork = self._fork = yield from self._provider.acquire(
                libraries=len(self._provider.settings.preload) if needs_libraries else 0
            )
            if self._end_reason is not None:  # It was closed during the operation.
                self._end(self._end_reason)
            self._check_open()
            return fork
        return self._fork

    def _check_fork(self) -> None:
        """Notice a sandbox that has ended meanwhile."""
        if self._fork is not None:
            self._fork.poll()
            if self._fork.failure is not None:
                timeout_s = self._provider.settings.session_timeout
                self._end(f"it was idle for {timeout_s:g} seconds, or its process was killed")

    def _reply(self, fork: Fork) -> dict[str, Any]:
        """Return the supervisor's reply, or end the session if there is none."""
        reply = fork.last_reply or {}
        if fork.failure is not None or "broken" in reply or fork.last_reply is None:
            self._end(str(reply.get("broken") or "its process was killed"))
            self._check_open()
        self.has_lost_threads = bool(reply.get("has_lost_threads"))
        return reply

    def _end(self, reason: str) -> None:
        self._end_reason = self._end_reason or reason
        if self._fork is not None and self._pid == os.getpid():
            self._fork.close()
        self._fork = None
        self._on_end(self)
