"""A shell in the kernel sandbox, for LangChain's `ShellToolMiddleware`."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from langchain.agents.middleware._execution import SHELL_TEMP_PREFIX, BaseExecutionPolicy
from langchain.agents.middleware.shell_tool import _DONE_MARKER_PREFIX

import code_chains
from code_chains.agents.relay import READ_SECONDS
from code_chains.errors import ConfigurationError, ExecutorError, IsolationError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.executors.inputs import check_files
from code_chains.executors.limits import MAX_COUNT, MAX_SECONDS
from code_chains.executors.sandbox.interpreter import executable

LIMITS = Limits(memory="2G", processes=256, disk="512M", files=100_000)
"""The limits of a shell by default, with all that it starts."""
OF_RELAY: dict[str, Any] = {
    "seconds": MAX_SECONDS,
    "artifacts": "64K",
    "tool_calls": MAX_COUNT,
    "tool_seconds": 10 * READ_SECONDS,
    "tool_bytes": "4M",
}
"""Limits of the run that the shell is part of: the middleware limits time and output."""
PACKAGE_FOLDER = str(Path(code_chains.__file__).parents[1])
START_CODE = "import sys; sys.path.append({!r}); from code_chains.agents.relay import main; main({})"
STOP_SECONDS = 5.0


@dataclass
class SandboxExecutionPolicy(BaseExecutionPolicy):
    """Run the shell of LangChain's `ShellToolMiddleware` in the kernel sandbox of this machine.

    Commands see what those of `SandboxExecutor(commands=True)` see: the programs of this machine, read-only, a working
    directory `/box`, `/tmp`, and nothing else: no other file, no network, no process of the host, none of its environment
    variables but those in the middleware's `env`. Before the shell starts a probe tries to get out; if anything is open,
    there is no shell.

    The working directory is the shell's own and ends with it, as the middleware's temporary one ends with the agent. So a
    `workspace_root` of the middleware is refused. After a command that takes too long the middleware starts a new shell:
    what was in the one before is lost, and the output of the next command says so. So it is if all that runs in the
    shell exceeds its memory or processes.

    Args:
        command_timeout: Seconds of a command.
        startup_timeout: Seconds until the shell has started, and those of each startup command.
        termination_timeout: Seconds that a shell has to end before it is killed.
        max_output_lines: Lines of a command's output.
        max_output_bytes: Bytes of a command's output.
        limits: What the shell and all that it starts may use: memory, processes, open files, disk and files.
        files: Files that are in the working directory: paths on this machine by their names there, or a list of paths.
        network: Addresses that commands may connect to; see `SandboxExecutor`.

    Raises:
        ConfigurationError: An argument is invalid.
        InputError: A file cannot be used.

    Example:
        policy = SandboxExecutionPolicy(files=[Path("sales.csv")])
        agent = create_agent("openai:gpt-5-mini", middleware=[ShellToolMiddleware(execution_policy=policy)])
    """

    limits: Limits = LIMITS
    files: Mapping[str, Any] | Sequence[Any] = ()
    network: Sequence[str] = ()
    _workspaces: set[Path] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arguments."""
        super().__post_init__()
        for name in ("command_timeout", "startup_timeout", "termination_timeout"):
            seconds = getattr(self, name)
            is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if not is_number or not 0 < seconds < math.inf:
                raise ConfigurationError(name, seconds, "a number of seconds, greater than 0")
        if not isinstance(self.limits, Limits):
            raise ConfigurationError("limits", self.limits, "a Limits, e.g. Limits(memory='1G')")
        SandboxExecutor(limits=self.limits, network=self.network, preload=(), commands=True).close()
        check_files(self.files)

    def spawn(
        self, *, workspace: Path, env: Mapping[str, str], command: Sequence[str]
    ) -> subprocess.Popen[str]:
        """Start a shell; the process returned relays its streams, and if it is killed the sandbox ends.

        Args:
            workspace: The temporary directory of the middleware, whose place the sandbox's own takes.
            env: Environment variables of the shell, besides those of the sandbox.
            command: The shell.

        Raises:
            ConfigurationError: The workspace is a directory that is to be kept.
            InputError: A file cannot be used.
            IsolationError: This machine lacks the required isolation.
            ExecutorError: The shell could not be started.
        """
        if not workspace.name.startswith(SHELL_TEMP_PREFIX):
            remedy = (
                "none: the sandbox has a working directory of its own, and files= of the policy are in it;"
                " code_chains.deepagents.SandboxBackend takes files in and out"
            )
            raise ConfigurationError("workspace_root", str(workspace), remedy)
        spec = {
            "command": list(command),
            "environment": dict(env),
            "files": {name: os.path.abspath(path) for name, path in check_files(self.files).items()},
            "network": list(self.network),
            "limits": asdict(replace(self.limits, **OF_RELAY)),
            "is_new": workspace in self._workspaces,
            "marker": _DONE_MARKER_PREFIX,
        }
        process = self._start(json.dumps(spec))
        self._workspaces.add(workspace)
        self._workspaces.difference_update([path for path in [*self._workspaces] if not path.exists()])
        return process

    def _start(self, spec: str) -> subprocess.Popen[str]:
        with ExitStack() as undo:
            ours, theirs = socket.socketpair()
            undo.enter_context(ours)
            try:
                with theirs:
                    process = _spawn(theirs.fileno())
                undo.callback(_stop, process)
                ours.settimeout(self.startup_timeout)
                ours.sendall(f"{spec}\n".encode())
                with ours.makefile("r", encoding="utf-8") as replies:
                    _check_started(replies.readline())
            except TimeoutError as error:
                message = f"The shell did not start within {self.startup_timeout:g} seconds."
                raise ExecutorError(message, is_retryable=True) from error
            except OSError as error:
                raise ExecutorError(f"The shell did not start: {error}.", is_retryable=True) from error
            undo.pop_all()
        process.control = ours
        return process


class _RelayProcess(subprocess.Popen[str]):
    """The relay, which ends once `control` is closed: with this object, or with the application."""

    control: socket.socket | None = None

    def __del__(self) -> None:
        if self.control is not None:
            self.control.close()
        super().__del__()


def _spawn(control: int) -> _RelayProcess:
    """Start the relay, in a process group of its own, which the middleware may kill. What it passes on is not traced."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("LANGSMITH_", "LANGCHAIN_"))
    }
    return _RelayProcess(
        [executable(), "-P", "-c", START_CODE.format(PACKAGE_FOLDER, control)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env=environment,
        text=True,
        encoding="utf-8",
        errors="replace",
        bufsize=1,
        pass_fds=(control,),
        start_new_session=True,
    )


def _check_started(line: str) -> None:
    """Raise if the relay's reply is not that the shell has started."""
    reply = json.loads(line or '{"error": "", "message": "its process has ended"}')
    if error := reply.get("message"):
        kind = IsolationError if reply["error"] == "IsolationError" else ExecutorError
        raise kind(f"The shell did not start: {error}")


def _stop(process: subprocess.Popen[str]) -> None:
    """Kill a relay, with which its sandbox ends."""
    process.kill()
    process.communicate(timeout=STOP_SECONDS)
