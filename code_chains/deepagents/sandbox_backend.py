"""The kernel sandbox as a backend of Deep Agents: files and a shell, on this machine, without a daemon or an account."""

from __future__ import annotations

import uuid

from code_chains.errors import InputError, needs
from code_chains.executors import Limits, SandboxExecutor
from code_chains.executors.sandbox.shell import Shell

with needs("deepagents", "SandboxBackend", "deepagents"):
    from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
    from deepagents.backends.sandbox import BaseSandbox


class SandboxBackend(BaseSandbox):
    """A Deep Agents backend whose commands run in a session of a `SandboxExecutor`.

    What commands see, and which of their effects stay, says `executors.sandbox.shell.Shell`.

    Args:
        executor: Where commands run; one with `commands=True`. None for a new one, which `close` closes. Its
            `session_timeout` ends the backend as well, and one of its `max_sessions` is taken.
        limits: The limits of a new one; those of a `Shell` by default.

    Raises:
        ConfigurationError: The executor does not let programs run commands, or `deepagents` is not installed.
        IsolationError: This machine lacks the required isolation; raised by the first command at the latest.

    Example:
        with SandboxBackend() as backend:
            agent = create_deep_agent(model="openai:gpt-5-mini", backend=backend)
    """

    def __init__(self, executor: SandboxExecutor | None = None, *, limits: Limits | None = None) -> None:
        self._shell = Shell(executor, limits=limits)
        self._id = f"code-chains-{uuid.uuid4().hex[:12]}"

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
        done = self._shell.execute(command, timeout or 0.0)
        text = done.output.decode(errors="replace")
        if done.reason:
            text = "\n".join([*text.splitlines(), done.reason])
        return ExecuteResponse(text, done.code, done.is_truncated)

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
        return [FileUploadResponse(path, self._shell.write(path, content) or None) for path, content in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read files at absolute paths, each as large as half the limit of artifacts at most.

        Raises:
            InputError: A path is not text.
        """
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise InputError("paths must be a list of texts.")
        found = {path: self._shell.read(path) for path in paths}
        return [FileDownloadResponse(path, found[path][0], found[path][1] or None) for path in paths]

    def rollback(self) -> None:
        """Undo what the last command, upload or download did to files, one step alone; see `Session.rollback`."""
        self._shell.rollback()

    def close(self) -> None:
        """End what is running and the session, and with it all files; close the executor if it was made for this backend."""
        self._shell.close()

    def __enter__(self) -> SandboxBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
