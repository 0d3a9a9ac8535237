"""What the services have in common: a key from the environment, and a sandbox that is created and deleted."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from code_chains.errors import ConfigurationError
from code_chains.executors.remote.protocol_sandbox import SandboxProtocol


@dataclass(frozen=True)
class HostedSandbox:
    """A sandbox that runs at a service.

    Attributes:
        backend: Its commands and files.
        delete: Deletes it.
        extend: Postpones the end that the service has set for it.
    """

    backend: SandboxProtocol
    delete: Callable[[], object]
    extend: Callable[[], object]


class Service(ABC):
    """A service that hosts sandboxes.

    Args:
        options: More arguments for the creation of a sandbox.

    Raises:
        ConfigurationError: Its package is not installed, or its key is missing.

    Attributes:
        name: How it is called as `executor=`, and its extra.
        title: How people call it.
        key_variables: The environment variables of its key.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    key_variables: ClassVar[tuple[str, ...]]

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options: dict[str, Any] = dict(options)
        self._load()
        if not self._has_key():
            raise self.wrong_key(f"{' and '.join(self.key_variables)} must be set in the environment")
        if not all(map(_is_plain, self.secrets())):
            raise self.wrong_key(f"{' and '.join(self.key_variables)} must be printable, without spaces")

    def secrets(self) -> list[str]:
        """Return what must be in no message."""
        return [value for name in self.key_variables if (value := os.environ.get(name))]

    def wrong_key(self, reason: str) -> ConfigurationError:
        """Return the error for a key that is missing, malformed or refused."""
        return ConfigurationError("executor", self.name, f"a valid API key of {self.title}", because=reason)

    def _has_key(self) -> bool:
        return all(map(os.environ.get, self.key_variables))

    @abstractmethod
    def _load(self) -> None:
        """Import the packages of the service, so that a missing one is an error before a model is paid."""

    @abstractmethod
    def is_wrong_key(self, error: Exception) -> bool:
        """Return whether the service has refused the key."""

    @abstractmethod
    def create(self, seconds: int, *, network: bool) -> HostedSandbox:
        """Create a sandbox.

        Args:
            seconds: Time without use after which the service is to end it, should this process be unable to.
            network: Whether its programs may use the network.
        """


def _is_plain(key: str) -> bool:
    return key.isascii() and key.isprintable() and " " not in key


def do_nothing() -> None:
    """Do nothing, where the service itself notices that a sandbox is in use."""
