"""Containers: Docker, Podman or Kubernetes through llm-sandbox, one fresh container for each run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from code_chains.errors import ConfigurationError, ExecutorError, InputError, IsolationError
from code_chains.executors.base import Executor, Limits
from code_chains.executors.endings import Ending, limit_reached, said_by_program
from code_chains.executors.foreign import PROBE, canary, isolation, load_extra
from code_chains.inputs import check_files, check_variables
from code_chains.state import PROBED, ErrorReport, Execution, Isolation, signal_name

__all__ = ["ContainerExecutor"]

HERE = Path(__file__).parent
INSIDE = {
    "contained.py": HERE / "contained.py",
    **{
        f"inside/{name}.py": HERE / "inside" / f"{name}.py" for name in ("__init__", "cell", "display", "hints", "wire")
    },
}
"""What is copied into the container: the program that watches, and the modules that run one."""
TOOLS = "/tmp/code_chains"  # noqa: S108 - the container's own
WORKDIR = "/sandbox/box"
GRACE = 5.0
"""Seconds on top of the program's own before the container is taken away from outside."""
CONTAINERS = ("docker", "podman", "kubernetes", "micromamba")


class ContainerExecutor(Executor):
    """Runs each program in a fresh container of Docker, Podman or Kubernetes, or in another sandbox of llm-sandbox's.

    The container has no network, no capabilities and the memory of the limits. A program inside it keeps the time, the
    output, the processes, the memory and the disk of the whole run, and tells how it ended; when it does not, the
    container is taken away. Before each run a probe tries to get out; what it found is in `Execution.isolation`.

    Args:
        limits: What one run may use.
        backend: `docker`, `podman`, `kubernetes`, `bubblewrap`, or another of llm-sandbox's.
        image: The image, with Python 3.11 or newer as `python3`. What it has installed, programs can import.
        options: More arguments of `llm_sandbox.SandboxSession`, e.g. `client` or `runtime_configs`; they win over ours.
        require: What the probe must find closed. A pod of Kubernetes has a network by nature: where a policy closes
            it, leave `network` out.

    Raises:
        ConfigurationError: An argument is wrong, or llm-sandbox is not installed.
        IsolationError: Something required was found open; at the first run at the latest.

    Example:
        with ContainerExecutor(backend="docker", image="python:3.13-slim") as place:
            place.run("sum(range(1, 6))").output
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
        require: Collection[str] = PROBED,
    ) -> None:
        super().__init__(limits=limits)
        load_extra("llm_sandbox", "container")
        if isinstance(require, str) or not set(require) <= set(PROBED):
            raise ConfigurationError("require", require, f"some of {PROBED}")
        self.backend, self.require = _backend(backend), tuple(require)
        self._options = _arguments(self.backend, image, self.limits) | dict(options or {})
        self._closed = False

    def run(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """Run a program to its end; see `Executor.run`."""
        return self._run(_Container(), code, files, variables)

    async def arun(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """Run a program to its end without blocking the event loop; see `Executor.arun`."""
        container = _Container()
        try:
            return await asyncio.to_thread(self._run, container, code, files, variables)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.to_thread(container.remove))
            raise

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What tells its runs from those of other places, the image among it."""
        return {**super().fingerprint, "options": self._options}

    def close(self) -> None:
        """Refuse further runs."""
        self._closed = True

    def _run(
        self, container: _Container, code: str, files: Mapping[str, Any] | None, variables: Mapping[str, Any] | None
    ) -> Execution:
        if self._closed:
            raise ExecutorError("This executor is closed. Make a new one.")
        if not isinstance(code, str):
            raise InputError(f"Code must be text, not {type(code).__name__}.")
        given = check_files(files)
        limits = _limits(self.limits, sum(path.stat().st_size for path in given.values()))
        request = {"code": code, "variables": check_variables(variables), "workdir": WORKDIR, "limits": limits}
        with self._opened(container):
            found = self._probe(container)
            token = secrets.token_hex(16)
            container.put(INSIDE, {"request.json": json.dumps(request), "token": token}, TOOLS)
            container.put(given, {}, WORKDIR)
            shell = "exec " if self.backend in ("bubblewrap", "nsjail", "kubernetes") else ""
            said = container.ask(f"{shell}python3 {TOOLS}/contained.py", self.limits.seconds + GRACE)
        return _told(said, token, self.limits, found)

    @contextlib.contextmanager
    def _opened(self, container: _Container) -> Iterator[None]:
        """The container while it is there; what goes wrong around it is an error of the place."""
        try:
            container.open(self.backend, self._options)
            yield
        except (ExecutorError, InputError, ConfigurationError):
            raise
        except Exception as error:
            kind = type(error).__name__
            if kind == "MissingDependencyError":
                raise ConfigurationError("backend", self.backend, f"a backend that is installed ({error})") from error
            raise ExecutorError(f"{self.backend} failed: {kind}: {error}.", is_retryable=True) from error
        finally:
            container.remove()

    def _probe(self, container: _Container) -> Isolation:
        with canary() as given:
            text = f"canary = {given!r}\n{PROBE}"
            container.put({}, {"probe.py": text}, TOOLS)
            said = container.ask(f"python3 {TOOLS}/probe.py", GRACE)
        found = isolation("container", self.backend, said or "")
        if opened := [name for name in found.open if name in self.require]:
            raise IsolationError(f"Nothing was run: inside {self.backend} {', '.join(opened)} was found open.")
        return found


def _limits(limits: Limits, given: int) -> dict[str, Any]:
    """What the program inside is told to keep; `given` are the bytes of files that were there before."""
    return {
        "seconds": limits.seconds,
        "memory": limits.memory_bytes,
        "output": limits.output_bytes,
        "processes": limits.processes,
        "disk": limits.disk_bytes + given,
        "files": limits.files,
        "places": ["/sandbox", "/tmp"],  # noqa: S108
    }


def _backend(name: str) -> str:
    from llm_sandbox.backends import get_backend
    from llm_sandbox.exceptions import UnsupportedBackendError

    try:
        return str(get_backend(name).name)
    except UnsupportedBackendError as error:
        raise ConfigurationError("backend", name, 'a backend of llm-sandbox, e.g. "docker"') from error


def _arguments(backend: str, image: str, limits: Limits) -> dict[str, Any]:
    """What llm-sandbox is told for a backend: no network, no privileges, and the limits it can keep."""
    arguments: dict[str, Any] = {"lang": "python", "skip_environment_setup": True, "encoding_errors": "replace"}
    if backend in CONTAINERS:
        arguments["image"] = image
    if backend in ("docker", "podman", "micromamba"):
        arguments["keep_template"] = True  # Otherwise a pulled image is removed with the container, and pulled again.
        arguments["runtime_configs"] = {
            "stop_signal": "SIGKILL",  # The first process of a container ignores the usual one for ten seconds.
            "network_mode": "none",
            "mem_limit": limits.memory_bytes + (64 << 20),
            "memswap_limit": limits.memory_bytes + (64 << 20),
            "pids_limit": limits.processes + 8,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
        }
    if backend in ("bubblewrap", "nsjail"):
        from llm_sandbox.local.config import LocalSandboxConfig

        arguments["sandbox_config"] = LocalSandboxConfig(max_output_bytes=6 * limits.output_bytes + (8 << 20))
        arguments["default_timeout"] = limits.seconds + 2 * GRACE
    return arguments


class _Container:
    """One container, which another thread may take away at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Any = None
        self._removed = False

    def open(self, backend: str, options: Mapping[str, Any]) -> None:
        from llm_sandbox import SandboxSession

        session = SandboxSession(backend=backend, **options)
        with self._lock:
            self._session = session
        session.open()
        if self._removed:
            session.close()

    def remove(self) -> None:
        with self._lock:
            self._removed = True
            session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(Exception):
                session.close()

    def put(self, files: Mapping[str, Path], texts: Mapping[str, str], folder: str) -> None:
        """Copy files and texts into a folder of the container."""
        with tempfile.TemporaryDirectory(prefix="code_chains-") as place:
            path = Path(place).resolve() / "copy"
            for name in (*files, *texts):
                if name in files:
                    shutil.copyfile(files[name], path)
                else:
                    path.write_text(texts[name], encoding="utf-8")
                path.chmod(0o644)
                self._session.copy_to_runtime(str(path), f"{folder}/{name}")

    def ask(self, command: str, seconds: float) -> str | None:
        """What a command prints; None if it has to be stopped."""
        watch = threading.Timer(seconds, self.remove)
        watch.start()
        try:
            said = str(self._session.execute_command(command).stdout)
        except Exception as error:
            if not self._removed and "output exceeded" not in str(error):
                raise
            said = ""
        finally:
            watch.cancel()
        return None if self._removed else said


def _told(said: str | None, token: str, limits: Limits, found: Isolation) -> Execution:
    """The run as the program inside told it; it tells nothing where it was taken away or killed by the program."""
    if said is None:
        return Execution("timeout", error=limit_reached(limits, "timeout")[1], duration=limits.seconds, isolation=found)
    told = next((frame for frame in map(_frame, said.split("\n")) if frame.get("token") == token), None)
    if told is None:
        return Execution("killed", error=ErrorReport("Killed", "The program ended its watcher."), isolation=found)
    status, error, result = _ending(told, limits)
    return Execution(
        status,
        told["stdout"],
        told["stderr"],
        result,
        error,
        duration=told["seconds"],
        peak_memory=told["peak"],
        truncated=told["reason"] == "output",
        isolation=found,
    )


def _frame(line: str) -> dict[str, Any]:
    """A line of JSON; empty if it is none, for a program may write here too."""
    try:
        frame = json.loads(line.encode(errors="replace"))
    except (ValueError, RecursionError):
        return {}
    return frame if isinstance(frame, dict) else {}


def _ending(told: Mapping[str, Any], limits: Limits) -> Ending:
    if told["reason"]:
        return limit_reached(limits, told["reason"])
    if told["exit"] == 0 and (ending := said_by_program(_frame(told["result"].rstrip("\n").rpartition("\n")[2]))):
        return ending
    if told["exit"] < 0:
        return "killed", ErrorReport("Killed", f"The program was killed by {signal_name(-told['exit'])}."), None
    message = f"The process ended itself with exit code {told['exit']} before the program was finished."
    return "killed", ErrorReport("Exited", message), None
