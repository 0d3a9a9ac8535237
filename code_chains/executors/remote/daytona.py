"""Daytona, through `langchain-daytona`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from code_chains.errors import needs
from code_chains.executors.remote.cloud_service import HostedSandbox, Service, do_nothing


class DaytonaService(Service):
    """Daytona; options are those of `daytona.CreateSandboxFromSnapshotParams`, e.g. `snapshot`."""

    name: ClassVar[str] = "daytona"
    title: ClassVar[str] = "Daytona"
    key_variables: ClassVar[tuple[str, ...]] = ("DAYTONA_API_KEY",)

    def _load(self) -> None:
        with needs("daytona", "executor", "daytona"):
            import daytona
            import langchain_daytona
        self._sdk: Any = daytona
        self._adapter: Any = langchain_daytona

    def is_wrong_key(self, error: Exception) -> bool:
        """Return whether Daytona has refused the key."""
        return getattr(error, "status_code", None) in (401, 403)

    def create(self, seconds: int, *, network: bool) -> HostedSandbox:
        """Create a sandbox that Daytona deletes once it was idle for too long."""
        minutes = math.ceil(seconds / 60)
        options = {"network_block_all": not network, "auto_stop_interval": minutes, **self.options}
        params = self._sdk.CreateSandboxFromSnapshotParams(ephemeral=True, **options)
        client = self._sdk.Daytona()
        sandbox = client.create(params)
        backend = self._adapter.DaytonaSandbox(sandbox=sandbox)
        return HostedSandbox(backend, lambda: client.delete(sandbox), do_nothing)
