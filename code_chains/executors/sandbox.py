"""The default executor: warm, and each run in a box of its own, built by the kernel and proven from inside."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, Literal

from code_chains.errors import ConfigurationError, ExecutorError, IsolationError, OverloadedError
from code_chains.executors.admission import Admission
from code_chains.executors.artifacts import Haul, any_file, collect, views
from code_chains.executors.base import Executor, Limits
from code_chains.executors.canary import Canary
from code_chains.executors.drive import Steps, Wait, adrive, drive
from code_chains.executors.endings import Ending, limit_reached, said_by_program
from code_chains.executors.interpreter import Interpreter, other, this
from code_chains.executors.launchers import CACHE, LAUNCHERS, PLACES, candidates, readable_paths
from code_chains.executors.network import Gate, destinations, hosts_file
from code_chains.executors.pool import Fork, Plan, Pool, Worker
from code_chains.executors.request import Request
from code_chains.executors.sessions import SandboxSession
from code_chains.state import ErrorReport, Execution, Isolation, Level, signal_name

__all__ = ["ProcessExecutor", "SandboxExecutor"]

START, GRACE = 120.0, 20.0
"""Seconds that a worker may take to start with its libraries, and a run for what it does besides its program."""
SHORT = 0.02
"""Seconds that a program has the processors for itself, before the next box is made."""
FRAME = 1 << 20
"""Bytes that the program's process may say, besides figures."""
ENVIRONMENT = {
    "HOME": "/box",
    "USER": "sandbox",
    "LOGNAME": "sandbox",
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "TMPDIR": "/tmp",  # noqa: S108 - the box's own
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp/matplotlib",  # noqa: S108
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # Others reserve a gigabyte at once, which counts as data.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # A process with threads cannot be forked safely.
}
ALLOWED = {*ENVIRONMENT, "PWD", "LC_CTYPE", "PYTHONHASHSEED"}
PRELOAD = ("numpy", "pandas", "matplotlib.pyplot")
DEVICES = tuple(f"/dev/{name}" for name in ("null", "full", "random", "urandom"))
REQUIRED: dict[str, tuple[str, ...]] = {
    "kernel": ("namespaces", "seccomp"),
    "landlock": ("landlock", "seccomp"),
    "none": (),
}


class SandboxExecutor(Executor):
    """Runs each program in a fresh box: own namespaces, a system-call filter, Landlock where the kernel has it, limits.

    The program sees the interpreter with its packages, a private working directory with the given files, and nothing
    else of the machine: no other file, no network, no other process, no environment variable. Before it starts, a probe
    inside the box tries to get out; what it found is in `Execution.isolation`, and if anything that was required is open,
    nothing runs. Boxes are forks of one warm process, and one or two wait ahead of need, so that a run starts in
    milliseconds and leaves nothing behind.

    Args:
        limits: What one run may use.
        preload: Libraries that the warm process has loaded, where they are installed; `()` for a small and quick start.
        require: The least isolation that will do: `"kernel"` (default); `"landlock"`, where containers forbid namespaces:
            Landlock and a system-call filter alone; or `"none"`.
        launcher: How boxes are built: `"bubblewrap"`, `"namespaces"`, `"landlock"`, or None for the strongest there is.
        packages: What programs must be able to import; checked here, and told to the model.
        python: Interpreter to run programs with, such as that of a virtual environment of its own; None for this one.
        standbys: Boxes that wait ready. Each takes a few megabytes.
        concurrency: Programs that run at once, those of sessions included; None for four for each core. Others wait in the
            order in which they came.
        queue: How many may wait; for one more there is an `OverloadedError` at once.
        wait: Seconds that each of them waits at most; then there is an `OverloadedError`.
        sessions: Most sessions that are open at a time.
        idle: Seconds without a run after which a session ends.
        seed: Makes runs repeatable: random numbers from this seed, and a clock that stands still at `moment`. Needs
            `time-machine` (`pip install "code-chains[repeatable]"`).
        moment: Seconds since 1970 at which the clock stands when there is a `seed`.
        network: What programs may connect to, such as `["api.example.org:443"]`; nothing else can be reached, nor be
            looked up. Only with namespaces.

    Raises:
        ConfigurationError: An argument is wrong, or a package is missing.
        IsolationError: This machine cannot give what is required; at the first run at the latest.

    Example:
        >>> with SandboxExecutor(preload=()) as box:
        ...     box.run("sum(range(1, 6))").output
        '15'
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        preload: Iterable[str] = PRELOAD,
        require: Literal["kernel", "landlock", "none"] = "kernel",
        launcher: Literal["bubblewrap", "namespaces", "landlock"] | None = None,
        packages: Iterable[str] = (),
        python: str | None = None,
        standbys: int = 1,
        concurrency: int | None = None,
        queue: int = 1000,
        wait: float = 60.0,
        sessions: int = 8,
        idle: float = 900.0,
        seed: int | None = None,
        moment: float = 1_767_225_600.0,
        network: Iterable[str] = (),
    ) -> None:
        super().__init__(limits=limits)
        if require not in REQUIRED:
            raise ConfigurationError("require", require, '"kernel", "landlock" or "none"')
        if launcher not in (None, *LAUNCHERS):
            raise ConfigurationError("launcher", launcher, f"one of {sorted(LAUNCHERS)}")
        if network and (launcher in ("landlock", "none") or require != "kernel"):
            raise ConfigurationError(
                "network", network, 'it with require="kernel": only namespaces can open some addresses'
            )
        for name, number in (("standbys", standbys), ("sessions", sessions)):
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 1000:
                raise ConfigurationError(name, number, "a whole number from 0 to 1000")
        self.admission = _admission(concurrency, queue, wait)
        self.require = require
        self.preload = _names("preload", preload)
        self.packages = _names("packages", packages)
        self.most_sessions, self.idle = sessions, idle
        self.seed, self.moment = seed, moment
        self.network = destinations(network)
        self._gate: Gate | None = None
        self._standbys = standbys
        self._launchers = [launcher] if launcher else candidates(require)
        self._python = _interpreter(python, (*self.packages, *(["time_machine"] if seed is not None else [])))
        self._canary = Canary(ALLOWED)
        self._pool = Pool(self._plan, self._fork)
        if self.packages:
            self.guidance = (
                f"You may import the standard library, {', '.join(self.packages)}; nothing else is installed."
            )
        self._proven = self._closed = False
        self._sessions: set[SandboxSession] = set()
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What tells its runs from those of other places; how its boxes are built does not."""
        told = {"limits": self.limits, "packages": self.packages, "python": str(self._python)}
        return {**told, "seed": self.seed, "moment": self.moment, "network": self.network}

    @property
    def launcher(self) -> str:
        """How boxes are built."""
        return self._launchers[0]

    @property
    def confined(self) -> bool:
        """Whether the kernel isolates the program at all."""
        return self.launcher != "none"

    @property
    def waiting(self) -> float:
        """Seconds to wait for a run at most; its own limit comes before."""
        return self.limits.seconds + GRACE

    def warm(self) -> None:
        """Start the warm process now, without waiting for it; else the first run starts it."""
        if not self._closed:
            self._pool.warm()

    def run(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """Run a program to its end; see `Executor.run`."""
        return drive(self.admission.through(self._run(code, files, variables)))

    async def arun(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """Run a program to its end without blocking the event loop; see `Executor.arun`."""
        return await adrive(self.admission.through(self._run(code, files, variables)))

    def examine(
        self,
        code: str,
        tests: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> tuple[Execution, Execution]:
        """Run tests against a program that cannot reach them; see `Executor.examine`."""
        drive(self.admission.enter())  # One place for both: two examinations could wait for each other's second one.
        try:
            program, asking = self._examination(code, tests, files, variables)
            with ThreadPoolExecutor(1) as thread:
                ran = thread.submit(drive, program)
                asked = drive(asking)
                return ran.result(), asked
        finally:
            self.admission.leave()

    async def aexamine(
        self,
        code: str,
        tests: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> tuple[Execution, Execution]:
        """Like `examine`, without blocking the event loop."""
        await adrive(self.admission.enter())
        try:
            program, asking = self._examination(code, tests, files, variables)
            async with asyncio.TaskGroup() as both:
                ran, asked = both.create_task(adrive(program)), both.create_task(adrive(asking))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            self.admission.leave()
        return ran.result(), asked.result()

    def session(self) -> SandboxSession:
        """A session, which keeps variables, imports, files and the working directory between runs.

        Raises:
            OverloadedError: There are as many as are allowed already; close one, or try again later.
        """
        with self._lock:
            for session in [*self._sessions]:
                if not session.alive:
                    self._sessions.discard(session)
            if len(self._sessions) >= self.most_sessions:
                raise OverloadedError(
                    f"There are {self.most_sessions} sessions already. Close one, or try again later."
                )
            session = SandboxSession(self)
            self._sessions.add(session)
            return session

    def forget(self, session: SandboxSession) -> None:
        """A session has ended."""
        self._sessions.discard(session)

    def restart(self) -> None:
        """End what is warm, with its runs and sessions, and start afresh with the next run."""
        self._pool.drop(at_once=True)

    def check_room(self) -> None:
        """See whether the line is full; see `Executor.check_room`."""
        self.admission.check()

    def drain(self, seconds: float = 30.0) -> bool:
        """Refuse further runs, let those end that were accepted, and close; see `Executor.drain`."""
        all_ended = self.admission.shut(seconds)
        self.close()
        return all_ended

    def close(self) -> None:
        """Refuse further runs and end what is warm, sessions included."""
        self._closed = True
        for session in [*self._sessions]:
            session.close()
        self._pool.close()
        self._canary.close()
        if self._gate:
            self._gate.close()

    # -- a run --------------------------------------------------------------------------------------------------------

    def _examination(
        self, code: str, tests: str, files: Mapping[str, Any] | None, variables: Mapping[str, Any] | None
    ) -> tuple[Steps[Execution], Steps[Execution]]:
        """Two runs, of the program and of its tests, and a pipe each way between them, which carries bytes alone."""
        with ExitStack() as undo:
            program = undo.enter_context(Request(code, files, variables))
            asking = undo.enter_context(Request(tests, files, variables, asks=True))
            undo.pop_all()
        (heard, ask), (told, answer) = os.pipe(), os.pipe()
        program.connect(heard, answer)
        asking.connect(told, ask)
        return self._in_a_box(program), self._in_a_box(asking)

    def _run(self, code: str, files: Mapping[str, Any] | None, variables: Mapping[str, Any] | None) -> Steps[Execution]:
        return (yield from self._in_a_box(Request(code, files, variables)))

    def _in_a_box(self, request: Request) -> Steps[Execution]:
        with request:
            fork = yield from self.take()
            try:
                began = time.monotonic()
                request.send(fork, {"op": "run"})
                with suppress(ExecutorError):  # The next run will tell.
                    self._pool.prepare()
                yield Wait(fork, "done", SHORT)
                with suppress(ExecutorError):
                    self._pool.warm()
                yield Wait(fork, "done", self.waiting)
                return (yield from self._finish(fork, began, request.files))
            finally:
                fork.close()

    def take(self) -> Generator[Wait, None, Fork]:
        """A box that is ready and proven; a worker that was damaged is replaced by a fresh one."""
        if self._closed:
            raise ExecutorError("This executor is closed. Make a new one.")
        failed: list[str] = []
        while len(failed) < 2 or (len(self._launchers) > 1 and not self._proven):
            fork = self._pool.take()
            try:
                yield Wait(fork, "ready", START)
                fork.read(fork.control.fileno())  # It may have been killed while it waited for a program.
                if fork.starved:
                    raise ExecutorError("No box can be made: too many files are open here.", is_retryable=True)
                if fork.ready and fork.failed is None and self._has_threads(fork):
                    fork.close()
                    continue
                if fork.ready and fork.failed is None:
                    fork.isolation = self._judge(fork)
                    self._proven = True
                    self._open_gate(fork)
                    return fork
            except BaseException:
                fork.close()
                raise
            failed.append(f"it took more than {START:g} seconds to start" if fork.failed is None else fork.failed)
            fork.close()
            self._pool.drop()
            self._weaken(fork)
        raise self._no_box(failed[-1])

    def _weaken(self, fork: Fork) -> None:
        """Try the next launcher, if it was the first one that could not build this box, and none has built any yet."""
        with self._lock:
            failed = fork.worker.plan.launcher
            if not self._proven and len(self._launchers) > 1 and self._launchers[0] == failed and fork.root is None:
                del self._launchers[0]

    def _has_threads(self, fork: Fork) -> bool:
        """Whether a library that was loaded ahead runs threads: they would be missing in every fork."""
        if fork.worker.greeting().get("threads", 1) < 2:
            return False
        if self.preload != PRELOAD:
            raise ConfigurationError("preload", self.preload, "libraries that start no threads when they are imported")
        self.preload = ()
        self._pool.drop()
        return True

    def _open_gate(self, fork: Fork) -> None:
        """Let the program out to where it may go."""
        if self.network:
            with self._lock:
                self._gate = self._gate or Gate(self.network)
            fork.on_close(self._gate.open(fork.hand_over()))

    def _finish(self, fork: Fork, began: float, inputs: Iterable[str]) -> Generator[Wait, None, Execution]:
        """Take out what a program made, once nothing of it runs any more."""
        seconds = time.monotonic() - began
        fork.drain()
        haul = Haul(self.limits.artifacts_bytes)
        if fork.root is not None and any_file(fork.root, set(inputs)):
            if not fork.ended:
                yield Wait(fork, "ended", GRACE)
            collect(fork.root, haul, inputs=set(inputs))
        if len(fork.frames) > 1:
            views(fork.frames[1], haul)
        return self.execution(fork, seconds, haul)

    def execution(self, fork: Fork, seconds: float, haul: Haul) -> Execution:
        """The record of a run that has ended."""
        told = (fork.told or {}).get("ended") or {}
        if not told and len(fork.frames) < 2 and not fork.flooded:
            raise ExecutorError("The sandbox ended unexpectedly while a program ran in it.", is_retryable=True)
        status, error, result = self._ending(fork, told)
        return Execution(
            status=status,
            stdout=fork.kept[fork.stdout].decode(errors="replace"),
            stderr=fork.kept[fork.stderr].decode(errors="replace"),
            result=result,
            error=error,
            artifacts=tuple(haul.artifacts),
            duration=float(told.get("seconds", seconds)),
            peak_memory=_whole(told.get("peak")) or _whole(fork.frames[-1].get("peak")),
            truncated=fork.flooded or haul.truncated,
            isolation=fork.isolation,
        )

    def _ending(self, fork: Fork, told: Mapping[str, Any]) -> Ending:
        """Status, error and result. The watcher's word goes before the program's."""
        if fork.flooded:
            return limit_reached(self.limits, "output")
        if told.get("reason"):
            return limit_reached(self.limits, str(told["reason"]))
        if not told.get("exit") and len(fork.frames) > 1 and (ending := said_by_program(fork.frames[1])):
            return ending
        if told.get("signal") == signal.SIGXCPU:
            return limit_reached(self.limits, "timeout")
        if told.get("signal"):
            message = f"The program was killed by {signal_name(told['signal'])}."
            return "killed", ErrorReport("Killed", message), None
        message = f"The process ended itself with exit code {told.get('exit', 0)} before the program was finished."
        return "killed", ErrorReport("Exited", message), None

    # -- its box ------------------------------------------------------------------------------------------------------

    def _judge(self, fork: Fork) -> Isolation:
        """What the probe found, if that will do."""
        frame = fork.frames[0]
        if "probe" not in frame:
            raise ExecutorError(f"The sandbox broke: {frame.get('broken', 'it said nonsense')}.", is_retryable=True)
        found, layers = frame["probe"], tuple(frame.get("layers", ()))
        isolation = Isolation("none", fork.worker.plan.launcher, **found, layers=layers)
        if not isolation.network:
            self._canary.hang_up()
        fitting: list[Level] = ["kernel", "landlock"]
        level: Level = next(
            (level for level in fitting if not isolation.open and set(REQUIRED[level]) <= set(layers)), "none"
        )
        order = ("none", "landlock", "kernel")
        if order.index(level) < order.index(self.require):
            wanting = [*isolation.open, *(name for name in REQUIRED[self.require] if name not in layers)]
            raise IsolationError(f"Nothing was run: inside the sandbox {', '.join(wanting)} was found open.")
        return replace(isolation, level=level)

    def _no_box(self, said: str) -> ExecutorError:
        said = said or "no reason was given"
        if not self.confined:
            return ExecutorError(f"The worker did not start: {said}.", is_retryable=True)
        return IsolationError(
            f"The sandbox could not be built with {self.launcher}: {said}. It needs user namespaces: install"
            " bubblewrap (`apt install bubblewrap`), or allow them (`sysctl kernel.apparmor_restrict_unprivileged_userns=0`;"
            " in Docker `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`), or accept less:"
            " SandboxExecutor(require='landlock') for Landlock and a system-call filter alone, executor='none' for no"
            " protection at all."
        )

    def _fork(self, worker: Worker) -> Fork:
        return Fork(
            worker, self.limits.output_bytes, FRAME + self.limits.output_bytes + 2 * self.limits.artifacts_bytes
        )

    def _plan(self) -> Plan:
        """What the next worker is made from."""
        spaces = self.launcher in ("bubblewrap", "namespaces")
        readable = [path for pair in readable_paths(self._python) for path in pair]
        limits = self.limits
        environment = {**ENVIRONMENT, **({} if self.seed is None else {"PYTHONHASHSEED": str(self.seed % 2**32)})}
        config = {
            "namespaces": spaces,
            "confined": self.confined,
            "network": [(one.inside, one.port) for one in self.network],
            "preload": self.preload,
            "environment": environment,
            "cache": CACHE,
            "probe": self._canary.request(),
            "shown": [path for path in readable if any(path.startswith(f"{place}/") for place in PLACES)],
            "readable": [*readable, *DEVICES],
            "writable": [*DEVICES, *(PLACES if spaces else ())],
            "idle": self.idle,
            "seed": self.seed,
            "moment": self.moment,
            "limits": {
                "seconds": limits.seconds,
                "memory": limits.memory_bytes,
                "processes": limits.processes,
                "disk": limits.disk_bytes,
                "files": limits.files,
                "open_files": limits.open_files,
                "artifacts": limits.artifacts_bytes,
            },
        }
        return Plan(self.launcher, self._python, config, environment, self._standbys, hosts_file(self.network))


class ProcessExecutor(SandboxExecutor):
    """Runs programs as plain processes of the same user. It protects nothing: not files, not network, not secrets on disk.

    What it still gives: a clean environment, a temporary working directory, time, memory and output limits, and the end
    of everything the program started. Use it only for code you would run yourself.

    Args:
        limits: What one run may use.
        options: Those of `SandboxExecutor`, but for `require` and `launcher`.
    """

    def __init__(self, *, limits: Limits | None = None, **options: Any) -> None:
        super().__init__(limits=limits, require="none", launcher="none", **options)  # type: ignore[arg-type]


def _admission(concurrency: int | None, queue: int, wait: float) -> Admission:
    places = 4 * len(os.sched_getaffinity(0)) if concurrency is None else concurrency
    for name, number, least in (("concurrency", places, 1), ("queue", queue, 0)):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise ConfigurationError(name, number, f"a whole number, at least {least}")
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= 86_400:
        raise ConfigurationError("wait", wait, "a number of seconds, at most a day")
    return Admission(places, queue, float(wait))


def _names(argument: str, names: Iterable[str]) -> tuple[str, ...]:
    found = () if isinstance(names, str) else tuple(names)
    if isinstance(names, str) or not all(
        isinstance(name, str) and name.replace(".", "_").isidentifier() for name in found
    ):
        raise ConfigurationError(argument, names, 'names of modules, e.g. ("numpy", "pandas")')
    return found


def _interpreter(python: str | None, packages: tuple[str, ...]) -> Interpreter:
    try:
        found = this(packages) if python is None else other(python, packages)
    except (OSError, ValueError) as error:
        raise ConfigurationError("python", python, f"the path of a Python 3.11 or newer ({error})") from error
    if found.missing:
        names = " ".join(name.partition(".")[0].replace("_", "-") for name in found.missing)
        raise ConfigurationError(
            "packages", packages, f"what is installed, or run: {found.executable} -m pip install {names}"
        )
    return found


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else 0
