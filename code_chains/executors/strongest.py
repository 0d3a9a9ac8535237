"""The executor with the strongest isolation that a machine offers."""

from __future__ import annotations

import functools
import importlib.util
import logging
import sys

from code_chains.errors import IsolationError
from code_chains.executors.base import Executor
from code_chains.executors.limits import Limits
from code_chains.executors.sandbox.executor import SandboxExecutor
from code_chains.executors.sandbox.launchers import lacking_call, may_make_namespaces, needed_python
from code_chains.records import Level

logger: logging.Logger = logging.getLogger(__name__)
LEVELS = {
    "container": "by the sandbox inside a container",
    "landlock": "by Landlock and a system-call filter alone, which hide neither names of files nor process numbers",
    "wasm": "in WebAssembly, with the standard library alone",
}
"""How programs run at each level below the strongest."""


def strongest_executor(*, limits: Limits | None = None) -> Executor:
    """Return the kernel sandbox where the system lets this process make namespaces; elsewhere the next best.

    That is the same sandbox built by Landlock and a system-call filter alone, if a program that ran in it found nothing
    open; else the sandbox in a container, if Docker or Podman answers and has the image of `code-chains image build`; and
    WebAssembly otherwise. Which one it is stands in `Execution.isolation` of each run, and in the log, once, if
    it is not the first: as a warning on Linux.

    Args:
        limits: Limits of one run.

    Raises:
        IsolationError: This system has none of them; on Linux the first run raises it.
        ExecutorError: What it has could not be found out now, as on a busy machine: try again.
    """
    level = strongest_level()
    if level == "landlock":
        _say_once(level, "this system does not let the sandbox make namespaces")
        return strongest_kernel_sandbox(limits=limits)
    if level == "wasm":
        from code_chains.executors.remote.engine import EngineExecutor, ready_engine

        if engine := ready_engine():
            _say_once("container", landlock_objection() or "")
            return EngineExecutor(engine, limits=limits)
    if level == "wasm" and not needed_python() and importlib.util.find_spec("eryx"):
        _say_once(level, landlock_objection() or "")
        from code_chains.executors.wasm.executor import WasmExecutor

        return WasmExecutor(limits=limits)
    return SandboxExecutor(limits=limits)  # Whose error says what is missing.


def strongest_kernel_sandbox(*, limits: Limits | None = None) -> SandboxExecutor:
    """Return the kernel sandbox at the highest level that this machine allows.

    Args:
        limits: Limits of one run.

    Raises:
        IsolationError: It allows none.
    """
    if may_make_namespaces():
        return SandboxExecutor(limits=limits)
    if objection := landlock_objection():
        raise IsolationError(objection)
    return SandboxExecutor(limits=limits, min_isolation="landlock", launcher="landlock")


def strongest_level() -> Level:
    """Return how programs are isolated by default, if what that takes is installed: `kernel`, `landlock` or `wasm`."""
    if may_make_namespaces():
        return "kernel"
    return "landlock" if landlock_objection() is None else "wasm"


@functools.cache
def landlock_objection() -> str | None:
    """Return why Landlock and a system-call filter alone do not isolate programs here; None if one was isolated.

    Raises:
        ExecutorError: That could not be found out now.
    """
    if not sys.platform.startswith("linux"):
        return "the kernel sandbox needs Linux"
    if call := lacking_call():
        return f"this kernel has no {call}, as that of gVisor"
    try:
        with SandboxExecutor(
            preload=(), min_idle=0, min_isolation="landlock", launcher="landlock"
        ) as sandbox:
            sandbox.run("")
    except IsolationError as error:  # Invariant: any other error is no finding, and is not remembered.
        return str(error)
    return None


@functools.cache
def _say_once(level: str, reason: str) -> None:
    # Where there is no kernel sandbox, nothing was given up.
    severity = logging.WARNING if sys.platform.startswith("linux") else logging.INFO
    logger.log(severity, "Programs are isolated %s: %s", LEVELS[level], reason)
