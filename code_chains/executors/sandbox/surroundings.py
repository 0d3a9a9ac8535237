"""What the model that writes programs is told of the sandbox: libraries and network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from code_chains.executors.distributions import USUAL_PACKAGES
from code_chains.executors.sandbox.provider import SandboxProvider

if TYPE_CHECKING:
    from code_chains.executors.sandbox.network import Destination


def describe_surroundings(provider: SandboxProvider, packages: Sequence[str]) -> str:
    """Describe what programs find.

    Args:
        provider: Provides the sandboxes.
        packages: The packages that were selected for programs; empty for what is installed.
    """
    return f"{_describe_libraries(provider, packages)} {_describe_network(provider)}".strip()


def _describe_libraries(provider: SandboxProvider, packages: Sequence[str]) -> str:
    """Say which libraries programs may import: the selected packages, or what is installed of the usual ones."""
    if packages:
        return f"You may import the standard library, {', '.join(packages)}; nothing else is installed."
    installed = list(filter(provider.settings.python.has, USUAL_PACKAGES))
    others = f", and {', '.join(installed)} where the question needs them" if installed else " alone"
    return f"Use the standard library{others}."


def _describe_network(provider: SandboxProvider) -> str:
    if not provider.is_confined:
        return ""
    addresses = ", ".join(map(_address, provider.settings.network))
    return f"Of the network only {addresses} can be reached." if addresses else "There is no network."


def _address(destination: Destination) -> str:
    if destination.headers:
        return f"http://{destination.host} (plain HTTP; credentials and encryption are added on the way)"
    return f"{destination.host}:{destination.port}"
