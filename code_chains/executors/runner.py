"""What runs programs, to their end or streaming: the one signature of executors and sessions."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any, Self

from code_chains.errors import ConfigurationError, InputError
from code_chains.executors.limits import Limits
from code_chains.executors.tool_calls import ToolCalls
from code_chains.executors.waiting import TURNS, Operation, adrive, astream, blocking, drive, in_turn, stream
from code_chains.records import Execution

RUN_DEADLINE: ContextVar[float] = ContextVar("run_deadline", default=math.inf)
"""Monotonic time at which runs are stopped, besides their own limit; set by chains that have a budget of time."""
_MIN_SECONDS = 0.01


@dataclass(frozen=True)
class Program:
    """Code with its inputs, as `Executor.run` receives them; none of it is validated yet.

    Attributes:
        code: The source.
        files: `{name in the working directory: path on this machine}`.
        variables: `{name: value}` that exist when the program starts.
        tool_calls: The calls that it may make; None without tools.
        stdin: What it reads from its standard input, which is empty otherwise.
        return_value: Whether the value of its last expression is returned with its type.
        check: In a session: whether the outcome of a successful run is accepted.
        is_watched: Whether somebody reads what it prints while it runs.
        deadline: Monotonic time at which it is stopped, besides its own limit.
    """

    code: str
    files: Mapping[str, Any] | None = None
    variables: Mapping[str, Any] | None = None
    tool_calls: ToolCalls[Any] | None = None
    stdin: str | None = None
    return_value: bool = False
    check: Callable[[Execution], object] | None = None
    is_watched: bool = False
    deadline: float = field(default_factory=RUN_DEADLINE.get)

    def within(self, limits: Limits) -> Limits:
        """Return limits whose time ends at the deadline."""
        left = max(_MIN_SECONDS, self.deadline - time.monotonic())
        return limits if left >= limits.seconds else replace(limits, seconds=left)


class Closing:
    """A context manager that closes itself."""

    def close(self) -> None:
        """Release all resources. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _definer(cls: type, name: str) -> type:
    """Return the class that defines an attribute."""
    return next(ancestor for ancestor in cls.__mro__ if name in vars(ancestor))


class Runner:
    """Runs programs, to their end or streaming. What replaces `run` alone also decides what `stream` does.

    Attributes:
        returns_values: Whether runs take `return_value=True`: then the value of the last expression, or of the variable
            `result`, is in the `Execution` with its type, where `executors.values.value_of` finds it.
        takes_tools: Whether runs take `tools=`, which programs call.
        takes_stdin: Whether runs take `stdin=`, which programs read.
        streams_output: Whether `stream` yields output while a program runs.
        undoes_runs: Whether runs take `check=`, which refuses what a program did to the state.
    """

    returns_values: bool = False
    takes_tools: bool = False
    takes_stdin: bool = False
    streams_output: bool = False
    undoes_runs: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Invariant: a subclass that logs or refuses runs is not bypassed by the stream of its parent.
        super().__init_subclass__(**kwargs)
        for run, streaming, by_run in (
            ("run", "stream", _stream_by_run),
            ("arun", "astream", _astream_by_arun),
        ):
            runs, streams = _definer(cls, run), _definer(cls, streaming)
            # The class below builds both from one operation.
            if runs.__module__ != __name__ and cls.__mro__.index(runs) < cls.__mro__.index(streams):
                setattr(cls, streaming, by_run)

    def _execute(self, program: Program) -> Execution:
        """Run a program to its end: what each kind of executor implements. It may block, and is called in any thread.

        Raises:
            InputError: A file or variable cannot be used.
            ExecutorError: The executor broke.
        """
        raise NotImplementedError(f"{type(self).__name__} lacks `_execute`, which runs a program.")

    def _operation(self, program: Program) -> Operation[Execution]:
        """Run a program, without blocking between effects: implement it instead of `_execute` to be cancelled, or to stream.

        The file descriptors to wait for are effects of `executors.waiting`, as is a function that blocks.
        """
        return blocking(partial(self._execute, program))

    def operation_of(self, program: Program) -> Operation[Execution]:
        """Return the run of a program as an operation, for an executor that stands on this one."""
        if _definer(type(self), "run").__module__ == __name__:
            return self._operation(program)
        # Invariant: an executor that replaces `run`, to log or to refuse, is not bypassed.
        inputs: dict[str, Any] = {"files": program.files, "variables": program.variables}
        inputs |= {} if program.stdin is None else {"stdin": program.stdin}
        run = partial(self.run, program.code, **inputs)
        return blocking(run)

    def _open_calls(self, tools: Any, loop: asyncio.AbstractEventLoop | None) -> ToolCalls[Any] | None:
        """Return the calls of tools of one run; what takes tools implements it."""
        raise NotImplementedError(
            f"{type(self).__name__} lacks `_open_calls`, which offers tools to a program."
        )

    def _program(
        self,
        code: str,
        files: Mapping[str, Any] | None,
        variables: Mapping[str, Any] | None,
        tools: Any,
        *,
        stdin: str | None,
        return_value: bool,
        check: Callable[[Execution], object] | None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> Program:
        """Return what the arguments of a run describe, if this runner can do it."""
        if return_value and not self.returns_values:
            raise ConfigurationError(
                "return_value", True, f"False, as {type(self).__name__} returns no values"
            )
        if tools and not self.takes_tools:
            raise ConfigurationError(
                "tools", tools, f"none, as programs of {type(self).__name__} cannot call any"
            )
        if check is not None and not self.undoes_runs:
            raise ConfigurationError("check", check, f"None, as {type(self).__name__} has no state to keep")
        self.check_stdin(stdin)
        calls = self._open_calls(tools, loop) if tools else None
        if calls is not None:  # Invariant: what a tool runs does not wait for the turn that its program has.
            calls.context.run(TURNS.set, None)
        return Program(code, files, variables, calls, stdin, return_value, check)

    def check_data(self, files: object, variables: object) -> None:
        """Raise for files or variables that programs cannot be given here, whatever they are.

        Raises:
            InputError: Programs take none.
        """

    def check_stdin(self, stdin: object) -> None:
        """Check what a program is to read from its standard input.

        Raises:
            ConfigurationError: Programs read none here.
            InputError: It is no text.
        """
        if stdin is not None and not self.takes_stdin:
            raise ConfigurationError("stdin", stdin, f"None, as programs of {type(self).__name__} read none")
        if not isinstance(stdin, str | None):
            raise InputError(f"stdin must be text, not {type(stdin).__name__}.")

    def run(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        tools: Any = None,
        stdin: str | None = None,
        return_value: bool = False,
        check: Callable[[Execution], object] | None = None,
    ) -> Execution:
        """Run a program to its end.

        Args:
            code: The source.
            files: Paths on this machine, bytes or open binary files by their name in the working directory; the program
                gets read-only copies.
            variables: `{name: value}` that exist when the program starts: numbers, text, lists, dicts and,
                if the executor supports them, dates, bytes, sets, NumPy arrays and pandas, polars or Arrow tables.
            tools: LangChain tools or typed functions that the program may call, or a `Toolbox`; only of what
                `takes_tools`.
            stdin: What the program reads from its standard input, such as by `input()`; only of what `takes_stdin`.
            return_value: Whether the value of the last expression is returned with its type, for
                `executors.values.value_of`; it costs time and memory in proportion to the value. Only of what
                `returns_values`.
            check: Sees the outcome of a successful run. It returns whether that is accepted, `(False, reason)`, a reason
                or problems, as a check of programs does. If it refuses, the state is rolled back and the status becomes
                `error`; if it raises, the state is rolled back. Only of what `undoes_runs`.

        Raises:
            InputError: A file or variable cannot be used.
            ConfigurationError: The runner cannot do this.
            ExecutorError: The executor broke.
            OverloadedError: The executor is at capacity; nothing was run.
            IsolationError: The required isolation is not available; nothing was run.
        """
        program = self._program(
            code, files, variables, tools, stdin=stdin, return_value=return_value, check=check
        )
        return drive(self._operation(program))

    async def arun(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        tools: Any = None,
        stdin: str | None = None,
        return_value: bool = False,
        check: Callable[[Execution], object] | None = None,
    ) -> Execution:
        """Run a program without blocking the event loop; see `run`.

        Cancelling kills the program and everything that it started.
        """
        loop = asyncio.get_running_loop()
        program = self._program(
            code, files, variables, tools, stdin=stdin, return_value=return_value, check=check, loop=loop
        )
        return await adrive(in_turn(self._operation(program)))

    def stream(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        tools: Any = None,
        stdin: str | None = None,
        return_value: bool = False,
        check: Callable[[Execution], object] | None = None,
    ) -> Generator[str | Execution, None, None]:
        """Run a program; yield parts of its standard output as it is printed, and last its `Execution`.

        The parts are the beginning of `Execution.stdout`; executors that cannot stream yield only the `Execution`.
        Closing the generator kills the program, and ends a session. The arguments are those of `run`.
        """
        program = self._program(
            code, files, variables, tools, stdin=stdin, return_value=return_value, check=check
        )
        operation = self._operation(replace(program, is_watched=True))
        return stream(operation) if self.streams_output else _whole(operation)

    def astream(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        tools: Any = None,
        stdin: str | None = None,
        return_value: bool = False,
        check: Callable[[Execution], object] | None = None,
    ) -> AsyncGenerator[str | Execution, None]:
        """Like `stream`, without blocking the event loop."""
        loop = asyncio.get_running_loop()
        program = self._program(
            code, files, variables, tools, stdin=stdin, return_value=return_value, check=check, loop=loop
        )
        operation = in_turn(self._operation(replace(program, is_watched=True)))
        return astream(operation) if self.streams_output else _awhole(operation)


def _whole(operation: Operation[Execution]) -> Generator[str | Execution, None, None]:
    yield drive(operation)


async def _awhole(operation: Operation[Execution]) -> AsyncGenerator[str | Execution, None]:
    yield await adrive(operation)


def _stream_by_run(runner: Runner, code: str, **inputs: Any) -> Generator[str | Execution, None, None]:
    yield runner.run(code, **_used(inputs))


async def _astream_by_arun(runner: Runner, code: str, **inputs: Any) -> AsyncGenerator[str | Execution, None]:
    yield await runner.arun(code, **_used(inputs))


def _used(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a run that are used, as a `run` of somebody else may lack others."""
    return {name: value for name, value in inputs.items() if value is not None and value is not False}
