"""The pipes of a program, for whoever watches it: what its process reports and what it prints, read up to the limits."""

from __future__ import annotations

import codecs
import contextlib
import os
from contextlib import ExitStack
from typing import Any, Literal

from ..frames import FrameReader
from ..kernel.polling import readable

MAX_PIPE_READS = 1 << 16
"""Reads that empty any pipe: one in packet mode, as a program may put it, gives a page's worth at a time."""
READ_BYTES = 1 << 16

Violation = Literal["output", "protocol", "deadline", "timeout"]


class ProgramPipes:
    """What arrives from the program of a sandbox, which may write anything.

    Args:
        stack: Closes the ends that are read.
        writers: Gets the ends that the program's process writes to: for its report, its output and its errors.
        max_output_bytes: Limit of the bytes of each output.
        max_view_bytes: Limit of the bytes of views in a report.

    Attributes:
        open: Descriptors that may have more to read.
        probe: The report of the probe, the first frame of the program's process; None until it arrives, and empty if none
            is awaited.
        result: What the program's process reported about its run, in the next frame; None if it did not.
        violation: Why the program was cut off: too much `output`, a broken `protocol` on its result pipe, a
            `deadline` besides its own limit of time, or that limit (`timeout`), where the host measures it.
    """

    def __init__(
        self, stack: ExitStack, writers: list[int], *, max_output_bytes: int, max_view_bytes: int
    ) -> None:
        self._result, self._stdout, self._stderr = (_open_pipe(stack, writers) for _ in range(3))
        self._output = {self._stdout: bytearray(), self._stderr: bytearray()}
        self._max_output_bytes = max_output_bytes
        self._reader = FrameReader(max_view_bytes)
        self.open: set[int] = {self._result, *self._output}
        self.probe: dict[str, Any] | None = None
        self._clear()

    def _clear(self) -> None:
        self.result: dict[str, Any] | None = None
        self.violation: Violation | None = None
        for output in self._output.values():
            output.clear()
        self._taken, self._decoder = 0, codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def stdout(self) -> str:
        """What was printed to standard output."""
        return self._output[self._stdout].decode(errors="replace")

    @property
    def stderr(self) -> str:
        """What was printed to standard error."""
        return self._output[self._stderr].decode(errors="replace")

    @property
    def is_over(self) -> bool:
        """Whether the program has reported its result, or was cut off."""
        return self.violation is not None or self.result is not None

    @property
    def has_ended_early(self) -> bool:
        """Whether the program's process ended, or broke the protocol, before the probe reported."""
        return self.probe is None and self._result not in self.open

    def begin(self) -> None:
        """Prepare for the next run: discard the last one's result and output, also what is left in the pipes."""
        # Invariant: nothing runs in a session between its runs, so nothing writes while the pipes are drained, and nothing
        # that is left can be taken for the report of the next program.
        emptied = [_emptied(descriptor) for descriptor in (self._result, *self._output)]
        self._reader.clear()
        self.open.add(self._result)
        self._clear()
        if not all(emptied):
            self.open.discard(self._result)
            self.cut_off("protocol")

    def read(self, descriptor: int) -> None:
        """Take in what has arrived on an open descriptor, up to the limits."""
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self.open.discard(descriptor)
        if descriptor == self._result:
            self._read_messages(data)
            return
        output = self._output[descriptor]
        room = self._max_output_bytes - len(output)
        output += data[:room]
        if len(data) > room:
            self.cut_off("output")

    def _read_messages(self, data: bytes) -> None:
        """Parse frames of the program's process; after its result, or a broken one, nothing more is read."""
        for message in self._reader.feed(data):
            if self.probe is None:
                self.probe = message
            elif self.result is None:
                self.result = message
        if self._reader.garbled:
            self.cut_off("protocol")
        if self._reader.garbled or self.result is not None:
            self.open.discard(self._result)

    def cut_off(self, violation: Violation) -> None:
        """Note a violation; the limit of output is reported first, whatever else is wrong."""
        self.violation = "output" if "output" in (violation, self.violation) else violation

    def take_stdout(self) -> str:
        """Return what was printed to standard output since the last call, without an unfinished character at its end."""
        data = bytes(self._output[self._stdout][self._taken :])
        self._taken += len(data)
        return self._decoder.decode(data)

    def drain(self) -> None:
        """Read what was printed before the program reported its end."""
        for descriptor, output in self._output.items():
            size = -1
            while descriptor in self.open and size != len(output) and self.violation != "output":
                size = len(output)
                self.read(descriptor)

    def drain_result(self) -> None:
        """Read what the program's process reported before it ended."""
        for _ in range(MAX_PIPE_READS):
            if self._result not in self.open or not readable([self._result], 0):
                break
            self.read(self._result)


def _emptied(descriptor: int) -> bool:
    """Discard what a pipe holds; return whether there is nothing more."""
    with contextlib.suppress(BlockingIOError):
        return any(not os.read(descriptor, READ_BYTES) for _ in range(MAX_PIPE_READS))
    return True


def _open_pipe(stack: ExitStack, writers: list[int]) -> int:
    read, write = os.pipe()
    stack.callback(os.close, read)
    os.set_blocking(read, False)
    writers.append(write)
    return read
