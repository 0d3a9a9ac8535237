"""Executors, which run code. The default, `SandboxExecutor`, isolates every run with the kernel's own means."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from code_chains.executors.base import Executor, Session
from code_chains.executors.limits import Limits
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.executor import ProcessExecutor, SandboxExecutor
from code_chains.executors.sandbox.network import Destination

if TYPE_CHECKING:
    from code_chains.executors.database import DatabaseExecutor
    from code_chains.executors.monty import MontyExecutor
    from code_chains.executors.remote.backend import BackendExecutor
    from code_chains.executors.remote.cloud import CloudExecutor
    from code_chains.executors.remote.engine import EngineExecutor
    from code_chains.executors.remote.stdio import StdioExecutor
    from code_chains.executors.sql import SqlExecutor
    from code_chains.executors.wasm.executor import WasmExecutor

__all__ = [
    "BackendExecutor",
    "CloudExecutor",
    "DatabaseExecutor",
    "Destination",
    "EngineExecutor",
    "Executor",
    "Limits",
    "MontyExecutor",
    "ProcessExecutor",
    "Program",
    "SandboxExecutor",
    "Session",
    "SqlExecutor",
    "StdioExecutor",
    "WasmExecutor",
]

_LAZY = {
    "BackendExecutor": "remote.backend",
    "CloudExecutor": "remote.cloud",
    "DatabaseExecutor": "database",
    "EngineExecutor": "remote.engine",
    "MontyExecutor": "monty",
    "SqlExecutor": "sql",
    "StdioExecutor": "remote.stdio",
    "WasmExecutor": "wasm.executor",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
