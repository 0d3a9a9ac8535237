"""Programs in WebAssembly, seen from the host: the process around them, and what it says."""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from code_chains.errors import ExecutorError
from code_chains.executors.guest.untrusted import parse
from code_chains.executors.guest.wire import frame, read_frame
from code_chains.executors.limits import Limits
from code_chains.executors.remote.external import load_extra
from code_chains.executors.sandbox.interpreter import executable
from code_chains.executors.wasm.runtime import PYTHON, WORKER, environment
from code_chains.temporary import process_folder

READ_BYTES = 1 << 16


class Printed:
    """Reads a stream of a process to its end, in a thread of its own: what is in a pipe of the host's outlives the process.

    Args:
        stream: The stream, which is closed at its end.
        stop: Kills the process.
    """

    def __init__(self, stream: IO[bytes], stop: Callable[[], None]) -> None:
        self._stream, self._stop = cast(io.BufferedReader, stream), stop
        self._changed = threading.Condition()
        self._taken, self._mark, self._limit = bytearray(), b"", 0
        self._has_ended = False
        threading.Thread(target=self._read, daemon=True, name="code_chains-wasm-printed").start()

    def expect(self, mark: bytes, limit: int) -> None:
        """Keep what follows.

        Args:
            mark: What the process prints behind it, which no program knows.
            limit: Bytes of text with which the process is killed.
        """
        with self._changed:
            self._taken, self._mark, self._limit = bytearray(), mark, limit

    def taken(self) -> bytes:
        """Wait for the mark or the end of the process; return what came before, up to the limit."""
        with self._changed:
            self._changed.wait_for(self._is_over)
            text, self._mark = self._taken.removesuffix(self._mark), b""
        return bytes(text[: self._limit])

    def _is_over(self) -> bool:
        return self._has_ended or self._taken.endswith(self._mark)

    def _read(self) -> None:
        with self._stream:
            while data := self._stream.read1(READ_BYTES):
                if self._is_too_much(data):
                    self._stop()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _is_too_much(self, data: bytes) -> bool:
        """Keep what was printed, unless it was between programs; return whether that is more than enough."""
        with self._changed:
            if not self._mark:
                return False
            self._taken += data
            self._changed.notify_all()
            return len(self._taken) >= self._limit + len(self._mark)


if sys.platform == "win32":
    import msvcrt

START_TIMEOUT_S = 60.0
MODULES = WORKER.parents[1]
"""The folder of the package `guest`, of which the worker uses a module."""
FILE_ITEMS = 2
"""Items of a message about a file: its name and its content."""
FILE, OUTCOME = "f", "o"
MAX_PROBE_BYTES = 1 << 20
MARK_BYTES = 16
Answers = Mapping[str, Callable[[bytes], object]]


class Instance:
    """A process with a Python in WebAssembly, in which one program runs at a time.

    Args:
        runtime: The folder of compiled Python.

    Attributes:
        has_timed_out: Whether it was killed as it took too long.

    Raises:
        ExecutorError: The process cannot be started.
    """

    def __init__(self, runtime: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="wasm-", dir=process_folder()))
        self.has_timed_out: bool = False
        self._count, self._is_broken = 0, False
        self._writing = threading.Lock()
        options = {
            "python": str(runtime / PYTHON),
            "modules": str(MODULES),
            "folder": str(self._folder),
            "zones": str(Path(load_extra("tzdata", "wasm").__path__[0]) / "zoneinfo"),
        }
        try:
            self._process, self._reports = _started(options, environment(runtime))
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise ExecutorError(
                f"The process for WebAssembly cannot be started: {error}.", is_retryable=True
            ) from error
        streams = (self._process.stdin, self._reports)
        self._finalizer = weakref.finalize(self, _end, self._process, streams, self._folder, os.getpid())
        self._printed = {
            name: Printed(getattr(self._process, name), self._process.kill) for name in ("stdout", "stderr")
        }
        if "ready" not in self._watched(lambda: START_TIMEOUT_S, self._read)[0]:
            self.remove()
            raise ExecutorError("The process for WebAssembly did not start.", is_retryable=True)

    def make_python(self, memory: int, disk: int, seed: str) -> None:
        """Make a Python that has run nothing, in place of the one that was there.

        Args:
            memory: Bytes of memory of its programs.
            disk: Bytes of their files.
            seed: Where its random numbers begin.

        Raises:
            ExecutorError: It cannot be made.
        """
        self._send({"op": "guest", "memory": memory, "disk": disk, "seed": seed})
        if "made" not in self._watched(lambda: START_TIMEOUT_S, self._read)[0]:
            raise ExecutorError("Python did not start in WebAssembly.", is_retryable=True)

    def probe(self, source: str) -> str:
        """Return what our own source prints in the Python that is there."""
        message = {"op": "probe", "mark": self._expect(MAX_PROBE_BYTES)}
        self._send(message, source.encode())
        report = self._watched(lambda: START_TIMEOUT_S, lambda: self._report(MAX_PROBE_BYTES, {}))
        if "end" not in report or report["end"]["trap"]:
            raise ExecutorError("Python did not start in WebAssembly.", is_retryable=True)
        return str(report["stdout"])

    def run(
        self,
        body: Mapping[str, Any],
        files: Mapping[str, Path],
        limits: Limits,
        seconds_left: Callable[[], float],
        answers: Answers,
    ) -> dict[str, Any]:
        """Run a program; return a report for `supervised.execution_of`, and in `end` what the worker says.

        Without `end` it was killed.

        Args:
            body: What the Python there reads.
            files: Input files by name.
            limits: The limits of output and artifacts.
            seconds_left: Returns how long it may still run.
            answers: Take what the program says meanwhile, by its kind: `t` to tools, `p` to its tests or their program.
        """
        self._count += 1
        room = limits.artifacts_bytes
        try:
            body = {**body, "number": self._count, "files": self._copy(files), "artifacts": room}
            mark = self._expect(limits.output_bytes)
            message = {"op": "run", "number": self._count, "room": room * 4 // 3, "mark": mark}  # In Base64.
            self._send(message, json.dumps(body).encode())
            report: dict[str, Any] = self._watched(
                seconds_left, lambda: self._report(limits.output_bytes, answers)
            )
            # What printed too much is killed, perhaps not yet: it must not be taken for another program.
            self._is_broken = "end" not in report or report["reason"] == "output"
            return report
        finally:
            shutil.rmtree(self._folder / f"in-{self._count}", ignore_errors=True)

    def reply(self, data: bytes) -> None:
        """Answer what a program has asked."""
        with contextlib.suppress(ExecutorError):  # Then nobody waits for it.
            self._send({"op": "reply"}, data)

    def stop(self) -> None:
        """Kill the process; it may be called at any time, by any thread."""
        self._process.kill()
        self._process.wait()

    def remove(self) -> None:
        """End the process, and remove its folder."""
        self._finalizer()

    @property
    def is_alive(self) -> bool:
        """Whether its process runs, and goes on to do so."""
        return not self._is_broken and self._process.poll() is None

    # -- messages --------------------------------------------------------------------------------------------

    def _report(self, max_output: int, answers: Answers) -> dict[str, Any]:
        """Take in messages until the end, and what was printed."""
        report: dict[str, Any] = {"reason": None, "files": [], "result": ""}
        while "end" not in report:
            message, data = self._read()
            if not message:
                break
            if reason := message.get("limit"):
                report["reason"] = reason
            elif kind := message.get("from"):
                _take(report, answers, kind, data)
            else:
                report |= message
        for name, printed in self._printed.items():
            text = printed.taken()
            report[name] = text.decode(errors="replace")
            if len(text) == max_output:
                report["reason"] = "output"
        return report

    def _expect(self, max_output: int) -> str:
        """Keep what is printed from here on; return what the worker prints behind it."""
        mark = secrets.token_hex(MARK_BYTES)
        for printed in self._printed.values():
            printed.expect(mark.encode(), max_output)
        return mark

    def _watched(self, left: Callable[[], float], do: Callable[[], Any]) -> Any:
        """Do something, and kill the process if it takes too long."""
        done = threading.Event()

        def watch() -> None:
            while (seconds := left()) > 0:
                if done.wait(seconds):
                    return
            self.has_timed_out = True
            self._process.kill()

        thread = threading.Thread(target=watch, daemon=True, name="code_chains-wasm-watch")
        thread.start()
        try:
            return do()
        finally:
            done.set()
            thread.join()

    def _read(self) -> tuple[dict[str, Any], bytes]:
        """Return the next message of the worker; empty if it ended."""
        return read_frame(self._reports) or ({}, b"")

    def _send(self, message: Mapping[str, Any], data: bytes = b"") -> None:
        assert self._process.stdin is not None
        try:
            with self._writing:
                self._process.stdin.write(frame(dict(message), [data]))
                self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise ExecutorError("The process for WebAssembly has ended.", is_retryable=True) from error

    def _copy(self, files: Mapping[str, Path]) -> dict[str, str]:
        """Copy files to where programs read them; return their places by their names."""
        places = {name: f"in-{self._count}/{index}" for index, name in enumerate(files)}
        for name, path in files.items():
            (self._folder / places[name]).parent.mkdir(exist_ok=True)
            shutil.copyfile(path, self._folder / places[name])
        return places


def _take(report: dict[str, Any], answers: Answers, kind: str, data: bytes) -> None:
    """Take in what a program has sent, which may be anything."""
    if kind in answers:
        answers[kind](data)
    elif kind == OUTCOME:
        report["result"] = b64encode(data).decode()
    elif kind == FILE:
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            name, content = parse(data, FILE_ITEMS)
            if content is not None:
                b64decode(content, validate=True)
            report["files"].append((str(name), content))


def _started(options: dict[str, str], env: dict[str, str]) -> tuple[subprocess.Popen[bytes], BinaryIO]:
    """Start the worker; return its process and what it reports."""
    read, write = os.pipe()
    reports = os.fdopen(read, "rb")
    inherited: dict[str, Any] = {"pass_fds": (write,)}
    number = write
    if sys.platform == "win32":
        number = msvcrt.get_osfhandle(write)
        os.set_handle_inheritable(number, True)
        inherited = {"startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": [number]})}
    command = [executable(), "-I", str(WORKER), json.dumps({**options, "reports": number})]
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=options["folder"], **inherited
        )
    except OSError:
        reports.close()
        raise
    finally:
        os.close(write)
    return process, reports


def _end(process: subprocess.Popen[bytes], streams: Iterable[Any], folder: Path, pid: int) -> None:
    """Kill the process of an instance and remove its folder, unless this is a fork of the process that made them."""
    if os.getpid() != pid:
        return
    process.kill()
    process.wait()
    for stream in streams:
        with contextlib.suppress(OSError):
            stream.close()
    shutil.rmtree(folder, ignore_errors=True)
