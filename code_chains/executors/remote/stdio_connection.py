"""The host's end of a server of runs over standard streams: what it says is untrusted."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from code_chains import errors
from code_chains.callbacks.redaction import printable
from code_chains.errors import ExecutorError
from code_chains.executors.guest.untrusted import parse
from code_chains.executors.limits import MAX_SECONDS, Limits
from code_chains.executors.remote.stdio_frames import HEADER, Json, frame
from code_chains.executors.remote.supervised import max_report
from code_chains.toolbox import PendingCall, ToolCallError, ToolCalls

START_TIMEOUT_S = 120.0
"""Seconds until the server says that it is ready."""
END_TIMEOUT_S = 5.0
_FAILURES = ("InputError", "SessionError", "OverloadedError", "IsolationError")
_MAX_MESSAGE_CHARS = 2000


class Request:
    """A request that waits for its answer; a source of events for `executors.waiting`.

    Args:
        calls: The calls of tools that its program may make.

    Attributes:
        number: Names it.
        ended: Set once there is an outcome.
        pending: The calls in progress, by their numbers.
    """

    def __init__(self, calls: ToolCalls[Json] | None = None) -> None:
        self.calls: ToolCalls[Json] | None = calls
        self.number: int = 0
        self.ended: threading.Event = threading.Event()
        self.pending: dict[int, PendingCall] = {}
        self._lock = threading.Lock()
        self._parts = list[str]()
        self._answer: Json = {}
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What to watch."""
        return (self._read_end,) if self._read_end >= 0 else ()

    def read(self, descriptor: int) -> None:
        """Take in what woke the waiter."""
        os.read(descriptor, 1 << 12)

    def is_done(self) -> bool:
        """Return whether there is an outcome."""
        return self.ended.is_set()

    def take_output(self) -> str:
        """Return what was printed since the last call."""
        with self._lock:
            parts, self._parts = self._parts, []
        return "".join(parts)

    def add(self, part: str) -> None:
        """Take output of the program."""
        with self._lock:
            self._parts.append(part)
        self._wake()

    def end(self, answer: Json) -> None:
        """Take the outcome; the first one counts."""
        if not self.ended.is_set():
            self._answer = answer
            self.ended.set()
            self._wake()

    def outcome(self) -> Any:
        """Return what was answered.

        Raises:
            CodeChainsError: It is a failure.
        """
        if "failed" not in self._answer:
            return self._answer.get("done")
        name, message = self._answer["failed"], printable(str(self._answer.get("message")))
        message = message[:_MAX_MESSAGE_CHARS]
        if name in _FAILURES:
            raise getattr(errors, name)(message)
        raise ExecutorError(message, is_retryable=name == "lost")

    def close(self) -> None:
        """Release the descriptors."""
        with self._lock:
            ends, self._read_end, self._write_end = (self._read_end, self._write_end), -1, -1
        for end in ends:
            if end >= 0:
                os.close(end)

    def _wake(self) -> None:
        with self._lock, suppress(BlockingIOError):  # It is awake already if the pipe is full.
            if self._write_end >= 0:
                os.write(self._write_end, b"\0")


class Connection:
    """A server that was started, with its requests.

    Args:
        command: What starts it.
        limits: The limits of its runs.

    Attributes:
        guidance: What it says of its programs.

    Raises:
        ExecutorError: It did not start, or refuses to run anything.
    """

    def __init__(self, command: list[str], limits: Limits) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._command, self._pid = command, os.getpid()
        self._max_bytes = max_report(limits) + 6 * limits.tool_message_bytes
        self._numbers, self._session_keys = itertools.count(1), itertools.count(1)
        self._requests: dict[int, Request] = {}
        self._lock = threading.Lock()
        self._reason = ""
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
            )
        except OSError as error:
            self._errors.close()
            raise ExecutorError(f"{command[0]} cannot be started: {error.strerror}. Install it.") from error
        greeting = Request()
        self._requests[0] = greeting
        self._thread = threading.Thread(target=self._read, daemon=True, name="code-chains-stdio")
        self._thread.start()
        # The application limits calls itself, as only it knows how long an approval takes.
        settings = dataclasses.asdict(dataclasses.replace(limits, tool_seconds=MAX_SECONDS))
        self.send({"limits": settings})
        if not greeting.ended.wait(START_TIMEOUT_S):
            self.fail(f"it was not ready after {START_TIMEOUT_S:.0f} seconds")
        try:
            hello = greeting.outcome()
        except ExecutorError:
            self.close()
            raise
        finally:
            self.forget(greeting)
        self.guidance: str = printable(str(hello["guidance"]))

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked; a forked process has a server of its own."""
        return not self._reason and self._process.poll() is None and self._pid == os.getpid()

    def next_session(self) -> int:
        """Return a name for a session."""
        return next(self._session_keys)

    def register(self, request: Request) -> None:
        """Give a request a number, by which its answer finds it."""
        request.number = next(self._numbers)
        with self._lock:
            self._requests[request.number] = request
        if not self.is_alive:
            self.fail(self._reason or "it has ended")

    def forget(self, request: Request) -> None:
        """Release a request; what it asked for is cancelled if there is no answer yet."""
        with self._lock:
            self._requests.pop(request.number, None)
        if not request.is_done():
            self.tell({"op": "cancel", "id": request.number})
        request.close()

    def send(self, message: Json) -> None:
        """Send a message; a server that is gone is noticed by the thread that reads."""
        data, stream = frame(message), self._process.stdin
        with self._lock, suppress(OSError, ValueError):
            assert stream is not None
            stream.write(data)
            stream.flush()

    def tell(self, message: Json) -> None:
        """Send a message that needs no answer, without waiting for a server that reads nothing."""
        threading.Thread(
            target=self.send, args=({"id": next(self._numbers), **message},), daemon=True
        ).start()

    def fail(self, reason: str) -> None:
        """End the server and all requests."""
        self._reason = self._reason or reason
        with suppress(OSError):
            self._process.kill()
        with self._lock:
            requests = list(self._requests.values())
        message = f"The sandbox behind {self._command[0]!r} is gone: {self._reason}.{self._said()}"
        for request in requests:
            request.end({"failed": "lost", "message": message})

    def close(self) -> None:
        """End the server, which ends with its input. Idempotent."""
        if self._pid != os.getpid():
            return
        self._reason = self._reason or "it was closed"
        with suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_TIMEOUT_S)
        self.fail(self._reason)
        self._thread.join(END_TIMEOUT_S)

    def _said(self) -> str:
        """Return the last lines of what the command wrote to its standard error."""
        with suppress(OSError, ValueError):
            size = self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, size - _MAX_MESSAGE_CHARS))
            text = printable(self._errors.read().decode(errors="replace").strip())
            return f" It said: {text}" if text else ""
        return ""

    # -- the thread that reads -------------------------------------------------------------------------------

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        try:
            while stream:
                self._take(self._message(stream))
        except EOFError:
            self.fail("it ended")
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            self.fail(f"what it sent cannot be read ({error})")
        finally:
            self._process.wait()  # Invariant: whatever ended this thread has killed it.
            stream.close()
            self._errors.close()
            with suppress(OSError, ValueError):
                assert self._process.stdin is not None
                self._process.stdin.close()

    def _message(self, stream: BinaryIO | Any) -> Json:
        (size,) = HEADER.unpack(_exactly(stream, HEADER.size))
        if size > self._max_bytes:
            raise ValueError(f"{size:,} bytes at once")
        message = parse(_exactly(stream, size))
        if not isinstance(message, dict):
            raise TypeError("no object")
        return message

    def _take(self, message: Json) -> None:
        with self._lock:
            request = self._requests.get(message["id"])
        if request is None:
            return
        if isinstance(part := message.get("part"), str):
            request.add(part)
        elif "call" in message:
            self._begin(request, message)
        else:
            request.end(message)

    def _begin(self, request: Request, message: Json) -> None:
        number, name, arguments = message["call"], message["name"], message["arguments"]
        if request.calls is None or type(number) is not int or not isinstance(arguments, Mapping):
            raise TypeError("a call of a tool that nobody offered")
        try:
            pending = request.calls.begin(str(name), arguments)
        except ToolCallError as error:
            self._reply(request, number, {"error": str(error)})
            return
        request.pending[number] = pending
        call = self._call_on_loop if request.calls.is_async(pending) else self._call
        context = request.calls.context.copy()
        thread = threading.Thread(
            target=context.run, args=(call, request, number, pending), daemon=True, name="code-chains-tool"
        )
        thread.start()

    def _call(self, request: Request, number: int, pending: PendingCall) -> None:
        assert request.calls is not None
        try:
            answer: Json = {"value": request.calls.call(pending)}
        except ToolCallError as error:
            answer = {"error": str(error)}
        self._finish(request, number, answer)

    def _call_on_loop(self, request: Request, number: int, pending: PendingCall) -> None:
        assert request.calls is not None
        assert request.calls.loop is not None
        try:
            future = asyncio.run_coroutine_threadsafe(request.calls.acall(pending), request.calls.loop)
            answer: Json = {"value": future.result()}
        except (ToolCallError, RuntimeError, asyncio.CancelledError) as error:
            answer = {"error": str(error)}
        self._finish(request, number, answer)

    def _finish(self, request: Request, number: int, answer: Json) -> None:
        if request.pending.pop(number, None) is not None:  # Otherwise it was abandoned.
            self._reply(request, number, answer)

    def _reply(self, request: Request, number: int, answer: Json) -> None:
        self.send({"op": "reply", "id": request.number, "call": number, **answer})

    def abandon_overdue(self, request: Request) -> None:
        """Give up calls that take too long."""
        now = time.monotonic()
        for number, pending in list(request.pending.items()):
            is_due = pending.deadline <= now and request.pending.pop(number, None) is not None
            if is_due and request.calls:
                self._reply(request, number, {"error": str(request.calls.abandon(pending))})


def _exactly(stream: Any, size: int) -> bytes:
    data: bytes = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
