"""Python for WebAssembly: compiled once for a machine, with the modules that run programs, and kept in the user's cache."""

from __future__ import annotations

import functools
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from code_chains.errors import ConfigurationError, ExecutorError
from code_chains.executors.remote.external import load_extra
from code_chains.executors.remote.supervised import GUEST_FILES
from code_chains.executors.sandbox.interpreter import executable
from code_chains.executors.sandbox.launchers import needed_python
from code_chains.temporary import process_folder

PYTHON = "python"
"""The file of compiled Python in its folder."""
WORKER = Path(__file__).parent / "worker.py"
_trusted = set[Path]()
"""Folders that this process has looked at."""


def check_installed() -> None:
    """Raise unless there is WebAssembly for this Python.

    Raises:
        ConfigurationError: Python is too old, or the extra `wasm` is not installed.
    """
    if reason := needed_python():
        remedy = "'sandbox' on Linux, 'docker' or 'podman', or 'monty' (the extra `monty`)"
        raise ConfigurationError("executor", "wasm", remedy, because=reason)
    load_extra("eryx", "wasm")


def runtime() -> Path:
    """Return the folder of compiled Python, which is compiled first if this machine has not done so, in half a minute.

    It is kept in the user's cache, or if that cannot be written to, for this process alone in a temporary folder.

    Raises:
        ConfigurationError: The extra `wasm` is not installed.
        ExecutorError: It cannot be compiled.
    """
    from filelock import FileLock

    folder = _folder()
    try:
        if not _is_trusted(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{folder}.lock"):
                if not _is_trusted(folder):
                    _compile(folder)
    except OSError:  # A container, for example, may be read-only but for a temporary folder.
        folder = _temporary()
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a process that uses eryx: it unpacks its Python, and would trust what others have unpacked."""
    system = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}  # Windows needs it.
    return system | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))


def _is_trusted(folder: Path) -> bool:
    """Return whether a folder exists.

    Raises:
        PermissionError: Somebody else could have written what is in it.
    """
    if not folder.is_dir():
        return False
    if hasattr(os, "geteuid") and folder not in _trusted:
        for path in (folder, *folder.rglob("*")):
            status = path.stat()
            if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
                raise PermissionError(f"others can write to {path}")
        _trusted.add(folder)
    return True


def _folder() -> Path:
    """Return the folder of compiled Python. Invariant: whatever changes what is in it changes its name."""
    from platformdirs import user_cache_path

    return user_cache_path("code_chains") / "wasm" / _fingerprint()


@functools.cache
def _fingerprint() -> str:
    """Return what distinguishes compiled code from that of another eryx, machine or version of ours."""
    parts = [metadata.version("pyeryx"), platform.platform(), platform.machine()]
    parts += [path.read_text(encoding="utf-8") for path in (WORKER, *GUEST_FILES.values())]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


@functools.cache
def _temporary() -> Path:
    """Compile Python for this process alone; return its folder.

    Raises:
        ExecutorError: There is no place for it.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="wasm-", dir=process_folder())) / "compiled"
        _compile(folder)
    except OSError as error:
        raise ExecutorError(
            f"No writable cache directory for WebAssembly: {error}. Make a folder writable and name it in XDG_CACHE_HOME,"
            " or in TMPDIR for what is compiled anew by each process."
        ) from error
    return folder


def _compile(folder: Path) -> None:
    """Compile Python into a folder that is complete or does not exist."""
    temporary = Path(tempfile.mkdtemp(prefix="compiling-", dir=folder.parent))
    try:
        for name, source in GUEST_FILES.items():  # The compiler would write beside the modules.
            target = temporary / "modules" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        options = json.dumps({"compile": str(temporary / PYTHON), "modules": str(temporary / "modules")})
        command = [executable(), "-I", str(WORKER), options]
        with _progress():
            done = subprocess.run(command, capture_output=True, text=True, env=environment(temporary))
        if done.returncode:
            raise ExecutorError(f"Python for WebAssembly cannot be compiled: {done.stderr.strip()[-500:]}.")
        shutil.rmtree(temporary / "modules")
        # It holds no secrets, and an image may be made by another user than its container's.
        for path in (temporary, *temporary.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _progress() -> Iterator[None]:
    """Show on a terminal that this takes a moment."""
    from rich.console import Console

    with Console(stderr=True).status("Compiling Python for WebAssembly, once for this machine …"):
        yield
