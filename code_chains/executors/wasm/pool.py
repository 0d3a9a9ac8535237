"""The processes for WebAssembly of one executor: those that wait for a program, and those that run one."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

from code_chains.errors import EXECUTOR_CLOSED, NO_FOLDER, ExecutorError, IsolationError
from code_chains.executors.limiter import ConcurrencyLimiter
from code_chains.executors.limits import Limits
from code_chains.executors.remote.external import PROBE, canary, isolation
from code_chains.executors.waiting import drive
from code_chains.executors.wasm.instance import Instance
from code_chains.executors.wasm.runtime import runtime
from code_chains.records import Isolation

Taken = tuple[Instance, Isolation]
"""A process that runs nothing, and what a probe found in it."""


class Call:
    """A call that may be cancelled before its program starts, or while that runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._instance: Instance | None = None
        self._is_cancelled = False

    def start(self, instance: Instance) -> None:
        """Remember what runs the program.

        Raises:
            ExecutorError: The call was cancelled.
        """
        with self._lock:
            self._instance = instance
            if self._is_cancelled:
                raise ExecutorError("The run was cancelled.")

    def cancel(self) -> None:
        """Kill the program, or let it never start."""
        with self._lock:
            self._is_cancelled = True
            instance = self._instance
        if instance is not None:
            instance.stop()


class InstancePool:
    """Starts processes, keeps those that can be used again, and ends them.

    Args:
        limits: The limits of a run.
        max_idle: How many are kept.
    """

    def __init__(self, limits: Limits, max_idle: int) -> None:
        self._limits, self._max_idle = limits, max_idle
        self._is_closed = False
        self._inherited: object = None
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._ready: list[Taken] = []
        self._running: set[Instance] = set()
        self._is_starting = False
        self._canary = contextlib.ExitStack()
        self._targets: dict[str, Any] | None = None

    @contextlib.contextmanager
    def slot(self, limiter: ConcurrencyLimiter) -> Iterator[None]:
        """Wait until a program may run, and let others wait meanwhile."""
        self.forget_if_forked()
        self.check_open()
        drive(limiter.acquire())
        try:
            yield
        finally:
            limiter.release()

    @contextlib.contextmanager
    def borrowed(self, call: Call) -> Iterator[Taken]:
        """Yield a process that runs nothing; it is kept afterwards unless it broke or something failed."""
        taken = self.take()
        is_sound = False
        try:
            call.start(taken[0])
            yield taken
            is_sound = taken[0].is_alive
        finally:
            with self._lock:
                self._running.discard(taken[0])
                is_kept = is_sound and not self._is_closed and len(self._ready) < self._max_idle
                if is_kept:
                    self._ready.append(taken)
            if not is_kept:
                taken[0].remove()
                self.warm_up()

    def take(self) -> Taken:
        """Return a process that runs nothing, until `give_up`."""
        self.check_open()
        taken: Taken | None = None
        while taken is None or not taken[0].is_alive:  # It may have been killed from outside.
            with self._lock:
                taken = self._ready.pop() if self._ready else None
            taken = taken or self._start()
        with self._lock:
            self._running.add(taken[0])
            is_closed = self._is_closed
        if is_closed:
            self.give_up(taken[0])
        self.check_open()
        return taken

    def give_up(self, instance: Instance) -> None:
        """End a process that was taken."""
        with self._lock:
            self._running.discard(instance)
        instance.remove()

    def warm_up(self) -> None:
        """Have a process that waits, started by a thread of its own."""
        with self._lock:
            if self._is_starting or self._is_closed or self._ready:
                return
            self._is_starting = True
        threading.Thread(target=self._start_ahead, name="code_chains-wasm", daemon=True).start()

    def close(self) -> None:
        """End all processes, and start no more."""
        self.forget_if_forked()
        with self._lock:
            self._is_closed = True
            ready, self._ready = self._ready, []
            running = list(self._running)
        for instance in running:
            instance.stop()
        for instance, _ in ready:
            instance.remove()
        with self._lock:
            self._canary.close()

    def forget_if_forked(self) -> None:
        """Leave what a forked process has inherited to its parent."""
        if self._pid != os.getpid():
            self._inherited = (self._ready, self._running, self._canary)
            self._reset()

    def check_open(self) -> None:
        """Raise `ExecutorError` if it is closed."""
        if self._is_closed:
            raise ExecutorError(EXECUTOR_CLOSED)

    def _start_ahead(self) -> None:
        started: Taken | None = None
        # The next run meets the same error, and reports it; a Python that is ending starts no threads.
        with contextlib.suppress(ExecutorError, RuntimeError):
            started = self._start()
        with self._lock:
            self._is_starting = False
            if started is not None and not self._is_closed:
                self._ready.append(started)
                return
        if started is not None:
            started[0].remove()

    def _start(self) -> Taken:
        """Start a process, and prove that a Python in it is isolated.

        Raises:
            IsolationError: It is not.
            ExecutorError: It did not start.
        """
        targets, folder = self._canary_targets(), runtime()
        try:
            instance = Instance(folder)
        except OSError as error:
            raise ExecutorError(f"The folders of a run cannot be made: {error}. {NO_FOLDER}") from error
        try:
            instance.make_python(self._limits.memory_bytes, self._limits.disk_bytes, "")
            output = instance.probe(f"canary = {targets!r}\n{PROBE}")
            with self._lock:
                self.check_open()  # Its canary is gone then.
                found = isolation("wasm", "eryx", output, targets["salt"], targets.reached())
            if found.open:
                raise IsolationError(
                    f"Nothing was run: inside WebAssembly {', '.join(found.open)} was found open."
                )
        except BaseException:
            instance.remove()
            raise
        return instance, found

    def _canary_targets(self) -> Any:
        """Return what the probe must not reach, which exists until this pool is closed."""
        with self._lock:
            self.check_open()
            if self._targets is None:
                try:
                    self._targets = self._canary.enter_context(canary())
                except OSError as error:
                    raise ExecutorError(f"The probe cannot be prepared: {error}. {NO_FOLDER}") from error
            return self._targets
