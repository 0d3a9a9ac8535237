"""The contract of executors, which run code, and of sessions, whose runs share a state."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from code_chains.errors import ConfigurationError
from code_chains.executors.limits import Limits
from code_chains.executors.runner import Closing, Program, Runner
from code_chains.executors.waiting import Operation, adrive, blocking, drive
from code_chains.records import Execution


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

    def describe_files(self, files: Mapping[str, Path], samples: int) -> dict[str, str]:
        """Return what programs that are not of Python find in files, for the model, by their names; it may block.

        Args:
            files: The files of a question.
            samples: Rows of each table that the model may see.
        """
        return {}

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

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember the arguments, of which `with_limits` makes another executor."""
        self = super().__new__(cls)
        self._arguments = args, kwargs
        return self

    def __init__(self, *, limits: Limits | None = None) -> None:
        if limits is not None and not isinstance(limits, Limits):
            raise ConfigurationError("limits", limits, "a Limits, e.g. Limits(seconds=10, memory='512M')")
        self.limits: Limits = limits or Limits()

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What distinguishes its runs from those of other executors: the arguments that it was created with."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def with_limits(self, limits: Limits) -> Self:
        """Return another executor, made with the same arguments but for the limits.

        Raises:
            ConfigurationError: These are no limits, or this executor takes none.
        """
        args, kwargs = self._arguments
        try:
            return type(self)(*args, **{**kwargs, "limits": limits})
        except TypeError as error:
            because = f"{type(self).__name__} takes none"
            raise ConfigurationError("limits", limits, "none", because=because) from error

    def run_tests(
        self,
        code: str,
        tests: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        stdin: str | None = None,
        tools: Any = None,
    ) -> tuple[Execution, Execution]:
        """Run tests against a program that can neither read nor patch them.

        Program and tests run in separate sandboxes. Tests use the program's names as if they were theirs: functions are
        called in the program's sandbox, and only data is returned. An object of the program's own classes that a function
        returned never equals a plain value, whatever it claims, unless its class derives from a plain one: then its content
        is compared. Tests hold a proxy of it: they may call its methods and read its attributes, while `type` and `hasattr`
        see the proxy. A program that ends with an error is tested with what it had defined until then.

        Args:
            code: The Python source of the program.
            tests: The Python source of the tests, usually `assert` statements.
            files: Passed to both, as separate copies.
            variables: Passed to both.
            stdin: What the program reads from its standard input.
            tools: What the program may call; only of what `takes_tools`.

        Returns:
            The execution of the program, and that of the tests, whose `result` says as JSON how each case ended. The
            program passes if both are ok.

        Raises:
            ConfigurationError: This executor cannot isolate tests from programs.
        """
        program = self._program(code, files, variables, tools, stdin=stdin, return_value=False, check=None)
        return drive(self._tested(program, tests))

    async def arun_tests(
        self,
        code: str,
        tests: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        stdin: str | None = None,
        tools: Any = None,
    ) -> tuple[Execution, Execution]:
        """Run tests without blocking the event loop; see `run_tests`."""
        loop = asyncio.get_running_loop()
        program = self._program(
            code, files, variables, tools, stdin=stdin, return_value=False, check=None, loop=loop
        )
        return await adrive(self._tested(program, tests))

    def _tested(self, program: Program, tests: str) -> Operation[tuple[Execution, Execution]]:
        """Run a program and its tests: what an executor that runs tests implements, if not `run_tests`."""
        if type(self).run_tests is Executor.run_tests:
            raise ConfigurationError(
                "executor", type(self).__name__, "one that can run tests, such as SandboxExecutor"
            )
        inputs: dict[str, Any] = {
            "files": program.files,
            "variables": program.variables,
            "stdin": program.stdin,
        }
        return blocking(partial(self.run_tests, program.code, tests, **inputs))

    def session(self) -> Session:
        """Open a session, whose runs share a state.

        Raises:
            ConfigurationError: This executor has no sessions.
            OverloadedError: Too many are open.
        """
        raise ConfigurationError(
            "executor", type(self).__name__, "one that keeps state, such as SandboxExecutor"
        )

    answers_at_once: ClassVar[bool] = True
    """Whether `has_module` asks nobody elsewhere, so that an event loop may call it."""

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


def discard(_: Execution) -> bool:
    """Accept no outcome: as `check` of a run it leaves the state as it is."""
    return False


class Session(Runner, Closing, ABC):
    """Runs that share variables, imports, files and the working directory. It is a context manager.

    Each run either succeeds and commits, or leaves the state unchanged. A session is used by one run at a
    time; sessions never see each other. Cancelling a run ends the session. A session that has ended, or is busy, raises
    `SessionError`.

    Attributes:
        has_lost_threads: Whether libraries with threads of their own, as polars, may not work any more, as a failed run was
            undone: a fork has none of the threads.
    """

    has_lost_threads: bool = False
    undoes_runs: bool = True

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether it can be used; a session that was idle for too long has ended."""

    def check_size(self, size: int) -> None:
        """Raise `InputError` if a run cannot take files of so many bytes."""

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
