"""The server of runs in a third-party sandbox, `guest.sandbox.session_server`: commands start it, and ask it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import select
import shlex
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from code_chains.errors import ExecutorError
from code_chains.executors.guest.reports import sign
from code_chains.executors.limits import Limits
from code_chains.executors.remote.protocol_sandbox import (
    GRACE_S,
    NO_FILES,
    ProtocolSandbox,
    RunFolder,
    removal,
)
from code_chains.executors.remote.server import SERVE, server_bundle
from code_chains.executors.remote.supervised import as_text, max_report
from code_chains.records import Isolation
from code_chains.records.printable import printable

LAUNCH_REQUESTS = 3
"""Requests that a start takes."""
RUN_GRACE_S = 20.0
"""Seconds that a run may take in the sandbox besides its program, as files are copied and processes ended."""
MAX_INLINE_BYTES = 16_384
"""Larger requests are uploaded, as commands have a limit."""
_READ_BYTES = 1 << 16
_MAX_WAIT_S, _MIN_WAIT_S = 15.0, 0.5
"""Seconds for which a command waits for what there is to tell; services end those that take long."""
_MAX_ROUND_TRIP_S, _FULL_PAUSE_S = 5.0, 0.2
_ASK = f"""
import base64, socket, sys
channel = socket.socket(socket.AF_UNIX)
channel.settimeout(float(sys.argv[4]))
try:
    channel.connect("socket")
    channel.sendall("\\n".join(sys.argv[1:3]).encode() + b"\\n" + base64.b64decode(sys.argv[3]))
    channel.shutdown(socket.SHUT_WR)
except OSError:
    sys.exit({NO_FILES})
print()
while data := channel.recv(65536):
    sys.stdout.write(data.decode())
print()
"""
"""Hands a request over to the server, and prints the reply. Invariant: no file of the folder, which programs can change."""


class LostServerError(ExecutorError):
    """The server is not there: its sandbox ended it, or has ended.

    Args:
        was_never_there: Whether not even the first request reached it.

    Attributes:
        was_never_there: See above.
    """

    def __init__(self, *, was_never_there: bool) -> None:
        never, lost = (
            "its sandbox ends what a command leaves running",
            "its process was killed, or its sandbox has ended",
        )
        super().__init__(never if was_never_there else lost, is_retryable=not was_never_there)
        self.was_never_there: bool = was_never_there


class Channel(NamedTuple):
    """A pipe each way between a program in the sandbox and somebody here.

    Attributes:
        incoming: Where that is read which is for the program.
        outgoing: Where that is written which the program says.
    """

    incoming: int
    outgoing: int


class ServerLink:
    """A server of runs in a sandbox.

    Args:
        sandbox: The sandbox.
        limits: Limits of each run.
        timeout: Seconds without a run after which it ends; None if it is for one run alone.
        folder: Its folder in the sandbox; a new one by default.

    Attributes:
        folder: Its folder in the sandbox.
        round_trip: Seconds that a command takes, as it was before any program ran.
    """

    def __init__(
        self,
        sandbox: ProtocolSandbox,
        limits: Limits,
        timeout: float | None = None,
        folder: RunFolder | None = None,
    ) -> None:
        self._sandbox, self._limits, self._timeout = sandbox, limits, timeout
        self.folder: RunFolder = folder or RunFolder()
        self._key = secrets.token_hex(32)
        self._max_report = max_report(limits)
        self.round_trip: float = 0.0
        self._numbers = itertools.count(1)

    def start(self) -> Isolation:
        """Start it; return what the probe found.

        Raises:
            ExecutorError: It did not start.
            IsolationError: Something required is open.
        """
        bundle = server_bundle(self._limits, self._key, session_timeout=self._timeout)
        began = time.monotonic()
        found, response = self._sandbox.launch(self.folder, bundle, ["-c", SERVE], RUN_GRACE_S)
        self.round_trip = (time.monotonic() - began) / LAUNCH_REQUESTS
        report = self._sandbox.read_report(response, self._key, 0, self._max_report)
        if report is None:
            self._sandbox.check_alive(response)
        if report is None or "failed" in report:
            reason = printable((report or {}).get("failed") or response.output.strip()[-200:])
            raise ExecutorError(f"{self._sandbox.name} did not start the server of runs: {reason}")
        return found

    def ask(
        self, request: Mapping[str, Any], bundle: bytes = b"", number: int | None = None
    ) -> dict[str, Any]:
        """Return the reply to a request; `{}` if there was none.

        Args:
            request: What is asked.
            bundle: What belongs to it.
            number: Its number; the next one by default.

        Raises:
            LostServerError: It is not there.
            ExecutorError: The sandbox broke.
        """
        number = next(self._numbers) if number is None else number
        is_inline = len(bundle) <= MAX_INLINE_BYTES
        self._sandbox.start(self.folder)  # One that has ended is replaced, which ends this server.
        if not is_inline:
            # Invariant: a name that no program knows, where it could have put a link.
            request = {**request, "upload": f"{secrets.token_hex(8)}.zip"}
            self._sandbox.upload([(f"{self.folder.path}/{request['upload']}", bundle)])
        seconds = self._limits.seconds + RUN_GRACE_S
        command = self._command(number, request, bundle if is_inline else None, bundle, seconds)
        response = self._sandbox.execute(command, seconds)
        if response.exit_code == NO_FILES:
            raise LostServerError(was_never_there=number == 1)
        report = self._sandbox.read_report(response, self._key, number, self._max_report)
        if report is None:
            self._sandbox.check_alive(response)
        if report is not None and "incomplete" in report:
            raise ExecutorError(f"In {self._sandbox.name}, an upload was not complete.", is_retryable=True)
        return report or {}

    def _command(
        self, number: int, request: Mapping[str, Any], body: bytes | None, bundle: bytes, seconds: float
    ) -> str:
        """Return the command that hands a request over, and waits so long for the reply."""
        details = {"number": number, "is_inline": body is not None, "bundle": sha256(bundle).hexdigest()}
        text = json.dumps({**request, **details})
        arguments = [text, sign(self._key.encode(), text), b64encode(body or b"").decode(), str(seconds)]
        ask = shlex.join([self._sandbox.python, "-I", "-c", _ASK, *arguments])
        return f"cd {self.folder.path} 2>/dev/null || exit {NO_FILES}; exec {ask}"

    def close(self) -> bool:
        """End it, and remove its folder; return whether it says that it has ended everything."""
        number = next(self._numbers)
        close = self._command(number, {"op": "close"}, b"", b"", GRACE_S)
        # The server has removed its folder; if it is gone itself, somebody else must.
        command = f"({close}); {removal(self.folder)}"
        try:
            response = self._sandbox.execute(command, GRACE_S + RUN_GRACE_S)
            report = self._sandbox.read_report(response, self._key, number, self._max_report)
            return report is not None and "remains" not in report
        except ExecutorError:
            return False

    def is_there(self) -> bool:
        """Return whether the server still answers."""
        try:
            return bool(self.ask({"op": "ping"}))
        except LostServerError:
            return False

    def converse(
        self,
        request: Mapping[str, Any],
        bundle: bytes,
        channels: Sequence[Channel],
        clock: Clock,
        take_output: Callable[[str], object],
    ) -> dict[str, Any]:
        """Run a program that calls tools, is called by tests, or is watched; return the report of its end.

        Args:
            request: What the server is asked.
            bundle: The program.
            channels: What it is connected to; the pipes are closed.
            clock: Says how much of its time the program has used.
            take_output: Takes what it prints meanwhile.

        Returns:
            The report; `{}` if the program has killed the server.

        Raises:
            ExecutorError: The sandbox broke, or lost an answer.
        """
        conversation = _Conversation(self, channels, clock, self._limits, take_output)
        try:
            return conversation.hold(request, bundle, next(self._numbers))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ExecutorError(f"{self._sandbox.name} returned a malformed report.") from error
        finally:
            conversation.close()

    def give_up(self) -> None:
        """Remove the folder, upon which the server ends all that runs."""
        self.folder.is_given_up = True
        with contextlib.suppress(ExecutorError):
            self._sandbox.remove(self.folder)


class Clock:
    """How much of its time a program has used, which only the host can know: what others take does not count.

    Args:
        seconds: The program's time.
        extra_seconds: What others may take altogether.
        others: How long they have taken, in seconds.
    """

    def __init__(self, seconds: float, extra_seconds: float, others: Callable[[Clock], float]) -> None:
        self.seconds: float = seconds
        self.extra_seconds: float = extra_seconds
        self._others = others
        self.round_trip: float = _MAX_ROUND_TRIP_S
        """Seconds that a command takes, as it was before any program ran."""
        self._started: float | None = None
        self._silent_since: float | None = None
        self.silent: float = 0.0
        """Seconds between what the program said and what it was told then."""
        self.transferring: float = 0.0
        """Seconds for which commands were under way with what the program was told, and with what it had said before."""
        self._arriving = self._counted_until = 0.0

    def start(self, round_trip: float) -> None:
        """Begin to count.

        Args:
            round_trip: Seconds that a command takes.
        """
        self.round_trip = min(round_trip, _MAX_ROUND_TRIP_S)
        self._started = time.monotonic()

    def note_said(self, took: float) -> None:
        """Note that the program said something, which took so long to arrive, and may wait for an answer.

        Invariant: no moment counts twice, and none in which the program computed before it spoke.
        """
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        self._arriving += self._uncounted(max(0.0, took), now)  # Also if it is no number.

    def note_told(self, took: float) -> None:
        """Note that it was told something."""
        now = time.monotonic()
        self.transferring += self._arriving + self._uncounted(took, now)
        self._arriving = 0.0
        if self._silent_since is not None:
            self.silent += now - self._silent_since
            self._silent_since = None

    def _uncounted(self, took: float, until: float) -> float:
        """Return how much of a transfer was not counted yet: commands are under way at the same time."""
        since = max(until - min(took, self.round_trip), self._counted_until)
        self._counted_until = max(until, self._counted_until)
        return max(0.0, until - since)

    @property
    def under_way(self) -> float:
        """Seconds for which commands were under way, also with what was not answered yet."""
        return self.transferring + self._arriving

    @property
    def waiting(self) -> float:
        """Seconds that the program may have waited, that it waits now included."""
        since = self._silent_since
        return self.silent + (0.0 if since is None else time.monotonic() - since)

    @property
    def left(self) -> float:
        """Seconds that are left to the program."""
        if self._started is None:
            return self.seconds
        others = min(self._others(self), self.extra_seconds)
        return self.seconds - (time.monotonic() - self._started - others)


class _Conversation:
    """What is said during one run."""

    def __init__(
        self,
        link: ServerLink,
        channels: Sequence[Channel],
        clock: Clock,
        limits: Limits,
        take_output: Callable[[str], object],
    ) -> None:
        self._link, self._clock, self._take_output = link, clock, take_output
        self._incoming = {number: channel.incoming for number, channel in enumerate(channels)}
        self._outgoing = {number: channel.outgoing for number, channel in enumerate(channels)}
        self._left_output = limits.output_bytes
        self._run = 0
        self._failure: Exception | None = None
        self._unheard: Exception | None = None
        """What nobody was there to hear: a failure unless the run has just ended."""
        self._is_over = False
        self._took = 0.0

    def hold(self, request: Mapping[str, Any], bundle: bytes, number: int) -> dict[str, Any]:
        """Run the program to its end."""
        self._run, clock = number, self._clock
        talk = {"channels": len(self._outgoing), "extra_seconds": clock.extra_seconds}
        # It answers once the program has begun, and can be spoken to.
        report = self._link.ask({**request, "talk": talk}, bundle, number)
        clock.start(self._link.round_trip)
        while self._incoming:
            threading.Thread(target=self._say_all, args=self._incoming.popitem(), daemon=True).start()
        while report.get("goes_on") is True:
            self._check(self._failure or self._unheard)
            self._take(report)
            if self._is_overdue:
                self._link.give_up()
                return {}
            report = self._listen()
        self._is_over = True
        if not report:  # Otherwise it has ended well, whatever it was not told any more.
            self._check(self._failure)
            if self._link.is_there():
                raise ExecutorError("The service lost the answer of a run.", is_retryable=True)
        return report

    @property
    def _is_overdue(self) -> bool:
        """Whether a program goes on though its time is spent: it has stopped or killed what would end it."""
        return self._clock.left < -RUN_GRACE_S

    def _check(self, failure: Exception | None) -> None:
        """Raise if the run has no sense any more."""
        if failure is not None:
            raise failure
        self._link.folder.check()

    def _listen(self) -> dict[str, Any]:
        left = self._clock.left
        try:
            if left <= 0:
                self._ask("expire")
            began = time.monotonic()
            report = self._ask("listen", wait=min(_MAX_WAIT_S, max(left, _MIN_WAIT_S)))
            self._took = time.monotonic() - began
            return report
        except LostServerError:  # It had been there: the program has killed it.
            return {}

    def _ask(self, op: str, bundle: bytes = b"", **details: Any) -> dict[str, Any]:
        return self._link.ask({"op": op, "run": self._run, **details}, bundle)

    def _take(self, report: Mapping[str, Any]) -> None:
        text = "".join([report["printed"]])[: self._left_output]
        self._left_output -= len(text)
        if text:
            self._take_output(as_text(text))
        channel, data = report["said"]
        if data:
            said = b64decode(data)
            if channel in self._outgoing:  # Otherwise nobody hears it any more.
                self._clock.note_said(self._took - float(report["waited"]))
                self._pass_on(self._outgoing[channel], said)
        for ended in report["ended"]:
            _close(self._outgoing.pop(ended, -1))

    def _pass_on(self, descriptor: int, data: bytes) -> None:
        """Write to somebody who may have gone. Invariant: who does not read stops no clock."""
        view, room = memoryview(data), select.poll()
        room.register(descriptor, select.POLLOUT)
        with contextlib.suppress(OSError):
            while view and not self._is_overdue:
                self._check(self._failure or self._unheard)
                if room.poll(1000 * _FULL_PAUSE_S):
                    view = view[os.write(descriptor, view[: select.PIPE_BUF]) :]

    def _say_all(self, channel: int, incoming: int) -> None:
        """Pass on what comes for a program, until there is no more or it has ended."""
        data: bytes | None = None
        try:
            while data != b"" and not self._is_over:
                data = os.read(incoming, _READ_BYTES)
                if not self._is_over:
                    self._say(channel, data)
        except LostServerError as error:
            self._unheard = error if data else None
        except (ExecutorError, OSError) as error:
            if not self._is_over:  # Nobody would answer the program any more.
                self._failure = self._failure or error
                self._link.give_up()
        finally:
            _close(incoming)

    def _say(self, channel: int, data: bytes) -> None:
        began = time.monotonic()
        reply = self._ask("say", data, channel=channel, is_end=not data)
        while reply.get("is_full") is True and not self._is_over:
            time.sleep(_FULL_PAUSE_S)
            reply = self._ask("say", data, channel=channel, is_end=not data)
        if "heard" not in reply:
            raise ExecutorError("The service lost what a program was told.", is_retryable=True)
        self._clock.note_told(time.monotonic() - began)

    def close(self) -> None:
        """Close the pipes, except for those that are being read."""
        self._is_over = True
        for descriptor in (*self._outgoing.values(), *self._incoming.values()):
            _close(descriptor)
        self._outgoing.clear()
        self._incoming.clear()


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)
