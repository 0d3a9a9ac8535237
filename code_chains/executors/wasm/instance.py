"""One run in WebAssembly, seen from the host: its process and its folders."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from code_chains.errors import ExecutorError
from code_chains.executors.guest.collection import made_files
from code_chains.executors.guest.sandbox.snapshot import FOLDER_FLAGS, remove_at
from code_chains.executors.remote.supervised import parse_line
from code_chains.executors.sandbox.interpreter import executable
from code_chains.executors.wasm.runtime import WORKER, Runtime
from code_chains.temporary import process_folder

START_TIMEOUT_S = 60.0
GRACE_S = 2.0
"""Seconds that a run may take besides its program before its process is killed."""
FOLDER_NAMES = ("work", "tmp", "report")
MODULES = WORKER.parents[1]
"""The folder of the package `guest`, of which the worker uses a module."""


class Instance:
    """A process with a Python in WebAssembly that waits for its one program, or runs it.

    Args:
        runtime: The compiled Python.
        limits: What the worker enforces.
        probe: The source of the probe.

    Attributes:
        has_timed_out: Whether it was killed as its answer took too long.

    Raises:
        ExecutorError: The process cannot be started.
    """

    def __init__(self, runtime: Runtime, limits: Mapping[str, Any], probe: str) -> None:
        self._limits = limits
        self._folder = Path(tempfile.mkdtemp(prefix="wasm-", dir=process_folder()))
        self._known: dict[str, tuple[int, ...]] = {}
        self.has_timed_out: bool = False
        folders = [self._folder / name for name in FOLDER_NAMES]
        for folder in folders:
            folder.mkdir()
        options = {
            "module": str(runtime.module),
            "lib": str(runtime.lib),
            "modules": str(MODULES),
            "folders": [str(folder) for folder in folders],
            "limits": dict(limits),
            "probe": probe,
        }
        try:
            self._process = subprocess.Popen(
                [executable(), "-I", str(WORKER), json.dumps(options)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                cwd=self._folder,
            )
        except OSError as error:
            _remove_folder(self._folder)
            raise ExecutorError(
                f"The process for WebAssembly cannot be started: {error}.", is_retryable=True
            ) from error
        self._finalizer = weakref.finalize(self, _end, self._process, self._folder, os.getpid())

    def probe_output(self) -> str:
        """Return what the probe has printed; wait until it has.

        Raises:
            ExecutorError: Python did not start.
        """
        message = self._read(START_TIMEOUT_S)
        if "probe" not in message:
            reason = str(message.get("error") or "its process ended")[-500:]
            raise ExecutorError(f"Python did not start in WebAssembly: {reason}.", is_retryable=True)
        return str(message["probe"])

    def run(
        self, program: Mapping[str, Any], files: Mapping[str, Path], seconds: float, seconds_left: float
    ) -> dict[str, Any]:
        """Run the program; return the worker's report with the files that were made, empty if there is none.

        Args:
            program: The program.
            files: Files by name.
            seconds: The limit of time that its worker enforces, except while it sleeps.
            seconds_left: When its process is killed in any case.

        Raises:
            ExecutorError: The process is gone.
        """
        size = self._copy(files)
        request = {"program": program, "seconds": seconds, "input_bytes": size}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise ExecutorError("The process for WebAssembly has ended.", is_retryable=True) from error
        report = self._read(min(seconds + GRACE_S, max(0.0, seconds_left)))
        self.stop()  # Invariant: nothing runs any more when files are collected.
        if not report:
            return {}
        made = made_files(str(self._folder / "work"), self._is_input, self._limits["artifacts"])
        return {**report, "files": list(made)}

    def stop(self) -> None:
        """Kill the process; it may be called at any time, by any thread."""
        self._process.kill()
        self._process.wait()

    def remove(self) -> None:
        """End the process, and remove its folders."""
        self._finalizer()

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self._process.poll() is None

    def _read(self, seconds: float) -> dict[str, Any]:
        """Return the next message of the worker, which is killed if it takes longer; empty if it ended."""
        assert self._process.stdout is not None
        timer = threading.Timer(seconds, self._time_out)
        timer.start()
        try:
            return parse_line(self._process.stdout.readline().decode(errors="replace"))
        finally:
            timer.cancel()

    def _time_out(self) -> None:
        self.has_timed_out = True
        self._process.kill()

    def _copy(self, files: Mapping[str, Path]) -> int:
        """Copy files into the working directory, read-only; return their size."""
        for name, path in files.items():
            target = self._folder / "work" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o444)
            self._known[name] = _mark(target.stat())
        return sum(path.stat().st_size for path in files.values())

    def _is_input(self, name: str, status: Any) -> bool:
        return self._known.get(name) == _mark(status)


def _mark(status: Any) -> tuple[int, ...]:
    """Return what changes when a file does."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _end(process: subprocess.Popen[bytes], folder: Path, pid: int) -> None:
    """Kill the process of an instance and remove its folder, unless this is a fork of the process that made them."""
    if os.getpid() != pid:
        return
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            stream.close()  # type: ignore[union-attr]  # Both are pipes.
    _remove_folder(folder)


def _remove_folder(folder: Path) -> None:
    """Remove a folder, however deep it is."""
    with contextlib.suppress(OSError):
        if os.rename not in os.supports_dir_fd:  # On Windows, where paths are short.
            shutil.rmtree(folder)
            return
        parent = os.open(folder, FOLDER_FLAGS)
        try:
            for name in os.listdir(parent):
                remove_at(parent, name)
        finally:
            os.close(parent)
        folder.rmdir()
