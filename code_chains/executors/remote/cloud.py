"""The executor that creates and deletes a sandbox at a service by its name; `registry` has the table of services."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from code_chains.errors import ConfigurationError, ExecutorError
from code_chains.executors.limits import Limits
from code_chains.executors.registry import HOSTED, load
from code_chains.executors.remote.backend import BackendExecutor
from code_chains.executors.remote.cloud_sandbox import CloudSandbox
from code_chains.executors.remote.cloud_service import Service
from code_chains.executors.remote.protocol_sandbox import GRACE_S, ProtocolSandbox, RunFolder, SandboxProtocol
from code_chains.records import PROBED

CREATE_S = 60.0
"""Seconds that a service may take to create a sandbox, besides those to answer."""
T = TypeVar("T")


class CloudExecutor(BackendExecutor):
    """Run each program in a sandbox of E2B, Modal or Daytona that belongs to this executor.

    The sandbox is created by the first run, or by `warm_up`, so that a refused key or an unreachable service is an error
    before a model is paid. `close` deletes it, as does the end of the interpreter; if this process is killed, the service
    ends it after a quarter of an hour without use. One that has ended is replaced by the next run. See `BackendExecutor`
    for what a run does. Hidden tests run in a second sandbox, which the first of them creates.

    Args:
        service: `e2b`, `modal` or `daytona`; each needs the extra of that name. The key is in the environment:
            `E2B_API_KEY`; `MODAL_TOKEN_ID` and `MODAL_TOKEN_SECRET`; `DAYTONA_API_KEY`.
        limits: Limits of one run.
        required_isolation: What the probe must find closed.
        network: Whether programs may use the network. Otherwise the service is asked to block it; the probe looks for
            this machine alone.
        options: More arguments for the creation of the sandbox, such as `template` of E2B, `image` of Modal or `snapshot`
            of Daytona. It needs Linux with `python3` 3.11 or newer.
        max_sessions: Sessions that are open at a time; see `BackendExecutor` for 0.
        session_timeout: Seconds without a run after which a session ends, as does the sandbox if there is none at all.

    Raises:
        ConfigurationError: An argument is invalid, the package of the service is not installed, or the key is missing.
        ExecutorError: The service did not create a sandbox; raised by a run.

    Example:
        with CloudExecutor("e2b") as executor:
            executor.run("sum(range(1, 6))").output
    """

    network: bool
    service: str

    def __init__(
        self,
        service: str,
        *,
        limits: Limits | None = None,
        required_isolation: Collection[str] = PROBED,
        network: bool = False,
        options: Mapping[str, Any] | None = None,
        max_sessions: int = 8,
        session_timeout: float = 900.0,
    ) -> None:
        if service not in HOSTED:
            raise ConfigurationError("service", service, f"one of {', '.join(map(repr, HOSTED))}")
        run_limits = limits if isinstance(limits, Limits) else Limits()
        self._service: Service = load(HOSTED[service])(options or {})
        run_seconds = math.ceil(run_limits.seconds + GRACE_S)
        self._sandbox = CloudSandbox(self._service, network=network, run_seconds=run_seconds)
        self._tests_sandbox = CloudSandbox(self._service, network=False, run_seconds=run_seconds)
        super().__init__(
            self._sandbox,
            limits=limits,
            required_isolation=required_isolation,
            max_sessions=max_sessions,
            session_timeout=session_timeout,
            tests_backend=self._tests_sandbox,
        )
        self.service, self.network = service, network
        if not network:
            self.guidance: str = f"{self.guidance} There is no network."

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What distinguishes its runs from those of other executors, including the options of the sandbox."""
        return {**super().fingerprint, "id": "", "options": self._service.options}

    def _connect(self, backend: SandboxProtocol) -> HostedProtocolSandbox:
        assert isinstance(backend, CloudSandbox)
        return HostedProtocolSandbox(backend, self._service, self.required_isolation)

    def close(self) -> None:
        """Delete the sandbox with its sessions, and refuse further runs."""
        for session in [*self._sessions]:
            session.abandon("its executor was closed")
        super().close()
        self._sandbox.close()
        self._tests_sandbox.close()


class HostedProtocolSandbox(ProtocolSandbox):
    """A sandbox at a service, created when it is needed.

    Args:
        sandbox: The sandbox.
        service: Where it is created.
        required_isolation: What the probe must find closed.
    """

    def __init__(self, sandbox: CloudSandbox, service: Service, required_isolation: Collection[str]) -> None:
        super().__init__(sandbox, required_isolation)
        self._sandbox, self._service = sandbox, service

    @property
    def name(self) -> str:
        """How messages call it."""
        return self._service.title

    def start(self, folder: RunFolder | None = None) -> None:
        """Create the sandbox unless there is one in which nothing of another run goes on unwatched."""
        super().start(folder)
        self.ask("create", self._sandbox.open, CREATE_S)

    def give_up(self) -> None:
        """Delete a sandbox that has ended; the next run creates another one."""
        if not self.is_alive():
            self._sandbox.delete()

    def discard(self) -> None:
        """Delete the sandbox with all that a program has left there; the next run creates another one."""
        self._sandbox.delete()

    def ask(self, what: str, call: Callable[[], T], seconds: float = 0.0) -> T:
        """Call the sandbox; keep the key out of messages."""
        try:
            return super().ask(what, call, seconds)
        except ExecutorError as error:
            text, secrets = str(error), self._service.secrets()
            if not any(secret in f"{text} {error.__cause__!r}" for secret in secrets):
                raise
            redacted = functools.reduce(lambda text, secret: text.replace(secret, "…"), secrets, text)
            raise ExecutorError(redacted, is_retryable=error.is_retryable) from None
