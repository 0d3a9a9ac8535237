"""The host's end of a server of runs over standard streams: what it says is untrusted."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Any

from code_chains import errors
from code_chains.errors import ExecutorError
from code_chains.executors.guest.untrusted import parse
from code_chains.executors.limits import MAX_SECONDS, Limits
from code_chains.executors.remote.stdio_frames import HEADER, PIECE_BYTES, Blobs, Json, Writer, divide
from code_chains.executors.remote.supervised import MAX_REPORT_ITEMS
from code_chains.executors.tool_calls import PendingCall, ToolCallError, ToolCalls
from code_chains.executors.tools import read_call
from code_chains.records.printable import printable

START_TIMEOUT_S = 120.0
"""Seconds until the server says that it is ready."""
END_TIMEOUT_S = 5.0
MAX_GUIDANCE_CHARS = 20_000
MAX_MESSAGE_BYTES = 1 << 20
"""JSON of a message; what takes more room is data."""
MAX_UNREAD_S = 60.0
"""Seconds for which a server may leave requests unread while others wait."""
MAX_UPLOADS = 4
"""Requests with their files that wait at a time until the server takes them."""
MAX_UNASKED = 10_000
"""Frames one after the other that belong to no request."""
MAX_EXCESS_CHARS, MIN_PART_CHARS = 64 << 20, 1000
"""Output beyond the limit at which a run is given up, and what each part of it counts as at least."""
_CHECK_INTERVAL_S = 0.2
_FAILURES = ("InputError", "SessionError", "OverloadedError", "IsolationError")
_MAX_MESSAGE_CHARS = 2000


Reply = tuple[Json, Blobs]
"""What a tool returned, as JSON with its data."""


class Request:
    """A request that waits for its answer; a source of events for `executors.waiting`.

    Args:
        calls: The calls of tools that its program may make.
        output_bytes: Characters of live output that are taken.

    Attributes:
        number: Names it.
        ended: Set once there is an outcome.
        pending: The calls in progress, by their numbers.
        blobs: The data of its answer.
    """

    def __init__(self, calls: ToolCalls[Reply] | None = None, output_bytes: int = 0) -> None:
        self.calls: ToolCalls[Reply] | None = calls
        self.blobs: Blobs = Blobs()
        self._room = output_bytes
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
        """Take output of the program, as far as there is room.

        Raises:
            ValueError: It does not end.
        """
        with self._lock:
            if self._room > 0:
                self._parts.append(part[: self._room])
            self._room -= len(part) if part and self._room > 0 else max(len(part), MIN_PART_CHARS)
            if self._room < -MAX_EXCESS_CHARS:
                raise ValueError("output without an end")
        self._wake()

    def end(self, answer: Json, blobs: Blobs | None = None) -> None:
        """Take the outcome; the first one counts."""
        if not self.ended.is_set():
            self._answer, self.blobs = answer, blobs or Blobs()
            self.ended.set()
            self._wake()

    def outcome(self) -> Any:
        """Return what was answered.

        Raises:
            CodeChainsError: It is a failure.
        """
        if "failed" not in self._answer:
            return self._answer.get("done")
        name, said = self._answer["failed"], self._answer.get("message")
        message = (
            printable(said, _MAX_MESSAGE_CHARS) if isinstance(said, str) else "The server gave no reason."
        )
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
        self._command, self._pid = command, os.getpid()
        self._tool_bytes, self._max_calls = limits.tool_message_bytes, limits.tool_concurrency
        self._output_bytes = limits.output_bytes
        self._max_data = limits.artifacts_bytes + 8 * limits.output_bytes + self._tool_bytes + (1 << 20)
        self._unasked = 0
        self._uploads = threading.Semaphore(MAX_UPLOADS)
        self._numbers, self._session_keys = itertools.count(1), itertools.count(1)
        self._requests: dict[int, Request] = {}
        # Invariant: it guards the table of requests alone, and is never held during input or output.
        self._lock = threading.Lock()
        self._reason, self._last_words, self.heard_at = "", b"", time.monotonic()
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise ExecutorError(f"{command[0]} cannot be started: {error.strerror}. Install it.") from error
        greeting = Request()
        self._requests[0] = greeting
        self._writer = Writer(self._process.stdin, self.fail)
        self._listener = threading.Thread(target=self._listen, daemon=True, name="code-chains-stderr")
        self._listener.start()
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
        said = hello.get("guidance") if isinstance(hello, dict) else ""
        self.guidance: str = printable(said, MAX_GUIDANCE_CHARS) if isinstance(said, str) else ""

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
            self.send({"op": "cancel", "id": request.number})
        request.close()

    def send(self, message: Json, blobs: Sequence[bytes] = ()) -> None:
        """Send a message, without waiting for anybody; a server that is gone is noticed by the threads."""
        self._writer.put(message, blobs)

    def tell(self, message: Json) -> None:
        """Send a request without waiting for its answer."""
        self.send({"id": next(self._numbers), **message})

    def upload(self, request: Request, build: Callable[[], tuple[Json, Blobs]]) -> None:
        """Send a request with its files, as soon as there is room; it blocks, and reads the files itself.

        Raises:
            InputError: The request is invalid.
        """
        while not self._uploads.acquire(timeout=_CHECK_INTERVAL_S):
            if time.monotonic() - self._writer.written_at > MAX_UNREAD_S:
                self.fail(f"it has read nothing for {MAX_UNREAD_S:.0f} seconds")
            if self._reason or request.is_done():
                return
        try:
            message, blobs = build()
        except BaseException:
            self._uploads.release()
            raise
        self._writer.put({**message, "id": request.number}, blobs, self._uploads.release)

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
        self._reason, end = self._reason or "it was closed", time.monotonic() + END_TIMEOUT_S
        self._writer.end(END_TIMEOUT_S)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, end - time.monotonic()))
        self.fail(self._reason)
        self._thread.join(END_TIMEOUT_S)

    def _said(self) -> str:
        """Return the last lines of what the command wrote to its standard error."""
        if self._process.poll() is not None:
            self._listener.join(_CHECK_INTERVAL_S)
        text = printable(self._last_words.decode(errors="replace").strip())
        return f" It said: {text}" if text else ""

    def _listen(self) -> None:
        """Keep the end of what the command writes to its standard error."""
        stream = self._process.stderr
        assert stream is not None
        with suppress(OSError, ValueError), stream:
            while part := os.read(stream.fileno(), 1 << 16):
                self._last_words = (self._last_words + part)[-_MAX_MESSAGE_CHARS:]

    # -- the thread that reads -------------------------------------------------------------------------------

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        try:
            while stream:
                self._take(*self._frame(stream))
        except EOFError:
            self.fail("it ended")
        except Exception as error:
            self.fail(f"what it sent cannot be read ({error})")
        finally:
            self._process.wait()  # Invariant: whatever ended this thread has killed it.
            stream.close()
            self._writer.end(0)

    def _frame(self, stream: IO[bytes]) -> tuple[int, bytes, bytes]:
        number, size, data_size = HEADER.unpack(self._exactly(stream, HEADER.size))
        if size > MAX_MESSAGE_BYTES or data_size > self._max_data:
            raise ValueError(f"{size + data_size:,} bytes at once")
        return number, self._exactly(stream, size), self._exactly(stream, data_size)

    def _exactly(self, stream: IO[bytes], size: int) -> bytes:
        """Read so many bytes; each part of them is a sign of life, as a link may be slow."""
        parts = []
        while size:
            parts.append(stream.read(min(size, PIECE_BYTES)))
            if not parts[-1]:
                raise EOFError
            size -= len(parts[-1])
            self.heard_at = time.monotonic()
        return b"".join(parts)

    def _take(self, number: int, text: bytes, data: bytes) -> None:
        with self._lock:
            request = self._requests.get(number)
        if request is None:  # It is a sign of life, or nobody waits for it any more.
            self._unasked += 1
            if self._unasked > MAX_UNASKED:
                raise ValueError("too much that nobody asked for")
            return
        self._unasked = 0
        try:
            self._read_message(request, text, data)
        except Exception as error:  # Such as one for want of memory, or of threads.
            request.end({"failed": "malformed", "message": f"What the server sent cannot be read ({error})."})
            self.send({"op": "cancel", "id": number})

    def _read_message(self, request: Request, text: bytes, data: bytes) -> None:
        message = parse(text, MAX_REPORT_ITEMS)
        if not isinstance(message, dict):
            raise TypeError("no object")
        blobs = divide(message, data)
        if "part" in message:
            request.add(blobs.text(message["part"], self._output_bytes))
        elif "call" in message:
            self._begin(request, message, blobs)
        else:
            request.end(message, blobs)

    def _begin(self, request: Request, message: Json, blobs: Blobs) -> None:
        number, name = message["call"], message["name"]
        arguments = read_call(blobs[message["arguments"]], self._tool_bytes)
        if request.calls is None or type(number) is not int or type(arguments) is not dict:
            raise TypeError("a call of a tool that nobody offered")
        if number in request.pending or len(request.pending) >= self._max_calls:
            raise ValueError(f"more than {self._max_calls} calls at a time")
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
            packed, blobs = request.calls.call(pending)
        except ToolCallError as error:
            self._finish(request, number, {"error": str(error)})
        else:
            self._finish(request, number, {"value": packed}, blobs)

    def _call_on_loop(self, request: Request, number: int, pending: PendingCall) -> None:
        assert request.calls is not None
        assert request.calls.loop is not None
        try:
            future = asyncio.run_coroutine_threadsafe(request.calls.acall(pending), request.calls.loop)
            packed, blobs = future.result()
        except (ToolCallError, RuntimeError, asyncio.CancelledError) as error:
            self._finish(request, number, {"error": str(error)})
        else:
            self._finish(request, number, {"value": packed}, blobs)

    def _finish(self, request: Request, number: int, answer: Json, blobs: Sequence[bytes] = ()) -> None:
        if request.pending.pop(number, None) is not None:  # Otherwise it was abandoned.
            self._reply(request, number, answer, blobs)

    def _reply(self, request: Request, number: int, answer: Json, blobs: Sequence[bytes] = ()) -> None:
        self.send({"op": "reply", "id": request.number, "call": number, **answer}, blobs)

    def abandon_overdue(self, request: Request) -> None:
        """Give up calls that take too long."""
        now = time.monotonic()
        for number, pending in list(request.pending.items()):
            is_due = pending.deadline <= now and request.pending.pop(number, None) is not None
            if is_due and request.calls:
                self._reply(request, number, {"error": str(request.calls.abandon(pending))})
