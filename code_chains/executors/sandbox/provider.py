"""Acquire proven sandboxes: start them, judge what their probe reports, and replace what is damaged."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from code_chains.errors import EXECUTOR_CLOSED, ConfigurationError, ExecutorError, IsolationError
from code_chains.executors.guest.sandbox.config import RunLimits, WorkerConfig
from code_chains.executors.limits import Limits
from code_chains.executors.sandbox.canary import Canary
from code_chains.executors.sandbox.interpreter import Interpreter
from code_chains.executors.sandbox.launchers import (
    CACHE_FOLDER,
    WRITABLE_FOLDERS,
    candidates,
    check_system,
    may_make_namespaces,
    readable_paths,
    webassembly,
)
from code_chains.executors.sandbox.libraries import count_libraries
from code_chains.executors.sandbox.pool import Pool
from code_chains.executors.sandbox.request import Request
from code_chains.executors.sandbox.worker import Worker, WorkerSpec
from code_chains.executors.waiting import Wait
from code_chains.records import Isolation, Level

if TYPE_CHECKING:
    from code_chains.executors.sandbox.fork import Fork
    from code_chains.executors.sandbox.network import Destination, EgressProxy

START_TIMEOUT_S = 120.0
"""Seconds that a worker may take to start with its libraries."""
ENVIRONMENT = {
    "HOME": "/box",
    "USER": "sandbox",
    "LOGNAME": "sandbox",
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp/matplotlib",  # noqa: S108
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # Others reserve a gigabyte at once, which counts as data.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # A process with threads cannot be forked safely.
}
ALLOWED_VARIABLES = {*ENVIRONMENT, "PWD", "LC_CTYPE", "PYTHONHASHSEED"}
PRELOAD = ("numpy", "pandas", "matplotlib.pyplot")
DEVICES = tuple(f"/dev/{name}" for name in ("null", "full", "random", "urandom"))
HARMLESS = ("/etc/mime.types",)
"""Files without secrets that libraries read if they exist, which they see without namespaces."""
LEVELS = ("none", "landlock", "kernel")
"""Isolation levels, weakest first."""
REQUIRED_LAYERS: dict[str, tuple[str, ...]] = {
    "kernel": ("namespaces", "seccomp"),
    "landlock": ("landlock", "seccomp"),
    "none": (),
}


@dataclass
class SandboxSettings:
    """What sandboxes are like; see `SandboxExecutor`."""

    limits: Limits
    min_isolation: Literal["kernel", "landlock", "none"]
    launcher: str | None
    python: Interpreter
    preload: tuple[str, ...]
    min_idle: int
    session_timeout: float
    seed: int | None
    frozen_at: float
    network: tuple[Destination, ...]
    commands: bool


class SandboxProvider:
    """Provides sandboxes whose isolation was proven.

    Invariants: a fork leaves `acquire` only after its probe, or that of another fork of its template, reported the required
    isolation. A launcher is replaced by a weaker one only while none is proven yet, for what it said or its probe found, and
    never for its time, for what the machine lacks for the moment, or by one below `min_isolation`.

    Args:
        settings: What sandboxes are like.
    """

    def __init__(self, settings: SandboxSettings) -> None:
        check_system()
        self.settings = settings
        self.pool: Pool = Pool(self._make_spec, self._make_fork)
        self._launchers = [settings.launcher] if settings.launcher else candidates(settings.min_isolation)
        self._canary = Canary(ALLOWED_VARIABLES)
        self._proxy: EgressProxy | None = None
        self._is_proven = self._is_closed = False
        self._lock = threading.Lock()

    @property
    def launcher(self) -> str:
        """The launcher in use."""
        return self._launchers[0]

    @property
    def is_confined(self) -> bool:
        """Whether the kernel isolates programs at all."""
        return self.launcher != "none"

    def count_libraries(self, request: Request) -> int:
        """Return how many of the preloaded libraries, from the first one, a request needs."""
        return count_libraries(request.imported, self.settings.preload)

    def acquire(self, *, libraries: int) -> Generator[Wait, None, Fork]:
        """Wait for a proven sandbox, which the caller closes; a damaged worker is replaced.

        Args:
            libraries: How many of the preloaded libraries its program needs; a wrong guess costs the time of an import.

        Raises:
            IsolationError: The required isolation is not available.
            ExecutorError: The sandbox broke, or the provider is closed.
        """
        if self._is_closed:
            raise ExecutorError(EXECUTOR_CLOSED)
        failures, reason, is_temporary = Counter[str](), "", False
        # Each launcher has two attempts; one that cannot build a sandbox at all gives way to the next after the first.
        while failures[self.launcher] < 2:
            fork = self.pool.acquire(libraries=libraries)
            try:
                yield Wait(fork, fork.is_started, START_TIMEOUT_S)
                fork.poll()  # It may have been killed while it was idle.
                if fork.lacks_descriptors:
                    raise ExecutorError(
                        "No sandbox can be made: too many files are open here.", is_retryable=True
                    )
                if fork.is_started() and fork.failure is None:
                    if self._has_threads(fork) or (isolation := self._judge(fork)) is None:
                        fork.close()
                        self.pool.drop()
                        continue
                    fork.supervisor.isolation, self._is_proven = isolation, True
                    self._open_network(fork)
                    return fork
            except BaseException:
                fork.close()
                raise
            if fork.is_renewed and fork.failure is not None:  # Its supervisor has ended; others have not.
                fork.close()
                continue
            failures[fork.worker.spec.launcher] += 1
            reason, is_temporary = self._give_up(fork), fork.is_temporary or not fork.failure
        raise self._unavailable(reason, is_temporary=is_temporary)

    def warm_up(self) -> None:
        """Start the worker without waiting for it."""
        if not self._is_closed:
            self.pool.warm_up()

    def refuse(self) -> None:
        """Provide no further sandbox."""
        self._is_closed = True

    def close(self) -> None:
        """Provide no further sandbox, and end everything."""
        self.refuse()
        self.pool.close()
        self._canary.close()
        if self._proxy:
            self._proxy.close()

    def _give_up(self, fork: Fork) -> str:
        """Close a fork that did not start, replace its worker, and return the reason."""
        fork.close()
        if not fork.is_temporary:  # Otherwise neither the worker nor the launcher is to blame.
            self.pool.drop()
            if fork.root is None and fork.failure:
                self._fall_back(fork)
        if fork.failure is None:
            return f"it took more than {START_TIMEOUT_S:g} seconds to start"
        return fork.failure or "it was ended from outside"

    def _fall_back(self, fork: Fork) -> bool:
        """Try the next launcher, unless one has proven a sandbox or this was the last one; return whether it is another."""
        with self._lock:
            is_current = self._launchers[0] == fork.worker.spec.launcher
            if is_current and not self._is_proven and len(self._launchers) > 1:
                del self._launchers[0]
            return self._launchers[0] != fork.worker.spec.launcher

    def _has_threads(self, fork: Fork) -> bool:
        """Return whether a preloaded library runs threads, which every fork would lack; then preload nothing."""
        if fork.threads < 2:
            return False
        if self.settings.preload != PRELOAD:
            raise ConfigurationError(
                "preload", self.settings.preload, "libraries that start no threads when they are imported"
            )
        self.settings.preload = ()
        return True

    def _open_network(self, fork: Fork) -> None:
        if self.settings.network:
            from code_chains.executors.sandbox.network import EgressProxy

            with self._lock:
                self._proxy = self._proxy or EgressProxy(self.settings.network)
            fork.connect(self._proxy.open)

    # -- isolation -------------------------------------------------------------------------------------------

    def _judge(self, fork: Fork) -> Isolation | None:
        """Return what the probe reported, if it meets the required level; None if another launcher is to be tried.

        Invariant: only a supervisor with a template whose first program was judged here sends no report.
        """
        report, proven = fork.pipes.probe or {}, fork.supervisor.isolation
        if proven is not None and not report:
            return proven
        if "probe" not in report:
            reason = report.get("broken", "its report is malformed")
            raise ExecutorError(f"The sandbox broke: {reason}.", is_retryable=True)
        layers = tuple(report.get("layers", ()))
        isolation = Isolation("none", fork.worker.spec.launcher, **report["probe"], layers=layers)
        if not isolation.network:
            self._canary.hang_up()
        isolation = replace(isolation, level=_level(isolation))
        if LEVELS.index(isolation.level) < LEVELS.index(self.settings.min_isolation):
            if self._fall_back(fork):
                return None
            raise IsolationError(f"Nothing was run: {self._why_insufficient(isolation)}")
        return isolation

    def _why_insufficient(self, isolation: Isolation) -> str:
        missing = sorted(set(REQUIRED_LAYERS[self.settings.min_isolation]) - set(isolation.layers))
        if not missing and not isolation.open:
            return (
                "without namespaces, programs of root must run as another user, who cannot read this Python"
                f" ({self.settings.python.executable}) or its packages. Let all users read it and the folders above it, pass"
                " the path of another one as python=, run the app as an ordinary user, or use"
                f" {webassembly()}."
            )
        reasons = []
        if isolation.open:
            reasons.append(f"the probe found a way out ({', '.join(isolation.open)})")
        if missing:
            reasons.append(f"{', '.join(missing)} is not in force")
        hint = ""
        if "landlock" in missing:
            hint = f" Landlock alone needs Linux 6.2; {webassembly()} runs the standard library without it."
        return f"inside the sandbox {' and '.join(reasons)}.{hint}"

    def _unavailable(self, reason: str, *, is_temporary: bool) -> ExecutorError:
        reason = reason or "no reason was given"
        if not self.is_confined:
            return ExecutorError(f"The worker did not start: {reason}.", is_retryable=True)
        if self._is_proven or is_temporary:
            return ExecutorError(f"No more sandboxes can be started now: {reason}.", is_retryable=True)
        failure = f"The sandbox could not be built with {self.launcher}: {reason}."
        if may_make_namespaces():
            return IsolationError(
                f"{failure} This system allows namespaces, so that nothing needs to be switched off. If the reason does not"
                f" name the cause, try another Python than {self.settings.python.executable} (python=), or another launcher"
                " (launcher=)."
            )
        return IsolationError(
            f"{failure} This system refuses namespaces, which it needs: install"
            " bubblewrap (`apt install bubblewrap`), or allow them (`sysctl kernel.apparmor_restrict_unprivileged_userns=0`;"
            " in Docker `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`), or use"
            f" {webassembly()} for the standard library alone,"
            " SandboxExecutor(min_isolation='landlock') for Landlock and a system-call filter alone, executor='none' for"
            " no protection at all."
        )

    # -- the worker ------------------------------------------------------------------------------------------

    def _make_fork(self, worker: Worker) -> Fork:
        from code_chains.executors.sandbox.fork import Fork

        return Fork(worker, self.settings.limits.output_bytes, self.settings.limits.artifacts_bytes)

    def _make_spec(self) -> WorkerSpec:
        settings, limits = self.settings, self.settings.limits
        has_namespaces = self.launcher in ("bubblewrap", "namespaces")
        paths = readable_paths(settings.python, commands=settings.commands)
        readable = [path for pair in paths for path in pair]
        environment = dict(ENVIRONMENT)
        if settings.commands:
            environment["PATH"] = (
                f"{os.path.dirname(settings.python.executable)}:/usr/local/bin:{ENVIRONMENT['PATH']}"
            )
        if settings.seed is not None:
            environment["PYTHONHASHSEED"] = str(settings.seed % 2**32)
        config: WorkerConfig = {
            "namespaces": has_namespaces,
            "confined": self.is_confined,
            "network": [(destination.inside, destination.inside_port) for destination in settings.network],
            "preload": settings.preload,
            "environment": environment,
            "cache": CACHE_FOLDER,
            "probe": self._canary.request(),
            "commands": settings.commands,
            "visible": [
                path
                for path in readable
                if path.startswith(tuple(f"{folder}/" for folder in WRITABLE_FOLDERS))
            ],
            "readable": [*readable, *DEVICES, *HARMLESS],
            "writable": [*DEVICES, *(WRITABLE_FOLDERS if has_namespaces else ())],
            "session_timeout": settings.session_timeout,
            "seed": settings.seed,
            "frozen_at": settings.frozen_at,
            "limits": run_limits(limits),
        }
        spec = WorkerSpec(
            self.launcher,
            settings.python,
            config,
            environment,
            settings.min_idle,
            commands=settings.commands,
        )
        if not settings.network:
            return spec
        from code_chains.executors.sandbox.network import hosts_file

        return replace(spec, hosts=hosts_file(settings.network))


def _level(isolation: Isolation) -> Level:
    """Return the strongest level whose layers are all in force; `none` if the probe found anything open."""
    layers = set(isolation.layers)
    if isolation.open:
        return "none"
    if layers.issuperset(REQUIRED_LAYERS["kernel"]):
        return "kernel"
    # RLIMIT_NPROC does not apply to root, so its programs must run as another user.
    is_sufficient = os.geteuid() != 0 or "user" in layers
    if is_sufficient and layers.issuperset(REQUIRED_LAYERS["landlock"]):
        return "landlock"
    return "none"


def run_limits(limits: Limits) -> RunLimits:
    """Return the limits that the supervisor of a run enforces."""
    return {
        "seconds": limits.seconds,
        "memory": limits.memory_bytes,
        "processes": limits.processes,
        "disk": limits.disk_bytes,
        "files": limits.files,
        "open_files": limits.open_files,
        "artifacts": limits.artifacts_bytes,
    }
