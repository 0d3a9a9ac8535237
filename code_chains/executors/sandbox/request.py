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
from typing import Any, BinaryIO

from code_chains.errors import ExecutorError, InputError
from code_chains.executors.guest.wire import MAX_DESCRIPTORS
from code_chains.executors.limits import Limits
from code_chains.executors.runner import Closing, Program
from code_chains.executors.sandbox.fork import Fork
from code_chains.executors.sandbox.libraries import imported_libraries
from code_chains.executors.sandbox.tables import label_of, write_table
from code_chains.executors.sandbox.tool_server import ToolServer, describe_tools
from code_chains.executors.values import check_variables, pack_value, transfer_kind
from code_chains.inputs import VARIABLES_REMEDY, check_code, files_on_disk
from code_chains.state import Execution

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

    Raises:
        InputError: An input is invalid.
        ExecutorError: This process has too many files open.
    """

    def __init__(self, program: Program, limits: Limits, *, is_harness: bool = False) -> None:
        self._stack, self._channel, self._deadline = ExitStack(), list[int](), program.deadline
        self._limits, self._calls = limits, program.tool_calls
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
            self._tables = [
                self._memory_file(partial(write_table, kind, values[name])) for name, kind in tables.items()
            ]
            body = {
                "code": code,
                "is_harness": is_harness,
                "tools": describe_tools(self._calls, values, limits),
                "return_value": program.return_value and not is_harness,
                "stdin": program.stdin,
                "variables": packed,
                "tables": {
                    name: {"kind": kind, "label": label_of(kind, values[name])}
                    for name, kind in tables.items()
                },
            }
            self._body = self._memory_file(lambda target: target.write(json.dumps(body).encode()))
            with files_on_disk(program.files) as paths:
                self.files: dict[str, int] = {name: self._open(name, path) for name, path in paths.items()}
            if self._calls is not None:
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
        """How long the host may work on calls of the program, during which its clock stands still."""
        return min(self._calls.max_busy_seconds, MAX_EXTRA_SECONDS) if self._calls else 0.0

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
        self._close_channel()
        self._stack.close()
