"""The kernel sandbox as one of Inspect's sandboxes: `sandbox="code_chains"` in a task of `inspect_ai`.

Inspect loads this module by its entry point; LangChain is not needed.
"""

from __future__ import annotations

import posixpath
import shlex
import uuid
from pathlib import PurePosixPath
from typing import Any, Literal, overload

import anyio.to_thread

from code_chains.errors import needs
from code_chains.executors.sandbox.shell import TIMED_OUT, Shell

with needs("inspect", "sandbox", "code_chains"):
    from inspect_ai.util import ExecResult, OutputLimitExceededError, SandboxEnvironment, sandboxenv

FOLDER = "/box"
_ERRORS: dict[str, type[OSError]] = {
    "file_not_found": FileNotFoundError,
    "permission_denied": PermissionError,
    "is_directory": IsADirectoryError,
}


@sandboxenv(name="code_chains")
class KernelSandbox(SandboxEnvironment):
    """A sandbox of this machine for one sample: no daemon, no network, and the programs of this machine read-only.

    Args:
        shell: Where its commands run.
    """

    def __init__(self, shell: Shell) -> None:
        super().__init__()
        self._shell = shell

    @classmethod
    async def sample_init(
        cls, task_name: str, config: Any, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        """Make the sandbox of a sample."""
        return {"default": cls(await anyio.to_thread.run_sync(Shell))}

    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: Any, environments: dict[str, SandboxEnvironment], interrupted: bool
    ) -> None:
        """End the sandboxes of a sample, with their files."""
        for environment in environments.values():
            await anyio.to_thread.run_sync(environment.as_type(cls)._shell.close)

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002 - Inspect names it.
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,  # noqa: ASYNC109 - Inspect names it.
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Run a command; all run as the one user of the sandbox."""
        own = f"/tmp/.inspect-{uuid.uuid4().hex}"  # noqa: S108 - the sandbox's own
        if input is not None:
            await self.write_file(f"{own}.in", input)
        variables = [f"{name}={value}" for name, value in (env or {}).items()]
        command = shlex.join(["env", *variables, *cmd] if variables else cmd)
        source = f"{own}.in" if input is not None else "/dev/null"
        line = f"cd {shlex.quote(self._path(cwd or ''))} && {command} <{source} 2>{own}.err"
        done = await anyio.to_thread.run_sync(self._shell.execute, line, float(timeout or 0))
        if done.code == TIMED_OUT and done.reason:
            raise TimeoutError(done.reason)
        printed, _ = await anyio.to_thread.run_sync(self._shell.read, f"{own}.err")
        errors = (printed or b"").decode(errors="replace") + done.reason
        output = done.output.decode(errors="replace")
        if done.is_truncated:
            raise OutputLimitExceededError(f"{self._shell.limits.output} bytes", output)
        return ExecResult(done.code == 0, done.code, output, errors)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file, with the folders above it."""
        content = contents.encode() if isinstance(contents, str) else contents
        _check(file, await anyio.to_thread.run_sync(self._shell.write, self._path(file), content))

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...
    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...
    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Read a file."""
        content, error = await anyio.to_thread.run_sync(self._shell.read, self._path(file))
        _check(file, error)
        return (content or b"").decode() if text else content or b""

    def _path(self, file: str) -> str:
        return posixpath.normpath(str(PurePosixPath(FOLDER, file)))


def _check(file: str, error: str) -> None:
    """Raise what Inspect expects of a file that cannot be read or written."""
    if error.startswith("larger"):
        raise OutputLimitExceededError(error, None)
    if error:
        raise _ERRORS.get(error, OSError)(f"{file}: {error}")
