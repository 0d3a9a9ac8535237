"""What goes into a box: code, variables and files, as descriptors."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, BinaryIO

from code_chains.errors import ExecutorError, InputError
from code_chains.executors.base import Closing
from code_chains.executors.inside.wire import DESCRIPTORS
from code_chains.executors.pool import Fork
from code_chains.inputs import check_files, check_variables, table_kind

__all__ = ["Request"]


class Request(Closing):
    """A run's code, variables and files, checked and opened before anything starts.

    Args:
        code: The source.
        files: `{name: path}`.
        variables: `{name: value}`.
        asks: Whether these are tests, which call the program at the other end of their line.

    Raises:
        InputError: Something of it cannot be used.
        ExecutorError: This process may open nothing more.
    """

    def __init__(
        self,
        code: str,
        files: Mapping[str, Any] | None,
        variables: Mapping[str, Any] | None,
        *,
        asks: bool = False,
    ) -> None:
        self._stack, self._line = ExitStack(), list[int]()
        try:
            if not isinstance(code, str):
                raise InputError(f"Code must be text, not {type(code).__name__}.")
            values = check_variables(variables)
            tables = {name: kind for name, value in values.items() if (kind := table_kind(value))}
            if len(tables) > DESCRIPTORS // 2:
                raise InputError(
                    f"At most {DESCRIPTORS // 2} arrays and frames can be given; {len(tables)} were. Use files."
                )
            self._tables = [self._hold(partial(WRITERS[kind], values[name])) for name, kind in tables.items()]
            body = {
                "code": code,
                "asks": asks,
                "variables": {name: value for name, value in values.items() if name not in tables},
                "tables": {name: {"kind": kind} for name, kind in tables.items()},
            }
            self._body = self._hold(partial(_json, body))
            self.files = {name: self._open(name, path) for name, path in check_files(files).items()}
        except OSError as error:
            self.close()
            raise ExecutorError(f"The request cannot be made here: {error}.", is_retryable=True) from error
        except BaseException:
            self.close()
            raise

    def connect(self, incoming: int, outgoing: int) -> None:
        """Give the program a line to another one: descriptors to read from and write to, which are closed once sent."""
        self._line = [incoming, outgoing]

    def _hold(self, write: Callable[[BinaryIO], object]) -> int:
        """A file without a name with what is written into it."""
        descriptor = os.memfd_create("request") if hasattr(os, "memfd_create") else -1
        made = tempfile.TemporaryFile() if descriptor < 0 else open(descriptor, "w+b")  # noqa: SIM115 - the stack closes it
        file: BinaryIO = self._stack.enter_context(made)
        write(file)
        file.flush()
        return file.fileno()

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
        names, room = list(self.files), sum(os.fstat(descriptor).st_size for descriptor in self.files.values())
        for start in range(0, len(names), DESCRIPTORS // 2):
            some = names[start : start + DESCRIPTORS // 2]
            sent = {"op": "files", "names": some, "room": 0 if start else room, "cell": message["op"] == "cell"}
            fork.say(sent, [self.files[name] for name in some])
        fork.say(message, [self._body, *self._tables, *self._line])
        self._hang_up()

    def _hang_up(self) -> None:
        """Leave the line to those it was given to: it ends when they do."""
        while self._line:
            os.close(self._line.pop())

    def close(self) -> None:
        """Let go of the descriptors; what was sent has its own."""
        self._hang_up()
        self._stack.close()


def _json(value: Any, target: BinaryIO) -> None:
    target.write(json.dumps(value).encode())


def _numpy(value: Any, target: BinaryIO) -> None:
    import numpy

    try:
        numpy.save(target, value, allow_pickle=False)
    except ValueError as error:
        raise InputError(
            f"An array of Python objects cannot be given: {error}. Make it one of numbers or text."
        ) from error


def _arrow(value: Any, target: BinaryIO) -> None:
    try:
        import pyarrow
    except ImportError:
        raise InputError("Frames are handed over as Arrow, which is not installed: pip install pyarrow.") from None
    try:
        table = value if isinstance(value, pyarrow.Table) else value.to_arrow() if hasattr(value, "to_arrow") else None
        table = pyarrow.Table.from_pandas(value) if table is None else table
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"A frame cannot be handed over as Arrow: {error}.") from error
    with pyarrow.ipc.new_stream(target, table.schema) as stream:
        stream.write_table(table)


WRITERS: dict[str, Callable[[Any, BinaryIO], None]] = {
    "numpy": _numpy,
    "pandas": _arrow,
    "polars": _arrow,
    "pyarrow": _arrow,
}
