"""The kernel sandbox as a backend of Deep Agents: files and a shell, on this machine, without a daemon or an account."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace
from typing import Any

from code_chains.errors import ConfigurationError, InputError, SessionError, needs
from code_chains.executors import Limits, SandboxExecutor
from code_chains.executors.limits import MAX_SECONDS
from code_chains.executors.sandbox.sessions import SandboxSession
from code_chains.executors.values import value_of
from code_chains.state import Execution

with needs("deepagents", "SandboxBackend", "deepagents"):
    from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
    from deepagents.backends.sandbox import BaseSandbox

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


class SandboxBackend(BaseSandbox):
    """A Deep Agents backend whose commands run in a session of a `SandboxExecutor`.

    Commands see the programs of this machine read-only, the working directory `/box`, `/tmp`, and nothing else: no other
    file, no network, not even loopback, no process of the host, none of its environment variables. Files stay from one
    command to the next; what a command leaves running is ended with it. A command that exceeds a limit of memory or
    processes has no effect on files. Any number of threads may use a backend; their commands wait for each other.

    Args:
        executor: Where commands run; one with `commands=True`. None for a new one, which `close` closes. Its
            `session_timeout` ends the backend as well, and one of its `max_sessions` is taken.
        limits: The limits of a new one; `LIMITS` by default.

    Raises:
        ConfigurationError: The executor does not let programs run commands, or `deepagents` is not installed.
        IsolationError: This machine lacks the required isolation; raised by the first command at the latest.

    Example:
        with SandboxBackend() as backend:
            agent = create_deep_agent(model="openai:gpt-5-mini", backend=backend)
    """

    def __init__(self, executor: SandboxExecutor | None = None, *, limits: Limits | None = None) -> None:
        if executor is not None and not (isinstance(executor, SandboxExecutor) and executor.commands):
            raise ConfigurationError("executor", executor, "a SandboxExecutor(commands=True)")
        if executor is not None and limits is not None:
            raise ConfigurationError("limits", limits, "limits of the executor instead")
        self._is_owner = executor is None
        self._executor = executor or _new_executor(limits or LIMITS)
        run_limits = self._executor.limits
        self._seconds = run_limits.seconds - min(GRACE_S, run_limits.seconds / 10)
        self._max_download = max(0, run_limits.artifacts_bytes - FRAME_BYTES) // DIGITS_OF_BYTE
        self._max_output = min(run_limits.output_bytes, self._max_download)
        self._id = f"code-chains-{uuid.uuid4().hex[:12]}"
        self._session: SandboxSession | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """What distinguishes this backend from others."""
        return self._id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a command in a shell.

        Args:
            command: The command, for `bash` if that is installed, else `sh`.
            timeout: Seconds after which it is ended, with exit code 124; at most the time limit, as is None or 0.

        Raises:
            InputError: The command is not text, or the timeout is not a number of seconds.
            SessionError: The session, and with it all files, is lost.
        """
        if not isinstance(command, str) or "\0" in command:
            raise InputError("The command must be text, without null characters.")
        if not isinstance(timeout, int | float | None) or (timeout or 0) < 0:
            raise InputError(f"timeout must be a number of seconds or None, not {timeout!r}.")
        seconds = min(timeout or self._seconds, self._seconds)
        variables = {"command": command, "seconds": seconds, "max_bytes": self._max_output}
        execution = self._run(SHELL, variables)
        if not execution.ok:
            code = {"timeout": TIMED_OUT, "memory": KILLED}.get(execution.status, REFUSED)
            return ExecuteResponse(f"The command had no effect. {execution.summary}", code)
        code, output, is_truncated = value_of(execution)
        text = output.decode(errors="replace")
        if code is None:
            text = "\n".join([*text.splitlines(), f"The command was ended after {seconds:g} seconds."])
        return ExecuteResponse(text, TIMED_OUT if code is None else code, is_truncated)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files at absolute paths, with the folders above them.

        Raises:
            InputError: A path is not text, or a content is not bytes.
        """
        for path, content in files:
            if not isinstance(path, str) or not isinstance(content, bytes):
                raise InputError(
                    f"Files are pairs of a path as text and bytes, not {path!r} and {type(content).__name__}."
                )
        return [FileUploadResponse(path, self._upload(path, content)) for path, content in files]

    def _upload(self, path: str, content: bytes) -> str | None:
        if not path.startswith("/"):
            return "invalid_path"
        if len(content) > self._executor.limits.disk_bytes:
            return f"larger than the limit of the disk, {self._executor.limits.disk}"
        execution = self._run(UPLOAD, {"path": path, "content": content})
        (error,) = _value(execution, path)
        return str(error) if error else None

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read files at absolute paths, each as large as half the limit of artifacts at most.

        Raises:
            InputError: A path is not text.
        """
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise InputError("paths must be a list of texts.")
        return [FileDownloadResponse(path, *self._download(path)) for path in paths]

    def _download(self, path: str) -> tuple[bytes | None, str | None]:
        if not path.startswith("/"):
            return None, "invalid_path"
        content, error = _value(self._run(DOWNLOAD, {"path": path, "max_bytes": self._max_download}), path)
        return content, error

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
                raise SessionError("This backend was closed during the operation.") from error

    def _open(self) -> SandboxSession:
        """Return the session. A lost one is not replaced: an agent would go on without its files, and not know."""
        if self._is_closed:
            raise SessionError("This backend is closed. Make a new one.")
        if self._session is None:
            self._session = self._executor.session()
            self._session.collects_files = False
        return self._session

    def close(self) -> None:
        """End what is running and the session, and with it all files; close the executor if it was made for this backend."""
        self._is_closed = True
        if self._is_owner:
            self._executor.close()  # Ends what is running.
        with self._lock:
            if self._session is not None:
                self._session.close()

    def __enter__(self) -> SandboxBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
