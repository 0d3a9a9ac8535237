"""The pool: one worker, and forks of it that wait for a program."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

from code_chains.errors import EXECUTOR_CLOSED, NO_FOLDER, ExecutorError
from code_chains.executors.guest.sandbox.filesystem import remove
from code_chains.executors.sandbox.fork import Fork
from code_chains.executors.sandbox.worker import Worker, WorkerSpec
from code_chains.temporary import process_folder

_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


@dataclass
class _Resources:
    """What a pool owns, apart from it, so that a finalizer can release it without the pool.

    Invariants: `idle`, `spent` and `prepared` are forks of `worker`; `forks` holds these and all that were acquired and are
    not yet collected; `pid` is the owner, and nobody else releases anything.
    """

    worker: Worker | None = None
    idle: list[Fork] = field(default_factory=list)
    spent: list[Fork] = field(default_factory=list)
    prepared: Fork | None = None
    forks: weakref.WeakSet[Fork] = field(default_factory=weakref.WeakSet)
    folder: str | None = None
    pid: int = field(default_factory=os.getpid)


class Pool:
    """One worker, replaced when it is old or gone, with forks that are started ahead of need.

    Invariant: everything below is done while holding the lock, and nothing of it waits for a worker.

    Args:
        make_spec: Returns the spec of the next worker.
        make_fork: Returns a fork of a worker that is not yet started.
    """

    def __init__(self, make_spec: Callable[[], WorkerSpec], make_fork: Callable[[Worker], Fork]) -> None:
        self._make_spec, self._make_fork = make_spec, make_fork
        self._lock = threading.RLock()
        self._resources = _Resources()
        self._is_closed = False
        self._finalizer = weakref.finalize(self, _release, self._resources)
        _pools.add(self)

    @property
    def worker(self) -> Worker | None:
        """The current worker; None before the first run and after `drop`."""
        return self._resources.worker

    def acquire(self, *, libraries: int) -> Fork:
        """Return a fork for one owner, who closes it; its sandbox may still be starting.

        Args:
            libraries: How many of the preloaded libraries its program needs; it may get more.
        """
        with self._lock:
            worker = self._current_worker()
            libraries = min(libraries, len(worker.spec.config["preload"]))
            if idle := self._idle(libraries) or self._started_with_more(libraries):
                self._resources.idle.remove(idle[0])
                return idle[0]
            return self._start_fork(worker, libraries=libraries)

    def give_back(self, fork: Fork) -> None:
        """Take a fork back whose program has ended; its supervisor serves another one if that comes soon."""
        with self._lock:
            is_current = fork.worker is self._resources.worker
            if is_current and fork.worker.spec.config["namespaces"] and fork.leave(is_collected=True):
                fork.forget_files()
                self._resources.spent.append(fork)
            else:
                fork.close()

    def prepare(self) -> None:
        """Open what the next fork needs on this side, while a program keeps the processors busy."""
        with self._lock:
            if self._resources.worker is not None and self._resources.prepared is None:
                self._resources.prepared = self._next_fork(self._resources.worker)

    def warm_up(self, *kinds: int) -> None:
        """Start the worker and its idle forks, without waiting for them.

        Args:
            kinds: How many of the preloaded libraries forks have; by default none or all.
        """
        with self._lock:
            worker = self._current_worker()
            count = len(worker.spec.config["preload"])
            for libraries in {min(kind, count) for kind in kinds or (0, count)}:
                for _ in range(worker.spec.min_idle - len(self._idle(libraries))):
                    self._resources.idle.append(self._start_fork(worker, libraries=libraries))

    def _idle(self, libraries: int) -> list[Fork]:
        return [fork for fork in self._resources.idle if fork.libraries == libraries]

    def _started_with_more(self, libraries: int) -> list[Fork]:
        """Return forks with more libraries than necessary, some at least, that need not be waited for."""
        candidates = [fork for fork in self._resources.idle if fork.libraries > libraries > 0]
        for fork in candidates:
            for descriptor in fork.descriptors:
                fork.read(descriptor)  # Nobody else reads what idle forks report.
        return [fork for fork in candidates if fork.is_started()]

    def _start_fork(self, worker: Worker, *, libraries: int) -> Fork:
        fork = self._next_fork(worker)
        if (spent := self._take_spent()) is not None:
            return fork.renew(spent, libraries=libraries)
        return fork.start(libraries=libraries)

    def _take_spent(self) -> Fork | None:
        """Return a fork whose supervisor can build another sandbox now; those that never will are closed."""
        ready = None
        for fork in [*self._resources.spent]:
            reusable = fork.is_reusable()
            if reusable:
                ready = fork  # The last one, so that those which are not needed end after a while.
            elif reusable is False:
                self._resources.spent.remove(fork)
                fork.close()
        if ready is not None:
            self._resources.spent.remove(ready)
        return ready

    def _next_fork(self, worker: Worker) -> Fork:
        prepared, self._resources.prepared = self._resources.prepared, None
        if prepared is not None and prepared.worker is worker:
            return prepared
        if prepared is not None:
            prepared.close()
        fork = self._make_fork(worker)
        self._resources.forks.add(fork)
        return fork

    def _current_worker(self) -> Worker:
        if self._is_closed:
            raise ExecutorError(EXECUTOR_CLOSED)
        resources = self._resources
        if resources.worker is not None and resources.worker.is_worn:
            self.drop()
        if resources.worker is None:
            resources.folder = resources.folder or _make_folder()
            try:
                resources.worker = Worker(self._make_spec(), resources.folder)
            except OSError as error:
                raise ExecutorError(f"No sandbox can be started here: {error}.", is_retryable=True) from error
        return resources.worker

    def drop(self, *, kill: bool = False) -> None:
        """Replace the worker with the next run; with `kill`, end all that runs in it now."""
        with self._lock:
            worker, self._resources.worker = self._resources.worker, None
            unused = [*self._resources.idle, *self._resources.spent]
            self._resources.idle.clear()
            self._resources.spent.clear()
            for fork in unused:
                fork.close()
            if worker and kill:
                worker.close()
            elif worker:
                worker.retire()

    def close(self) -> None:
        """End everything. Nothing is started any more, not even for a run that is waiting already."""
        with self._lock:
            self._is_closed = True
            for fork in list(self._resources.forks):
                own = (*self._resources.idle, *self._resources.spent, self._resources.prepared)
                if fork not in own:
                    fork.disconnect()  # Its owner closes it.
                    self._resources.forks.discard(fork)
            _release(self._resources)

    def abandon(self) -> None:
        """Forget everything in a forked process, as it belongs to the parent."""
        self._lock = threading.RLock()
        for fork in list(self._resources.forks):
            fork.abandon()
        if self._resources.worker:
            self._resources.worker.abandon()
        self._finalizer.detach()
        self._resources = _Resources()
        self._finalizer = weakref.finalize(self, _release, self._resources)


def _make_folder() -> str:
    try:
        folder = tempfile.mkdtemp(prefix="pool-", dir=process_folder())
    except OSError as error:
        raise ExecutorError(f"No sandbox can be started here: {error}. {NO_FOLDER}") from error
    os.chmod(folder, 0o711)  # noqa: S103 - runs as another user must come through
    return folder


def _release(resources: _Resources) -> None:
    if resources.pid != os.getpid():
        return
    for fork in list(resources.forks):
        fork.close()
    resources.idle.clear()
    resources.spent.clear()
    resources.prepared = None
    if resources.worker:
        resources.worker.close()
    if resources.folder:
        remove(resources.folder)
    resources.worker = resources.folder = None


def _after_fork() -> None:
    for pool in list(_pools):
        pool.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
