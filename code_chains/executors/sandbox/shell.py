"""A shell with files in one session of the kernel sandbox, for agents of any framework."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from code_chains.errors import ConfigurationError, SessionError
from code_chains.executors.limits import MAX_SECONDS, Limits
from code_chains.executors.runner import Closing
from code_chains.executors.sandbox.executor import SandboxExecutor
from code_chains.executors.sandbox.sessions import SandboxSession
from code_chains.executors.values import value_of
from code_chains.records import Execution

LIMITS = Limits(
    seconds=300.0, memory="2G", output="8M", processes=256, disk="512M", files=100_000, artifacts="64M"
)
"""The limits of one command by default; files count over all of them."""
TIMED_OUT, KILLED, REFUSED = 124, 137, 125
"""Exit codes as those of `timeout`, of a process that was killed, and of Docker where it could not run a command."""
GRACE_S = 1.0
"""Seconds between the time limit of a command and that of the run that it is part of."""
DIGITS_OF_BYTE, FRAME_BYTES = 2, 1024
"""A run returns bytes as hexadecimal digits in a frame, all of which must fit into the limit of artifacts."""
SHELL = """
import os, select, shutil, subprocess, tempfile, time
def _execute():
    shell = [shutil.which("bash") or "/bin/sh", "-c", command]
    if len(command) > 100_000:  # More than the kernel takes as an argument.
        with tempfile.NamedTemporaryFile("w", delete=False) as script:
            script.write(command)
        shell[1:] = [script.name]
    pipe = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PIP_RETRIES": "0"}
    process, deadline, output, size = (
        subprocess.Popen(shell, env=environment, **pipe), time.monotonic() + seconds, b"", 0
    )
    source = process.stdout.fileno()
    os.set_blocking(source, False)
    while True:
        code, data = process.poll(), None  # It is asked first, as it may print until it ends.
        try:
            data = os.read(source, 1 << 16)
        except BlockingIOError:
            pass
        size += len(data or b"")
        output += (data or b"")[:max_bytes - len(output)]
        if code is not None and not data:
            return code if code >= 0 else 128 - code, output, size > max_bytes
        if time.monotonic() > deadline:
            process.kill()
            return None, output, size > max_bytes
        if not data:
            select.select([] if data == b"" else [source], [], [], 0.01)
_execute()
"""
"""Invariant: the output needs no file, as a command may have filled the disk."""
UPLOAD = """
import os
def _write(path, content):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
    except PermissionError:
        return "permission_denied"
    except IsADirectoryError:
        return "is_directory"
    except (FileExistsError, NotADirectoryError, ValueError):
        return "invalid_path"
    except OSError as error:
        return "permission_denied" if error.errno == 30 else error.strerror
(_write(path, content),)
"""
"""A tuple, as None alone is no value."""
DOWNLOAD = """
import os, stat
def _read(path):
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None, "is_directory" if os.path.isdir(path) else "invalid_path"
            content = file.read(max_bytes + 1)
    except FileNotFoundError:
        return None, "file_not_found"
    except PermissionError:
        return None, "permission_denied"
    except IsADirectoryError:
        return None, "is_directory"
    except (OSError, ValueError):
        return None, "invalid_path"
    return (None, f"larger than {max_bytes} bytes") if len(content) > max_bytes else (content, None)
_read(path)
"""


@dataclass(frozen=True)
class Done:
    """How a command ended.

    Attributes:
        code: Its exit code; that of `timeout` or of a killed process where it was ended.
        output: What it printed.
        is_truncated: Whether it printed more than the limit of output.
        reason: Why it had no effect, or was ended; empty otherwise.
    """

    code: int
    output: bytes = b""
    is_truncated: bool = False
    reason: str = ""


class Shell(Closing):
    """Commands and files in a session of a `SandboxExecutor`.

    Commands see the programs of this machine read-only, the working directory `/box`, `/tmp`, and nothing else: no other
    file, no network, not even loopback, no process of the host, none of its environment variables. Files stay from one
    command to the next; what a command leaves running is ended with it. A command that exceeds a limit of memory or
    processes has no effect on files. Any number of threads may use a shell; their commands wait for each other.

    Args:
        executor: Where commands run; one with `commands=True`. None for a new one, which `close` closes. Its
            `session_timeout` ends the shell as well, and one of its `max_sessions` is taken.
        limits: The limits of a new one; `LIMITS` by default.

    Raises:
        ConfigurationError: The executor does not let programs run commands.
        IsolationError: This machine lacks the required isolation; raised by the first command at the latest.
    """

    def __init__(self, executor: SandboxExecutor | None = None, *, limits: Limits | None = None) -> None:
        if executor is not None and not (isinstance(executor, SandboxExecutor) and executor.commands):
            raise ConfigurationError("executor", executor, "a SandboxExecutor(commands=True)")
        if executor is not None and limits is not None:
            raise ConfigurationError("limits", limits, "limits of the executor instead")
        self._is_owner = executor is None
        self._executor = executor or _new_executor(limits or LIMITS)
        self.limits: Limits = self._executor.limits
        self._seconds = self.limits.seconds - min(GRACE_S, self.limits.seconds / 10)
        self._max_read = max(0, self.limits.artifacts_bytes - FRAME_BYTES) // DIGITS_OF_BYTE
        self._max_output = min(self.limits.output_bytes, self._max_read)
        self._session: SandboxSession | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def execute(self, command: str, seconds: float = 0.0) -> Done:
        """Run a command, for `bash` if that is installed, else `sh`.

        Args:
            command: The command.
            seconds: After these it is ended; at most the time limit, as is 0.

        Raises:
            SessionError: The session, and with it all files, is lost.
        """
        seconds = min(seconds or self._seconds, self._seconds)
        variables = {"command": command, "seconds": seconds, "max_bytes": self._max_output}
        execution = self._run(SHELL, variables)
        if not execution.ok:
            code = {"timeout": TIMED_OUT, "memory": KILLED}.get(execution.status, REFUSED)
            return Done(code, reason=f"The command had no effect. {execution.summary}")
        code, output, is_truncated = value_of(execution)
        if code is None:
            return Done(TIMED_OUT, output, is_truncated, f"The command was ended after {seconds:g} seconds.")
        return Done(code, output, is_truncated)

    def write(self, path: str, content: bytes) -> str:
        """Write a file at an absolute path, with the folders above it; return why not, or an empty text.

        Raises:
            SessionError: The session is lost.
        """
        if not path.startswith("/"):
            return "invalid_path"
        if len(content) > self.limits.disk_bytes:
            return f"larger than the limit of the disk, {self.limits.disk}"
        (error,) = _value(self._run(UPLOAD, {"path": path, "content": content}), path)
        return str(error or "")

    def read(self, path: str) -> tuple[bytes | None, str]:
        """Return the content of a file at an absolute path, or None and why not.

        Raises:
            SessionError: The session is lost.
        """
        if not path.startswith("/"):
            return None, "invalid_path"
        content, error = _value(self._run(DOWNLOAD, {"path": path, "max_bytes": self._max_read}), path)
        return content, str(error or "")

    def rollback(self) -> None:
        """Undo what the last command, upload or download did to files, one step alone; see `Session.rollback`."""
        with self._lock:
            self._open().rollback()

    def _run(self, code: str, variables: dict[str, Any]) -> Execution:
        with self._lock:
            try:
                return self._open().run(code, variables=variables, return_value=True)
            except OSError as error:
                if not self._is_closed:
                    raise
                raise SessionError("This shell was closed during the operation.") from error

    def _open(self) -> SandboxSession:
        """Return the session. A lost one is not replaced: an agent would go on without its files, and not know."""
        if self._is_closed:
            raise SessionError("This shell is closed. Make a new one.")
        if self._session is None:
            self._session = self._executor.session()
            self._session.collects_files = False
        return self._session

    def close(self) -> None:
        """End what is running and the session, and with it all files; close the executor if it was made for this shell."""
        self._is_closed = True
        if self._is_owner:
            self._executor.close()  # Ends what is running.
        with self._lock:
            if self._session is not None:
                self._session.close()


def _new_executor(limits: Limits) -> SandboxExecutor:
    """Return an executor whose sessions outlive the pauses of an agent that thinks, or waits for a person."""
    limits = replace(limits, seconds=min(limits.seconds + GRACE_S, MAX_SECONDS))
    return SandboxExecutor(limits=limits, preload=(), commands=True, session_timeout=MAX_SECONDS)


def _value(execution: Execution, path: str) -> Any:
    """Return the value of a run that copies a file.

    Raises:
        SessionError: The file could not be copied.
    """
    if not execution.ok:
        raise SessionError(f"{path} could not be copied: {execution.summary}")
    return value_of(execution)
