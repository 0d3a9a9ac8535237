"""Sessions in third-party sandboxes and containers: a server inside holds the state; each run is a command that asks it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from code_chains.errors import ConfigurationError, ExecutorError, InputError, IsolationError, SessionError
from code_chains.executors.guest.reports import sign
from code_chains.executors.limits import Limits
from code_chains.executors.process_session import ProcessSession
from code_chains.executors.remote.protocol_sandbox import GRACE_S, NO_FILES, ProtocolSandbox, RunFolder
from code_chains.executors.remote.server import SERVE, reply_token, request_bundle, server_bundle
from code_chains.executors.runner import Program
from code_chains.executors.waiting import Operation, blocking, drive
from code_chains.state import Execution, Isolation

RUN_GRACE_S = 20.0
"""Seconds that a run may take in the sandbox besides its program, as files are copied and processes ended."""
IDLE_GRACE_S = 1.0
"""Seconds by which a session's server outlives the timeout: this side then knows of the end, and its reason, before."""
MAX_INLINE_BYTES = 16_384
"""Larger requests are uploaded, as commands have a limit."""
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


class BackendSession(ProcessSession):
    """A session of a `BackendExecutor`; made by its `session()`.

    The state is a process in the sandbox, as in a `SandboxSession`: each run is a fork of it, which replaces it if the
    program succeeded. Files are rolled back in the working directory and the folder for temporary files.

    Args:
        sandbox: The sandbox.
        limits: Limits of one run.
        timeout: Seconds without a run after which it ends.
    """

    returns_values = takes_stdin = True

    def __init__(self, sandbox: ProtocolSandbox, limits: Limits, timeout: float) -> None:
        super().__init__(limits)
        self._sandbox, self._timeout = sandbox, timeout
        self._folder, self._key = RunFolder(), secrets.token_hex(32)
        self._isolation: Isolation | None = None
        self._is_started, self._is_told = False, False
        self._used_at = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether it can be used, as far as that is known without asking the sandbox."""
        is_at_rest = self._is_started and not self._lock.locked()
        if is_at_rest and time.monotonic() - self._used_at > self._timeout:
            self._end_reason = self._end_reason or f"it was idle for {self._timeout:g} seconds"
        return self._end_reason is None

    def _operation(self, program: Program) -> Operation[Execution]:
        end = partial(self._end, "a run was interrupted (CancelledError)")
        return blocking(partial(self._run_alone, program), end)

    def _run_alone(self, program: Program) -> Execution:
        with self._exclusive():
            return self._run(program)

    def _change(self, command: dict[str, Any]) -> None:
        with self._exclusive():
            self._command(command)

    def abandon(self, reason: str) -> None:
        """End the session together with its sandbox, which need not be told."""
        self._is_told = True
        super().abandon(reason)
        self._folder.is_given_up = True

    # -- runs ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Run one operation at a time, and end the session if one broke half way."""
        self._check_open()
        self._occupy()
        try:
            self._check_open()
            yield
        except (ExecutorError, KeyboardInterrupt) as error:
            if not isinstance(error, SessionError):
                self._end(f"a run was interrupted ({type(error).__name__})")
            if isinstance(error, ExecutorError) and not isinstance(error, SessionError | IsolationError):
                self._sandbox.give_up()
            raise
        finally:
            self._used_at = time.monotonic()
            self._lock.release()

    def _run(self, program: Program) -> Execution:
        report = self._ask({"op": "cell"}, request_bundle(program))
        if message := report.get("input_error"):
            raise InputError(str(message))
        execution = self._sandbox.execution_of(report, self._limits, self._found)
        if report.get("is_committed") is True and not execution.ok:
            # It succeeded, but had printed too much before that was noticed.
            self._command({"op": "rollback"})
        undo = partial(blocking, partial(self._command, {"op": "rollback"}))
        return drive(self._checked(execution, program.check, undo))

    def _command(self, command: Mapping[str, str]) -> None:
        report = self._ask({"op": "command", "command": command}, b"")
        if message := report.get("session_error"):
            raise SessionError(str(message))

    # -- the server in the sandbox ---------------------------------------------------------------------------

    @property
    def _found(self) -> Isolation:
        """What the probe found; the server is started if it was not."""
        if self._isolation is None:
            self._isolation = self._start()
        return self._isolation

    def _start(self) -> Isolation:
        bundle = server_bundle(self._limits, self._key, session_timeout=self._timeout + IDLE_GRACE_S)
        self._sandbox.start()
        self._is_started = True
        found, response = self._sandbox.launch(self._folder, bundle, ["-c", SERVE], RUN_GRACE_S)
        report = self._sandbox.read_report(response, reply_token(self._key, 0))
        if report is None:
            self._sandbox.check_alive(response)
        if report is None or "failed" in report:
            reason = (report or {}).get("failed") or response.output.strip()[-200:]
            raise ExecutorError(f"{self._sandbox.name} did not start the session: {reason}")
        self._check_open()  # It may have been closed during the operation.
        return found

    def _ask(self, request: Mapping[str, Any], bundle: bytes) -> dict[str, Any]:
        """Return the server's reply to a request.

        Raises:
            SessionError: It has ended.
            ExecutorError: The sandbox broke.
        """
        _ = self._found
        self._number += 1
        number, is_inline = self._number, len(bundle) <= MAX_INLINE_BYTES
        self._sandbox.start()  # One that has ended is replaced, which ends this session.
        if not is_inline:
            self._sandbox.upload([(f"{self._folder.path}/{number}.zip", bundle)])
        command = self._ask_command(request, bundle if is_inline else None, bundle)
        response = self._sandbox.execute(command, self._limits.seconds + RUN_GRACE_S)
        if response.exit_code == NO_FILES:
            self._lose(number)
        report = self._sandbox.read_report(response, reply_token(self._key, number))
        if report is None:
            self._sandbox.check_alive(response)
        if report is None or "broken" in report:
            self._end(str((report or {}).get("broken") or "its process was killed"))
            self._check_open()
        if report is None or "incomplete" in report:
            raise ExecutorError(f"In {self._sandbox.name}, an upload was not complete.", is_retryable=True)
        return report

    def _ask_command(self, request: Mapping[str, Any], body: bytes | None, bundle: bytes) -> str:
        """Return the command that hands a request over."""
        details = {
            "number": self._number,
            "is_inline": body is not None,
            "bundle": sha256(bundle).hexdigest(),
        }
        text = json.dumps({**request, **details})
        arguments = [text, sign(self._key.encode(), text), b64encode(body or b"").decode()]
        ask = shlex.join(["python3", "-I", "-c", _ASK, *arguments])
        return f"cd {self._folder.path} 2>/dev/null || exit {NO_FILES}; exec {ask}"

    def _lose(self, number: int) -> None:
        """Raise for a server that is not there."""
        if number == 1:
            self._end("its sandbox ends what a command leaves running")
            remedy = "a sandbox in which processes outlive their command; this one needs BackendExecutor(…, max_sessions=0)"
            raise ConfigurationError("executor", self._sandbox.name, remedy)
        self._end("its process was killed, or its sandbox has ended")
        self._check_open()

    def _check_open(self) -> None:
        self._check_owner()
        if not self.alive:  # It may have been idle for too long.
            super()._check_open()

    def _end(self, reason: str) -> None:
        must_tell = self._is_started and not self._is_told and self._pid == os.getpid()
        self.abandon(reason)
        if must_tell:
            self._number += 1
            close = self._ask_command({"op": "close"}, b"", b"")
            # The server has removed its folder; if it is gone itself, somebody else must.
            command = f"({close}) >/dev/null; chmod -R u+rwX {self._folder.path} 2>/dev/null; rm -rf {self._folder.path}"
            with contextlib.suppress(ExecutorError):
                self._sandbox.execute(command, GRACE_S + RUN_GRACE_S)
