"""The default executor: each program runs in a sandbox of its own, built by the kernel and proven from inside."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from code_chains.errors import (
    ConfigurationError,
    ExecutorError,
    MissingExtraError,
    OverloadedError,
    check_int,
)
from code_chains.executors.base import Executor
from code_chains.executors.distributions import distribution_of
from code_chains.executors.limiter import ConcurrencyLimiter, available_processors
from code_chains.executors.limits import Limits
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.interpreter import (
    Interpreter,
    other,
    this,
)
from code_chains.executors.sandbox.launchers import LAUNCHERS
from code_chains.executors.sandbox.provider import PRELOAD, REQUIRED_LAYERS, SandboxProvider, SandboxSettings
from code_chains.executors.sandbox.request import Request
from code_chains.executors.sandbox.runs import connected_requests, run_request
from code_chains.executors.sandbox.surroundings import describe_surroundings
from code_chains.executors.tool_calls import GivenTools, ToolCalls
from code_chains.executors.waiting import Operation, adrive, drive
from code_chains.records import Execution

if TYPE_CHECKING:
    from code_chains.executors.sandbox.network import Destination
    from code_chains.executors.sandbox.sessions import SandboxSession
    from code_chains.executors.sandbox.tool_server import Reply

MAX_POOL_SIZE, MAX_QUEUE_TIMEOUT_S = 1000, 86_400


class SandboxExecutor(Executor):
    """Run each program in a new sandbox: namespaces, a system-call filter, Landlock where the kernel has it, limits.

    The program sees the interpreter with its packages, a private working directory with the given files, and
    nothing else of the machine: no other file, no network, no other process, no environment variable. Before
    it starts, a probe inside the sandbox tries to get out; its findings are in `Execution.isolation`, and if
    anything that was required is open, nothing runs. Sandboxes are forks of warm worker processes, and some
    are started ahead of need, so that a run starts in milliseconds and leaves nothing behind. A program that imports
    more than the standard library gets a fork that has the preloaded libraries which it needs.

    Args:
        limits: Limits of one run.
        preload: Libraries that are imported once, if they are installed; `()` saves their memory.
        min_isolation: The weakest acceptable isolation: `"kernel"` (default); `"landlock"`, for containers
            that forbid namespaces: Landlock and a system-call filter alone; or `"none"`.
        launcher: How sandboxes are built: `"bubblewrap"`, `"namespaces"`, `"landlock"`, or None for the
            strongest available.
        packages: Packages that programs must be able to import; checked here, and listed for the model.
        python: Interpreter of programs, such as that of another virtual environment; None for this one.
        min_idle: Sandboxes that are kept ready, for each number of libraries that programs have needed. Each takes a few
            megabytes.
        concurrency: Programs that run at once, including those of sessions; None for four per core. Others
            wait in FIFO order.
        max_queued: Programs that may wait; one more raises `OverloadedError` at once.
        queue_timeout: Seconds that each of them waits at most before it raises `OverloadedError`.
        max_sessions: Sessions that are open at a time.
        session_timeout: Seconds without a run after which a session ends.
        seed: Makes runs repeatable: random numbers from this seed, and a clock that is frozen at `frozen_at`.
            Needs `time-machine` (the extra `repeatable`).
        frozen_at: Time of the clock if there is a `seed`, in seconds since 1970.
        network: Addresses that programs may connect to, such as `["api.example.org:443"]`, or a `Destination` with
            headers that no program sees; nothing else can be reached or looked up. Needs namespaces.
        commands: Whether programs may run the commands of this machine, such as `sh` and `grep`, which they see
            read-only; what these start is limited like all else.

    Raises:
        ConfigurationError: An argument is invalid, or a package is missing.
        IsolationError: This machine lacks the required isolation; raised at the first run at the latest.

    Example:
        >>> with SandboxExecutor(preload=()) as sandbox:
        ...     sandbox.run("sum(range(1, 6))").output
        '15'
    """

    returns_values = takes_tools = takes_stdin = streams_output = runs_tests = True

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        preload: Iterable[str] = PRELOAD,
        min_isolation: Literal["kernel", "landlock", "none"] = "kernel",
        launcher: Literal["bubblewrap", "namespaces", "landlock"] | None = None,
        packages: Iterable[str] = (),
        python: str | None = None,
        min_idle: int = 1,
        concurrency: int | None = None,
        max_queued: int = 1000,
        queue_timeout: float = 60.0,
        max_sessions: int = 8,
        session_timeout: float = 900.0,
        seed: int | None = None,
        frozen_at: float = 1_767_225_600.0,
        network: Iterable[str | Destination] = (),
        commands: bool = False,
    ) -> None:
        super().__init__(limits=limits)
        if min_isolation not in REQUIRED_LAYERS:
            raise ConfigurationError("min_isolation", min_isolation, '"kernel", "landlock" or "none"')
        if launcher not in (None, *LAUNCHERS):
            raise ConfigurationError("launcher", launcher, f"one of {sorted(LAUNCHERS)}")
        if network and (launcher in ("landlock", "none") or min_isolation != "kernel"):
            raise ConfigurationError(
                "network",
                network,
                'min_isolation="kernel" as well',
                because="only network namespaces can open single addresses",
            )
        for name, number in (("min_idle", min_idle), ("max_sessions", max_sessions)):
            check_int(
                name, number, f"a whole number from 0 to {MAX_POOL_SIZE}", minimum=0, maximum=MAX_POOL_SIZE
            )
        if self.limits.open_files > (most := _max_open_files()):
            raise ConfigurationError(
                "Limits.open_files", self.limits.open_files, f"at most {most}, the system's limit"
            )
        self.limiter: ConcurrencyLimiter = _limiter(concurrency, max_queued, queue_timeout)
        self.packages: tuple[str, ...] = _module_names("packages", packages)
        # With another python= it is that environment which needs it.
        if seed is not None and python is None and find_spec("time_machine") is None:
            raise MissingExtraError("seed", seed, "repeatable")
        needed = self.packages if seed is None else (*self.packages, "time_machine")
        self._provider = SandboxProvider(
            SandboxSettings(
                limits=self.limits,
                min_isolation=min_isolation,
                launcher=launcher,
                python=_interpreter(python, needed),
                preload=_module_names("preload", preload),
                min_idle=min_idle,
                session_timeout=session_timeout,
                seed=seed,
                frozen_at=frozen_at,
                network=_destinations(network),
                commands=commands,
            )
        )
        self.max_sessions: int = max_sessions
        self._sessions: set[SandboxSession] = set()
        self._lock = threading.Lock()
        self.guidance: str = describe_surroundings(self._provider, self.packages)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What distinguishes its runs from those of other executors; how its sandboxes are built does not."""
        return {
            "limits": self.limits,
            "packages": self.packages,
            "python": str(self._provider.settings.python),
            "seed": self.seed,
            "frozen_at": self._provider.settings.frozen_at,
            "network": self.network,
            "commands": self.commands,
        }

    @property
    def launcher(self) -> str:
        """How sandboxes are built."""
        return self._provider.launcher

    @property
    def seed(self) -> int | None:
        """The seed of random numbers; None if runs are not repeatable."""
        return self._provider.settings.seed

    @property
    def network(self) -> tuple[Any, ...]:
        """The addresses that programs may connect to."""
        return self._provider.settings.network

    @property
    def reaches_outside(self) -> bool:
        """Whether programs may connect to an address."""
        return bool(self.network)

    @property
    def is_repeatable(self) -> bool:
        """Whether random numbers and the clock are the same in each run, and nothing comes from a network."""
        return self.seed is not None and not self.network

    @property
    def commands(self) -> bool:
        """Whether programs may run the commands of this machine."""
        return self._provider.settings.commands

    def has_module(self, name: str) -> bool | None:
        """Return whether a module is installed for programs; see `Executor.has_module`."""
        return self._provider.settings.python.has(name)

    def warm_up(self) -> None:
        """Start the worker now, without waiting for it; otherwise the first run starts it."""
        self._provider.warm_up()

    def _operation(self, program: Program) -> Operation[Execution]:
        return self.limiter.limit(self._run(program))

    def _open_calls(
        self, tools: GivenTools, loop: asyncio.AbstractEventLoop | None
    ) -> ToolCalls[Reply] | None:
        from code_chains.executors.sandbox.tool_server import open_sandbox_calls

        return open_sandbox_calls(tools, self.limits, loop)

    def run_tests(
        self,
        code: str,
        tests: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        stdin: str | None = None,
        tools: GivenTools = None,
    ) -> tuple[Execution, Execution]:
        """Run tests against a program that cannot reach them; see `Executor.run_tests`."""
        # Invariant: a pair takes one slot, as two pairs could deadlock waiting for their second slots.
        drive(self.limiter.acquire())
        try:
            program, harness = self._connected_runs(
                Program(code, files, variables, self._open_calls(tools, None), stdin=stdin), tests
            )
            with ThreadPoolExecutor(1) as thread:
                future = thread.submit(drive, program)
                tested = drive(harness)
                return future.result(), tested
        finally:
            self.limiter.release()

    async def arun_tests(
        self,
        code: str,
        tests: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        stdin: str | None = None,
        tools: GivenTools = None,
    ) -> tuple[Execution, Execution]:
        """Like `run_tests`, without blocking the event loop."""
        await adrive(self.limiter.acquire())
        try:
            calls = self._open_calls(tools, asyncio.get_running_loop())
            program, harness = self._connected_runs(
                Program(code, files, variables, calls, stdin=stdin), tests
            )
            async with asyncio.TaskGroup() as both:
                ran, tested = both.create_task(adrive(program)), both.create_task(adrive(harness))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            self.limiter.release()
        return ran.result(), tested.result()

    def session(self) -> SandboxSession:
        """Open a session, which keeps variables, imports, files and the working directory between runs.

        Raises:
            OverloadedError: `max_sessions` are open.
        """
        from code_chains.executors.sandbox.sessions import SandboxSession

        if not self.has_sessions:
            super().session()  # Which says so.
        with self._lock:
            for session in [*self._sessions]:
                if not session.alive:
                    self._sessions.discard(session)
            if len(self._sessions) >= self.max_sessions:
                raise OverloadedError(
                    f"{self.max_sessions} sessions are open already. Close one, or try again later."
                )
            session = SandboxSession(self._provider, self.limiter, self._sessions.discard)
            self._sessions.add(session)
            return session

    def restart(self) -> None:
        """Kill the worker with its runs and sessions; the next run starts another one."""
        self._provider.pool.drop(kill=True)

    def check_capacity(self) -> None:
        """Raise if the queue is full; see `Executor.check_capacity`."""
        self.limiter.check()

    def drain(self, seconds: float = 30.0) -> bool:
        """Refuse further runs, wait for those that were accepted, and close; see `Executor.drain`."""
        all_ended = self.limiter.shut_down(seconds)
        self.close()
        return all_ended

    def close(self) -> None:
        """Refuse further runs and end everything, including sessions."""
        self._provider.refuse()
        for session in [*self._sessions]:
            session.close()
        self._provider.close()

    def _run(self, program: Program) -> Operation[Execution]:
        return (yield from run_request(self._provider, Request(program, self.limits)))

    def _connected_runs(
        self, program: Program, tests: str
    ) -> tuple[Operation[Execution], Operation[Execution]]:
        """Return two runs, of the program and of its tests."""
        tested, harness = connected_requests(program, tests, self.limits)
        return run_request(self._provider, tested), run_request(self._provider, harness)


class ProcessExecutor(SandboxExecutor):
    """Run programs as plain processes of the same user, without protection: not of files, network or secrets on disk.

    They still have a clean environment, a temporary working directory, and limits of time, memory and output,
    and all processes that they start are killed. Use it only for code that you would run yourself.

    Args:
        limits: Limits of one run.
        options: Those of `SandboxExecutor`, except `min_isolation` and `launcher`.
    """

    reaches_outside = True

    def __init__(self, *, limits: Limits | None = None, **options: Any) -> None:
        super().__init__(limits=limits, min_isolation="none", launcher="none", **options)  # type: ignore[arg-type]


def _max_open_files() -> int:
    """Return how many files the system lets a process open."""
    try:
        import resource  # Not on Windows.
    except ImportError:
        return sys.maxsize
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def _limiter(concurrency: int | None, max_queued: int, queue_timeout: float) -> ConcurrencyLimiter:
    max_running = 4 * available_processors() if concurrency is None else concurrency
    check_int("concurrency", max_running, "a whole number, at least 1", minimum=1)
    check_int("max_queued", max_queued, "a whole number, at least 0", minimum=0)
    is_number = isinstance(queue_timeout, int | float) and not isinstance(queue_timeout, bool)
    if not is_number or not 0 <= queue_timeout <= MAX_QUEUE_TIMEOUT_S:
        raise ConfigurationError("queue_timeout", queue_timeout, "a number of seconds, at most a day")
    remedy = "Retry later, or raise concurrency=, max_queued= or queue_timeout=."
    return ConcurrencyLimiter(max_running, max_queued, float(queue_timeout), remedy=remedy)


def _module_names(argument: str, names: Iterable[str]) -> tuple[str, ...]:
    modules = () if isinstance(names, str) else tuple(names)
    are_valid = all(isinstance(name, str) and name.replace(".", "_").isidentifier() for name in modules)
    if isinstance(names, str) or not are_valid:
        raise ConfigurationError(argument, names, 'names of modules, e.g. ("numpy", "pandas")')
    return modules


def _interpreter(python: str | None, packages: tuple[str, ...]) -> Interpreter:
    try:
        interpreter = this(packages) if python is None else other(python, packages)
    except subprocess.TimeoutExpired as error:
        message = (
            f"{python} did not answer within {error.timeout:g} seconds. The machine may be busy: try again."
        )
        raise ExecutorError(message, is_retryable=True) from error
    except (OSError, ValueError) as error:
        raise ConfigurationError("python", python, f"the path of a Python 3.11 or newer ({error})") from error
    if interpreter.missing:
        names = " ".join(map(distribution_of, interpreter.missing))
        raise ConfigurationError(
            "packages",
            packages,
            f"what is installed, or run: {interpreter.executable} -m pip install {names}",
        )
    return interpreter


def _destinations(network: Iterable[str | Destination]) -> tuple[Destination, ...]:
    if not network:
        return ()
    from code_chains.executors.sandbox.network import destinations

    return destinations(network)
