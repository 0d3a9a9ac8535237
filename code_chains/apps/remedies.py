"""What people can do about an answer that failed or was not checked, in the words of the host that they sit at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from code_chains.executors.distributions import install_advice
from code_chains.state import Execution, Verdict
from code_chains.verification.obstacles import Obstacle, find_obstacle

Host = Literal["terminal", "notebook", "page", "mcp"]
_OWN = {
    "input": "Put what it asks for into the question.",
    "memory": "Allow more, e.g. --memory 4G.",
    "network": "Save the data in a file and pass it: -f FILE.",
    "time": "Allow more, e.g. --seconds 60.",
}
"""Where the reader chooses the options."""
_OWNER_STARTS = {
    "memory": "Whoever started {server} can allow more: code-chains {command} --memory 4G.",
    "time": "Whoever started {server} can allow more: code-chains {command} --seconds 60.",
}
_SERVED = {
    "page": {"network": "Upload a file with the data.", "input": _OWN["input"]},
    "mcp": {"network": "Pass the data as a file.", "input": "Put what it asks for into the program."},
}
_NAMES = {"page": ("this page", "serve"), "mcp": ("this server", "mcp")}
_STANDARD_LIBRARY_ONLY = ("wasm", "interpreter")
CHECKS: dict[str, str] = {
    "terminal": "--tests FILE, --verify",
    "page": "code-chains serve --verify",
    "notebook": "tests=, examples=, verify=",
}
"""How answers are checked, by host."""


def remedy(result: Mapping[str, Any], host: Host) -> str:
    """Return what the reader can do about a result that is no answer, as a sentence; empty if nothing is known."""
    verdict: Verdict | None = result.get("verdict")
    execution: Execution | None = result.get("execution")
    if verdict is None or verdict.ok or execution is None:
        return ""
    obstacle = find_obstacle(execution)
    return _remedy_of(obstacle, execution, host) if obstacle else ""


def _remedy_of(obstacle: Obstacle, execution: Execution, host: Host) -> str:
    if obstacle.kind == "module":
        return _remedy_of_module(obstacle.module, execution, host)
    if host not in _SERVED:
        return _OWN[obstacle.kind]
    return _SERVED[host].get(obstacle.kind) or _served(_OWNER_STARTS[obstacle.kind], host)


def _remedy_of_module(module: str, execution: Execution, host: Host) -> str:
    if execution.isolation and execution.isolation.level in _STANDARD_LIBRARY_ONLY:
        return "Programs have the standard library only here."
    command = install_advice(module).strip(" ()")
    if not command:  # Anybody may have published a package of that name.
        return ""
    if host in _SERVED:
        return f"{_served('Whoever started {server} can install it:', host)} {command}"
    return f"Install it: {command}"


def _served(text: str, host: Host) -> str:
    server, command = _NAMES[host]
    return text.format(server=server, command=command)
