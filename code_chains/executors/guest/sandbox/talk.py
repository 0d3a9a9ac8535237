"""What a program in a third-party sandbox and the host, which can only run commands there, say to each other during a run.

Each command of the host waits for what there is to tell: what the program wrote to its channels, or printed. Another one,
meanwhile, brings what the host says.
"""

from __future__ import annotations

import os
import time
from base64 import b64encode
from collections.abc import Callable

from ..wire import Json

TELL_INTERVAL_S = 0.1
"""Time for which output is gathered."""
MAX_WAIT_S = 15.0
"""Time after which a command answers that there was nothing; services end those that take long."""
MAX_SAID_BYTES = 1 << 20
"""What waits for the host; a program that says more has to wait."""
READ_BYTES = 1 << 16

Answer = Callable[[Json], None]


class Talk:
    """The conversation of one run.

    Args:
        channels: How many pairs of pipes the program has: for its tools, and for the tests that call it.
        seconds: The program's limit of time. What the host takes to answer does not count.
        extra_seconds: How long that may be altogether.

    Attributes:
        theirs: The program's ends, for reading and writing by turns; `start` closes them.
    """

    def __init__(self, channels: int, seconds: float, extra_seconds: float) -> None:
        self._seconds, self.extra_seconds = seconds, extra_seconds
        self.theirs: list[int] = []
        self._from_program, self._to_program = dict[int, int](), dict[int, int]()
        for channel in range(channels):
            program_in, self._to_program[channel] = os.pipe()
            ours, program_out = os.pipe()
            self._from_program[ours] = channel
            self.theirs += [program_in, program_out]
            os.set_blocking(self._to_program[channel], False)
        self._inbox = {channel: bytearray() for channel in range(channels)}
        self._is_ending = set[int]()
        self._said = {channel: bytearray() for channel in range(channels)}
        self._ended = list[int]()
        self._text = ""
        self._answer: Answer | None = None
        self._started_at = self._told_at = time.monotonic()
        self._wait_s = 0.0
        """How long the current command waits: the first one says that the program has begun, so that it can be spoken to."""
        self._silent_since: float | None = None
        self._spent_waiting = 0.0

    def start(self) -> None:
        """Begin, once the program has its ends."""
        while self.theirs:
            os.close(self.theirs.pop())
        self._started_at = time.monotonic()

    @property
    def descriptors(self) -> list[int]:
        """What to watch for reading."""
        is_full = sum(map(len, self._said.values())) >= MAX_SAID_BYTES
        return [] if is_full else [*self._from_program]

    @property
    def is_pressing(self) -> bool:
        """Whether the program has not taken yet what the host has said."""
        return any(self._inbox.values())

    @property
    def is_overdue(self) -> bool:
        """Whether the program has used its time, without what the host took to answer."""
        now = time.monotonic()
        waiting = self._spent_waiting + (0.0 if self._silent_since is None else now - self._silent_since)
        return now - self._started_at - min(waiting, self.extra_seconds) > self._seconds

    def read(self, ready: set[int]) -> None:
        """Take in what the program has written."""
        for descriptor in ready & set(self._from_program):
            channel = self._from_program[descriptor]
            data = os.read(descriptor, READ_BYTES)
            self._said[channel] += data
            if not data:
                self._ended.append(channel)
                del self._from_program[descriptor]
                os.close(descriptor)

    def hear(self, channel: int, data: bytes, *, is_end: bool) -> None:
        """Pass on what the host says."""
        if self._silent_since is not None:
            self._spent_waiting += time.monotonic() - self._silent_since
            self._silent_since = None
        if channel in self._to_program:
            self._inbox[channel] += data
            if is_end:
                self._is_ending.add(channel)
            self.write()

    def write(self) -> None:
        """Write what the program can take."""
        for channel, descriptor in [*self._to_program.items()]:
            inbox = self._inbox[channel]
            try:
                if inbox:
                    del inbox[: os.write(descriptor, inbox[:READ_BYTES])]
            except BlockingIOError:
                continue
            except OSError:  # It has closed its end.
                inbox.clear()
                self._is_ending.add(channel)
            if channel in self._is_ending and not inbox:
                del self._to_program[channel]
                os.close(descriptor)

    def listen(self, answer: Answer) -> None:
        """Note a command that waits for what there is to tell."""
        if self._answer is not None:
            self._tell()
        self._answer, self._asked_at = answer, time.monotonic()

    def step(self, text: str) -> None:
        """Tell what there is, with what was printed since the last time."""
        self.write()
        self._text += text
        now = time.monotonic()
        has_said = any(self._said.values()) or bool(self._ended)
        is_due = bool(self._text) and now - self._told_at >= TELL_INTERVAL_S
        if self._answer is not None and (has_said or is_due or now - self._asked_at >= self._wait_s):
            self._tell()

    def _tell(self) -> None:
        said = {str(channel): b64encode(data).decode() for channel, data in self._said.items() if data}
        report: Json = {"goes_on": True, "printed": self._text, "said": said, "ended": self._ended}
        if said:
            self._silent_since = time.monotonic()
        answer, self._answer = self._answer, None
        self._text, self._ended = "", []
        for data in self._said.values():
            data.clear()
        self._told_at, self._wait_s = time.monotonic(), MAX_WAIT_S
        assert answer is not None
        answer(report)

    def take_answer(self) -> Answer | None:
        """Return the command that waits, if there is one, to tell it how the run ended."""
        answer, self._answer = self._answer, None
        return answer

    def close(self) -> None:
        """Close all that is open."""
        for descriptor in (*self.theirs, *self._from_program, *self._to_program.values()):
            os.close(descriptor)
        self.theirs.clear()
        self._from_program.clear()
        self._to_program.clear()
