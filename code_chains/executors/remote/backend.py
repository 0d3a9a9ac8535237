"""The executor in a sandbox that you pass, of LangChain's protocol: E2B, Modal, Daytona, Runloop, LangSmith, or your own."""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from code_chains.errors import (
    EXECUTOR_CLOSED,
    ConfigurationError,
    ExecutorError,
    IsolationError,
    OverloadedError,
    check_int,
)
from code_chains.executors.limits import MAX_SECONDS, Limits
from code_chains.executors.remote.backend_sessions import BackendSession
from code_chains.executors.remote.external import ExternalExecutor
from code_chains.executors.remote.protocol_sandbox import (
    GRACE_S,
    TIMED_OUT,
    ProtocolSandbox,
    RunFolder,
    SandboxProtocol,
    is_backend,
    pack,
)
from code_chains.executors.remote.supervised import COPIED_FILES, supervisor_limits, timed_out
from code_chains.executors.runner import Program
from code_chains.executors.waiting import Operation, blocking
from code_chains.inputs import check_code, check_json_variables, files_on_disk
from code_chains.state import PROBED, Execution

__all__ = ["BackendExecutor", "SandboxProtocol", "is_backend"]

MAX_SESSIONS = 1000


class BackendExecutor(ExternalExecutor):
    """Run each program in a third-party sandbox that implements LangChain's sandbox protocol.

    A supervisor inside enforces the time, output, processes, memory and disk of the run, and reports how it ended. Before
    each run a probe tries to reach this machine; its findings are in `Execution.isolation`. Each run has a folder of its
    own, which is removed; the sandbox itself is shared by its runs and everybody else who uses it, and belongs to the
    caller, who closes it. A session leaves a process in the sandbox, which holds its state until it is closed.

    Args:
        backend: The sandbox, e.g. `langchain_daytona.DaytonaSandbox(sandbox=…)`. It needs Linux with `python3` 3.11 or
            newer; programs can import what that has installed.
        limits: Limits of one run.
        required_isolation: What the probe must find closed.
        max_sessions: Sessions that are open at a time. Choose 0 for a sandbox that ends processes with their command: the
            turns of a conversation share no variables then.
        session_timeout: Seconds without a run after which a session ends.

    Raises:
        ConfigurationError: An argument is invalid.
        IsolationError: Something required is open; raised by a run.

    Example:
        executor = BackendExecutor(DaytonaSandbox(sandbox=Daytona().create()))
        executor.run("sum(range(1, 6))").output
    """

    max_sessions: int

    language = "python"
    guidance = (
        "Write Python with the standard library alone, unless you are told what else is installed. Files are in the working"
        " directory."
    )
    returns_values = True
    reaches_outside = True
    """A service may have a network, whatever it says."""

    def __init__(
        self,
        backend: SandboxProtocol,
        *,
        limits: Limits | None = None,
        required_isolation: Collection[str] = PROBED,
        max_sessions: int = 8,
        session_timeout: float = 900.0,
    ) -> None:
        super().__init__(limits=limits)
        self._remote = self._connect(backend, required_isolation)
        self._backend = backend
        self.required_isolation: tuple[str, ...] = self._remote.required_isolation
        remedy = f"a whole number from 0 to {MAX_SESSIONS}"
        check_int("max_sessions", max_sessions, remedy, minimum=0, maximum=MAX_SESSIONS)
        if not isinstance(session_timeout, int | float) or not 0 < session_timeout <= MAX_SECONDS:
            raise ConfigurationError("session_timeout", session_timeout, "a number of seconds, at most a day")
        self.max_sessions, self._session_timeout = max_sessions, float(session_timeout)
        self._sessions: set[BackendSession] = set()
        self._lock = threading.Lock()
        self._is_closed = False

    def _connect(self, backend: SandboxProtocol, required_isolation: Collection[str]) -> ProtocolSandbox:
        """Return the sandbox as it is used."""
        return ProtocolSandbox(backend, required_isolation)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What distinguishes its runs from those of other executors: the kind of the sandbox, and its name."""
        return {
            **super().fingerprint,
            "backend": self._remote.name,
            "id": str(getattr(self._backend, "id", "")),
        }

    def _operation(self, program: Program) -> Operation[Execution]:
        folder = RunFolder()

        def cancel() -> None:
            folder.is_given_up = True
            # The supervisor notices that its folder is gone, and stops the program.
            self._remote.remove(folder)

        return blocking(partial(self._run, folder, program), cancel)

    def session(self) -> BackendSession:
        """Open a session, which keeps variables, imports, files and the working directory between runs.

        Raises:
            OverloadedError: `max_sessions` are open.
        """
        self._check_open()
        if not self.has_sessions:
            super().session()  # Which says so.
        with self._lock:
            self._sessions = {session for session in self._sessions if session.alive}
            if len(self._sessions) >= self.max_sessions:
                raise OverloadedError(
                    f"{self.max_sessions} sessions are open already. Close one, or try again later."
                )
            session = BackendSession(self._remote, self.limits, self._session_timeout)
            self._sessions.add(session)
            return session

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

    def _run(self, folder: RunFolder, program: Program) -> Execution:
        self._check_open()
        token = secrets.token_hex(16)
        with files_on_disk(program.files) as files:
            bundle = self._bundle(folder, program, files, token)
            self._start()
            try:
                return self._run_in(folder, bundle, token)
            except IsolationError:
                raise
            except ExecutorError:
                self._remote.give_up()
                raise
            finally:
                with contextlib.suppress(ExecutorError):
                    self._remote.remove(folder)

    def _start(self) -> None:
        self._remote.start()

    def _run_in(self, folder: RunFolder, bundle: bytes, token: str) -> Execution:
        """Run what a bundle contains, in a folder of its own."""
        seconds = self.limits.seconds + GRACE_S
        found, response = self._remote.launch(folder, bundle, ["container_program.py"], seconds)
        report = self._remote.read_report(response, token)
        if report is None and response.exit_code in TIMED_OUT:
            return timed_out(self.limits, found)
        if report is None:
            self._remote.check_alive(response)
        return self._remote.execution_of(report, self.limits, found)

    def _bundle(self, folder: RunFolder, program: Program, files: Mapping[str, Path], token: str) -> bytes:
        """Return what a run needs, by its path in the folder of the run."""
        size = sum(path.stat().st_size for path in files.values())
        request = {
            "code": check_code(program.code),
            "variables": check_json_variables(program.variables),
            "workdir": f"{folder.path}/box",
            "limits": supervisor_limits(self.limits, size, [folder.path]),
            "return_value": program.return_value,
            "is_shared": True,
        }
        inputs = {f"box/{name}": path for name, path in files.items()}
        return pack({"request.json": json.dumps(request), "token": token, **COPIED_FILES, **inputs})
