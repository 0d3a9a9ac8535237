"""The kernel sandbox elsewhere, reached over the standard streams of a command: in a container, by SSH, in WSL or a pod."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import select
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from code_chains.errors import (
    EXECUTOR_CLOSED,
    ConfigurationError,
    ExecutorError,
    InputError,
    OverloadedError,
    SessionError,
    check_int,
)
from code_chains.executors.base import Executor, discard
from code_chains.executors.guest.wire import WALL_FACTOR
from code_chains.executors.inputs import check_code, files_on_disk
from code_chains.executors.limits import MAX_SECONDS, Limits
from code_chains.executors.process_session import ProcessSession
from code_chains.executors.remote.stdio_connection import Connection, Reply, Request
from code_chains.executors.remote.stdio_frames import Blobs, Json, pack_values
from code_chains.executors.remote.supervised import claimed_execution
from code_chains.executors.runner import Program
from code_chains.executors.tool_calls import ToolCalls
from code_chains.executors.tools import open_tool_calls
from code_chains.executors.waiting import Operation, Wait, blocking, drive
from code_chains.records import Execution

SERVER = ("-m", "code_chains.executors.remote.stdio_server")
"""What Python runs at the other end."""
STALLED_S = 80.0
"""Seconds beyond its limit that a run may take to wait for others and to be reported."""
SILENT_S = 20.0
"""Seconds without any sign of life of the server, which gives one every few seconds."""
CALLS_INTERVAL_S, CHECK_INTERVAL_S = 0.2, 5.0
CAN_POLL: bool = hasattr(select, "poll")


class StdioExecutor(Executor):
    """Run programs in the kernel sandbox of a Linux machine that a command reaches, as at home.

    The command starts this library there, `python -m code_chains.executors.remote.stdio_server`, and passes on its
    standard streams: `docker run -i`, `ssh host`, `wsl.exe` or `kubectl exec -i`. Sessions, tools, hidden tests, typed
    values and live output are those of `SandboxExecutor`. One process there serves all runs; it ends with this one.

    Args:
        command: What starts the server, as a list of words.
        limits: Limits of one run.
        max_sessions: Sessions that are open at a time.

    Raises:
        ConfigurationError: An argument is invalid.
        ExecutorError: The server does not start; raised at the first run, or when `guidance` is asked for.

    Example:
        >>> import sys
        >>> command = [sys.executable, "-m", "code_chains.executors.remote.stdio_server"]
        >>> with StdioExecutor(command) as executor:
        ...     executor.run("sum(range(1, 6))").output
        '15'
    """

    runs_tests = returns_values = takes_tools = takes_stdin = True
    streams_output = CAN_POLL

    def __init__(
        self, command: Sequence[str], *, limits: Limits | None = None, max_sessions: int = 16
    ) -> None:
        super().__init__(limits=limits)
        if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
            raise ConfigurationError("command", command, 'a list of words, such as ["ssh", "host", …]')
        self.command: list[str] = list(command)
        self.max_sessions: int = check_int(
            "max_sessions", max_sessions, "a whole number from 1 to 1000", minimum=1, maximum=1000
        )
        self._connection: Connection | None = None
        self._connecting = threading.Lock()
        self._sessions: weakref.WeakSet[StdioSession] = weakref.WeakSet()
        self._is_closed = False

    @property
    def guidance(self) -> str:  # type: ignore[override]
        """What programs find there; asking starts the server."""
        return self._connect().guidance

    answers_at_once = False

    def has_module(self, name: str) -> bool | None:
        """Return whether programs can import a module there."""
        found = drive(self.exchange(self._connect(), {"op": "has_module", "name": name}))
        return found if isinstance(found, bool) else None

    def warm_up(self) -> None:
        """Start the server."""
        self._connect()

    def close(self) -> None:
        """End the server with all runs and sessions."""
        self._is_closed = True
        if self._connection is not None:
            self._connection.close()

    def session(self) -> StdioSession:
        """Open a session, whose runs share a state.

        Raises:
            OverloadedError: Too many are open.
        """
        if sum(session.is_open for session in self._sessions) >= self.max_sessions:
            raise OverloadedError(f"{self.max_sessions} sessions are open. Close one, or raise max_sessions.")
        session = StdioSession(self)
        self._sessions.add(session)
        return session

    def _operation(self, program: Program) -> Operation[Execution]:
        connection = yield from blocking(self._connect)
        return (yield from self.run_on(connection, program))

    def _open_calls(self, tools: Any, loop: asyncio.AbstractEventLoop | None) -> ToolCalls[Reply] | None:
        return open_tool_calls(tools, self.limits, partial(_encode_result, self.limits), loop)

    def _tested(self, program: Program, tests: str) -> Operation[tuple[Execution, Execution]]:
        connection = yield from blocking(self._connect)
        more = {"op": "tests", "tests": check_code(tests)}
        seconds = 2 * WALL_FACTOR * self.limits.seconds
        tested, ran = yield from self._runs(connection, program, more, seconds)
        return tested, dataclasses.replace(ran, tool_calls=())

    def run_on(self, connection: Connection, program: Program, session: int = 0) -> Operation[Execution]:
        """Run a program over a connection, in a session if one is named."""
        more = {"op": "run", "session": session}
        (execution,) = yield from self._runs(connection, program, more, self.limits.seconds)
        return execution

    def _runs(
        self, connection: Connection, program: Program, more: Json, seconds: float
    ) -> Operation[list[Execution]]:
        """Return the records of what a request runs: of a program, or of one and its tests."""
        calls, request = program.tool_calls, Request(program.tool_calls, self.limits.output_bytes)
        build = partial(self._message, program, more)
        reports = yield from self._answer(connection, request, build, calls, seconds=seconds)
        count = 2 if more["op"] == "tests" else 1
        if not isinstance(reports, list) or len(reports) != count:
            raise ExecutorError("The server returned a malformed record of a run.")
        records = partial(_records, reports, request.blobs, self.limits)
        executions: list[Execution] = yield from blocking(records)  # It may take long to build them.
        return [_with_calls(execution, calls) for execution in executions]

    def _message(self, program: Program, more: Json) -> tuple[Json, Blobs]:
        blobs = Blobs()
        with files_on_disk(program.files) as paths:
            files = {name: blobs.add(path.read_bytes()) for name, path in paths.items()}
        signatures = program.tool_calls.toolbox.signatures.values() if program.tool_calls else ()
        message = {
            "code": check_code(program.code),
            "files": files,
            "variables": pack_values(program.variables, blobs),
            "stdin": program.stdin,
            "return_value": program.return_value,
            "tools": [{**signature.to_dict(), "effect": signature.effect} for signature in signatures],
            "discards": program.check is discard,
            "seconds": min(MAX_SECONDS, program.deadline - time.monotonic()),
        }
        return {**message, **more}, blobs

    def exchange(self, connection: Connection, message: Json, *, seconds: float = 0.0) -> Operation[Any]:
        """Send a request without files, and return what the server answers.

        Raises:
            ExecutorError: The server ended, stalled, or says that it failed.
        """
        return (
            yield from self._answer(connection, Request(), lambda: (message, Blobs()), None, seconds=seconds)
        )

    def _answer(
        self,
        connection: Connection,
        request: Request,
        build: Callable[[], tuple[Json, Blobs]],
        calls: ToolCalls[Reply] | None,
        *,
        seconds: float,
    ) -> Operation[Any]:
        """Send what is built for a request, in a thread, and return what the server answers."""
        connection.register(request)
        try:
            started = time.monotonic()
            yield from blocking(
                partial(connection.upload, request, build), partial(request.end, {"failed": "lost"})
            )
            while not request.is_done():
                now = time.monotonic()
                left = seconds + STALLED_S + (calls.busy_seconds if calls else 0.0) - (now - started)
                silence = now - max(started, connection.heard_at)
                if left <= 0 or silence > SILENT_S:
                    connection.fail(f"no answer came in {now - started:.0f} seconds")
                    break
                yield from self._wait(request, CALLS_INTERVAL_S if calls else min(left, CHECK_INTERVAL_S))
                connection.abandon_overdue(request)
            return request.outcome()
        finally:
            connection.forget(request)

    def _wait(self, request: Request, seconds: float) -> Operation[None]:
        if CAN_POLL:
            yield Wait(request, request.is_done, seconds, request.take_output)
        else:
            yield from blocking(partial(request.ended.wait, seconds))

    def _connect(self) -> Connection:
        with self._connecting:  # Each connection is a server.
            if self._is_closed:
                raise ExecutorError(EXECUTOR_CLOSED)
            if self._connection is None or not self._connection.is_alive:
                self._connection = Connection(self.command, self.limits)
            return self._connection


class StdioSession(ProcessSession):
    """A session of a `StdioExecutor`; made by its `session()`."""

    returns_values = takes_tools = takes_stdin = True
    streams_output = CAN_POLL

    def __init__(self, executor: StdioExecutor) -> None:
        super().__init__(executor.limits)
        self._executor = executor
        self._connection: Connection | None = None
        self._key = 0

    @property
    def alive(self) -> bool:
        """Whether it can be used."""
        if self._end_reason is None and self._connection is not None and not self._lock.locked():
            try:
                self._change({"op": "poll"})
            except SessionError:
                return False
            except ExecutorError:
                self._end("its server has ended")
        return self._end_reason is None

    @property
    def is_open(self) -> bool:
        """Whether it has not ended, as far as is known here."""
        return self._end_reason is None

    def _operation(self, program: Program) -> Operation[Execution]:
        self._occupy()
        try:
            return (yield from self._run(program))
        except (InputError, SessionError):
            raise
        except BaseException as error:
            self._end(f"a run was interrupted ({type(error).__name__})")
            raise
        finally:
            self._lock.release()

    def _run(self, program: Program) -> Operation[Execution]:
        connection = yield from self._opened()
        execution = yield from self._executor.run_on(connection, program, self._key)
        return (yield from self._checked(execution, program.check, partial(self._call, "rollback")))

    def _open_calls(self, tools: Any, loop: asyncio.AbstractEventLoop | None) -> ToolCalls[Reply] | None:
        return open_tool_calls(tools, self._limits, partial(_encode_result, self._limits), loop)

    def _opened(self) -> Operation[Connection]:
        self._check_owner()
        self._check_open()
        if self._connection is None:
            connection: Connection = yield from blocking(self._executor._connect)
            self._key = connection.next_session()
            yield from self._executor.exchange(connection, {"op": "open", "session": self._key})
            self._connection = connection
        elif not self._connection.is_alive:
            self._end("its server has ended")
            self._check_open()
        return self._connection

    def _change(self, command: dict[str, Any]) -> None:
        self._occupy()
        try:
            drive(self._call(command["op"], *([command["name"]] if "name" in command else [])))
        finally:
            self._lock.release()

    def _call(self, method: str, *words: str) -> Operation[None]:
        connection = yield from self._opened()
        message = {"op": "change", "method": method, "words": words, "session": self._key}
        said = yield from self._executor.exchange(connection, message, seconds=self._limits.seconds)
        state = said if isinstance(said, dict) else {}
        self.has_lost_threads = state.get("has_lost_threads") is True
        if state.get("alive") is not True:
            self._end("it was idle for too long, or its process was killed")
            self._check_open()

    def _end(self, reason: str) -> None:
        if self._end_reason is None and self._connection is not None and self._pid == os.getpid():
            self._connection.tell({"op": "change", "method": "close", "words": [], "session": self._key})
        self._end_reason = self._end_reason or reason


def _encode_result(limits: Limits, value: Any) -> Reply:
    blobs = Blobs()
    packed = pack_values({"value": value}, blobs)
    size = len(blobs[0])
    if size > limits.tool_message_bytes:
        raise ValueError(f"it takes {size:,} bytes, and {limits.tool_message_bytes:,} are allowed")
    return packed, blobs


def _records(reports: Sequence[Any], blobs: Blobs, limits: Limits) -> list[Execution]:
    """Return the records of runs.

    Raises:
        ExecutorError: What came are none.
    """
    try:
        return [claimed_execution(report, blobs, limits) for report in reports]
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise ExecutorError("The server returned a malformed record of a run.") from error


def _with_calls(execution: Execution, calls: ToolCalls[Reply] | None) -> Execution:
    """Return a record with the calls as they were made here, whatever the server says of them."""
    return execution if calls is None else dataclasses.replace(execution, tool_calls=calls.records)
