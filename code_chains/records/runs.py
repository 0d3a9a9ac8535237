"""Records of runs: how a program ended, what it made and called, and what isolated it."""

from __future__ import annotations

import os
import signal
from base64 import b64decode, b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

from pydantic import JsonValue

from code_chains.errors import CodeChainsError, InputError
from code_chains.records.filenames import numbered_names, safe_name
from code_chains.records.record import Record, resolve_types
from code_chains.records.screen import as_shown

Status = Literal[
    "ok",
    "error",
    "timeout",
    "memory",
    "output_limit",
    "process_limit",
    "disk_limit",
    "file_limit",
    "killed",
    "refused",
]
CallStatus = Literal["ok", "error", "refused", "timeout", "cancelled"]
ToolEffect = Literal["pure", "read_only", "other"]
"""What a tool does besides returning a value: nothing, and the same arguments always give the same (`pure`); nothing
(`read_only`); or anything (`other`)."""
Level = Literal["kernel", "landlock", "container", "wasm", "interpreter", "none"]
PROBED = ("filesystem", "network", "processes", "environment", "signals", "ptrace", "ipc")
"""What the probe inside a sandbox tries to reach."""


@dataclass(frozen=True)
class Isolation(Record):
    """What a probe inside the sandbox proved before the program started; not what was configured.

    Attributes:
        level: `kernel` (own namespaces and a system-call filter), `landlock` (Landlock and a system-call
            filter, in the host's namespaces), `container`, `wasm` (WebAssembly), `interpreter` or `none`.
        launcher: What built the sandbox, e.g. `bubblewrap`, `namespaces` or `none`.
        filesystem: A file of the host could neither be read nor created.
        network: A server on the host's loopback interface could not be reached.
        processes: The host's processes could not be seen or signalled.
        environment: No environment variable of the host was inherited.
        signals: No process of the host could be sent a signal.
        ptrace: No process of the host could be inspected.
        ipc: System V shared memory of the host could not be attached.
        layers: Kernel mechanisms in force, e.g. `("namespaces", "seccomp", "landlock", "rlimits")`; `user`
            means that the program runs as another user than the caller.
    """

    level: Level
    launcher: str
    filesystem: bool = False
    network: bool = False
    processes: bool = False
    environment: bool = False
    signals: bool = False
    ptrace: bool = False
    ipc: bool = False
    layers: tuple[str, ...] = ()

    @property
    def open(self) -> tuple[str, ...]:
        """Names of what the probe found open."""
        return tuple(name for name in PROBED if not getattr(self, name))


@dataclass(frozen=True)
class ErrorReport(Record):
    """Why a program failed.

    Attributes:
        type: Name of the exception, e.g. `ZeroDivisionError`, or of another cause, e.g. `Timeout`.
        message: Its text.
        line: Line of the program that failed, from 1; None if there is none.
        traceback: Frames of the program only, as Python prints them.
        locals: Variables of the failing frame with short reprs.
        hint: What exists instead of what was missing: close names, columns, modules or files.
    """

    type: str
    message: str
    line: int | None = None
    traceback: str = ""
    locals: dict[str, str] = field(default_factory=dict)
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True)
class Artifact(Record):
    """A file or figure that a program made.

    Attributes:
        name: Path relative to the working directory of the program.
        media_type: E.g. `image/png`.
        base64: The content, as JSON has it.
    """

    name: str
    media_type: str
    base64: str = field(repr=False)

    @classmethod
    def of(cls, name: str, media_type: str, data: bytes) -> Self:
        """Return the artifact with these bytes."""
        return cls(name, media_type, b64encode(data).decode())

    def __post_init__(self) -> None:
        # Invariant: what cannot be decoded is no artifact, whoever says so.
        object.__setattr__(self, "_data", b64decode(self.base64, validate=True))

    @property
    def data(self) -> bytes:
        """The bytes."""
        data: bytes = vars(self)["_data"]
        return data

    def save(self, path: str | os.PathLike[str] = ".") -> Path:
        """Save it, and return the path of the file. No file is ever replaced.

        Args:
            path: A new file, or an existing folder: there the file gets its own name, with a number appended if that is
                taken.

        Raises:
            InputError: The file exists, the name points outside the folder, or the file cannot be written.
        """
        target = Path(path)
        paths = (
            map(target.joinpath, numbered_names(safe_name(self.name))) if target.is_dir() else iter([target])
        )
        try:
            for candidate in paths:
                with suppress(FileExistsError):
                    return self._write(candidate)
        except OSError as error:
            raise InputError(f"{self.name!r} cannot be saved in {str(target)!r}: {error}.") from error
        raise InputError(f"{str(target)!r} exists. Choose another name, or a folder.")

    def _write(self, path: Path) -> Path:
        file = path.open("xb")
        try:
            with file:  # Closing it may write as well.
                file.write(self.data)
        except BaseException:
            with suppress(OSError):
                path.unlink(missing_ok=True)  # Nothing half-written stays.
            raise
        return path


@dataclass(frozen=True)
class DisplayData(Record):
    """How a notebook displays the value of the last expression: untrusted markup.

    Attributes:
        media_type: `text/html`, `text/markdown` or `text/x-latex`; `text/csv` for the first rows of a frame; in turns also
            `text/plain`; and for the value itself what `executors.values` reads.
        data: The markup. It may hold scripts: display HTML in a sandboxed frame alone.
    """

    media_type: str
    data: str = field(repr=False)


@dataclass(frozen=True)
class ToolCall(Record):
    """A call that a program made to a tool of the application.

    Attributes:
        name: The name of the tool.
        arguments: Its arguments; long ones are shortened.
        status: How it ended: `ok`, `error` (the tool raised an exception), `refused` (nothing was called), `timeout`, or
            `cancelled` with the run.
        summary: What it returned, or why it failed, in one short line.
        seconds: Its duration.
        effect: What the tool's metadata says about its effects: `pure`, `read_only` or `other`.
    """

    name: str
    arguments: dict[str, JsonValue]
    status: CallStatus
    summary: str = ""
    seconds: float = field(default=0.0, compare=False)
    effect: ToolEffect = "other"


@dataclass(frozen=True)
class Execution(Record):
    """The record of one run. What the program wrote into it is untrusted data.

    Attributes:
        status: How the run ended: `ok`, `error` (an exception), a limit it reached (`timeout`, `memory`,
            `output_limit`, `process_limit`, `disk_limit`, `file_limit` for open files), `killed`, or
            `refused`, which means that nothing ran.
        stdout: Standard output, truncated at the limit.
        stderr: Standard error, truncated at the limit.
        result: `repr` of the last expression's value, or of the variable `result`, as a notebook shows it.
        error: Why it failed; None if `status` is `ok`.
        artifacts: Files and figures that the program made.
        display_data: How a notebook displays `result`, e.g. a table as HTML.
        duration: Wall-clock seconds of the program itself.
        peak_memory: Largest resident memory of one process, in bytes.
        truncated: Whether output or artifacts were truncated.
        isolation: What was enforced; None if nothing ran.
        tool_calls: The calls of the application's tools, in order.
    """

    status: Status
    stdout: str = ""
    stderr: str = ""
    result: str | None = None
    error: ErrorReport | None = None
    artifacts: tuple[Artifact, ...] = ()
    display_data: tuple[DisplayData, ...] = ()
    duration: float = field(default=0.0, compare=False)
    peak_memory: int = field(default=0, compare=False)
    truncated: bool = False
    isolation: Isolation | None = None
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the program ran to its end without an error."""
        return self.status == "ok"

    @property
    def has_effects(self) -> bool:
        """Whether the program called a tool that may have changed something, so that it must not be repeated silently."""
        return any(call.effect == "other" and call.status != "refused" for call in self.tool_calls)

    @cached_property
    def output(self) -> str:
        """What a person would have seen: what was printed, then the last value as a notebook shows it, if it is new."""
        shown = as_shown(self.stdout)
        printed = shown.rstrip() if shown.strip() else ""
        if not self.result or _was_printed(self.result, printed):
            return printed
        return f"{printed}\n{self.result}" if printed else self.result

    @property
    def summary(self) -> str:
        """One line that says how the run ended."""
        if self.ok:
            return "The program ran to its end."
        return str(self.error) if self.error else f"The program ended with status {self.status}."

    def raise_for_failure(self) -> None:
        """Raise `CodeFailedError` unless the run was ok."""
        if not self.ok:
            raise CodeFailedError(self)


def _was_printed(result: str, printed: str) -> bool:
    """Return whether the last value was the last that was printed: as it is, or text without its quotation marks."""
    if f"\n{printed}".endswith(f"\n{result.rstrip()}"):
        return True
    lines = printed.rsplit("\n", result.count("\\n") + 1)[-result.count("\\n") - 1 :]
    return result[:1] in ("'", '"') and repr("\n".join(lines)) == result


class CodeFailedError(CodeChainsError, RuntimeError):
    """A program failed; raised only by `Execution.raise_for_failure`.

    Args:
        execution: The whole record of the run.
    """

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        super().__init__(execution.summary)


def signal_name(number: int) -> str:
    """Return the name of a signal, e.g. `SIGKILL` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


resolve_types(__name__)
