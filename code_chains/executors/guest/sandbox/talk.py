"""What a program in a third-party sandbox and the host, which can only run commands there, say to each other during a run.

Each command of the host waits for what there is to tell: what the program wrote to its channels, or printed. Another one,
meanwhile, brings what the host says.
"""

from __future__ import annotations

import json
import os
import time
from base64 import b64encode
from collections.abc import Callable

from ..wire import Json

TELL_INTERVAL_S = 0.1
"""Time for which output is gathered."""
MAX_SAID_BYTES, MAX_TEXT_CHARS, MAX_TEXT_BYTES = 8192, 2048, 4096
"""What one answer tells at most: longer ones would be in a file, which the program could replace while it runs."""
MAX_INBOX_BYTES = 1 << 20
"""What may wait to be read by the program; the host says no more until there is room."""

Answer = Callable[[Json], None]


class Talk:
    """The conversation of one run.

    Args:
        run: The number of the request that runs the program.
        channels: How many pairs of pipes the program has: for its tools, and for the tests that call it.
        extra_seconds: How long the host may take to answer, besides the program's own time, which the host measures.

    Attributes:
        theirs: The program's ends, for reading and writing by turns; `start` closes them.
        expired_at: When the host said that the program's time is spent.
    """

    def __init__(self, run: int, channels: int, extra_seconds: float) -> None:
        self.run: int = run
        self.extra_seconds: float = extra_seconds
        self.expired_at: float | None = None
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
        self._said: tuple[int, bytes] | None = None
        self._ended = list[int]()
        self._text = ""
        self._answer: Answer | None = None
        self._due_at = self._told_at = self._listens_since = 0.0

    def start(self) -> None:
        """Begin, once the program has its ends."""
        while self.theirs:
            os.close(self.theirs.pop())

    @property
    def descriptors(self) -> list[int]:
        """What to watch for reading: nothing while something waits to be told."""
        return [*self._from_program] if self._said is None else []

    @property
    def is_pressing(self) -> bool:
        """Whether the program has not taken yet what the host has said."""
        return any(self._inbox.values())

    @property
    def has_room(self) -> bool:
        """Whether the host may say more."""
        return sum(map(len, self._inbox.values())) < MAX_INBOX_BYTES

    def read(self, ready: set[int]) -> None:
        """Take in what the program has written on one of its channels."""
        descriptor = next(iter(ready.intersection(self.descriptors)), None)
        if descriptor is None:
            return
        channel = self._from_program[descriptor]
        if data := os.read(descriptor, MAX_SAID_BYTES):
            self._said = channel, data
            return
        self._ended.append(channel)
        del self._from_program[descriptor]
        os.close(descriptor)

    def hear(self, channel: int, data: bytes, *, is_end: bool) -> None:
        """Pass on what the host says."""
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
                    del inbox[: os.write(descriptor, inbox[: 1 << 16])]
            except BlockingIOError:
                continue
            except OSError:  # It has closed its end.
                inbox.clear()
                self._is_ending.add(channel)
            if channel in self._is_ending and not inbox:
                del self._to_program[channel]
                os.close(descriptor)

    def listen(self, answer: Answer, wait: float) -> None:
        """Note a command that waits for what there is to tell, for at most some seconds."""
        if self._answer is not None:
            self._tell()
        self._answer, self._listens_since = answer, time.monotonic()
        self._due_at = self._listens_since + wait

    def step(self, text: str) -> None:
        """Tell what there is, with what was printed since the last time."""
        self.write()
        self._text += text
        now = time.monotonic()
        has_said = self._said is not None or bool(self._ended)
        has_text = bool(self._text) and now - self._told_at >= TELL_INTERVAL_S
        if self._answer is not None and (has_said or has_text or now >= self._due_at):
            self._tell()

    def _tell(self) -> None:
        channel, data = self._said or (0, b"")
        said = [channel, b64encode(data).decode()]
        size = MAX_TEXT_CHARS
        while len(json.dumps(self._text[:size])) > MAX_TEXT_BYTES:
            size //= 2
        text, self._text = self._text[:size], self._text[size:]
        waited = time.monotonic() - self._listens_since
        report: Json = {
            "goes_on": True,
            "printed": text,
            "said": said,
            "ended": self._ended,
            "waited": waited,
        }
        answer, self._answer = self._answer, None
        self._said, self._ended, self._told_at = None, [], time.monotonic()
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
