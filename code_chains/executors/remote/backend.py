"""An executor on a sandbox of LangChain's protocol that you opened and pass; `cloud` opens them by name."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from functools import partial
from typing import Any

from code_chains.errors import ExecutorError, InputError, IsolationError
from code_chains.executors.limits import Limits
from code_chains.executors.remote.backend_sessions import BackendSession
from code_chains.executors.remote.protocol_sandbox import (
    ProtocolSandbox,
    RunFolder,
    SandboxProtocol,
    is_backend,
)
from code_chains.executors.remote.remote_executor import RemoteExecutor
from code_chains.executors.remote.server import request_bundle
from code_chains.executors.runner import Program
from code_chains.executors.waiting import Operation, blocking
from code_chains.state import PROBED, Execution

__all__ = ["BackendExecutor", "SandboxProtocol", "is_backend"]


class BackendExecutor(RemoteExecutor):
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

    guidance = (
        "Write Python with the standard library alone, unless you are told what else is installed. Files are in the working"
        " directory."
    )
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
        super().__init__(
            limits=limits,
            required_isolation=required_isolation,
            max_sessions=max_sessions,
            session_timeout=session_timeout,
        )
        self._backend, self._remote = backend, self._connect(backend)

    def _connect(self, backend: SandboxProtocol) -> ProtocolSandbox:
        """Return the sandbox as it is used."""
        return ProtocolSandbox(backend, self.required_isolation)

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

    def _new_session(self) -> BackendSession:
        return BackendSession(self._remote, self.limits, self._session_timeout)

    def _run(self, folder: RunFolder, program: Program) -> Execution:
        self._check_open()
        request = request_bundle(program)
        self._start()
        try:
            return self._run_once(self._remote, folder, request, program.within(self.limits))
        except (IsolationError, InputError):
            raise
        except ExecutorError:
            self._remote.give_up()
            raise
        finally:
            with contextlib.suppress(ExecutorError):
                self._remote.remove(folder)

    def _start(self) -> None:
        self._remote.start()
