"""The default executor: each run in a box of its own, built by the kernel and proven from inside."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Literal

from code_chains.errors import ConfigurationError, ExecutorError, InputError, IsolationError
from code_chains.executors.base import Executor, Limits
from code_chains.executors.launchers import LAUNCHERS, WORKDIR, Box, choose_launcher
from code_chains.inputs import check_files, check_variables
from code_chains.state import ErrorReport, Execution, Isolation, Status, signal_name

__all__ = ["ProcessExecutor", "SandboxExecutor"]

GRACE = 20.0
"""Seconds that starting the box and collecting what it said may take on a busy machine, on top of the program's own."""
ENVIRONMENT = {
    "HOME": WORKDIR,
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
}
ALLOWED = {*ENVIRONMENT, "PWD", "LC_CTYPE"}
KERNEL = ("filesystem", "network", "processes", "environment", "namespaces", "seccomp")
_users = itertools.count(os.getpid())


class SandboxExecutor(Executor):
    """Runs each program in a fresh box: own namespaces, a system-call filter, Landlock where the kernel has it, limits.

    The program sees the interpreter with its packages, a private working directory with the given files, and nothing
    else of the machine: no other file, no network, no other process, no environment variable. Before it starts, a probe
    inside the box tries to get out; what it found is in `Execution.isolation`, and if anything that was required is open,
    nothing runs.

    Args:
        limits: What one run may use.
        require: The least isolation that will do: `"kernel"` (default) or `"none"`.
        launcher: How boxes are built: `"bubblewrap"`, `"namespaces"`, or None for the best there is.

    Raises:
        ConfigurationError: An argument is wrong.
        IsolationError: This machine cannot give what is required; at the first run at the latest.

    Example:
        >>> with SandboxExecutor() as box:
        ...     box.run("sum(range(1, 6))").output
        '15'
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        require: Literal["kernel", "none"] = "kernel",
        launcher: Literal["bubblewrap", "namespaces"] | None = None,
    ) -> None:
        super().__init__(limits=limits)
        if require not in ("kernel", "none"):
            raise ConfigurationError("require", require, '"kernel" or "none"')
        if launcher not in (None, *LAUNCHERS):
            raise ConfigurationError("launcher", launcher, f"one of {sorted(LAUNCHERS)}")
        self.require = require
        self.launcher: str = launcher or choose_launcher()
        self._canary = _Canary()
        self._closed = False

    @property
    def confined(self) -> bool:
        """Whether the kernel isolates the program at all."""
        return self.launcher != "none"

    def run(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """Run a program to its end; see `Executor.run`."""
        with self._start(code, files, variables) as run, selectors.DefaultSelector() as selector:
            for descriptor in run.readable:
                selector.register(descriptor, selectors.EVENT_READ)
            while not run.done and (left := run.deadline - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    if not run.read(key.fd):
                        selector.unregister(key.fd)
            return run.finish()

    async def arun(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """Run a program to its end without blocking the event loop; see `Executor.arun`."""
        loop = asyncio.get_running_loop()
        starting = asyncio.ensure_future(asyncio.to_thread(self._start, code, files, variables))
        try:
            run = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_abandon)
            raise
        ended = asyncio.Event()

        def read(descriptor: int) -> None:
            if not run.read(descriptor):
                loop.remove_reader(descriptor)
            if run.done:
                ended.set()

        try:
            for descriptor in run.readable:
                loop.add_reader(descriptor, read, descriptor)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), run.deadline - time.monotonic())
        finally:
            for descriptor in run.readable:
                loop.remove_reader(descriptor)
            run.hang_up()
            await asyncio.shield(asyncio.to_thread(run.close))
        return run.finish()

    def close(self) -> None:
        """Refuse further runs and give back the canaries."""
        self._closed = True
        self._canary.close()

    def _start(self, code: str, files: Mapping[str, Any] | None, variables: Mapping[str, Any] | None) -> _Run:
        if self._closed:
            raise ExecutorError("This executor is closed. Make a new one.")
        if not isinstance(code, str):
            raise InputError(f"Code must be text, not {type(code).__name__}.")
        request = {
            "code": code,
            "variables": check_variables(variables),
            "confine": self.confined,
            "layers": ["namespaces"] if self.confined else [],
            "require": KERNEL if self.require == "kernel" else (),
            "probe": self._canary.request(),
        }
        return _Run(self, request, check_files(files))


class ProcessExecutor(SandboxExecutor):
    """Runs programs as plain processes of the same user. It protects nothing: not files, not network, not secrets on disk.

    What it still gives: a clean environment, a temporary working directory, time, memory and output limits, and the end
    of everything the program started. Use it only for code you would run yourself.

    Args:
        limits: What one run may use.
    """

    def __init__(self, *, limits: Limits | None = None) -> None:
        super().__init__(limits=limits, require="none", launcher="none")  # type: ignore[arg-type]


def _abandon(starting: asyncio.Future[_Run]) -> None:
    """End a run that was started for a task that was cancelled meanwhile."""
    if not starting.cancelled() and starting.exception() is None:
        threading.Thread(target=starting.result().close, daemon=True).start()


class _Canary:
    """What a probe inside the box must not reach: a file and a listening socket of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._request: dict[str, Any] | None = None
        self._release: Callable[[], object] = lambda: None

    def request(self) -> dict[str, Any]:
        """What the probe is told; made at the first run, and anew in a forked process."""
        with self._lock:
            if self._request is None or self._request["pid"] != os.getpid():
                folder = tempfile.mkdtemp(prefix="code_chains-canary-")
                os.chmod(folder, 0o755)  # noqa: S103 - it must be the box that keeps others out, not its mode
                path = os.path.join(folder, "canary")
                with open(path, "w") as file:
                    file.write("canary")
                listener = socket.create_server(("127.0.0.1", 0))
                port = listener.getsockname()[1]
                self._request = {"file": path, "port": port, "pid": os.getpid(), "environment": sorted(ALLOWED)}
                self._release = weakref.finalize(self, _release, os.getpid(), listener, folder)
            return self._request

    def close(self) -> None:
        with self._lock:
            self._release()
            self._request = None


def _release(pid: int, listener: socket.socket, folder: str) -> None:
    listener.close()
    if os.getpid() == pid:  # A forked process must not take away what is its parent's.
        shutil.rmtree(folder, ignore_errors=True)


class _Run:
    """One run: the started box, what came out of it so far, and how it ends.

    It is driven from outside: `read` is called whenever a descriptor is readable, until `done` or the deadline; then
    `finish` says how it ended.
    """

    def __init__(self, executor: SandboxExecutor, request: dict[str, Any], files: Mapping[str, Any]) -> None:
        self.executor, self.limits = executor, executor.limits
        self.flooded = False
        self._stack = ExitStack()
        self._kept: dict[int, bytearray] = {}
        self._open: set[int] = set()
        with ExitStack() as handed:
            try:
                self._launch(handed, request, files)
            except BaseException:
                self._stack.close()
                raise
        self.deadline = time.monotonic() + self.limits.seconds + GRACE

    # -- starting -----------------------------------------------------------------------------------------------------

    def _launch(self, handed: ExitStack, request: dict[str, Any], files: Mapping[str, Any]) -> None:
        """Start the worker in its box. Descriptors in `handed` belong to it and are closed here once it has them."""
        writers = [self._outlet(handed) for _ in range(5)]
        self.readable = self._status, self._result, self._stdout, self._stderr, self._log = tuple(self._kept)
        control, line = os.pipe()
        handed.callback(os.close, control)
        self._line = self._stack.enter_context(ExitStack())
        self._line.callback(os.close, line)
        inputs = {name: self._input(handed, name, path) for name, path in files.items()}
        confined = self.executor.confined
        private = None if confined else self._stack.enter_context(_private_directory())
        box = Box(
            uid=61184 + next(_users) % 4335 if confined and os.geteuid() == 0 else 0,
            disk=self.limits.disk_bytes,
            inputs=sum(os.fstat(descriptor).st_size for descriptor in inputs.values()),
            descriptors=(control, *writers[:4]),
            extra=tuple(inputs.values()),
        )
        handed.callback(lambda: list(map(os.close, box.own)))
        environment = {**ENVIRONMENT, "HOME": private, "TMPDIR": private} if private else ENVIRONMENT
        request |= {
            "uid": box.uid,
            "workdir": private or WORKDIR,
            "environment": environment,
            "files": [(descriptor, name) for name, descriptor in inputs.items()],
            "writable": ["/dev/null", "/dev/full", "/dev/zero", *(place for place, _ in box.tmpfs)],
            "limits": self._limits(box, box.inputs),
        }
        box.descriptors += (box.hold(json.dumps(request)),)
        command = LAUNCHERS[self.executor.launcher](box)
        self._process = self._spawn(command, environment, (*box.descriptors, *box.extra, *box.own), writers[4])

    def _outlet(self, handed: ExitStack) -> int:
        """A pipe that this side reads; gives the end that the worker writes."""
        read, write = os.pipe()
        self._stack.callback(os.close, read)
        handed.callback(os.close, write)
        os.set_blocking(read, False)
        self._kept[read] = bytearray()
        self._open.add(read)
        return write

    def _input(self, handed: ExitStack, name: str, path: Any) -> int:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise InputError(f"The file {name!r} cannot be read: {error}.") from error
        handed.callback(os.close, descriptor)
        return descriptor

    def _limits(self, box: Box, inputs: int) -> dict[str, Any]:
        return {
            "seconds": self.limits.seconds,
            "memory": self.limits.memory_bytes,
            "processes": self.limits.processes,
            "disk": self.limits.disk_bytes + inputs,
            "files": self.limits.files,
            "places": [place for place, _ in box.tmpfs] if self.executor.confined else [],
        }

    def _spawn(
        self, command: list[str], environment: Mapping[str, str], inherited: tuple[int, ...], log: int
    ) -> subprocess.Popen[bytes]:
        program = shutil.which(command[0]) or command[0]
        try:
            return subprocess.Popen(
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=dict(environment),
                cwd="/",
                pass_fds=inherited,
                start_new_session=True,
            )
        except OSError as error:
            raise ExecutorError(f"The sandbox could not be started: {error}.", is_retryable=True) from error

    # -- while it runs ------------------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether nothing more will come: everything that could write has ended, or wrote too much."""
        return self.flooded or not self._open & {self._status, self._result, self._stdout, self._stderr}

    def read(self, descriptor: int) -> bool:
        """Keep what is there, up to the limit; False at the end of the stream."""
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return True
        kept = self._kept[descriptor]
        most = self.limits.output_bytes + (0 if descriptor in (self._stdout, self._stderr) else 1 << 20)
        kept += data[: most - len(kept)]
        if not data:
            self._open.discard(descriptor)
        elif len(kept) >= most:
            self.flooded = True
        return bool(data)

    # -- the end ------------------------------------------------------------------------------------------------------

    def hang_up(self) -> None:
        """Close the line to the watcher, which then ends the run at once."""
        self._line.close()

    def close(self) -> None:
        """End everything that was started and give back what it held. Closing twice is fine."""
        self.hang_up()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stack.close()

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def finish(self) -> Execution:
        """How the run ended.

        Raises:
            IsolationError: Something that was required is open; nothing was run.
            ExecutorError: The box never came up, or broke.
        """
        frames = _frames(self._kept[self._result])
        told = next(iter(_frames(self._kept[self._status])), None)
        if not frames:
            raise self._no_box()
        isolation = self._isolation(frames[0])
        if told is None and not self.flooded and time.monotonic() < self.deadline:
            raise ExecutorError("The watcher inside the sandbox ended unexpectedly.", is_retryable=True)
        status, error, result = self._ending(told or {}, frames[1:])
        return Execution(
            status=status,
            stdout=self._kept[self._stdout].decode(errors="replace"),
            stderr=self._kept[self._stderr].decode(errors="replace"),
            result=result,
            error=error,
            duration=float((told or {}).get("seconds", self.limits.seconds)),
            peak_memory=int((told or {}).get("peak", 0)),
            truncated=self.flooded,
            isolation=isolation,
        )

    def _isolation(self, frame: dict[str, Any]) -> Isolation:
        found, layers = frame.get("probe", {}), tuple(frame.get("layers", ()))
        closed = all(found.values()) and {"namespaces", "seccomp"} <= set(layers)
        isolation = Isolation("kernel" if closed else "none", self.executor.launcher, **found, layers=layers)
        if self.executor.require == "kernel" and not closed:
            wanting = [*isolation.open, *(name for name in ("namespaces", "seccomp") if name not in layers)]
            raise IsolationError(f"Nothing was run: inside the sandbox {', '.join(wanting)} was found open.")
        return isolation

    def _no_box(self) -> ExecutorError:
        said = " ".join(self._kept[self._log].decode(errors="replace").split())[-500:] or "no reason was given"
        if not self.executor.confined:
            return ExecutorError(f"The worker did not start: {said}.", is_retryable=True)
        return IsolationError(
            f"The sandbox could not be built with {self.executor.launcher}: {said}. It needs user namespaces: install"
            " bubblewrap (`apt install bubblewrap`), or allow them (`sysctl kernel.apparmor_restrict_unprivileged_userns=0`;"
            " in Docker `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`), or accept no protection"
            " at all with executor='none'."
        )

    def _ending(
        self, told: dict[str, Any], frames: list[dict[str, Any]]
    ) -> tuple[Status, ErrorReport | None, str | None]:
        """Status, error and result. The watcher's word goes before the program's."""
        if self.flooded:
            return (
                "output_limit",
                ErrorReport("OutputLimit", f"More than {self.limits.output} bytes were printed."),
                None,
            )
        if not told or told.get("reason"):
            return (*self._limit(str(told.get("reason", "timeout"))), None)
        if told["exit"] == 0 and frames and (ending := _ending_from(frames[-1])):
            return ending
        if told["signal"]:
            name = signal_name(told["signal"])
            if told["signal"] == signal.SIGXCPU:
                return (*self._limit("timeout"), None)
            return "killed", ErrorReport("Killed", f"The program was killed by {name}."), None
        message = f"The process ended itself with exit code {told['exit']} before the program was finished."
        return "killed", ErrorReport("Exited", message), None

    def _limit(self, reason: str) -> tuple[Status, ErrorReport]:
        limits = self.limits
        reports: dict[str, tuple[Status, str, str]] = {
            "timeout": ("timeout", "Timeout", f"The program did not end within {limits.seconds:g} seconds."),
            "memory": ("memory", "MemoryLimit", f"The program used more than {limits.memory} of memory."),
            "processes": ("killed", "ProcessLimit", f"The program started more than {limits.processes} processes."),
            "files": ("killed", "FileLimit", f"The program made more than {limits.files} files."),
        }
        status, kind, message = reports[reason]
        return status, ErrorReport(kind, message)


@contextlib.contextmanager
def _private_directory() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="code_chains-", ignore_cleanup_errors=True) as path:
        yield path


def _frames(data: bytes | bytearray) -> list[dict[str, Any]]:
    """Complete lines of JSON objects; anything else is left out, since a program may write here too."""
    found = []
    for line in bytes(data).split(b"\n")[:-1]:
        with contextlib.suppress(ValueError, RecursionError):
            # Half characters (lone surrogates) cannot be written anywhere later; they become "?" here, once.
            clean = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")
            frame = json.loads(clean)
            if isinstance(frame, dict):
                found.append(frame)
    return found


def _ending_from(frame: dict[str, Any]) -> tuple[Status, ErrorReport | None, str | None] | None:
    """What the program's process says of its own ending, if it has the right shape."""
    status, error, result = frame.get("status"), frame.get("error"), frame.get("result")
    if status not in ("ok", "error", "memory") or not isinstance(result, str | None):
        return None
    try:
        return status, None if error is None else ErrorReport.from_dict(error), result
    except (ValueError, TypeError):
        return None
