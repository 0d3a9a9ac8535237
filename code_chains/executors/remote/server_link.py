"""The server of runs in a third-party sandbox, `guest.sandbox.session_server`: commands start it, and ask it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import shlex
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from code_chains.errors import ExecutorError
from code_chains.executors.guest.reports import sign
from code_chains.executors.limits import Limits
from code_chains.executors.remote.protocol_sandbox import GRACE_S, NO_FILES, ProtocolSandbox, RunFolder
from code_chains.executors.remote.server import SERVE, reply_token, server_bundle
from code_chains.state import Isolation

RUN_GRACE_S = 20.0
"""Seconds that a run may take in the sandbox besides its program, as files are copied and processes ended."""
MAX_INLINE_BYTES = 16_384
"""Larger requests are uploaded, as commands have a limit."""
_READ_BYTES = 1 << 16
_ASK = f"""
import base64, socket, sys
channel = socket.socket(socket.AF_UNIX)
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
        self._numbers = itertools.count(1)

    def start(self) -> Isolation:
        """Start it; return what the probe found.

        Raises:
            ExecutorError: It did not start.
            IsolationError: Something required is open.
        """
        bundle = server_bundle(self._limits, self._key, session_timeout=self._timeout)
        found, response = self._sandbox.launch(self.folder, bundle, ["-c", SERVE], RUN_GRACE_S)
        report = self._sandbox.read_report(response, reply_token(self._key, 0))
        if report is None:
            self._sandbox.check_alive(response)
        if report is None or "failed" in report:
            reason = (report or {}).get("failed") or response.output.strip()[-200:]
            raise ExecutorError(f"{self._sandbox.name} did not start the server of runs: {reason}")
        return found

    def ask(self, request: Mapping[str, Any], bundle: bytes = b"") -> dict[str, Any]:
        """Return the reply to a request; `{}` if the server ended meanwhile.

        Raises:
            LostServerError: It is not there.
            ExecutorError: The sandbox broke.
        """
        number, is_inline = next(self._numbers), len(bundle) <= MAX_INLINE_BYTES
        self._sandbox.start()  # One that has ended is replaced, which ends this server.
        if not is_inline:
            self._sandbox.upload([(f"{self.folder.path}/{number}.zip", bundle)])
        command = self._command(number, request, bundle if is_inline else None, bundle)
        response = self._sandbox.execute(command, self._limits.seconds + RUN_GRACE_S)
        if response.exit_code == NO_FILES:
            raise LostServerError(was_never_there=number == 1)
        report = self._sandbox.read_report(response, reply_token(self._key, number))
        if report is None:
            self._sandbox.check_alive(response)
        if report is not None and "incomplete" in report:
            raise ExecutorError(f"In {self._sandbox.name}, an upload was not complete.", is_retryable=True)
        return report or {}

    def _command(self, number: int, request: Mapping[str, Any], body: bytes | None, bundle: bytes) -> str:
        """Return the command that hands a request over."""
        details = {"number": number, "is_inline": body is not None, "bundle": sha256(bundle).hexdigest()}
        text = json.dumps({**request, **details})
        arguments = [text, sign(self._key.encode(), text), b64encode(body or b"").decode()]
        ask = shlex.join(["python3", "-I", "-c", _ASK, *arguments])
        return f"cd {self.folder.path} 2>/dev/null || exit {NO_FILES}; exec {ask}"

    def close(self) -> None:
        """End it, and remove its folder."""
        close = self._command(next(self._numbers), {"op": "close"}, b"", b"")
        # The server has removed its folder; if it is gone itself, somebody else must.
        path = self.folder.path
        command = f"({close}) >/dev/null; chmod -R u+rwX {path} 2>/dev/null; rm -rf {path}"
        with contextlib.suppress(ExecutorError):
            self._sandbox.execute(command, GRACE_S + RUN_GRACE_S)

    def converse(
        self,
        request: Mapping[str, Any],
        bundle: bytes,
        channels: Sequence[Channel],
        *,
        extra_seconds: float,
        take_output: Callable[[str], object],
    ) -> dict[str, Any]:
        """Run a program that calls tools, is called by tests, or is watched; return the report of its end.

        Args:
            request: What the server is asked.
            bundle: The program.
            channels: What it is connected to; the pipes are closed.
            extra_seconds: How long it may wait for answers, besides its own time.
            take_output: Takes what it prints meanwhile.
        """
        outgoing = {str(number): channel.outgoing for number, channel in enumerate(channels)}
        incoming = {number: channel.incoming for number, channel in enumerate(channels)}
        talk = {"channels": len(channels), "extra_seconds": extra_seconds}
        try:
            # It answers once the program has begun, and can be spoken to.
            report = self.ask({**request, "talk": talk}, bundle)
            while incoming and report.get("goes_on") is True:
                speaker = partial(self._say_all, *incoming.popitem())
                threading.Thread(target=speaker, daemon=True).start()
            while report.get("goes_on") is True:
                take_output("".join([report["printed"]]))
                for number, data in report["said"].items():
                    _write_all(outgoing.get(number, -1), b64decode(data))
                for ended in report["ended"]:
                    _close(outgoing.pop(str(ended), -1))
                report = self.ask({"op": "listen"})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ExecutorError(f"{self._sandbox.name} returned a malformed report.") from error
        finally:
            for descriptor in (*outgoing.values(), *incoming.values()):
                _close(descriptor)
        return report

    def _say_all(self, channel: int, incoming: int) -> None:
        """Pass on what comes for a program, until there is no more or it has ended."""
        is_end = False
        try:
            while not is_end:
                data = os.read(incoming, _READ_BYTES)
                is_end = not data
                self.ask({"op": "say", "channel": channel, "is_end": is_end}, data)
        except (ExecutorError, OSError):
            return  # The run has ended, or ends for the same reason.
        finally:
            _close(incoming)


def _write_all(descriptor: int, data: bytes) -> None:
    """Write to somebody who may have gone."""
    with contextlib.suppress(OSError):
        view = memoryview(data)
        while view and descriptor >= 0:
            view = view[os.write(descriptor, view) :]


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)
