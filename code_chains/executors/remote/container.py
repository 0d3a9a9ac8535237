"""Containers: Docker, Podman or Kubernetes through llm-sandbox, a fresh container for each run or session."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import weakref
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from code_chains.errors import ConfigurationError, ExecutorError
from code_chains.executors.limits import Limits
from code_chains.executors.remote.backend_sessions import BackendSession
from code_chains.executors.remote.external import load_extra
from code_chains.executors.remote.protocol_sandbox import (
    GRACE_S,
    PARENT,
    TIMED_OUT,
    ProtocolSandbox,
    RunFolder,
)
from code_chains.executors.remote.remote_executor import RemoteExecutor
from code_chains.executors.remote.server import request_bundle
from code_chains.executors.runner import Program
from code_chains.executors.waiting import Operation, blocking
from code_chains.state import PROBED, Execution
from code_chains.temporary import process_folder

OPEN_TIMEOUT_S = 1800.0
"""Seconds that the engine may take to create a container, which includes pulling its image."""
EXTRA_MEMORY_BYTES, EXTRA_PROCESSES = 64 << 20, 8
"""What the supervisor in the container needs besides the program."""
CONTAINER_BACKENDS = ("docker", "podman", "kubernetes", "micromamba")
DOCKER_BACKENDS = ("docker", "podman", "micromamba")
COMMAND_BACKENDS = ("bubblewrap", "nsjail")
"""Backends that end processes with the command that started them, so that there are no sessions."""
EXEC_BACKENDS = ("bubblewrap", "nsjail", "kubernetes")
"""Backends that run commands in a shell, which is to be replaced by the command."""


class ContainerExecutor(RemoteExecutor):
    """Run each program or session in a fresh container of Docker, Podman, Kubernetes or another backend of llm-sandbox.

    The container has no network, no capabilities and the memory of the limits. A supervisor inside enforces
    the time, output, processes, memory and disk of the whole run, and reports how it ended; if it does not,
    the container is removed. Before each run a probe tries to get out; its findings are in
    `Execution.isolation`.

    Args:
        limits: Limits of one run.
        backend: `docker`, `podman`, `kubernetes`, `bubblewrap`, or another one of llm-sandbox.
        image: The image, with Python 3.11 or newer as `python3`. Programs can import what it has installed.
        options: More arguments of `llm_sandbox.SandboxSession`, e.g. `client` or `runtime_configs`; they
            override ours.
        required_isolation: What the probe must find closed. A Kubernetes pod has a network by default: if a
            network policy closes it, leave `network` out.
        max_sessions: Sessions that are open at a time, each in a container of its own; 0 with `bubblewrap` and `nsjail`.
        session_timeout: Seconds without a run after which a session ends.

    Raises:
        ConfigurationError: An argument is invalid, or llm-sandbox is not installed.
        ExecutorError: The engine cannot be reached; raised before a model is paid, by `warm_up` or by a run.
        IsolationError: Something required is open; raised at the first run at the latest.

    Example:
        with ContainerExecutor(backend="docker", image="python:3.13-slim") as executor:
            executor.run("sum(range(1, 6))").output
    """

    guidance = (
        "Write Python with the standard library alone, unless you are told what else is installed. Files are in the"
        " working directory; there is no network."
    )

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        backend: str = "docker",
        image: str = "python:3.13-slim",
        options: Mapping[str, Any] | None = None,
        required_isolation: Collection[str] = PROBED,
        max_sessions: int = 8,
        session_timeout: float = 900.0,
    ) -> None:
        super().__init__(
            limits=limits,
            required_isolation=required_isolation,
            max_sessions=max_sessions,
            session_timeout=session_timeout,
        )
        load_extra("llm_sandbox", "container")
        self.backend: str = _backend(backend)
        if self.backend in COMMAND_BACKENDS:
            self.max_sessions = 0
        self._options = _session_options(self.backend, image, self.limits) | dict(options or {})

    def _operation(self, program: Program) -> Operation[Execution]:
        sandbox, folder = self._sandbox(), RunFolder()

        def cancel() -> None:
            folder.is_given_up = True
            sandbox.remove_container()

        return blocking(partial(self._run, sandbox, folder, program), cancel)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What distinguishes its runs from those of other executors, including the image."""
        return {**super().fingerprint, "options": self._options}

    def _sandbox(self) -> ContainerSandbox:
        return ContainerSandbox(self.backend, self._options, self.required_isolation)

    def _run(self, sandbox: ContainerSandbox, folder: RunFolder, program: Program) -> Execution:
        self._check_open()
        request = request_bundle(program)
        self._start()
        try:
            sandbox.start()
            return self._run_once(sandbox, folder, request, program.within(self.limits))
        finally:
            sandbox.remove_container()

    def _new_session(self) -> ContainerSession:
        return ContainerSession(self._sandbox(), self.limits, self._session_timeout)

    def _start(self) -> None:
        """Ask the engine whether it is there, where it can be asked."""
        if self.backend not in DOCKER_BACKENDS:
            return
        try:
            _ping(self.backend, self._options)
        except Exception as error:
            name = "podman" if self.backend == "podman" else "docker"
            remedy = f"Is it running, and may this user use it? `{name} info` tells."
            reason = f"{type(error).__name__}: {error}"
            raise ExecutorError(f"{name} cannot be reached. {remedy} {reason}.", is_retryable=True) from error


class ContainerSandbox(ProtocolSandbox):
    """A container, which `start` creates; another thread may remove it at any time.

    Args:
        backend: The backend of llm-sandbox.
        options: Arguments of its session.
        required_isolation: What the probe must find closed.
    """

    counted = PARENT

    def __init__(self, backend: str, options: Mapping[str, Any], required_isolation: Collection[str]) -> None:
        self._engine = backend
        self._container = _Container(backend, options)
        super().__init__(self._container, required_isolation)

    @property
    def name(self) -> str:
        """How messages call it."""
        return self._engine

    def start(self) -> None:
        """Create the container unless there is one."""
        self.ask("open", self._container.open, OPEN_TIMEOUT_S)

    def give_up(self) -> None:
        """Remove the container."""
        self.remove_container()

    def remove_container(self) -> None:
        """Remove the container. Idempotent."""
        self._container.remove()


class ContainerSession(BackendSession):
    """A session in a container of its own, which is removed with it; made by `ContainerExecutor.session()`."""

    def __init__(self, sandbox: ContainerSandbox, limits: Limits, timeout: float) -> None:
        super().__init__(sandbox, limits, timeout)
        # Also if nobody closes it, and at the end of the interpreter.
        self._remove = weakref.finalize(self, _remove_own, sandbox, os.getpid())

    def _end(self, reason: str) -> None:
        self.abandon(reason)
        self._remove()


def _remove_own(sandbox: ContainerSandbox, pid: int) -> None:
    """Remove a container, unless this process is a fork of the one that created it."""
    if os.getpid() == pid:
        sandbox.remove_container()


def _backend(name: str) -> str:
    from llm_sandbox.backends import get_backend
    from llm_sandbox.exceptions import UnsupportedBackendError

    try:
        return str(get_backend(name).name)
    except UnsupportedBackendError as error:
        raise ConfigurationError("backend", name, 'a backend of llm-sandbox, e.g. "docker"') from error


def _ping(backend: str, options: Mapping[str, Any]) -> None:
    """Ask an engine whether it is there; raise what its client raises."""
    from llm_sandbox import SandboxSession

    client = SandboxSession(backend=backend, **options).client
    try:
        client.ping()
    finally:
        if "client" not in options:
            client.close()


def _session_options(backend: str, image: str, limits: Limits) -> dict[str, Any]:
    """Return llm-sandbox's arguments for a backend: no network, no privileges, and the limits that it supports."""
    options: dict[str, Any] = {"lang": "python", "skip_environment_setup": True, "encoding_errors": "replace"}
    if backend in CONTAINER_BACKENDS:
        options["image"] = image
    if backend in DOCKER_BACKENDS:
        options["keep_template"] = (
            True  # Otherwise a pulled image is removed with the container, and pulled again.
        )
        options["runtime_configs"] = {
            "stop_signal": "SIGKILL",  # The first process of a container ignores the default one for ten seconds.
            "network_mode": "none",
            "mem_limit": limits.memory_bytes + EXTRA_MEMORY_BYTES,
            "memswap_limit": limits.memory_bytes + EXTRA_MEMORY_BYTES,
            "pids_limit": limits.processes + EXTRA_PROCESSES,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "labels": {"code_chains": ""},
        }
    if backend in COMMAND_BACKENDS:
        from llm_sandbox.local.config import LocalSandboxConfig

        # The report escapes the program's output as JSON, and artifacts as Base64: files and figures.
        report_bytes = 6 * limits.output_bytes + 3 * limits.artifacts_bytes + (8 << 20)
        options["sandbox_config"] = LocalSandboxConfig(max_output_bytes=report_bytes)
        options["default_timeout"] = limits.seconds + 2 * GRACE_S
    return options


class _Container:
    """A container with LangChain's protocol, which another thread may remove at any time."""

    def __init__(self, backend: str, options: Mapping[str, Any]) -> None:
        self._backend, self._options = backend, options
        self._lock = threading.Lock()
        self._session: Any = None
        self._is_removed = False

    def open(self) -> None:
        """Create the container unless there is one.

        Raises:
            ConfigurationError: The backend is not installed.
        """
        from llm_sandbox import SandboxSession
        from llm_sandbox.exceptions import MissingDependencyError

        if self._session is not None:
            return
        try:
            session = SandboxSession(backend=self._backend, **self._options)
        except MissingDependencyError as error:
            remedy = f"a backend that is installed ({error})"
            raise ConfigurationError("backend", self._backend, remedy) from error
        with self._lock:
            self._session = session
        session.open()
        if self._is_removed:
            session.close()

    def remove(self) -> None:
        """Remove the container. Idempotent."""
        with self._lock:
            self._is_removed = True
            session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(Exception):
                session.close()

    def execute(self, command: str, *, timeout: float = OPEN_TIMEOUT_S) -> Response:
        """Return the output of a command; the container is removed when its time is up."""
        timer = threading.Timer(timeout, self.remove)
        timer.start()
        try:
            done = self._session.execute_command(f"{self._prefix}{command}")
        except Exception as error:
            if not self._is_removed and "output exceeded" not in str(error):
                raise
            return Response("", TIMED_OUT[0] if self._is_removed else 1)
        finally:
            timer.cancel()
        return Response(str(done.stdout), TIMED_OUT[0] if self._is_removed else int(done.exit_code))

    @property
    def _prefix(self) -> str:
        """What replaces the shell in which some backends run a command by the command."""
        return "exec " if self._backend in EXEC_BACKENDS else ""

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[Response]:
        """Copy files into the container."""
        with tempfile.TemporaryDirectory(dir=process_folder()) as temporary:
            source = Path(temporary).resolve() / "copy"
            for path, content in files:
                source.write_bytes(content)
                source.chmod(0o644)
                self._session.copy_to_runtime(str(source), path)
        return [Response("", 0) for _ in files]

    def download_files(self, paths: list[str]) -> list[Response]:
        """Read text files of the container."""
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> Response:
        done = self._session.execute_command(f"{self._prefix}cat {path}")
        return Response("", int(done.exit_code), content=str(done.stdout).encode())


@dataclass(frozen=True)
class Response:
    """The answer to a command, or about a file.

    Attributes:
        output: What the command printed.
        exit_code: Its exit code.
        content: The file.
        error: Why there is none.
    """

    output: str
    exit_code: int
    content: bytes | None = None
    error: str | None = None
