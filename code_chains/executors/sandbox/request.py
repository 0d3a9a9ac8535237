"""What is sent into a sandbox: code, variables and files, as descriptors."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from code_chains.errors import ExecutorError, InputError
from code_chains.executors.guest.wire import MAX_DESCRIPTORS, WALL_FACTOR
from code_chains.executors.inputs import VARIABLES_REMEDY, check_code, files_on_disk
from code_chains.executors.limits import Limits
from code_chains.executors.runner import Closing, Program
from code_chains.executors.sandbox.fork import Fork
from code_chains.executors.sandbox.libraries import imported_libraries
from code_chains.executors.tool_calls import ToolCalls
from code_chains.executors.values import check_variables, pack_value, transfer_kind
from code_chains.records import Execution

if TYPE_CHECKING:
    from code_chains.executors.sandbox.tool_server import ToolServer

with contextlib.suppress(ImportError):  # Windows has none.
    import fcntl

F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE = 0x1, 0x2, 0x4, 0x8
MAX_TABLES = MAX_FILES_PER_MESSAGE = MAX_DESCRIPTORS // 2
MAX_EXTRA_SECONDS = 86_400


class Request(Closing):
    """The code, variables and files of a run, validated and opened before anything starts.

    Args:
        program: The program with its inputs.
        limits: The limits of the run.
        is_harness: Whether this is a test harness, which calls the program at the other end of its channel.
        is_tested: Whether it is such a program.

    Attributes:
        seconds: The limit of time.
        peer: The tests of the program, after whose end it is not waited for.
        is_closed: Whether it has ended.

    Raises:
        InputError: An input is invalid.
        ExecutorError: This process has too many files open.
    """

    def __init__(
        self, program: Program, limits: Limits, *, is_harness: bool = False, is_tested: bool = False
    ) -> None:
        self._stack, self._channel, self._deadline = ExitStack(), list[int](), program.deadline
        self._limits, self._calls = limits, program.tool_calls
        # The limits of time hold for each test; both processes have one for all of them.
        self.seconds: float = limits.seconds * (2 * WALL_FACTOR if is_harness or is_tested else 1)
        self.peer: Request | None = None
        self.is_closed = False
        self._tool_server: ToolServer | None = None
        try:
            code, values = check_code(program.code), program.variables or {}
            if not isinstance(values, Mapping):
                raise InputError(VARIABLES_REMEDY)
            packed = {
                name: pack_value(name, value) for name, value in values.items() if not transfer_kind(value)
            }
            tables = {name: kind for name, value in values.items() if (kind := transfer_kind(value))}
            check_variables({name: values[name] for name in tables})
            if len(tables) > MAX_TABLES:
                raise InputError(
                    f"At most {MAX_TABLES} arrays and frames can be passed as variables, not {len(tables)}."
                    " Pass the others as files."
                )
            imported = imported_libraries(code)
            self.imported: set[str] | None = (
                imported if imported is None or not tables else {*imported, "pandas"}
            )
            self._tables, described = self._write_tables(tables, values)
            body = {
                "code": code,
                "is_harness": is_harness,
                "seconds": limits.seconds,
                "tools": None if self._calls is None else describe_tools(self._calls, values, limits),
                "return_value": program.return_value and not is_harness,
                "stdin": program.stdin,
                "variables": packed,
                "tables": described,
            }
            self._body = self._memory_file(lambda target: target.write(json.dumps(body).encode()))
            with files_on_disk(program.files) as paths:
                self.files: dict[str, int] = {name: self._open(name, path) for name, path in paths.items()}
            if self._calls is not None:
                from code_chains.executors.sandbox.tool_server import ToolServer

                self._tool_server = self._stack.enter_context(ToolServer(self._calls, limits))
        except OSError as error:
            self.close()
            raise ExecutorError(
                f"The request could not be prepared: {error}. Try again.", is_retryable=True
            ) from error
        except BaseException:
            self.close()
            raise

    @property
    def extra_seconds(self) -> float:
        """How long the program may take beyond a run's limit: for several tests, and while the host works on its calls."""
        busy = self._calls.max_busy_seconds if self._calls else 0.0
        return min(self.seconds - self._limits.seconds + busy, MAX_EXTRA_SECONDS)

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(os.fstat(descriptor).st_size for descriptor in self.files.values())

    @property
    def has_tools(self) -> bool:
        """Whether the program may call tools."""
        return self._calls is not None

    @property
    def busy_seconds(self) -> float:
        """How long the host has worked on calls of the program."""
        return self._calls.busy_seconds if self._calls else 0.0

    def finish(self, execution: Execution) -> Execution:
        """Return the record of the run with the calls that the program made."""
        if self._calls is None:
            return execution
        self._calls.close()
        return replace(execution, tool_calls=self._calls.records)

    def seconds_left(self, limit: float) -> float:
        """Return how long to wait for the program's end, at most `limit`."""
        return max(0.0, min(limit, self._deadline - time.monotonic()))

    @property
    def is_expired(self) -> bool:
        """Whether the deadline of the program has passed."""
        return time.monotonic() >= self._deadline

    def connect(self, incoming: int, outgoing: int) -> None:
        """Connect the program to another one, by descriptors to read from and write to, which are closed once sent."""
        self._channel = [incoming, outgoing]

    def _write_tables(
        self, tables: Mapping[str, str], values: Mapping[str, Any]
    ) -> tuple[list[int], dict[str, Any]]:
        """Return the descriptors of files with the tables, and how the program reads them."""
        if not tables:
            return [], {}
        from code_chains.executors.sandbox.tables import label_of, write_table

        files = [self._memory_file(partial(write_table, kind, values[name])) for name, kind in tables.items()]
        labels = {
            name: {"kind": kind, "label": label_of(kind, values[name])} for name, kind in tables.items()
        }
        return files, labels

    def _memory_file(self, write: Callable[[BinaryIO], object]) -> int:
        """Return the descriptor of a sealed file in memory."""
        if not hasattr(os, "memfd_create"):
            file: BinaryIO = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
            write(file)
            file.flush()
            return file.fileno()
        descriptor = os.memfd_create("request", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        file = self._stack.enter_context(open(descriptor, "w+b"))  # noqa: SIM115 - the stack closes it
        write(file)
        file.flush()
        # Invariant: it is sealed, as a program could otherwise grow it and fill memory that counts for no
        # process.
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
        return descriptor

    def _open(self, name: str, path: Any) -> int:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"The file {name!r} cannot be read: {error}.") from error
        self._stack.callback(os.close, descriptor)
        return descriptor

    def send(self, fork: Fork, message: dict[str, Any]) -> None:
        """Send the files, and then the message that starts the program."""
        fork.begin()
        names, is_session, size = list(self.files), message["op"] == "cell", self.size
        for start in range(0, len(names), MAX_FILES_PER_MESSAGE):
            chunk = names[start : start + MAX_FILES_PER_MESSAGE]
            # The first message announces the size of all files.
            command = {"op": "files", "names": chunk, "size": 0 if start else size, "is_session": is_session}
            fork.send(command, [self.files[name] for name in chunk])
        tools = self._tool_server.theirs if self._tool_server else []
        message = {**message, "extra_seconds": self.extra_seconds}
        fork.send(message, [self._body, *self._tables, *tools, *self._channel])
        if self._tool_server:
            self._tool_server.start()
        self._close_channel()

    def _close_channel(self) -> None:
        """Close our copies of the channel, which is to end with the programs that use it."""
        while self._channel:
            os.close(self._channel.pop())

    def close(self) -> None:
        """Close the descriptors; the sandbox has its own."""
        self.is_closed = True
        self._close_channel()
        self._stack.close()


def describe_tools(calls: ToolCalls[Any], variables: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Return what a program is told of its tools.

    Raises:
        InputError: A variable has the name of a tool.
    """
    calls.toolbox.check_variables(variables)
    signatures = [signature.to_dict() for signature in calls.toolbox.signatures.values()]
    return {"signatures": signatures, "max_bytes": limits.tool_message_bytes}
