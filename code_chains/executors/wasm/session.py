"""Sessions in WebAssembly: a Python that is kept, and made anew from its programs if one of them is undone."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from code_chains.errors import ExecutorError, SessionError
from code_chains.executors.inputs import files_on_disk
from code_chains.executors.limiter import ConcurrencyLimiter
from code_chains.executors.limits import Limits
from code_chains.executors.outcomes import objections, rejected
from code_chains.executors.process_session import ProcessSession
from code_chains.executors.runner import Program
from code_chains.executors.tool_calls import ToolCalls
from code_chains.executors.waiting import Operation, blocking
from code_chains.executors.wasm.instance import Instance
from code_chains.executors.wasm.pool import InstancePool
from code_chains.executors.wasm.requests import WasmRequest, open_wasm_calls
from code_chains.records import Execution, Isolation
from code_chains.temporary import process_folder

CHANGED = "a program of it showed something else when it was run again; what it had made is lost"


class WasmSession(ProcessSession):
    """A session of a `WasmExecutor`; made by its `session()`.

    Its state is what its successful programs have made. When one fails or is undone, they run again, with the same random
    numbers and the same answers of tools, in a new Python. Only the clock has gone on; if one of them then shows anything
    else but other numbers, the session ends.

    Args:
        pool: Has the processes in which it runs.
        limiter: Says when it may run.
        limits: Limits of one run.
        timeout: Seconds without a run after which it ends.
    """

    returns_values = takes_stdin = takes_tools = True

    def __init__(
        self, pool: InstancePool, limiter: ConcurrencyLimiter, limits: Limits, timeout: float
    ) -> None:
        super().__init__(limits)
        self._pool, self._limiter, self._timeout = pool, limiter, timeout
        self._seed = secrets.token_hex(16)
        self._requests: tuple[WasmRequest, ...] = ()
        self._before: tuple[WasmRequest, ...] | None = None
        self._saved = dict[str, tuple[WasmRequest, ...]]()
        self._taken: tuple[Instance, Isolation] | None = None
        self._is_made, self._room = False, 0
        self._folder = Path(tempfile.mkdtemp(prefix="session-", dir=process_folder()))
        self._used_at = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether it can be used; one that was idle for too long has ended."""
        if not self._lock.locked() and time.monotonic() - self._used_at > self._timeout:
            self._end_reason = self._end_reason or f"it was idle for {self._timeout:g} seconds"
        return self._end_reason is None

    def _open_calls(self, tools: Any, loop: Any) -> ToolCalls[Any] | None:
        return open_wasm_calls(tools, self._limits, loop)

    def _operation(self, program: Program) -> Operation[Execution]:
        end = partial(self._end, "a run was interrupted (CancelledError)")
        return blocking(partial(self._run, program), end)

    def _run(self, program: Program) -> Execution:
        with self._exclusive(), files_on_disk(program.files) as files, self._pool.slot(self._limiter):
            request = WasmRequest(program, self._kept(files), self._limits, is_session=True)
            instance, found = self._rebuilt(request.size)
            self._is_made = False  # Until it is known that it succeeded.
            execution = request.run(instance, found)
            self._check_open()
            reasons = objections(program.check, execution) if execution.ok and program.check else []
            if execution.ok and not reasons:
                self._before, self._requests = self._requests, (*self._requests, request)
                self._is_made = True
            elif not instance.is_alive:
                self._give_up()
            return rejected(execution, reasons) if reasons else execution

    def _change(self, command: dict[str, Any]) -> None:
        with self._exclusive():
            if command["op"] == "checkpoint":
                self._saved[command["name"]] = self._requests
                return
            target = self._before if command["op"] == "rollback" else self._saved[command["name"]]
            if target is None:
                raise SessionError("There is no successful run to undo, or it was undone.")
            self._is_made = self._is_made and target == self._requests
            self._before, self._requests = None, target

    # -- the Python ------------------------------------------------------------------------------------------

    def _rebuilt(self, size: int) -> tuple[Instance, Isolation]:
        """Return a Python with the state, and room for files of so many bytes.

        Raises:
            SessionError: A program shows something else than before.
        """
        if self._taken is None or not self._taken[0].is_alive:
            self._give_up()
            self._taken, self._is_made = self._pool.take(), False
        instance, found = self._taken
        needed = size + sum(request.size for request in self._requests)
        if not self._is_made or needed > self._room:
            self._room = needed
            instance.make_python(self._limits.memory_bytes, self._limits.disk_bytes + needed, self._seed)
            for request in self._requests:
                if not request.replay(instance, found):
                    self._end(CHANGED)
                    self._check_open()
        return instance, found

    def _kept(self, files: dict[str, Path]) -> dict[str, Path]:
        """Return copies of files, which are there as long as the session."""
        folder = Path(tempfile.mkdtemp(dir=self._folder)) if files else self._folder
        return {
            name: shutil.copyfile(path, folder / str(index))
            for index, (name, path) in enumerate(files.items())
        }

    def _give_up(self) -> None:
        taken, self._taken = self._taken, None
        if taken is not None:
            self._pool.give_up(taken[0])

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Run one operation at a time, and end the session if one broke half way."""
        self._check_owner()
        self._check_open()
        self._occupy()
        try:
            self._check_open()
            yield
        except (ExecutorError, KeyboardInterrupt) as error:
            if not isinstance(error, SessionError):
                self._give_up()
            raise
        finally:
            self._used_at = time.monotonic()
            self._lock.release()

    def _check_open(self) -> None:
        if not self.alive:
            super()._check_open()

    def _end(self, reason: str) -> None:
        self._end_reason = self._end_reason or reason
        self._give_up()
        if self._pid == os.getpid():
            shutil.rmtree(self._folder, ignore_errors=True)
