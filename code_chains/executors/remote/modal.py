"""Modal, through `langchain-modal`."""

from __future__ import annotations

from typing import Any, ClassVar

from code_chains.errors import needs
from code_chains.executors.remote.cloud_service import HostedSandbox, Service, do_nothing

APP, PYTHON = "code-chains", "3.12"
MAX_SECONDS = 86_400
"""Modal ends a sandbox after a day at the latest."""


class ModalService(Service):
    """Modal; options are arguments of `modal.Sandbox.create`, e.g. `image`. A key in `~/.modal.toml` is found as well."""

    name: ClassVar[str] = "modal"
    title: ClassVar[str] = "Modal"
    key_variables: ClassVar[tuple[str, ...]] = ("MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET")

    def _load(self) -> None:
        with needs("modal", "executor", "modal"):
            import langchain_modal
            import modal
        self._sdk: Any = modal
        self._adapter: Any = langchain_modal

    def _has_key(self) -> bool:
        config = self._sdk.config.config
        return bool(config.get("token_id") and config.get("token_secret"))

    def secrets(self) -> list[str]:
        """Return what must be in no message."""
        config = self._sdk.config.config
        return [value for name in ("token_id", "token_secret") if (value := config.get(name))]

    def is_wrong_key(self, error: Exception) -> bool:
        """Return whether Modal has refused the key."""
        return isinstance(error, self._sdk.exception.AuthError)

    def create(self, seconds: int, *, network: bool) -> HostedSandbox:
        """Create a sandbox in the app `code-chains`, with Debian and Python."""
        options = {
            "app": self._sdk.App.lookup(APP, create_if_missing=True),
            "image": self._sdk.Image.debian_slim(python_version=PYTHON),
            "block_network": not network,
            **self.options,
        }
        sandbox = self._sdk.Sandbox.create(timeout=MAX_SECONDS, idle_timeout=seconds, **options)
        backend = self._adapter.ModalSandbox(sandbox=sandbox)
        return HostedSandbox(backend, sandbox.terminate, do_nothing)
