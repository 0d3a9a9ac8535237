"""The contract of executors, which run code."""

from __future__ import annotations

import asyncio
import math
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self

from code_chains.errors import ConfigurationError, check_int
from code_chains.executors.waiting import Operation, adrive, astream, blocking, drive, stream
from code_chains.state import Execution
from code_chains.toolbox import ToolCalls

MAX_SECONDS = 86_400
MAX_COUNT = 1_000_000
MIN_MEMORY_BYTES = 16 << 20
"""Less does not even hold Python."""
MAX_BYTES = 1 << 40
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?\s*")


RUN_DEADLINE: ContextVar[float] = ContextVar("run_deadline", default=math.inf)
"""Monotonic time at which runs are stopped, besides their own limit; set by chains that have a budget of time."""


@dataclass(frozen=True)
class Program:
    """Code with its inputs, as `Executor.run` receives them; none of it is validated yet.

    Attributes:
        code: The source.
        files: `{name in the working directory: path on this machine}`.
        variables: `{name: value}` that exist when the program starts.
        tool_calls: The calls that it may make; None without tools.
        return_value: Whether the value of its last expression is returned with its type.
        check: In a session: whether the outcome of a successful run is accepted.
        deadline: Monotonic time at which it is stopped, besides its own limit.
    """

    code: str
    files: Mapping[str, Any] | None = None
    variables: Mapping[str, Any] | None = None
    tool_calls: ToolCalls[Any] | None = None
    return_value: bool = False
    check: Callable[[Execution], object] | None = None
    deadline: float = field(default_factory=RUN_DEADLINE.get)


@dataclass(frozen=True)
class Limits:
    """Limits of one run. Sizes are bytes, or text such as `"512M"` (K, M and G are powers of 1024).

    Attributes:
        seconds: Wall-clock seconds of the program.
        memory: Memory of the program and all its processes together.
        output: Bytes of standard output, and as many of standard error; more of either ends the run.
        processes: Processes and threads at one time.
        open_files: Files, pipes and sockets that one process may have open.
        disk: Bytes that the program may write to its working directory, `/tmp` and `/dev/shm` together.
        files: Files and directories that it may create.
        artifacts: Bytes of files and figures that are collected from a run.
        tool_calls: Calls of the application's tools in one run.
        tool_seconds: Seconds of one such call; the clock of the program stands still meanwhile.
        tool_bytes: Bytes of one call's arguments, and as many of its result.
        tool_concurrency: Calls that are made at one time; further ones wait.

    Raises:
        ConfigurationError: A limit is not a positive number or size.
    """

    seconds: float = 10.0
    memory: int | str = "512M"
    output: int | str = "1M"
    processes: int = 64
    open_files: int = 256
    disk: int | str = "64M"
    files: int = 10_000
    artifacts: int | str = "16M"
    tool_calls: int = 1000
    tool_seconds: float = 30.0
    tool_bytes: int | str = "4M"
    tool_concurrency: int = 8

    def __post_init__(self) -> None:
        for name in ("seconds", "tool_seconds"):
            seconds = getattr(self, name)
            is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if not is_number or not 0 < seconds <= MAX_SECONDS:
                remedy = "a number of seconds, greater than 0 and at most a day"
                raise ConfigurationError(f"Limits.{name}", seconds, remedy)
        for name in ("processes", "files", "open_files", "tool_calls", "tool_concurrency"):
            remedy = "a whole number from 1 to a million"
            check_int(f"Limits.{name}", getattr(self, name), remedy, minimum=1, maximum=MAX_COUNT)
        for name in ("memory", "output", "disk", "artifacts", "tool_bytes"):
            _bytes(f"Limits.{name}", getattr(self, name))
        if self.memory_bytes < MIN_MEMORY_BYTES:
            remedy = f'at least {MIN_MEMORY_BYTES >> 20} MB, e.g. "512M"; a number alone is in bytes'
            raise ConfigurationError("Limits.memory", self.memory, remedy)

    @property
    def memory_bytes(self) -> int:
        """The limit of memory in bytes."""
        return _bytes("Limits.memory", self.memory)

    @property
    def output_bytes(self) -> int:
        """The limit of output in bytes."""
        return _bytes("Limits.output", self.output)

    @property
    def artifacts_bytes(self) -> int:
        """The limit of artifacts in bytes."""
        return _bytes("Limits.artifacts", self.artifacts)

    @property
    def tool_message_bytes(self) -> int:
        """The limit of arguments and results of a tool call in bytes."""
        return _bytes("Limits.tool_bytes", self.tool_bytes)

    @property
    def disk_bytes(self) -> int:
        """The limit of disk in bytes."""
        return _bytes("Limits.disk", self.disk)


def _bytes(name: str, size: int | str) -> int:
    match = _SIZE.fullmatch(str(size).upper().replace("IB", "B"))
    amount = int(float(match[1]) * _UNITS[match[2]]) if match and not isinstance(size, bool) else 0
    if not 0 < amount <= MAX_BYTES:
        raise ConfigurationError(
            name, size, 'a number of bytes, or a size such as "512M" or "1G", at most "1024G"'
        )
    return amount


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
        streams_output: Whether `stream` yields output while a program runs.
    """

    returns_values: bool = False
    takes_tools: bool = False
    streams_output: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Invariant: a subclass that logs or refuses runs is not bypassed by the stream of its parent.
        super().__init_subclass__(**kwargs)
        for run, streaming, by_run in (
            ("run", "stream", _stream_by_run),
            ("arun", "astream", _astream_by_arun),
        ):
            runs, streams = _definer(cls, run), _definer(cls, streaming)
            # The classes below build both from one operation.
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
        run = partial(self.run, program.code, files=program.files, variables=program.variables)
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
        return_value: bool,
        check: Callable[[Execution], object] | None = None,
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
        calls = self._open_calls(tools, loop) if tools else None
        return Program(code, files, variables, calls, return_value, check)

    def run(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        tools: Any = None,
        return_value: bool = False,
    ) -> Execution:
        """Run a program to its end.

        Args:
            code: The source.
            files: Paths on this machine, bytes or open binary files by their name in the working directory; the program
                gets read-only copies.
            variables: `{name: value}` that exist when the program starts: JSON values, and if the executor
                supports them, dates, bytes, sets, NumPy arrays and pandas, polars or Arrow tables.
            tools: LangChain tools or typed functions that the program may call, or a `Toolbox`; only of what
                `takes_tools`.
            return_value: Whether the value of the last expression is returned with its type, for
                `executors.values.value_of`; it costs time and memory in proportion to the value. Only of what
                `returns_values`.

        Raises:
            InputError: A file or variable cannot be used.
            ConfigurationError: The runner cannot do this.
            ExecutorError: The executor broke.
            OverloadedError: The executor is at capacity; nothing was run.
            IsolationError: The required isolation is not available; nothing was run.
        """
        program = self._program(code, files, variables, tools, return_value=return_value)
        return drive(self._operation(program))

    async def arun(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        tools: Any = None,
        return_value: bool = False,
    ) -> Execution:
        """Run a program without blocking the event loop; see `run`.

        Cancelling kills the program and everything that it started.
        """
        loop = asyncio.get_running_loop()
        program = self._program(code, files, variables, tools, return_value=return_value, loop=loop)
        return await adrive(self._operation(program))

    def stream(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        tools: Any = None,
        return_value: bool = False,
    ) -> Generator[str | Execution, None, None]:
        """Run a program; yield parts of its standard output as it is printed, and last its `Execution`.

        The parts are the beginning of `Execution.stdout`; executors that cannot stream yield only the `Execution`.
        Closing the generator kills the program, and ends a session. The arguments are those of `run`.
        """
        program = self._program(code, files, variables, tools, return_value=return_value)
        operation = self._operation(program)
        return stream(operation) if self.streams_output else _whole(operation)

    def astream(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        tools: Any = None,
        return_value: bool = False,
    ) -> AsyncGenerator[str | Execution, None]:
        """Like `stream`, without blocking the event loop."""
        loop = asyncio.get_running_loop()
        program = self._program(code, files, variables, tools, return_value=return_value, loop=loop)
        operation = self._operation(program)
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


class Executor(Runner, Closing):
    """Runs code.

    An executor is a context manager; `close` releases its resources. It may be used from several threads and
    tasks at once. Whatever a program does, including killing itself, is reported as an `Execution`; only a
    broken executor raises.

    What it can do is declared, as chains ask for it before a model is paid.

    Attributes:
        language: The language of programs.
        guidance: Instructions for the model that writes programs: the language, its libraries, and how inputs
            are passed.
        runs_tests: Whether `run_tests` runs tests.
        max_sessions: Sessions that may be open at one time; 0 if it has none.
        reaches_outside: Whether programs can change anything outside their sandbox, such as at an open address.
        is_repeatable: Whether a program always shows the same.
    """

    language: str = "python"
    guidance: str = ""
    runs_tests: bool = False
    max_sessions: int = 0

    @property
    def has_sessions(self) -> bool:
        """Whether `session` opens sessions, whose runs share a state."""
        return self.max_sessions > 0

    @property
    def reaches_outside(self) -> bool:
        """See above."""
        return False

    @property
    def is_repeatable(self) -> bool:
        """See above."""
        return False

    def __init__(self, *, limits: Limits | None = None) -> None:
        if limits is not None and not isinstance(limits, Limits):
            raise ConfigurationError("limits", limits, "a Limits, e.g. Limits(seconds=10, memory='512M')")
        self.limits: Limits = limits or Limits()

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What distinguishes its runs from those of other executors: the arguments that it was created with."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def run_tests(
        self,
        code: str,
        tests: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> tuple[Execution, Execution]:
        """Run tests against a program that can neither read nor patch them.

        Program and tests run in separate sandboxes, each with files of its own. Tests use the program's names
        as if they were theirs: functions are called in the program's sandbox, and only data is returned. An
        object of the program's own classes that a function returned never equals a plain value, whatever it
        claims. Tests hold a proxy of it: they may call its methods and read its attributes, while `type`,
        `hasattr`, `callable` and `inspect` see the proxy.

        Args:
            code: The Python source of the program.
            tests: The Python source of the tests, usually `assert` statements.
            files: Passed to both, as separate copies.
            variables: Passed to both.

        Returns:
            The execution of the program, and that of the tests. The program passes if both are ok.

        Raises:
            ConfigurationError: This executor cannot isolate tests from programs.
        """
        raise ConfigurationError(
            "executor", type(self).__name__, "one that can run tests, such as SandboxExecutor"
        )

    async def arun_tests(
        self,
        code: str,
        tests: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> tuple[Execution, Execution]:
        """Run tests without blocking the event loop; see `run_tests`."""
        return self.run_tests(code, tests, files=files, variables=variables)

    def session(self) -> Session:
        """Open a session, whose runs share a state.

        Raises:
            ConfigurationError: This executor has no sessions.
            OverloadedError: Too many are open.
        """
        raise ConfigurationError(
            "executor", type(self).__name__, "one that keeps state, such as SandboxExecutor"
        )

    def has_module(self, name: str) -> bool | None:
        """Return whether programs can import a top-level module that is not in the standard library; None if unknown."""
        return None

    def warm_up(self) -> None:
        """Start what the first run would otherwise wait for, without waiting for it."""

    def check_capacity(self) -> None:
        """Raise if a run would be refused now, before anything is spent on its program; reserve nothing.

        Raises:
            OverloadedError: The executor is at capacity.
        """

    def drain(self, seconds: float = 30.0) -> bool:
        """Refuse further runs, wait for those that were accepted, and close: graceful shutdown.

        It blocks; on an event loop use `asyncio.to_thread`. An executor that does not track its runs closes
        at once.

        Args:
            seconds: Maximum time to wait; what still runs then is killed.

        Returns:
            Whether all runs had ended by then.
        """
        self.close()
        return True

    def close(self) -> None:
        """Release all resources and refuse further runs. Idempotent."""


class Session(Runner, Closing, ABC):
    """Runs that share variables, imports, files and the working directory. It is a context manager.

    Each run either succeeds and commits, or leaves the state unchanged. A session is used by one run at a
    time; sessions never see each other.
    """

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether it can be used; a session that was idle for too long has ended."""

    def run(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        tools: Any = None,
        return_value: bool = False,
        check: Callable[[Execution], object] | None = None,
    ) -> Execution:
        """Run a program in the current state.

        Args:
            code: The source.
            files: See `Runner.run`.
            variables: See `Runner.run`.
            tools: See `Runner.run`.
            return_value: See `Runner.run`.
            check: Returns whether the outcome of a successful run is accepted; otherwise the state is rolled
                back and the status becomes `error`.

        Raises:
            InputError: A file or variable cannot be used; the state is unchanged.
            SessionError: The session has ended, or is busy.
        """
        program = self._program(code, files, variables, tools, return_value=return_value, check=check)
        return drive(self._operation(program))

    async def arun(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        tools: Any = None,
        return_value: bool = False,
        check: Callable[[Execution], object] | None = None,
    ) -> Execution:
        """Run a program without blocking the event loop; see `run`. Cancelling ends the session."""
        loop = asyncio.get_running_loop()
        program = self._program(
            code, files, variables, tools, return_value=return_value, check=check, loop=loop
        )
        return await adrive(self._operation(program))

    @abstractmethod
    def rollback(self) -> None:
        """Return to the state before the last successful run."""

    @abstractmethod
    def checkpoint(self, name: str = "checkpoint") -> str:
        """Save the current state under a name."""

    @abstractmethod
    def restore(self, name: str = "checkpoint") -> None:
        """Return to a checkpoint."""

    @abstractmethod
    def close(self) -> None:
        """End the session."""
