"""The processes of a run: list them, measure what they use, and end them."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import stat
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from ..kernel.polling import readable
from ..kernel.syscalls import PR_SET_DUMPABLE, change_user, prctl, set_file_user

SOCKET_BUFFER_BYTES = 212_992
"""What the kernel buffers for a socket."""
MAX_MAPS_BYTES = 16 << 20
"""Lists of mappings that are read at once; ordinary programs have some hundred kilobytes each."""
MAX_DEPTH = 100
MAX_THREADS = 8
"""Threads of a process whose status is read when its first thread has ended."""
BLOCK_BYTES = 512
CONFINEMENT_FIELDS = (b"Uid:", b"Gid:", b"Groups:", b"Cap", b"NoNewPrivs:", b"Seccomp")
NAMESPACES = ("user", "mnt", "net", "pid", "ipc", "uts")
READ_BYTES = 1 << 16
"""What is read at once of a file of the kernel that is never longer."""
KILL_TIMEOUT_S = 5.0
EXIT_INTERVAL_S, RETRY_INTERVAL_S, RECHECK_INTERVAL_S = 0.02, 0.001, 0.0001


@contextmanager
def looking_as(uid: int) -> Iterator[None]:
    """Look at the processes of another user as that user, which needs no right to inspect those of others.

    Nobody may do more to this process for that, as only the user of its accesses to files changes.

    Args:
        uid: The user; 0 for the one that this is.
    """
    if uid:
        set_file_user(uid, uid)
    try:
        yield
    finally:
        if uid:
            set_file_user(os.geteuid(), os.getegid())


def prove_rule_over(uid: int) -> None:
    """Start a process of another user, and see, inspect and end it, as supervisors must be able to.

    Raises:
        OSError: That is not possible, as root lacks capabilities or `/proc` hides processes.
    """
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        with contextlib.suppress(OSError):
            change_user(uid)
            prctl(PR_SET_DUMPABLE, 1)
            theirs.send(b"\0")
            theirs.recv(1)
        os._exit(0)
    theirs.close()
    try:
        if not ours.recv(1) or pid not in tree():
            raise PermissionError(errno.EPERM, "they cannot be started or seen")
        with looking_as(uid):
            os.listdir(f"/proc/{pid}/fd")
        os.kill(pid, signal.SIGKILL)
    except OSError as error:
        raise OSError(
            error.errno, f"root may not rule processes of other users here: {error.strerror}"
        ) from error
    finally:
        ours.close()  # It ends with this by itself.
        os.waitpid(pid, 0)


def confinement(pid: int | str) -> tuple[object, ...]:
    """Return what the kernel says of a process's users, capabilities, system-call filters and namespaces.

    Invariant: it is empty if its namespaces may not be read, and proves nothing then.
    """
    lines = read(f"/proc/{pid}/status").split(b"\n")  # Names of processes may have other ends of lines.
    try:
        namespaces = [os.stat(f"/proc/{pid}/ns/{name}").st_ino for name in NAMESPACES]
    except PermissionError:
        return ()
    return (*(line for line in lines if line.startswith(CONFINEMENT_FIELDS)), *namespaces)


def read(path: str) -> bytes:
    """Return a short file of the kernel; this takes half as long as to open it as a file of Python."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, READ_BYTES)
    finally:
        os.close(descriptor)


def tree(*, dead: bool = False, root: int = 0) -> list[int]:
    """Return the processes of this run except this one: all in a namespace of its own, descendants elsewhere.

    Args:
        dead: Whether zombies count too.
        root: Another process whose descendants are listed instead.
    """
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    parents = {pid: ppid for pid in pids if (ppid := parent(pid, dead=dead)) is not None}
    if os.getpid() == 1 and not root:
        return [pid for pid in parents if pid != 1]
    descendants: set[int] = set()
    generation = {root or os.getpid()}
    while generation:
        generation = {pid for pid, ppid in parents.items() if ppid in generation} - descendants
        descendants |= generation
    return sorted(descendants)


def parent(pid: int, *, dead: bool = False) -> int | None:
    """Return the parent of a process; None if all of its threads are dead, unless `dead` processes count too."""
    state, ppid, threads = stat_of(f"/proc/{pid}")
    is_dead = state in (b"Z", b"X") and threads < 2
    return ppid if state and (dead or not is_dead) else None


def stat_of(path: str) -> tuple[bytes, int, int]:
    """Return the state of a process or thread as one letter, its parent and its number of threads; empty if it is gone."""
    try:
        fields = read(f"{path}/stat").rpartition(b")")[2].split()
        return fields[0], int(fields[1]), int(fields[17])
    except (OSError, ValueError, IndexError):
        return b"", 0, 0


def is_descendant(pid: object) -> bool:
    """Return whether a program reported the pid of a process of the run, dead or alive."""
    ancestor = pid if isinstance(pid, int) and pid > 1 else None
    if os.getpid() == 1:  # All processes of this namespace are of the run, whoever forked them.
        return ancestor is not None and parent(ancestor, dead=True) is not None
    for _ in range(MAX_DEPTH):
        ancestor = parent(ancestor, dead=True) if ancestor else None
        if ancestor == os.getpid():
            return True
    return False


def exceeds_memory(max_bytes: int) -> bool:
    """Return whether all processes together have more memory than that, whatever they share. This may take long."""
    # What processes share is counted partly twice if one is forked between two readings, so a sum is confirmed.
    return all(sum(map(proportional, tree())) > max_bytes for _ in range(2))


def sockets(pids: list[int]) -> int:
    """Return an upper bound of the number of sockets; each may hold a buffer that belongs to no process."""
    if os.getpid() == 1:  # The run has a network namespace of its own.
        with contextlib.suppress(OSError), open("/proc/net/unix", "rb") as file:
            return sum(1 for _ in file)
        return 0
    return sum(map(descriptors, pids))


def descriptors(pid: int) -> int:
    """Return the number of descriptors of a process; 0 if it is gone."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def resident(pid: int | str) -> int:
    """Return resident bytes that are not read from files, by another thread's status if the first one has ended alone."""
    names, threads = (b"\nRssAnon:", b"\nRssShmem:"), list[str]()
    if not (total := read_fields(f"/proc/{pid}/status", names)):
        with contextlib.suppress(OSError):
            threads = os.listdir(f"/proc/{pid}/task")[:MAX_THREADS]
    return max([total, *(read_fields(f"/proc/{pid}/task/{thread}/status", names) for thread in threads)])


def proportional(pid: int) -> int:
    """Return resident bytes, with shared pages divided among the processes that share them."""
    return read_fields(f"/proc/{pid}/smaps_rollup", (b"\nPss_Anon:", b"\nPss_Shmem:")) or resident(pid)


def read_fields(path: str, names: tuple[bytes, ...]) -> int:
    """Return the sum of fields. Invariant: names begin with a new line, as a program may name its process like a field."""
    try:
        text = read(path)
    except OSError:
        return 0
    return sum(int(text.partition(name)[2].split(maxsplit=1)[0]) * 1024 for name in names if name in text)


def unlinked(root: str, max_bytes: int) -> int:
    """Return the bytes of unlinked files below a directory that processes of the run still hold.

    A process that cannot be inspected, and a file that is mapped but not open, count as `max_bytes`, as their
    size is unknown. One that is about to close its files, which takes a while under load, counts nothing. So much is
    confirmed, as a file may be opened, mapped and closed between two readings.
    """
    size = held_unlinked(root, max_bytes)
    return size if size < max_bytes else min(size, held_unlinked(root, max_bytes))


def held_unlinked(root: str, max_bytes: int) -> int:
    """Return what `unlinked` does, unconfirmed."""
    sizes: dict[str, int] = {}
    remaining = MAX_MAPS_BYTES
    for pid in tree():
        try:
            for number in os.listdir(f"/proc/{pid}/fd"):
                sizes |= unlinked_file(f"/proc/{pid}/fd/{number}", root)
            with open(f"/proc/{pid}/maps", "rb") as file:
                maps = file.read(max(0, remaining))
            remaining -= len(maps)
            sizes |= {inode: max_bytes for inode in unlinked_mappings(maps, root) if inode not in sizes}
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            if not is_ending(pid):
                sizes[f"process {pid}"] = max_bytes
    total = sum(sizes.values())
    return total + max_bytes if remaining <= 0 else total


def is_ending(pid: int) -> bool:
    """Return whether no thread of a process runs any more: once it has given its memory back, root alone may inspect it."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return True
    return not any(has_memory(f"/proc/{pid}/task/{thread}/statm") for thread in threads)


def has_memory(path: str) -> bool:
    try:
        return not read(path).startswith(b"0 ")
    except OSError:
        return False


def unlinked_file(descriptor: str, root: str) -> dict[str, int]:
    """Return the size of an open file by its inode, if it lies below a directory and is unlinked."""
    with contextlib.suppress(FileNotFoundError):  # It has been closed.
        if is_below(descriptor, root):
            status = os.stat(descriptor)
            if stat.S_ISREG(status.st_mode) and not status.st_nlink:
                return {str(status.st_ino): status.st_blocks * BLOCK_BYTES}
    return {}


def is_below(descriptor: str, root: str) -> bool:
    """Return whether an open file lies below a directory, as one does whose path is too long to be read."""
    try:
        return os.readlink(descriptor).startswith(root)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return True


def unlinked_mappings(maps: bytes, root: str) -> list[str]:
    """Return the inodes of files below a directory that are mapped and unlinked."""
    if b"(deleted)" not in maps:
        return []
    folder = root.encode()
    # Invariant: lines end with a line feed alone, as that is what the kernel spells otherwise in names.
    lines = [line for line in maps.split(b"\n") if folder in line and line.endswith(b"(deleted)")]
    return [line.split(maxsplit=5)[4].decode() for line in lines]


def reap(pid: int = 0) -> tuple[int, int] | None:
    """Reap every child that has ended; return exit code and peak memory of `pid` if it is among them."""
    outcome = None
    with contextlib.suppress(ChildProcessError):
        while True:
            child, raw, usage = os.wait4(-1, os.WNOHANG)
            if child == 0:
                break
            if child == pid:
                outcome = os.waitstatus_to_exitcode(raw), usage.ru_maxrss * 1024
    return outcome


def reap_orphans(spare: Collection[int]) -> None:
    """Reap the children that have ended, except `spare`, whose exit codes are still to be read."""
    for pid in set(tree(dead=True)) - set(spare):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def can_list() -> bool:
    """Return whether processes can be listed, for which a program may have left this one no descriptor."""
    try:
        return str(os.getpid()) in os.listdir("/proc")
    except OSError:
        return False


def is_childless() -> bool:
    """Return whether this process has no child, not even a zombie; as it adopts orphans, the run then has no other."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def is_nobody_left(number: int) -> bool:
    """Send a signal to all others of a namespace, as its first process; return whether there are none, not even dead."""
    try:
        os.kill(-1, number)
    except ProcessLookupError:
        return True
    return False


def exit_code(pid: int) -> int:
    """Return the exit code of a process that its parent has not reaped; 0 if it cannot be read."""
    try:
        return os.waitstatus_to_exitcode(int(read(f"/proc/{pid}/stat").split()[-1]))
    except (OSError, ValueError, IndexError):
        return 0


def kill_all(spare: Collection[int] = (), timeout: float = KILL_TIMEOUT_S) -> bool:
    """Kill every process of the run except `spare`, which are stopped; return False on timeout.

    If the first process of a namespace kills all others, that is atomic, and the kernel says when nobody is left, not even
    dead. Listings are not complete: what is dead when it is read may have left a child that was not listed, or have
    resumed others (the kernel resumes groups that it orphans), and what is to stop may be about to fork. Invariant: such a
    listing without a living process is trusted only if all spared processes were stopped before and after it, and nobody
    died since another one before it. The first process of a namespace knows besides that nobody was forked
    meanwhile, and so needs one listing if nobody is dead; others need a second one, or no child at all. Deaths are seen, as
    this process adopts all orphans (the filter lets nobody else become a subreaper).
    """
    deadline, dead, is_first = time.monotonic() + timeout, None, os.getpid() == 1
    while time.monotonic() < deadline:
        reap()
        if is_first and is_nobody_left(signal.SIGSTOP if spare else signal.SIGKILL):
            return True
        newest = last_pid() if is_first else 0
        were_stopped = all(map(is_stopped, spare))
        if not can_list():
            dead = None
            time.sleep(RETRY_INTERVAL_S)
            continue
        listed = set(tree(dead=True)) - set(spare)
        alive = [pid for pid in listed if parent(pid) is not None]
        if not is_first:  # A stopped process cannot fork.
            for pid in (*spare, *alive):
                send_signal(pid, signal.SIGSTOP)
        for pid in alive:
            send_signal(pid, signal.SIGKILL)
        if is_first:
            nobody_died = not listed or dead == listed
            is_complete = bool(spare) and nobody_died and last_pid() == newest
        else:
            is_complete = is_childless() or dead == listed
        is_stopped_now = all(map(is_stopped, spare))
        if not alive and were_stopped and is_complete and is_stopped_now:
            return True
        dead = listed if is_stopped_now and not alive else None
        await_exit(alive)
    return False


def await_exit(pids: Sequence[int]) -> None:
    """Wait a moment, but no longer than until the first of some processes has ended."""
    try:
        pidfd = os.pidfd_open(pids[0])
    except (OSError, IndexError):
        time.sleep(RECHECK_INTERVAL_S)
        return
    readable([pidfd], EXIT_INTERVAL_S)
    os.close(pidfd)


def kill_descendants(root: int, timeout: float = KILL_TIMEOUT_S) -> bool:
    """Kill all descendants of another process, which should be stopped itself; return False on timeout.

    No process is reaped.
    """
    deadline = time.monotonic() + timeout
    while alive := tree(root=root):
        if time.monotonic() > deadline:
            return False
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in alive:
                send_signal(pid, number)
        time.sleep(RETRY_INTERVAL_S)
    return True


def last_pid() -> int:
    """Return the pid that was assigned last in this namespace; every fork changes it."""
    return int(read("/proc/loadavg").split()[-1])


def has_threads(pid: int) -> bool:
    """Return whether a process has more than one thread."""
    return stat_of(f"/proc/{pid}")[2] > 1


def is_stopped(pid: int) -> bool:
    """Return whether every thread of a process is stopped or dead, so that it cannot run until it is resumed."""
    state, _, threads = stat_of(f"/proc/{pid}")
    states = [state]
    if threads > 1:
        with contextlib.suppress(OSError):
            states = [stat_of(f"/proc/{pid}/task/{thread}")[0] for thread in os.listdir(f"/proc/{pid}/task")]
    return all(state in (b"T", b"Z", b"X", b"") for state in states)


def pid_of(pidfd: int) -> int:
    """Return the process id of a pidfd.

    Raises:
        OSError: The process is gone.
    """
    fields = read(f"/proc/self/fdinfo/{pidfd}").partition(b"\nPid:")[2].split()
    pid = int(fields[0]) if fields else -1
    if pid < 1:
        raise ProcessLookupError
    return pid


def send_signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
