"""E2B, through `langchain-e2b`."""

from __future__ import annotations

from typing import Any, ClassVar

from code_chains.errors import needs
from code_chains.executors.remote.cloud_service import HostedSandbox, Service


class E2BService(Service):
    """E2B; options are arguments of `e2b.Sandbox.create`, e.g. `template`."""

    name: ClassVar[str] = "e2b"
    title: ClassVar[str] = "E2B"
    key_variables: ClassVar[tuple[str, ...]] = ("E2B_API_KEY",)

    def _load(self) -> None:
        with needs("e2b", "executor", "e2b"):
            import e2b
            import langchain_e2b
        self._sdk: Any = e2b
        self._adapter: Any = langchain_e2b

    def is_wrong_key(self, error: Exception) -> bool:
        """Return whether E2B has refused the key."""
        return isinstance(error, self._sdk.AuthenticationException)

    def create(self, seconds: int, *, network: bool) -> HostedSandbox:
        """Create a sandbox from a template with Python."""
        options = {"allow_internet_access": network, **self.options}
        sandbox = self._sdk.Sandbox.create(timeout=seconds, **options)
        backend = self._adapter.E2BSandbox(sandbox=sandbox)
        return HostedSandbox(backend, sandbox.kill, lambda: sandbox.set_timeout(seconds))
