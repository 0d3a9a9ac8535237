"""Check the limits of a whole run: its processes, their memory, and its files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from . import filesystem, processes
from .config import WorkerConfig

CHECK_INTERVAL_S, MIN_INTERVAL_S = 0.02, 0.001
"""Pause between two checks, and that shortly before the limit of disk."""
WRITING_RATE = 4 << 30
"""Bytes that programs write to disk within a second at most."""
PAUSE_RATIO = 4
"""What takes long is measured for at most a fifth of the time: the pause is this many times as long as the check."""


class Pace:
    """Lets a function that takes long be called only now and then."""

    def __init__(self) -> None:
        self._next = 0.0

    def call(self, function: Callable[[], int], ratio: float = PAUSE_RATIO) -> int | None:
        """Return what a function returns, or None if it is too early to call it again.

        Args:
            function: It takes long.
            ratio: How many times as long as the call the pause before the next one is.
        """
        started = time.monotonic()
        if started < self._next:
            return None
        result = function()
        finished = time.monotonic()
        self._next = finished + ratio * (finished - started)
        return result


class LimitMonitor:
    """Checks what a run uses, and makes room for its inputs.

    Args:
        root: Descriptor of the directory with the writable folders.
        config: The configuration of the run.
        initial_entries: Files and folders that exist before anything is put there.
        shared_bytes: Memory that the program's process shares with the process that forked it.

    Attributes:
        interval: Seconds until the limits should be checked again, as what is written to disk is only counted without
            namespaces.
    """

    def __init__(self, root: int, config: WorkerConfig, initial_entries: int, shared_bytes: int = 0) -> None:
        self.interval: float = CHECK_INTERVAL_S if config["namespaces"] else _pause(config["limits"]["disk"])
        self._root, self._folders = root, list(filesystem.FOLDERS)
        self._config, self._limits = config, config["limits"]
        self._uid = 0 if config["namespaces"] else config["uid"]
        self._shared_bytes = shared_bytes
        self._input_bytes, self._input_entries = 0, initial_entries
        self._unlinked_bytes, self._unlinked_pace, self._memory_pace = 0, Pace(), Pace()
        self.set_base_memory()

    def set_base_memory(self) -> None:
        """Measure what processes share with the one that forked them, which does not count for the run."""
        self._base_bytes = self._shared_bytes or processes.resident(os.getpid())

    def exceeded(self, state_processes: int = 0) -> str | None:
        """Return the limit that the run exceeds, if any.

        Args:
            state_processes: Number of processes that hold states of a session, besides.
        """
        started = time.monotonic()
        with processes.looking_as(self._uid):
            pids = processes.tree(
                dead=True
            )  # The kernel's limit counts those that nobody has reaped as well.
            if len(pids) > self._limits["processes"] + state_processes:
                return "processes"
            pids = [pid for pid in pids if processes.parent(pid) is not None]
            if self._exceeds_memory(pids):
                return "memory"
        if self._config["namespaces"]:  # The kernel limits bytes itself.
            max_entries = self._input_entries + self._limits["files"]
            return "files" if filesystem.entries(self._root) > max_entries else None
        return self._exceeds_disk(started)

    def _exceeds_memory(self, pids: list[int]) -> bool:
        memory, sizes = self._limits["memory"], list(map(processes.resident, pids))
        own = sum(max(0, size - self._base_bytes) for size in sizes)
        if own > memory and processes.exceeds_memory(memory):
            return True
        # A program that a process has executed shares nothing, but has been granted the same base as all others.
        total = memory + self._base_bytes
        if (
            len(pids) > 1
            and sum(sizes) > total
            and self._memory_pace.call(lambda: processes.exceeds_memory(total))
        ):
            return True
        return processes.sockets(pids) * processes.SOCKET_BUFFER_BYTES > memory

    def _exceeds_disk(self, started: float) -> str | None:
        max_bytes = self._limits["disk"] + self._input_bytes
        size, count = filesystem.usage(self._root, self._folders, self._limits["files"])
        size += self._unlinked(max_bytes)
        # Checks take half of a processor's time at most.
        self.interval = max(_pause(max_bytes - size), min(CHECK_INTERVAL_S, time.monotonic() - started))
        if count > self._limits["files"]:
            return "files"
        return "disk" if size > max_bytes else None

    def _unlinked(self, max_bytes: int) -> int:
        path = os.readlink(f"/proc/self/fd/{self._root}")
        ratio = (
            PAUSE_RATIO * self.interval / CHECK_INTERVAL_S
        )  # With little room there is no time for pauses.
        with processes.looking_as(self._uid):
            measured = self._unlinked_pace.call(lambda: processes.unlinked(path, max_bytes), ratio)
        if measured is not None:
            self._unlinked_bytes = measured
        return self._unlinked_bytes

    def entries(self) -> int:
        """Return the number of files and folders; 0 without a file system of their own."""
        return filesystem.entries(self._root) if self._config["namespaces"] else 0

    def reserve(self, size: int, new_entries: int) -> None:
        """Make room for inputs of so many bytes, files and folders."""
        self._input_bytes += size
        self._resize(self.entries() + new_entries)

    def count_inputs(self, entries: int) -> None:
        """Exempt entries that were put there from the limit."""
        self._input_entries += entries
        self._resize(0)

    def _resize(self, min_entries: int) -> None:
        if self._config["namespaces"]:
            # One more than allowed, so that a program at its limit is distinguished from one beyond it.
            max_entries = max(min_entries, self._input_entries + self._limits["files"]) + 1
            filesystem.resize(self._limits["disk"] + self._input_bytes, max_entries)


def _pause(room: int) -> float:
    """Return how long so many bytes of disk last at least, within the pauses that are possible."""
    return min(CHECK_INTERVAL_S, max(MIN_INTERVAL_S, room / WRITING_RATE))
