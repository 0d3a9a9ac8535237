"""Containers: Docker, Podman or Kubernetes through llm-sandbox, a fresh container for each run."""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from code_chains.errors import EXECUTOR_CLOSED, ConfigurationError, ExecutorError, InputError, IsolationError
from code_chains.executors.limits import Limits
from code_chains.executors.remote.external import (
    PROBE,
    ExternalExecutor,
    canary,
    check_required,
    isolation,
    load_extra,
)
from code_chains.executors.remote.supervised import (
    COPIED_FILES,
    execution_of,
    find_report,
    supervisor_limits,
    timed_out,
)
from code_chains.executors.runner import Program
from code_chains.executors.waiting import Operation, blocking
from code_chains.inputs import check_code, check_json_variables, files_on_disk
from code_chains.state import PROBED, Execution, Isolation
from code_chains.temporary import process_folder

TOOLS_FOLDER = "/tmp/code_chains"  # noqa: S108 - the container's own
WORKDIR = "/sandbox/box"
GRACE_S = 5.0
"""Seconds that a command may take besides its program before the container is removed."""
EXTRA_MEMORY_BYTES, EXTRA_PROCESSES = 64 << 20, 8
"""What the supervisor in the container needs besides the program."""
CONTAINER_BACKENDS = ("docker", "podman", "kubernetes", "micromamba")
DOCKER_BACKENDS = ("docker", "podman", "micromamba")
EXEC_BACKENDS = ("bubblewrap", "nsjail", "kubernetes")
"""Backends that run commands in a shell, which is to be replaced by the command."""


class ContainerExecutor(ExternalExecutor):
    """Run each program in a fresh container of Docker, Podman or Kubernetes, or in another backend of llm-sandbox.

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

    Raises:
        ConfigurationError: An argument is invalid, or llm-sandbox is not installed.
        ExecutorError: The engine cannot be reached; raised before a model is paid, by `warm_up` or by a run.
        IsolationError: Something required is open; raised at the first run at the latest.

    Example:
        with ContainerExecutor(backend="docker", image="python:3.13-slim") as executor:
            executor.run("sum(range(1, 6))").output
    """

    language = "python"
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
    ) -> None:
        super().__init__(limits=limits)
        load_extra("llm_sandbox", "container")
        self.required_isolation: tuple[str, ...] = check_required(required_isolation)
        self.backend: str = _backend(backend)
        self._options = _session_options(self.backend, image, self.limits) | dict(options or {})
        self._is_closed = False

    def _operation(self, program: Program) -> Operation[Execution]:
        container = _Container()
        return blocking(partial(self._run, container, program), container.remove)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What distinguishes its runs from those of other executors, including the image."""
        return {**super().fingerprint, "options": self._options}

    def close(self) -> None:
        """Refuse further runs."""
        self._is_closed = True

    def _run(self, container: _Container, program: Program) -> Execution:
        with files_on_disk(program.files) as files:
            return self._run_with_files(container, program, files)

    def _run_with_files(
        self, container: _Container, program: Program, files: Mapping[str, Path]
    ) -> Execution:
        if self._is_closed:
            raise ExecutorError(EXECUTOR_CLOSED)
        code = check_code(program.code)
        size = sum(path.stat().st_size for path in files.values())
        limits = supervisor_limits(self.limits, size, ["/sandbox", "/tmp"])  # noqa: S108
        variables = check_json_variables(program.variables)
        self._start()
        request = {"code": code, "variables": variables, "workdir": WORKDIR, "limits": limits}
        with self._opened(container):
            isolation = self._probe(container)
            token = secrets.token_hex(16)
            container.put(COPIED_FILES, {"request.json": json.dumps(request), "token": token}, TOOLS_FOLDER)
            container.put(files, {}, WORKDIR)
            prefix = "exec " if self.backend in EXEC_BACKENDS else ""
            command = f"{prefix}python3 {TOOLS_FOLDER}/container_program.py"
            output = container.execute(command, self.limits.seconds + GRACE_S)
        if output is None:
            return timed_out(self.limits, isolation)
        return execution_of(find_report(output, token), self.limits, isolation)

    def _start(self) -> None:
        """Ask the engine whether it is there, where it can be asked."""
        if self.backend not in DOCKER_BACKENDS:
            return
        try:
            with self._engine_errors():
                _ping(self.backend, self._options)
        except ExecutorError as error:
            name = "podman" if self.backend == "podman" else "docker"
            remedy = f"Is it running, and may this user use it? `{name} info` tells."
            raise ExecutorError(f"{name} cannot be reached. {remedy} {error}", is_retryable=True) from error

    @contextlib.contextmanager
    def _opened(self, container: _Container) -> Iterator[None]:
        """Open the container, and remove it afterwards."""
        try:
            with self._engine_errors():
                container.open(self.backend, self._options)
                yield
        finally:
            container.remove()

    @contextlib.contextmanager
    def _engine_errors(self) -> Iterator[None]:
        """Raise unexpected exceptions as errors of the executor."""
        try:
            yield
        except (ExecutorError, InputError, ConfigurationError):
            raise
        except Exception as error:
            kind = type(error).__name__
            if kind == "MissingDependencyError":
                raise ConfigurationError(
                    "backend", self.backend, f"a backend that is installed ({error})"
                ) from error
            raise ExecutorError(f"{self.backend} failed: {kind}: {error}.", is_retryable=True) from error

    def _probe(self, container: _Container) -> Isolation:
        with canary() as targets:
            container.put({}, {"probe.py": f"canary = {targets!r}\n{PROBE}"}, TOOLS_FOLDER)
            output = container.execute(f"python3 {TOOLS_FOLDER}/probe.py", GRACE_S)
        report = isolation("container", self.backend, output or "", targets["salt"])
        if leaks := [name for name in report.open if name in self.required_isolation]:
            raise IsolationError(f"Nothing was run: inside {self.backend} {', '.join(leaks)} was found open.")
        return report


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
        }
    if backend in ("bubblewrap", "nsjail"):
        from llm_sandbox.local.config import LocalSandboxConfig

        # The report escapes the program's output as JSON, and artifacts as Base64: files and figures.
        report_bytes = 6 * limits.output_bytes + 3 * limits.artifacts_bytes + (8 << 20)
        options["sandbox_config"] = LocalSandboxConfig(max_output_bytes=report_bytes)
        options["default_timeout"] = limits.seconds + 2 * GRACE_S
    return options


class _Container:
    """A container, which another thread may remove at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Any = None
        self._is_removed = False

    def open(self, backend: str, options: Mapping[str, Any]) -> None:
        from llm_sandbox import SandboxSession

        session = SandboxSession(backend=backend, **options)
        with self._lock:
            self._session = session
        session.open()
        if self._is_removed:
            session.close()

    def remove(self) -> None:
        with self._lock:
            self._is_removed = True
            session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(Exception):
                session.close()

    def put(self, files: Mapping[str, Path], texts: Mapping[str, str], folder: str) -> None:
        """Copy files and texts into a folder of the container."""
        with tempfile.TemporaryDirectory(dir=process_folder()) as temporary:
            path = Path(temporary).resolve() / "copy"
            for name in (*files, *texts):
                if name in files:
                    shutil.copyfile(files[name], path)
                else:
                    path.write_text(texts[name], encoding="utf-8")
                path.chmod(0o644)
                self._session.copy_to_runtime(str(path), f"{folder}/{name}")

    def execute(self, command: str, timeout: float) -> str | None:
        """Return the output of a command; None if it was stopped."""
        timer = threading.Timer(timeout, self.remove)
        timer.start()
        try:
            output = str(self._session.execute_command(command).stdout)
        except Exception as error:
            if not self._is_removed and "output exceeded" not in str(error):
                raise
            output = ""
        finally:
            timer.cancel()
        return None if self._is_removed else output
