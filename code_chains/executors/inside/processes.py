"""The processes of a run: which there are, what they use, and how they end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection

from .wire import Json

BUFFER = 212_992
"""Bytes that the kernel lets wait in a socket."""


def tree(*, dead: bool = False) -> list[int]:
    """Processes of this run but this one: all others in a box of its own, descendants elsewhere.

    Only living ones, unless the `dead` that nobody collected count too.
    """
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    parents = {pid: above for pid in pids if (above := parent(pid, dead=dead)) is not None}
    if os.getpid() == 1:
        return [pid for pid in parents if pid != 1]
    found: set[int] = set()
    fresh = {os.getpid()}
    while fresh:
        fresh = {pid for pid, above in parents.items() if above in fresh} - found
        found |= fresh
    return sorted(found)


def parent(pid: int, *, dead: bool = False) -> int | None:
    """The parent of a process; None for one that is dead, in all of its threads, unless the `dead` count too."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, above, *more = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in (b"Z", b"X") and int(more[15]) < 2 and not dead else int(above)


def is_ours(pid: object) -> bool:
    """Whether this is the number of a process of the run, be it dead already; a program may have told us any."""
    above = pid if isinstance(pid, int) and pid > 1 else None
    for _ in range(100):
        above = parent(above, dead=True) if above else None
        if above == os.getpid():
            return True
    return False


def over_limit(limits: Json, base: int) -> str | None:
    """Which limit of the whole run is broken, if any; `base` are the bytes that a process has from the worker."""
    pids, memory = tree(), limits["memory"]
    if len(pids) > limits["processes"] + limits.get("holders", 0):
        return "processes"
    if sum(max(0, resident(pid) - base) for pid in pids) > memory and sum(map(proportional, pids)) > memory:
        return "memory"
    if sockets(pids) * BUFFER > memory:
        return "memory"
    return None


def sockets(pids: list[int]) -> int:
    """How many sockets there may be; each may hold a buffer that belongs to no process."""
    try:
        if os.getpid() == 1:  # The network is the run's own.
            with open("/proc/net/unix", "rb") as file:
                return sum(1 for _ in file)
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
    except OSError:
        return 0


def resident(pid: int) -> int:
    """Resident bytes that are not read from files."""
    return status(pid, (b"RssAnon:", b"RssShmem:"))


def status(pid: int, names: tuple[bytes, ...]) -> int:
    """A sum of lines of a process's status; of another thread's where the first one has ended alone."""
    found = field(f"/proc/{pid}/status", names)
    if found or not os.path.isdir(f"/proc/{pid}/task"):
        return found
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return 0
    return max((field(f"/proc/{pid}/task/{thread}/status", names) for thread in threads[:8]), default=0)


def proportional(pid: int) -> int:
    """Resident bytes with shared pages divided among those who share them."""
    return field(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")) or resident(pid)


def field(path: str, names: tuple[bytes, ...]) -> int:
    try:
        with open(path, "rb") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(names))
    except (OSError, ValueError):
        return 0


def reap(wanted: int = 0) -> tuple[int, int] | None:
    """Collect every child that ended; exit code and largest memory of the wanted one once it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, raw, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == wanted:
                found = os.waitstatus_to_exitcode(raw), usage.ru_maxrss * 1024
    return found


def childless() -> bool:
    """Whether this process has no child, be it dead; then there is nobody else of the run, as orphans are given to it."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def exit_code(pid: int) -> int:
    """How a process ended that its parent has not collected; 0 where that cannot be seen."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return os.waitstatus_to_exitcode(int(file.read().split()[-1]))
    except (OSError, ValueError, IndexError):
        return 0


def kill_all(but: Collection[int] = (), seconds: float = 5.0) -> bool:
    """Kill every process of the run but these and wait until they are gone; False if some are left after a while.

    A list of processes is read one by one: one that was not there yet may be left by one that is dead when it is looked
    at. So a list without a living one is believed only if nobody died since the list before it.
    """
    deadline, dead = time.monotonic() + seconds, None
    while time.monotonic() < deadline:
        if not but and os.getpid() == 1:
            signal_to(-1, signal.SIGKILL)
        listed = set(tree(dead=True)) - set(but)
        left = [pid for pid in listed if parent(pid) is not None]
        for number in (signal.SIGSTOP, signal.SIGKILL):  # What stands still cannot fork meanwhile.
            for pid in left:
                signal_to(pid, number)
        reap()
        if not left and (childless() or dead == listed):
            return True
        dead = listed.difference(left)
        time.sleep(0.001 if left else 0)
    return False


def signal_to(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
