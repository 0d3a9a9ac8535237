"""What is sent into a sandbox: code, variables and files, as descriptors."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, BinaryIO

from code_chains.errors import ExecutorError, InputError
from code_chains.executors.base import Closing, Program
from code_chains.executors.sandbox.fork import Fork
from code_chains.executors.sandbox.inside.tables import JSON_COLUMNS, SERIES_COLUMN
from code_chains.executors.sandbox.inside.wire import MAX_DESCRIPTORS
from code_chains.inputs import check_code, check_variables, encode_value, files_on_disk, table_kind
from code_chains.inputs.variables import columns_for_json, encode_cells

with contextlib.suppress(ImportError):  # Windows has none.
    import fcntl

__all__ = ["Request"]

F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE = 0x1, 0x2, 0x4, 0x8
MAX_TABLES = MAX_FILES_PER_MESSAGE = MAX_DESCRIPTORS // 2


class Request(Closing):
    """The code, variables and files of a run, validated and opened before anything starts.

    Args:
        program: The program with its inputs.
        is_harness: Whether this is a test harness, which calls the program at the other end of its channel.

    Raises:
        InputError: An input is invalid.
        ExecutorError: This process has too many files open.
    """

    def __init__(self, program: Program, *, is_harness: bool = False) -> None:
        self._stack, self._channel, self._deadline = ExitStack(), list[int](), program.deadline
        try:
            code, values = check_code(program.code), check_variables(program.variables)
            tables = {name: kind for name, value in values.items() if (kind := table_kind(value))}
            if len(tables) > MAX_TABLES:
                raise InputError(
                    f"At most {MAX_TABLES} arrays and frames can be passed as variables, not {len(tables)}."
                    " Pass the others as files."
                )
            self._tables = [
                self._memory_file(partial(WRITERS[kind], values[name])) for name, kind in tables.items()
            ]
            body = {
                "code": code,
                "is_harness": is_harness,
                "return_value": program.return_value and not is_harness,
                "variables": {
                    name: encode_value(value) for name, value in values.items() if name not in tables
                },
                "tables": {
                    name: {"kind": kind, "label": _label(values[name])} for name, kind in tables.items()
                },
            }
            self._body = self._memory_file(partial(_write_json, body))
            with files_on_disk(program.files) as paths:
                self.files = {name: self._open(name, path) for name, path in paths.items()}
        except OSError as error:
            self.close()
            raise ExecutorError(
                f"The request could not be prepared: {error}. Try again.", is_retryable=True
            ) from error
        except BaseException:
            self.close()
            raise

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
        names, is_session = list(self.files), message["op"] == "cell"
        size = sum(os.fstat(descriptor).st_size for descriptor in self.files.values())
        for start in range(0, len(names), MAX_FILES_PER_MESSAGE):
            chunk = names[start : start + MAX_FILES_PER_MESSAGE]
            # The first message announces the size of all files.
            command = {"op": "files", "names": chunk, "size": 0 if start else size, "is_session": is_session}
            fork.send(command, [self.files[name] for name in chunk])
        fork.send(message, [self._body, *self._tables, *self._channel])
        self._close_channel()

    def _close_channel(self) -> None:
        """Close our copies of the channel, which is to end with the programs that use it."""
        while self._channel:
            os.close(self._channel.pop())

    def close(self) -> None:
        """Close the descriptors; the sandbox has its own."""
        self._close_channel()
        self._stack.close()


def _write_json(value: Any, target: BinaryIO) -> None:
    target.write(json.dumps(value).encode())


def _write_array(value: Any, target: BinaryIO) -> None:
    import numpy

    try:
        numpy.save(target, value, allow_pickle=False)
    except ValueError as error:
        raise InputError(
            f"An array of Python objects cannot be passed as a variable: {error}. Convert it to numbers or text."
        ) from error


def _write_frame(value: Any, target: BinaryIO) -> None:
    try:
        import pyarrow
    except ImportError:
        raise InputError("Frames are passed as Arrow, which is not installed: pip install pyarrow.") from None
    try:
        table = _arrow_table(value)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"A frame cannot be converted to Arrow: {error}.") from error
    with pyarrow.ipc.new_stream(target, table.schema) as stream:
        stream.write_table(table)


def _arrow_table(value: Any) -> Any:
    import pyarrow

    if isinstance(value, pyarrow.Table):
        return value
    return value.to_arrow() if hasattr(value, "to_arrow") else _pandas_table(value)


def _pandas_table(frame: Any) -> Any:
    """Return a frame as Arrow, with columns of several types as JSON text; the schema says which these are."""
    import pyarrow

    if positions := columns_for_json(frame):
        frame = frame.copy(deep=False)
    for position in positions:
        frame.isetitem(position, encode_cells(frame.iloc[:, position]))
    table = pyarrow.Table.from_pandas(frame)
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), JSON_COLUMNS: json.dumps(positions)}
    )


def _write_series(value: Any, target: BinaryIO) -> None:
    """Write a series as a frame of one column, whose name a series need not have."""
    column = value.rename(SERIES_COLUMN)
    _write_frame(column.to_frame(), target)


def _label(value: Any) -> str | int | None:
    """Return the name of a series, which JSON must have."""
    label: Any = getattr(value, "name", None)
    label = label.item() if hasattr(label, "item") else label
    if label is None or isinstance(label, str | int):
        return label
    raise InputError(
        f"A series is called {label!r}; name it with text or a number, e.g. with .rename('values')."
    )


WRITERS: dict[str, Callable[[Any, BinaryIO], None]] = {
    "numpy": _write_array,
    "pandas": _write_frame,
    "pandas_series": _write_series,
    "polars": _write_frame,
    "polars_series": _write_series,
    "pyarrow": _write_frame,
}
