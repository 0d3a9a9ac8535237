"""The host's end of the pipes over which a program calls tools. What arrives is untrusted.

One thread reads requests and writes replies without ever blocking, so that no program delays the limits of
its calls; the calls themselves are made in threads of their own, or on the caller's event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import queue
import re
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from code_chains.executors.guest.refusals import UnpackableError
from code_chains.executors.guest.serialization import Packer
from code_chains.executors.guest.wire import FRAME_HEADER, Json, frame
from code_chains.executors.limits import Limits
from code_chains.executors.runner import Closing
from code_chains.executors.sandbox.tables import label_of, write_table
from code_chains.executors.tool_calls import PendingCall, ToolCallError, ToolCalls
from code_chains.executors.tools import open_tool_calls, read_call
from code_chains.executors.values import MAX_VARIABLE_ITEMS, transfer_kind

MAX_OUTBOX_BYTES = 1 << 16
"""While so much waits to be read by the program, nothing more is read from it."""
CHECK_INTERVAL_MS = 50
"""Pause between two looks for calls that take too long."""
READ_BYTES = 1 << 16
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_AS_TEXT = frozenset(("pathlib.PosixPath", "pathlib.PurePosixPath", "uuid.UUID"))
"""What a program gets as text: it has no use for a path of the host."""
Reply = tuple[Json, bytes]
"""A message, and the binary data of a table."""


def open_sandbox_calls(
    tools: Any, limits: Limits, loop: asyncio.AbstractEventLoop | None = None
) -> ToolCalls[Reply] | None:
    """Return the calls of one sandboxed run, whose results are messages; see `open_tool_calls`."""
    encode = partial(encode_reply, max_bytes=limits.tool_message_bytes)
    return open_tool_calls(tools, limits, encode, loop)


def encode_reply(value: Any, max_bytes: int) -> Reply:
    """Encode what a tool returned: a table as binary data, anything else as JSON.

    Raises:
        InputError: It cannot be passed.
        ValueError: It is too large.
    """
    if kind := transfer_kind(value):
        file = io.BytesIO()
        write_table(kind, value, file)
        message: Json = {"kind": kind, "label": label_of(kind, value)}
        data = file.getvalue()
    else:
        message, data = {"value": _packed(value)}, b""
    size = len(data) or len(json.dumps(message))
    if size > max_bytes:
        raise ValueError(f"it takes {size:,} bytes, and {max_bytes:,} are allowed")
    return message, data


def read_request(data: bytes, max_bytes: int) -> tuple[int, str, dict[str, Any]]:
    """Return the number, the tool and the arguments of a call that a program wrote.

    Raises:
        ValueError, TypeError, KeyError, RecursionError: It is no call.
    """
    request = read_call(data, max_bytes)
    number, name, arguments = request["id"], request["name"], request["arguments"]
    if type(number) is not int or type(name) is not str or type(arguments) is not dict:
        raise TypeError
    return number, name, arguments


def begin_call(calls: ToolCalls[Any], name: str, arguments: dict[str, Any], data: bytes) -> PendingCall:
    """Begin a call that a program wrote as this data.

    Raises:
        ToolCallError: It must not be made.
    """
    if _SURROGATE.search(data):
        _check_text([name, arguments])
    return calls.begin(name, arguments)


def _packed(value: Any) -> Any:
    try:
        return Packer(max_items=MAX_VARIABLE_ITEMS, as_text=_AS_TEXT)(value)
    except UnpackableError as error:
        raise TypeError(f"{error.about('the result')}; return a list, or other plain data") from error


class ToolServer(Closing):
    """Serves the calls of one program until it is closed.

    Args:
        calls: Makes the calls.
        limits: The limits of the run.

    Attributes:
        theirs: Descriptors for the program, to read from and to write to; whoever sends them closes them.
    """

    def __init__(self, calls: ToolCalls[Reply], limits: Limits) -> None:
        self.calls = calls
        self._max_bytes, self._max_running = limits.tool_message_bytes, limits.tool_concurrency
        self._lock = threading.Lock()
        self._pending: dict[int, PendingCall] = {}
        self._futures: dict[int, Future[Any]] = {}
        self._waiting: deque[tuple[int, PendingCall]] = deque()
        self._inbox, self._outbox = bytearray(), bytearray()
        self._last_number = self._passed = 0
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._workers = self._idle_workers = 0
        self._descriptors: list[int] = []
        self._incoming, program_out = self._pipe()
        program_in, self._outgoing = self._pipe()
        self._woken, self._waker = self._pipe()
        self.theirs: list[int] = [program_in, program_out]
        for descriptor in (self._incoming, self._outgoing, self._woken, self._waker):
            os.set_blocking(descriptor, False)

    def _pipe(self) -> tuple[int, int]:
        try:
            ends = os.pipe()
        except OSError:
            self.close()
            raise
        self._descriptors += ends
        return ends

    def start(self) -> None:
        """Begin to serve, once the program has its ends."""
        self._close(*self.theirs)
        self._thread = threading.Thread(target=self._serve, daemon=True, name="code-chains-tools")
        self._thread.start()

    def close(self) -> None:
        """Refuse further calls, cancel those in progress as far as possible, and give everything back.

        Its thread gives back what it uses, once it has checked the arguments at which it is: nobody waits for that.
        """
        self.calls.close()
        self._is_closed = True
        self._wake()
        self._cancel_calls()  # While the loop of the caller is there.
        if self._thread is None:
            self._release()

    def _release(self) -> None:
        self._close(*self._descriptors)
        self._cancel_calls()
        for _ in range(self._workers):
            self._tasks.put(None)

    def _close(self, *descriptors: int) -> None:
        with self._lock:
            for descriptor in descriptors:
                if descriptor in self._descriptors:
                    self._descriptors.remove(descriptor)
                    os.close(descriptor)

    def _wake(self) -> None:
        with self._lock, contextlib.suppress(OSError):  # It is awake already if the pipe is full.
            if self._descriptors:
                os.write(self._waker, b"\0")

    # -- the thread ------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Read, write and abandon calls until the program or the run ends."""
        try:
            while not self._is_closed:
                self._step()
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            # The program is gone, or wrote something that is no request: it can call nothing any more.
            self.calls.close()
        finally:
            self._release()

    def _cancel_calls(self) -> None:
        """Cancel calls that nobody can receive the results of. Invariant: they no longer stop the program's clock."""
        with self._lock:
            pending = [*self._pending.values(), *(call for _, call in self._waiting)]
            futures = [*self._futures.values()]
            self._pending.clear()
            self._waiting.clear()
        for call in pending:
            self.calls.cancel(call)
        for future in futures:
            future.cancel()

    def _step(self) -> None:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        # Invariant: nothing is read while replies wait, so that no program can fill the memory of the host.
        if not self._waiting and not self._is_congested:
            poll.register(self._incoming, select.POLLIN)
        if self._outbox:
            poll.register(self._outgoing, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poll.poll(CHECK_INTERVAL_MS if self._pending else None)}
        if self._woken in ready:
            os.read(self._woken, READ_BYTES)
        self._abandon_overdue()
        if self._incoming in ready:
            self._read()
        self._start_waiting()
        if self._outbox:
            self._write()

    @property
    def _is_congested(self) -> bool:
        return len(self._outbox) >= MAX_OUTBOX_BYTES

    def _read(self) -> None:
        data = os.read(self._incoming, READ_BYTES)
        if not data:
            raise OSError("The program is gone.")
        self._inbox += data
        while len(self._inbox) >= FRAME_HEADER.size:
            (size,) = FRAME_HEADER.unpack_from(self._inbox)
            if size > self._max_bytes:
                raise ValueError
            end = FRAME_HEADER.size + size
            if len(self._inbox) < end:
                return
            request = bytes(self._inbox[FRAME_HEADER.size : end])
            del self._inbox[:end]
            self._receive(request)

    def _receive(self, data: bytes) -> None:
        number, name, arguments = read_request(data, self._max_bytes)
        if number <= self._last_number:
            raise ValueError
        self._last_number = number
        try:
            pending = begin_call(self.calls, name, arguments, data)
        except ToolCallError as error:
            self._reply(number, {"error": str(error)})
            return
        self._passed += len(data)
        self._waiting.append((number, pending))

    @property
    def bytes_passed(self) -> int:
        """Bytes of the calls that were begun, of their results, and of the request that is arriving."""
        return self._passed + len(self._inbox)

    def _start_waiting(self) -> None:
        # Invariant: no call is made while results wait to be read, which are in the memory of the host.
        while self._waiting and len(self._pending) < self._max_running and not self._is_congested:
            number, pending = self._waiting.popleft()
            with self._lock:
                self._pending[number] = pending
            if self.calls.is_async(pending):
                self._start_on_loop(number, pending)
            else:
                self._start_in_thread(number, pending)

    def _start_in_thread(self, number: int, pending: PendingCall) -> None:
        make = partial(self.calls.context.copy().run, self.calls.call, pending)
        self._tasks.put(partial(self._finish, number, make))
        with self._lock:
            has_idle = self._idle_workers > 0
            if has_idle:
                self._idle_workers -= 1
            else:
                self._workers += 1
        if not has_idle:
            threading.Thread(target=self._work, daemon=True, name="code-chains-tool").start()

    def _work(self) -> None:
        """Make calls until the run ends. A worker is counted as idle before it waits, and as busy by whoever has work."""
        while (task := self._tasks.get()) is not None:
            task()
            with self._lock:
                self._idle_workers += 1

    def _start_on_loop(self, number: int, pending: PendingCall) -> None:
        assert self.calls.loop is not None
        context = self.calls.context.copy()
        coroutine = self.calls.acall(pending)
        try:
            future = context.run(asyncio.run_coroutine_threadsafe, coroutine, self.calls.loop)
        except RuntimeError:  # The loop is closed.
            coroutine.close()
            raise OSError from None
        with self._lock:
            self._futures[number] = future
        future.add_done_callback(partial(self._finish_future, number))

    def _finish_future(self, number: int, future: Future[Reply]) -> None:
        with self._lock:
            self._futures.pop(number, None)
        outcome: Callable[[], Reply] = _cancelled if future.cancelled() else future.result
        self._finish(number, outcome)

    def _finish(self, number: int, outcome: Callable[[], Reply]) -> None:
        """Send the outcome of a call, unless it was abandoned."""
        try:
            message, data = outcome()
        except ToolCallError as error:
            message, data = {"error": str(error)}, b""
        with self._lock:
            is_due = self._pending.pop(number, None) is not None
        if is_due:
            self._passed += len(data)
            self._reply(number, message, data)
            # If the program is gone, the thread of this server notices.
            with contextlib.suppress(OSError):
                self._write()
            if self._outbox or self._waiting:
                self._wake()

    def _abandon_overdue(self) -> None:
        now = time.monotonic()
        with self._lock:
            overdue = {
                number: pending for number, pending in self._pending.items() if pending.deadline <= now
            }
            for number in overdue:
                del self._pending[number]
            futures = [self._futures[number] for number in overdue if number in self._futures]
        for number, pending in overdue.items():
            self._reply(number, {"error": str(self.calls.abandon(pending))})
        for future in futures:
            future.cancel()

    # -- replies ---------------------------------------------------------------------------------------------

    def _reply(self, number: int, message: Json, data: bytes = b"") -> None:
        reply = frame({**message, "id": number}, [data])
        with self._lock:
            self._outbox += reply

    def _write(self) -> None:
        """Write what the pipe takes, in whichever thread; the rest waits for the thread of this server.

        Raises:
            OSError: Nobody reads it any more.
        """
        with self._lock, contextlib.suppress(BlockingIOError):
            if self._outgoing not in self._descriptors:
                return
            written = os.write(self._outgoing, self._outbox[:READ_BYTES])
            del self._outbox[:written]


def _cancelled() -> Reply:
    raise ToolCallError("It was cancelled.", "cancelled")


def _check_text(value: Any) -> None:
    """Raise if a text has half a character, which no file or server of a tool could take."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ToolCallError("The arguments hold text that is not valid Unicode.", "refused") from None
