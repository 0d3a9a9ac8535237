"""Executors by name: the tables of ours, and executors of other packages, which register an entry point."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module, metadata
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from code_chains.errors import ConfigurationError
from code_chains.executors.base import Executor
from code_chains.executors.limits import Limits

if TYPE_CHECKING:
    from code_chains.executors.remote.protocol_sandbox import SandboxProtocol

ENTRY_POINTS = "code_chains.executors"
_DATABASE = re.compile(r"://|\.(db|sqlite3?|duckdb)$")
"""The group of the entry points of other packages: each loads a function of `limits=` that returns an `Executor`."""
HOSTED: Mapping[str, str] = MappingProxyType(
    {
        "e2b": "remote.e2b:E2BService",
        "modal": "remote.modal:ModalService",
        "daytona": "remote.daytona:DaytonaService",
    }
)
"""The services that host sandboxes. A new one is a module with its class, and a line here."""
_EXECUTORS: Mapping[str, str] = MappingProxyType(
    {
        "strongest": "strongest:strongest_executor",
        "sandbox": "sandbox.executor:SandboxExecutor",
        "docker": "remote.engine:EngineExecutor",
        "podman": "remote.engine:EngineExecutor",
        **dict.fromkeys(HOSTED, "remote.cloud:CloudExecutor"),
        "monty": "monty:MontyExecutor",
        "sql": "sql:SqlExecutor",
        "wasm": "wasm.executor:WasmExecutor",
        "none": "sandbox.executor:ProcessExecutor",
    }
)
_NAMED = {"docker", "podman", *HOSTED}
"""Names that are also the first argument of their class."""

NAMES: tuple[str, ...] = tuple(_EXECUTORS)


def load(target: str) -> Any:
    """Return what `module:attribute` names below `code_chains.executors`, imported only now."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(f"code_chains.executors.{module}"), attribute)


def resolve_executor(
    executor: str | Executor | SandboxProtocol | Callable[[str], Any], limits: Limits | None = None
) -> Executor:
    """Return an executor, or the one that a name, a function or a sandbox of LangChain's protocol stands for.

    Args:
        executor: What it stands for.
        limits: Limits of one run; not with an `Executor`, which has its own.

    Raises:
        ConfigurationError: There is none of this name, it cannot be loaded, or it is not an executor.
    """
    if isinstance(executor, str):
        return _create(executor, limits)
    if not isinstance(executor, Executor) and load("remote.protocol_sandbox:is_backend")(executor):
        adapted: Executor = load("remote.backend:BackendExecutor")(executor, limits=limits)
        return adapted
    own = executor if isinstance(executor, Executor) else _as_executor(executor)
    if limits is not None:
        because = "an Executor has its own"
        raise ConfigurationError("limits", limits, "limits= to the executor", because=because)
    return own


def _as_executor(function: object) -> Executor:
    try:
        adapted: Executor = load("function:as_executor")(function)
    except ConfigurationError as error:
        if error.because:  # It is a function, but not one that runs programs.
            raise
        raise _unknown(function) from None
    return adapted


def _create(name: str, limits: Limits | None) -> Executor:
    """Return the executor of this name; names of ours cannot be taken by other packages."""
    if name not in _EXECUTORS:
        return _create_foreign(name, limits)
    make = load(_EXECUTORS[name])
    made: Executor = make(name, limits=limits) if name in _NAMED else make(limits=limits)
    return made


def _create_foreign(name: str, limits: Limits | None) -> Executor:
    """Return the executor that another package registers under this name."""
    found = [*metadata.entry_points(group=ENTRY_POINTS, name=name)]
    if not found:
        raise _unknown(name)
    package = getattr(found[0].dist, "name", "") or found[0].value
    try:
        executor = found[0].load()(limits=limits)
    except ConfigurationError:
        raise
    except Exception as error:  # Whatever another package does when it is imported.
        because = f"{found[0].value} of {package} raised {type(error).__name__}: {error}"
        raise ConfigurationError(
            "executor", name, f"another one, or update {package}", because=because
        ) from error
    if not isinstance(executor, Executor):
        because = f"{found[0].value} of {package} returned {type(executor).__name__}, not an Executor"
        raise ConfigurationError("executor", name, f"another one, or update {package}", because=because)
    return executor


def _unknown(executor: object) -> ConfigurationError:
    names = ", ".join(f'"{name}"' for name in NAMES)
    others = ", ".join(f'"{name}"' for name in sorted(metadata.entry_points(group=ENTRY_POINTS).names))
    listed = f"one of {names} (protects nothing){f', {others}' if others else ''}"
    if isinstance(executor, str) and _DATABASE.search(executor):
        remedy = "DatabaseExecutor(…) from code_chains.databases, which reads a database"
        return ConfigurationError("executor", "the address of a database", remedy)
    if isinstance(executor, str) and (near := get_close_matches(executor, NAMES, n=1)):
        listed = f'"{near[0]}", or {listed}'
    remedy = f"{listed}, an Executor, a function of the code or a sandbox of LangChain's protocol"
    return ConfigurationError("executor", executor, remedy)
