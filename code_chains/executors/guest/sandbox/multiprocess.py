"""Locks and shared memory of `multiprocessing` where a program has no `/dev/shm` of its own: without namespaces.

Semaphores lie in unnamed files of the run, which forks share; processes that are not forks cannot have them. Named memory
lies in the run's folder for that.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
import threading
import time
from multiprocessing import heap
from typing import Any

from ..kernel.syscalls import check, libc

try:
    import _multiprocessing  # type: ignore[import-not-found]
    import _posixshmem  # type: ignore[import-not-found]
except ImportError:  # Not on Windows.
    _multiprocessing = _posixshmem = None

RECURSIVE_MUTEX = 0
SEMAPHORE_BYTES = 32
"""Size of a `sem_t`."""


class SemLock:
    """Like `_multiprocessing.SemLock`, which it stands in for.

    Args:
        kind: Whether it is a recursive lock, whose owner may take it again, or a semaphore.
        value: Its value.
        maxvalue: The highest value.
        name: The name that it would have elsewhere.
        unlink: Whether only forks share it.

    Raises:
        PermissionError: Others are to share it.
    """

    SEM_VALUE_MAX = (1 << 31) - 1

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        if not unlink:
            raise PermissionError(errno.EPERM, "locks of processes that are not forks are not available here")
        self.kind, self.maxvalue, self.name = kind, maxvalue, None
        self._held, self._owner = 0, 0
        self._memory = mmap.mmap(-1, SEMAPHORE_BYTES)
        self._semaphore = (ctypes.c_char * SEMAPHORE_BYTES).from_buffer(self._memory)
        self.handle = ctypes.addressof(self._semaphore)
        check(self._call("sem_init", 1, value), "sem_init")

    def _call(self, name: str, *arguments: Any) -> int:
        return int(getattr(libc, name)(self._semaphore, *arguments))

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Take it; return whether that was possible in time."""
        if self.kind == RECURSIVE_MUTEX and self._is_mine():
            self._held += 1
            return True
        name, arguments = ("sem_wait" if block else "sem_trywait"), list[Any]()
        if block and timeout is not None:
            seconds, fraction = divmod(time.time() + max(0.0, timeout), 1)
            name, arguments = "sem_timedwait", [struct.pack("ll", int(seconds), int(fraction * 1e9))]
        while self._call(name, *arguments) < 0:
            if ctypes.get_errno() in (errno.EAGAIN, errno.ETIMEDOUT):
                return False
            if ctypes.get_errno() != errno.EINTR:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._held += 1
        self._owner = threading.get_ident()
        return True

    def release(self) -> None:
        """Give it back."""
        if self.kind == RECURSIVE_MUTEX:
            if not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            if self._held > 1:
                self._held -= 1
                return
        elif self._get_value() >= self.maxvalue:
            raise ValueError("semaphore or lock released too many times")
        self._held -= 1
        check(self._call("sem_post"), "sem_post")

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()

    def _count(self) -> int:
        return self._held

    def _is_mine(self) -> bool:
        return self._held > 0 and self._owner == threading.get_ident()

    def _get_value(self) -> int:
        value = ctypes.c_int()
        check(self._call("sem_getvalue", ctypes.byref(value)), "sem_getvalue")
        return value.value

    def _is_zero(self) -> bool:
        return self._get_value() == 0

    def _after_fork(self) -> None:
        self._held = 0


def replace(folder: str) -> None:
    """Let `multiprocessing` of this process and its forks use these locks, and a folder for named memory."""
    if _multiprocessing is None:
        return

    def shm_open(path: str, flags: int, mode: int = 0o600) -> int:
        return os.open(folder + path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, mode)

    heap.Arena._dir_candidates = [folder]  # type: ignore[attr-defined]
    _multiprocessing.SemLock = SemLock
    _posixshmem.shm_open = shm_open
    _posixshmem.shm_unlink = lambda path: os.unlink(folder + path)
