"""The calls of one program: checked, approved, counted, made within the caller's context, and recorded."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import json
import math
import reprlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, JsonValue

from code_chains.errors import BudgetError, ConfigurationError, InputError
from code_chains.executors.approval import ApproveTools, ToolRequest, arejection, rejection
from code_chains.executors.inputs import table_kind
from code_chains.executors.signatures import Signature
from code_chains.records import CallStatus, ToolCall
from code_chains.records.printable import printable

T = TypeVar("T")
_MAX_MESSAGE_CHARS = 1000
_REJECTED = "It was not approved."
_MAX_PURE_RECORDS = 1000
"""Calls of pure tools that are recorded one by one; of others each is, as decisions depend on them."""
_MAX_SUMMARY_CHARS = 200
_MAX_ARGUMENTS_CHARS = 2000
_brief = reprlib.Repr()
_brief.maxlist = _brief.maxdict = _brief.maxtuple = _brief.maxset = 4
_brief.maxstring = _brief.maxother = _MAX_SUMMARY_CHARS


class ToolCallError(Exception):
    """A call failed, or was not made; the program receives its message as a `ToolError`.

    Args:
        message: The message.
        status: How the call is recorded.
    """

    def __init__(self, message: str, status: CallStatus = "error") -> None:
        super().__init__(printable(" ".join(message[: 2 * _MAX_MESSAGE_CHARS].split()), _MAX_MESSAGE_CHARS))
        self.status = status


class Guard(Protocol):
    """What decides whether a run's calls may be made, and until when."""

    @property
    def deadline(self) -> float:
        """Monotonic time at which each call is abandoned; infinite without one."""

    def check(self, request: ToolRequest) -> None:
        """Raise unless the arguments are right and nothing forbids the call, which is counted."""


@runtime_checkable
class Tools(Protocol):
    """Tools that programs may call, of whatever library; `code_chains.toolbox.Toolbox` is that of LangChain's."""

    approve: ApproveTools | None
    """Decides on each call; None to make all of them."""

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """What programs know of the tools, by name."""

    def check_variables(self, variables: Iterable[str]) -> None:
        """Raise if a variable of a run would replace a tool."""

    def guard(self) -> Guard:
        """Return what decides on the calls of a run that begins now, in this context."""

    def is_async(self, name: str) -> bool:
        """Return whether a tool is awaited, rather than called in a thread."""

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool, and return what it returned."""

    async def acall(self, name: str, arguments: dict[str, Any]) -> Any:
        """Do what `call` does without blocking the event loop."""

    def explain(self, error: BaseException) -> str:
        """Return what was wrong with the arguments; empty if an error says something else."""


GivenTools = Tools | Sequence[Any] | None
"""Tools as runs take them: a list has LangChain's tools, or typed functions."""


@dataclass
class PendingCall:
    """A call that was begun.

    Attributes:
        request: What is called.
        record: Its record so far.
        seconds: How long it may take, from when it is approved.
        deadline: Monotonic time at which it is abandoned; infinite while nobody has approved it.
        started: Monotonic time at which it was begun.
        is_settled: Whether its outcome is recorded; what comes later is discarded.
    """

    request: ToolRequest
    record: ToolCall
    seconds: float = math.inf
    deadline: float = math.inf
    started: float = field(default_factory=time.monotonic)
    is_settled: bool = False


class ToolCalls(Generic[T]):
    """The calls that one run of a program makes.

    It remembers the context of the thread or task that made it, so that each call is a child run of the run in
    progress there, and its budgets count it.

    Args:
        toolbox: The tools.
        max_calls: Number of calls of the run.
        seconds: Seconds of one call.
        encode: Converts what a tool returned into what is sent to the program; raises `InputError` or `TypeError`.
        loop: The event loop on which async tools are awaited; None to make each call in a thread.
    """

    context: contextvars.Context
    loop: asyncio.AbstractEventLoop | None
    toolbox: Tools

    def __init__(
        self,
        toolbox: Tools,
        *,
        max_calls: int,
        seconds: float,
        encode: Callable[[Any], T],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.toolbox, self.loop, self.context = toolbox, loop, contextvars.copy_context()
        self._max_calls, self._seconds, self._encode = max_calls, seconds, encode
        self._guard = toolbox.guard()
        self._lock = threading.Lock()
        self._count = 0
        self._begun: list[PendingCall] = []
        self._working: set[int] = set()
        self._busy_seconds, self._busy_since = 0.0, 0.0
        self._is_closed = False

    # -- what executors ask ----------------------------------------------------------------------------------

    @property
    def busy_seconds(self) -> float:
        """Seconds during which at least one call was being made: the program's clock stands still meanwhile."""
        with self._lock:
            running = time.monotonic() - self._busy_since if self._working else 0.0
            return self._busy_seconds + running

    @property
    def max_busy_seconds(self) -> float:
        """Seconds that all calls together can take; approval takes any time."""
        return self._max_calls * self._seconds if self.toolbox.approve is None else math.inf

    @property
    def records(self) -> tuple[ToolCall, ...]:
        """The calls so far, in the order in which they were begun; those in progress are `cancelled`."""
        with self._lock:
            return tuple(pending.record for pending in self._begun)

    def close(self) -> None:
        """Refuse further calls."""
        with self._lock:
            self._is_closed = True

    # -- one call --------------------------------------------------------------------------------------------

    def begin(self, name: str, arguments: Mapping[str, Any]) -> PendingCall:
        """Count and check a call, which `call` or `acall` then makes.

        Raises:
            ToolCallError: The call must not be made.
        """
        signature = self.toolbox.signatures.get(name)
        if signature is None:
            raise ToolCallError(f"There is no tool {name[:100]!r}.", "refused")
        request = ToolRequest(name, dict(arguments), signature.effect)
        record = ToolCall(name, shorten_arguments(arguments), "cancelled", effect=request.effect)
        pending = PendingCall(request, record)
        self._admit(pending)
        try:
            self._check(request)
        except Exception as error:
            failure = self._failed(pending, error, "refused")  # Invariant: the tool has not run.
            raise failure from error
        return pending

    def is_async(self, pending: PendingCall) -> bool:
        """Return whether a call is to be awaited on the event loop, by `acall`, rather than made in a thread."""
        return self.loop is not None and self.toolbox.is_async(pending.request.name)

    def call(self, pending: PendingCall) -> T:
        """Make a call in this thread and return what is sent to the program.

        Raises:
            ToolCallError: It was not made, or failed.
        """
        try:
            self._start(pending)
            if decide := self.toolbox.approve:
                with _refusing_what_fails(pending.request.name):
                    reason = rejection(decide, copy.deepcopy(pending.request), _REJECTED)
                _accept(reason)
            request = pending.request
            self._set_deadline(pending)
            return self._succeeded(pending, self.toolbox.call(request.name, dict(request.arguments)))
        except BaseException as error:  # Invariant: a tool that raises SystemExit ends nothing but its call.
            raise self._failed(pending, error) from error

    async def acall(self, pending: PendingCall) -> T:
        """Do what `call` does on the event loop; its async counterpart."""
        try:
            self._start(pending)
            if decide := self.toolbox.approve:
                with _refusing_what_fails(pending.request.name):
                    reason = await arejection(decide, copy.deepcopy(pending.request), _REJECTED)
                _accept(reason)
            request = pending.request
            self._set_deadline(pending)
            returned = await self.toolbox.acall(request.name, dict(request.arguments))
            return self._succeeded(pending, returned)
        except asyncio.CancelledError:
            self._failed(pending, ToolCallError("It was cancelled.", "cancelled"))
            raise
        except BaseException as error:
            raise self._failed(pending, error) from error

    def abandon(self, pending: PendingCall) -> ToolCallError:
        """Record that a call takes too long, and return what the program is told."""
        message = f"{pending.request.name} took longer than {pending.seconds:.3g} seconds, and was abandoned."
        return self._failed(pending, ToolCallError(message, "timeout"))

    def cancel(self, pending: PendingCall) -> None:
        """Record that nobody waits for a call any more, so that the program's clock goes on."""
        self._failed(pending, ToolCallError("It was cancelled.", "cancelled"))

    # -- steps -----------------------------------------------------------------------------------------------

    def _admit(self, pending: PendingCall) -> None:
        with self._lock:
            self._count += 1
            if self._is_closed:
                raise ToolCallError("The run has ended.", "refused")
            if self._count > self._max_calls:
                raise ToolCallError(
                    f"The limit of {self._max_calls} tool calls in one run is reached.", "refused"
                )
            if pending.request.effect != "pure" or len(self._begun) < _MAX_PURE_RECORDS:
                self._begun.append(pending)

    def _start(self, pending: PendingCall) -> None:
        """Stop the program's clock for a call. A call that waits for others does not stop it."""
        with self._lock:
            if pending.is_settled:
                raise ToolCallError("It was cancelled.", "cancelled")
            if not self._working:
                self._busy_since = time.monotonic()
            self._working.add(id(pending))

    def _check(self, request: ToolRequest) -> None:
        """Raise unless the call may be made."""
        # Invariant: a program cannot set arguments that the application injects.
        known = {parameter.name for parameter in self.toolbox.signatures[request.name].parameters}
        if unknown := sorted(set(request.arguments) - known):
            raise ToolCallError(
                f"Wrong arguments for {request.name}: there is no {unknown[0][:100]!r}.", "refused"
            )
        self._guard.check(request)

    def _set_deadline(self, pending: PendingCall) -> None:
        """Start the clock of a call, once it is approved."""
        if pending.is_settled:  # It was given up while somebody decided on it.
            raise ToolCallError("It was cancelled.", "cancelled")
        now = time.monotonic()
        pending.seconds = max(0.0, min(self._seconds, self._guard.deadline - now))
        pending.deadline = now + pending.seconds

    def _succeeded(self, pending: PendingCall, value: Any) -> T:
        try:
            encoded = self._encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            name = pending.request.name
            raise ToolCallError(f"What {name} returned cannot be passed to a program: {error}") from error
        self._settle(pending, "ok", summarize(value))
        return encoded

    def _failed(
        self, pending: PendingCall, error: BaseException, status: CallStatus = "error"
    ) -> ToolCallError:
        """Record a failure, and return what the program is told: never a traceback of the host."""
        failure = ToolCallError(self._message(pending.request.name, error), status)
        if isinstance(error, ToolCallError):
            failure = error
        if isinstance(error, BudgetError):
            failure.status = "refused"
        self._settle(pending, failure.status, str(failure))
        return failure

    def _message(self, name: str, error: BaseException) -> str:
        if wrong := self.toolbox.explain(error):
            return f"Wrong arguments for {name}: {wrong}."
        if isinstance(error, InputError | BudgetError | ConfigurationError):
            return str(error)
        return f"{name}: {_description(error)}"

    def _settle(self, pending: PendingCall, status: CallStatus, summary: str) -> None:
        with self._lock:
            if pending.is_settled:
                return
            pending.is_settled = True
            now = time.monotonic()
            if self._working == {id(pending)}:
                self._busy_seconds += now - self._busy_since
            self._working.discard(id(pending))
            seconds = now - pending.started
            pending.record = replace(pending.record, status=status, summary=summary, seconds=seconds)
            # Invariant: a record is kept, and no arguments, which may be megabytes for each of a thousand calls.
            pending.request = replace(pending.request, arguments={})


@contextlib.contextmanager
def _refusing_what_fails(name: str) -> Iterator[None]:
    """Refuse a call if the application fails to decide on it, and say that this is no fault of the tool."""
    try:
        yield
    except Exception as error:
        message = f"{name} was not called, as its approval failed: {_description(error)}"
        raise ToolCallError(message, "refused") from error


def _accept(reason: str) -> None:
    if reason:
        raise ToolCallError(reason, "refused")


def _description(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:  # Its own conversion to text is broken.
        return kind
    return f"{kind}: {text}" if text else kind


def summarize(value: Any) -> str:
    """Describe a result in one short line, for records."""
    if kind := table_kind(value):
        return f"{kind.replace('_', ' ')} of shape {getattr(value, 'shape', None)}"
    if isinstance(value, list):
        value = [dict(item) if isinstance(item, BaseModel) else item for item in value[: _brief.maxlist + 1]]
    return " ".join(_brief.repr(value).split())[:_MAX_SUMMARY_CHARS]


def shorten_arguments(arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return arguments for a record: as they are, or if they are long, the beginning of each."""
    if len(json.dumps(arguments)) <= _MAX_ARGUMENTS_CHARS:
        return dict(arguments)
    share = _MAX_ARGUMENTS_CHARS // len(arguments)
    return {name[:share]: f"{json.dumps(value)[:share]}…" for name, value in arguments.items()}
