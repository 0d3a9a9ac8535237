"""The kernel sandbox as a backend of Deep Agents: files and a shell, on this machine, without a daemon or an account."""

from __future__ import annotations

import threading
import uuid
from typing import Any

from code_chains.errors import ConfigurationError, SessionError, needs
from code_chains.executors import Limits, SandboxExecutor
from code_chains.executors.sandbox.sessions import SandboxSession
from code_chains.executors.values import value_of
from code_chains.state import Execution

with needs("deepagents", "SandboxBackend", "deepagents"):
    from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
    from deepagents.backends.sandbox import BaseSandbox

__all__ = ["LIMITS", "SandboxBackend"]

LIMITS = Limits(
    seconds=300.0, memory="2G", output="8M", processes=256, disk="512M", files=100_000, artifacts="64M"
)
"""The limits of one command by default; files count over all of them."""
TIMED_OUT, KILLED = 124, 137
"""Exit codes as those of `timeout` and of a process that was killed."""
GRACE_S = 1.0
"""Seconds between the time limit of a command and that of the run that it is part of."""
SHELL = """
import os, select, shutil, subprocess, time
def _execute():
    shell = [shutil.which("bash") or "/bin/sh", "-c", command]
    pipe = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process, deadline, output, size = subprocess.Popen(shell, **pipe), time.monotonic() + seconds, b"", 0
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
            return code, output, size > max_bytes
        if time.monotonic() > deadline:
            process.kill()
            return None, output, size > max_bytes
        if not data:
            select.select([] if data == b"" else [source], [], [], 0.01)
_execute()
"""
"""Invariant: it needs no file, as a command may have filled the disk."""
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
[_write(path, content) for path, content in zip(paths, contents)]
"""
DOWNLOAD = """
def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read(), None
    except FileNotFoundError:
        return None, "file_not_found"
    except PermissionError:
        return None, "permission_denied"
    except IsADirectoryError:
        return None, "is_directory"
    except (OSError, ValueError):
        return None, "invalid_path"
[_read(path) for path in paths]
"""


class SandboxBackend(BaseSandbox):
    """A Deep Agents backend whose commands run in a session of a `SandboxExecutor`.

    Commands see the programs of this machine read-only, the working directory `/box`, `/tmp`, and nothing else: no other
    file, no network, no process of the host, no environment variable. Files stay from one command to the next; what a
    command leaves running is ended with it. A command that exceeds a limit has no effect on files. Any number of threads
    may use a backend; their commands wait for each other.

    Args:
        executor: Where commands run; one with `commands=True`. None for a new one, which `close` closes.
        limits: The limits of a new one; `LIMITS` by default.

    Raises:
        ConfigurationError: The executor does not let programs run commands, or `deepagents` is not installed.
        IsolationError: This machine lacks the required isolation; raised by the first command at the latest.

    Example:
        with SandboxBackend() as backend:
            agent = create_deep_agent(model="openai:gpt-5-mini", backend=backend)
    """

    def __init__(self, executor: SandboxExecutor | None = None, *, limits: Limits | None = None) -> None:
        if executor is not None and limits is not None:
            raise ConfigurationError("limits", limits, "limits of the executor instead")
        self._is_owner = executor is None
        # A session outlives the pauses of an agent that thinks, or waits for a person.
        self._executor = executor or SandboxExecutor(
            limits=limits or LIMITS, preload=(), commands=True, session_timeout=86_400
        )
        if not self._executor.commands:
            raise ConfigurationError("executor", executor, "a SandboxExecutor(commands=True)")
        self._id = f"code-chains-{uuid.uuid4().hex[:12]}"
        self._session: SandboxSession | None = None
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
        """
        limits = self._executor.limits
        variables = {
            "command": command,
            "seconds": min(timeout or limits.seconds, max(limits.seconds - GRACE_S, limits.seconds / 2)),
            "max_bytes": limits.output_bytes,
        }
        try:
            execution = self._run(SHELL, variables)
        except SessionError as error:
            return ExecuteResponse(f"{error} The next command starts in a new one, without files.", KILLED)
        if not execution.ok:
            return ExecuteResponse(f"The command had no effect. {execution.summary}", KILLED)
        code, output, is_truncated = value_of(execution)
        text = output.decode(errors="replace")
        if code is None:
            lines = [*text.splitlines(), f"The command was ended after {variables['seconds']:g} seconds."]
            text = "\n".join(lines)
        return ExecuteResponse(text, TIMED_OUT if code is None else code, is_truncated)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files at absolute paths, with the folders above them."""
        valid = {path: content for path, content in files if path.startswith("/")}
        errors = self._errors_or_values(UPLOAD, list(valid), contents=list(valid.values()))
        return [FileUploadResponse(path, errors.get(path, "invalid_path")) for path, _ in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read files at absolute paths."""
        found = self._errors_or_values(DOWNLOAD, [path for path in paths if path.startswith("/")])
        missing = (None, "invalid_path")
        return [FileDownloadResponse(path, *found.get(path, missing)) for path in paths]

    def _errors_or_values(self, code: str, paths: list[str], **variables: Any) -> dict[str, Any]:
        """Return what a program tells of each path."""
        if not paths:
            return {}
        execution = self._run(code, {"paths": paths, **variables})
        if not execution.ok:
            raise SessionError(f"The files could not be copied: {execution.summary}")
        return dict(zip(paths, value_of(execution), strict=True))

    def rollback(self) -> None:
        """Undo what the last command or upload did to files; see `Session.rollback`."""
        with self._lock:
            self._open().rollback()

    def _run(self, code: str, variables: dict[str, Any]) -> Execution:
        with self._lock:
            try:
                return self._open().run(code, variables=variables, return_value=True)
            except SessionError:
                self._session = None
                raise

    def _open(self) -> SandboxSession:
        if self._session is None:
            self._session = self._executor.session()
        return self._session

    def close(self) -> None:
        """End the session, and with it all files; close the executor if it was made for this backend."""
        with self._lock:
            if self._session is not None:
                self._session.close()
        if self._is_owner:
            self._executor.close()

    def __enter__(self) -> SandboxBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
