"""The promise of a place where code runs."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from code_chains.errors import ConfigurationError
from code_chains.state import Execution

__all__ = ["Executor", "Limits", "Session"]

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True)
class Limits:
    """What one run may use. Sizes are bytes, or text such as `"512M"` (K, M and G are powers of 1024).

    Attributes:
        seconds: Wall-clock seconds of the program.
        memory: Memory of the program and all its processes together.
        output: Bytes kept of standard output, and as many of standard error; a flood ends the run.
        processes: Processes and threads at one time.
        open_files: Files, pipes and sockets that one process may have open.
        disk: Bytes the program may write to its working directory, `/tmp` and `/dev/shm` together.
        files: Files and directories it may make.
        artifacts: Bytes of files and figures that are taken out of a run.

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

    def __post_init__(self) -> None:
        if (
            isinstance(self.seconds, bool)
            or not isinstance(self.seconds, int | float)
            or not 0 < self.seconds <= 86_400
        ):
            raise ConfigurationError(
                "Limits.seconds", self.seconds, "a number of seconds, greater than 0 and at most a day"
            )
        for name in ("processes", "files", "open_files"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 1_000_000:
                raise ConfigurationError(f"Limits.{name}", value, "a whole number from 1 to a million")
        for name in ("memory", "output", "disk", "artifacts"):
            _bytes(f"Limits.{name}", getattr(self, name))

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
    def disk_bytes(self) -> int:
        """The limit of disk in bytes."""
        return _bytes("Limits.disk", self.disk)


def _bytes(name: str, size: int | str) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?\s*", str(size).upper().replace("IB", "B"))
    amount = int(float(match[1]) * _UNITS[match[2]]) if match and not isinstance(size, bool) else 0
    if not 0 < amount <= 1 << 40:
        raise ConfigurationError(name, size, 'a number of bytes, or a size such as "512M" or "1G", at most "1024G"')
    return amount


class Closing:
    """What is closed on leaving a `with` block."""

    def close(self) -> None:
        """Give back what is held; closing twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Executor(Closing, ABC):
    """A place where code runs.

    An executor is a context manager; `close` gives back what it holds. It may be used from several threads and tasks at
    once. Anything a program does, down to killing itself, comes back as an `Execution`; only a broken place raises.

    Attributes:
        language: What programs are written in.
        guidance: What a model is told about this place: languages, libraries, what is given how.
    """

    language: str = "python"
    guidance: str = ""

    def __init__(self, *, limits: Limits | None = None) -> None:
        if limits is not None and not isinstance(limits, Limits):
            raise ConfigurationError("limits", limits, "a Limits, e.g. Limits(seconds=10, memory='512M')")
        self.limits = limits or Limits()

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What tells its runs from those of other places: what was asked for when it was made."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    @abstractmethod
    def run(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """Run a program to its end.

        Args:
            code: The Python source.
            files: `{name in the working directory: path on this machine}`; the program gets read-only copies.
            variables: `{name: value}` that exist when the program starts: JSON values, and where a place can take them,
                NumPy arrays and pandas, polars or Arrow tables.

        Raises:
            InputError: A file or variable cannot be used.
            ExecutorError: The place broke.
            OverloadedError: More is asked for at once than the place can do; nothing was run.
            IsolationError: The isolation that was asked for cannot be given; nothing was run.
        """

    @abstractmethod
    async def arun(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """Like `run`, without blocking the event loop. Cancelling kills the program and everything it started."""

    def examine(
        self,
        code: str,
        tests: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> tuple[Execution, Execution]:
        """Run tests against a program that can neither read nor patch them.

        Both run in boxes of their own. The tests use the program's names as if they were theirs: functions are called in the
        program's box, and only data comes back. An object of the program's own classes that a function gave is never equal
        to a plain value, whatever it says itself. Tests hold a stand-in of it: they may call its methods and look at its
        attributes, while `type`, `hasattr`, `callable` and `inspect` see the stand-in. Each box has files of its own.

        Args:
            code: The Python source of the program.
            tests: The Python source of the tests, usually `assert` statements.
            files: Given to both, as copies of their own.
            variables: Given to both.

        Returns:
            How the program ended, and how the tests did. The program holds if both are ok.

        Raises:
            ConfigurationError: This place cannot keep them apart.
        """
        raise ConfigurationError("executor", self, "one that can run tests, such as SandboxExecutor")

    async def aexamine(
        self,
        code: str,
        tests: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> tuple[Execution, Execution]:
        """Like `examine`, without blocking the event loop."""
        return self.examine(code, tests, files=files, variables=variables)

    def session(self) -> Session:
        """A session, whose runs share a state.

        Raises:
            ConfigurationError: This place keeps no state.
            OverloadedError: There are too many.
        """
        raise ConfigurationError("executor", self, "one that keeps state, such as SandboxExecutor")

    def warm(self) -> None:
        """Begin what the first run would have to wait for, without waiting for it."""

    def check_room(self) -> None:
        """See whether a run would be refused now, before anything is spent on its program; no place is taken.

        Raises:
            OverloadedError: More is asked for at once than the place can do.
        """

    def drain(self, seconds: float = 30.0) -> bool:
        """Refuse further runs, let those end that were accepted, and close: what to do when the app is to end.

        It blocks; on an event loop use `asyncio.to_thread`. A place that does not know what runs in it closes at once.

        Args:
            seconds: How long to wait; what still runs then is killed.

        Returns:
            Whether all had ended by then.
        """
        self.close()
        return True

    def close(self) -> None:
        """Give back what the executor holds. A closed executor refuses to run; closing twice is fine."""


class Session(Closing, ABC):
    """Runs that share variables, imports, files and the working directory. It is a context manager.

    Each run either succeeds and commits, or leaves the state exactly as it was. A session is used by one run at a time, and
    sessions never see each other.
    """

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether it can be used; one that was idle for too long has ended."""

    @abstractmethod
    def run(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        check: Callable[[Execution], object] | None = None,
    ) -> Execution:
        """Run a program in the state that the runs before left.

        Args:
            code: The Python source.
            files: See `Executor.run`.
            variables: See `Executor.run`.
            check: Says of a run that ended well whether its outcome is accepted; if not, the state is rolled back and the
                status becomes `error`.

        Raises:
            InputError: A file or variable cannot be used; the state is as it was.
            SessionError: The session has ended, or is busy.
        """

    @abstractmethod
    async def arun(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        check: Callable[[Execution], object] | None = None,
    ) -> Execution:
        """Like `run`, without blocking the event loop. Cancelling ends the session."""

    @abstractmethod
    def rollback(self) -> None:
        """Return to the state before the last run that ended well."""

    @abstractmethod
    def checkpoint(self, name: str = "checkpoint") -> str:
        """Hold the state as it is now under a name."""

    @abstractmethod
    def restore(self, name: str = "checkpoint") -> None:
        """Return to a checkpoint."""

    @abstractmethod
    def close(self) -> None:
        """End it."""
