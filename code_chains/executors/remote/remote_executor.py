"""The base of `backend` and `cloud`: a run or a session there, served by a supervisor of ours."""

from __future__ import annotations

import secrets
import threading
import time
from abc import abstractmethod
from collections.abc import Collection
from typing import Any

from code_chains.errors import (
    EXECUTOR_CLOSED,
    ConfigurationError,
    ExecutorError,
    InputError,
    OverloadedError,
    check_int,
)
from code_chains.executors.limits import MAX_SECONDS, Limits
from code_chains.executors.process_session import ProcessSession
from code_chains.executors.remote.external import ExternalExecutor, check_required
from code_chains.executors.remote.protocol_sandbox import GRACE_S, TIMED_OUT, ProtocolSandbox, RunFolder
from code_chains.executors.remote.server import SERVE, server_bundle
from code_chains.executors.remote.supervised import is_lost, max_report, timed_out
from code_chains.records import PROBED, Execution, Isolation

MAX_SESSIONS = 1000


class RemoteExecutor(ExternalExecutor):
    """An executor with sessions in third-party sandboxes, or other processes that it does not fork itself.

    Args:
        limits: Limits of one run.
        required_isolation: What the probe must find closed.
        max_sessions: Sessions that are open at a time.
        session_timeout: Seconds without a run after which a session ends.

    Raises:
        ConfigurationError: An argument is invalid.
    """

    max_sessions: int
    required_isolation: tuple[str, ...]

    language = "python"
    returns_values = takes_stdin = True

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        required_isolation: Collection[str] = PROBED,
        max_sessions: int = 8,
        session_timeout: float = 900.0,
    ) -> None:
        super().__init__(limits=limits)
        self.required_isolation = check_required(required_isolation)
        remedy = f"a whole number from 0 to {MAX_SESSIONS}"
        check_int("max_sessions", max_sessions, remedy, minimum=0, maximum=MAX_SESSIONS)
        if not isinstance(session_timeout, int | float) or not 0 < session_timeout <= MAX_SECONDS:
            raise ConfigurationError("session_timeout", session_timeout, "a number of seconds, at most a day")
        self.max_sessions, self._session_timeout = max_sessions, float(session_timeout)
        self._sessions: set[ProcessSession] = set()
        self._lock = threading.Lock()
        self._is_closed = False

    def session(self) -> ProcessSession:
        """Open a session, which keeps variables, imports, files and the working directory between runs.

        Raises:
            OverloadedError: `max_sessions` are open.
        """
        self._check_open()
        if not self.has_sessions:
            super().session()  # Which says so.
        with self._lock:
            ended = {session for session in self._sessions if not session.alive}
            self._sessions -= ended
            if len(self._sessions) >= self.max_sessions:
                raise OverloadedError(
                    f"{self.max_sessions} sessions are open already. Close one, or try again later."
                )
            session = self._new_session()
            self._sessions.add(session)
        for one in ended:
            one.close()
        return session

    @abstractmethod
    def _new_session(self) -> ProcessSession:
        """Return a session that has not started."""

    def close(self) -> None:
        """Refuse further runs and end the sessions; the sandbox stays as it is."""
        self._is_closed = True
        with self._lock:
            sessions, self._sessions = self._sessions, set()
        for session in sessions:
            session.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ExecutorError(EXECUTOR_CLOSED)

    def _run_once(
        self, sandbox: ProtocolSandbox, folder: RunFolder, request: bytes, limits: Limits
    ) -> Execution:
        """Run a program in a folder of its own.

        Args:
            sandbox: Where to.
            folder: The folder.
            request: The program, as `request_bundle` packs it.
            limits: Its limits.

        Raises:
            ExecutorError: The sandbox broke.
            InputError: The program's files do not fit.
        """
        key = secrets.token_hex(32)
        bundle = server_bundle(limits, key, request=request)
        started = time.monotonic()
        found, response = sandbox.launch(folder, bundle, ["-c", SERVE], limits.seconds + GRACE_S)
        report = sandbox.read_report(response, key, 0, max_report(limits))
        # A program that kills its supervisor ends the command in the same way, but before.
        is_late = time.monotonic() - started >= limits.seconds
        if report is None and is_late and response.exit_code in TIMED_OUT:
            sandbox.discard()
            return timed_out(limits, found)
        if report is None:
            sandbox.check_alive(response)
        else:  # The server of a run that was cancelled says so once nothing of it is left.
            folder.check()
        return self._execution(sandbox, report or {}, limits, found)

    def _execution(
        self, sandbox: ProtocolSandbox, report: dict[str, Any], limits: Limits, found: Isolation
    ) -> Execution:
        """Return the record of the run that a report is about; empty if its supervisor was ended.

        Raises:
            ExecutorError: It did not start, or the report is malformed.
            InputError: Its files do not fit.
        """
        if "failed" in report:
            raise ExecutorError(f"{sandbox.name} did not start the program: {report['failed']}")
        if "input_error" in report:
            raise InputError(str(report["input_error"]))
        # Only a program ends its supervisor.
        is_ended = is_lost(report)
        if is_ended:
            sandbox.discard()
        return sandbox.execution_of(None if is_ended else report, limits, found)
