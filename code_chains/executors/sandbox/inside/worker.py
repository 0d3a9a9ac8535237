"""The worker: forks a supervisor for each run. No program's code ever runs in it.

It is the first process of its sandbox, or a fork of that, and single-threaded. If possible, it takes a user
and a pid namespace of its own, so that every run gets a pid namespace by a single fork. It is small; the libraries are in
another process, which starts with it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import platform
import signal
import socket
import sys
from collections.abc import Iterable
from typing import NamedTuple, NoReturn, cast

from . import cell, confine, libraries, warmup, wire
from .config import LARGE_MODULES, WorkerConfig
from .polling import readable
from .seccomp import MACHINES, packed_filter
from .supervisor import supervise
from .syscalls import (
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    PR_SET_DUMPABLE,
    map_user,
    mount,
    prctl,
    setns,
    unshare,
)

COMMON_MODULES = ("csv", "datetime", "decimal", "math", "random", "statistics", "string", "typing")
"""Modules of the standard library that programs often import."""
MAX_DESCRIPTORS = 1 << 16
OOM_SCORE = "1000"


def main(control: int) -> NoReturn:
    """Serve the host on a socket until it disconnects. It never returns.

    Args:
        control: The socket's descriptor.
    """
    host = socket.socket(fileno=control)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(
            OOM_SCORE
        )  # If memory runs out, the kernel kills this process and its forks before the app.
    try:
        message, _ = wire.receive(host)
        if message is not None:
            config = cast(WorkerConfig, message)
            confine.allow_open_files(config["limits"])
            if config["namespaces"]:
                enter_namespaces(config["uid"])
            pid_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY) if config["namespaces"] else -1
            os.environ.clear()
            os.environ.update(config["environment"])
            load(config, COMMON_MODULES)
            serve(host, config, pid_namespace, start_library_worker(config, pid_namespace))
    except OSError as error:
        sys.stderr.write(f"{error.strerror or error}\n")
        os._exit(71)
    finally:
        os._exit(0)


def enter_namespaces(uid: int) -> None:
    """Become an unprivileged user that owns new namespaces, and the first of their processes."""
    if uid:
        unshare(CLONE_NEWNS)
        mount(None, "/", None, MS_REC | MS_PRIVATE)
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        prctl(PR_SET_DUMPABLE, 1)  # A change of user clears it, and with it access to our own /proc.
    uid, gid = os.getuid(), os.getgid()
    unshare(CLONE_NEWUSER)
    map_user(uid, gid)
    unshare(CLONE_NEWNS | CLONE_NEWPID)
    if child := os.fork():
        os.closerange(3, MAX_DESCRIPTORS)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


def load(config: WorkerConfig, names: Iterable[str]) -> None:
    """Import modules if they are installed, and prepare for being forked."""
    gc.disable()  # Freed objects would leave holes, and every fork copies the pages with holes that it writes to.
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
            warmup.warm_up(name)
    if platform.machine() in MACHINES:
        packed_filter(platform.machine(), namespaces=config["namespaces"], network=bool(config["network"]))
    config["own_modules"] = cell.own_modules()
    config["threads"] = len(os.listdir("/proc/self/task"))
    gc.freeze()


def start_library_worker(config: WorkerConfig, pid_namespace: int) -> LibraryWorker | None:
    """Fork the process that imports the configured libraries; None if there are none."""
    if not config["preload"]:
        return None
    ours, theirs = wire.pair()
    pid = os.fork()
    if pid:
        theirs.close()
        return LibraryWorker(ours, os.pidfd_open(pid))
    try:
        ours.close()
        load_libraries(config)
        if config["namespaces"]:
            libraries.serve(theirs, config, pid_namespace)
        serve(theirs, config, -1, None)
    finally:
        os._exit(70)


def load_libraries(config: WorkerConfig) -> None:
    """Import the configured libraries, with a cache folder that no program can write to."""
    os.environ["MPLCONFIGDIR"] = config["cache"]
    if config["namespaces"]:
        unshare(CLONE_NEWNS)
        mount("tmpfs", config["cache"], "tmpfs", MS_NOSUID | MS_NODEV, "size=64M")
    load(config, [*LARGE_MODULES, *config["preload"]])


class LibraryWorker(NamedTuple):
    """The worker's side of the library worker.

    Attributes:
        channel: Socket to it.
        pidfd: Its pidfd.
    """

    channel: socket.socket
    pidfd: int


def serve(
    host: socket.socket, config: WorkerConfig, pid_namespace: int, library_worker: LibraryWorker | None
) -> None:
    """Fork a supervisor for each run that the host requests, until it disconnects or the library worker is gone.

    Args:
        host: Socket to the host, or without namespaces from the worker to the library worker.
        config: The configuration of this worker.
        pid_namespace: Descriptor of this process's pid namespace; -1 for none of its own.
        library_worker: The process that has the libraries, if there is one.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Supervisors are reaped automatically.
    pidfd, watched = os.pidfd_open(os.getpid()), library_worker.pidfd if library_worker else -1
    while watched not in readable([host.fileno(), watched], None):
        message, descriptors = wire.receive(host)
        if message is None:
            return
        others = library_worker.channel if library_worker else None
        # Without namespaces a supervisor must be an ancestor of what it supervises.
        if others and message["libraries"] and pid_namespace < 0:
            wire.send(others, message, descriptors)
        elif fork_or_report(pid_namespace, descriptors[0]) == 0:
            os.close(host.detach())
            if others and pid_namespace < 0:
                others.close()
                others = None
            channel = socket.socket(fileno=descriptors[0])
            supervise(channel, descriptors[1:], cast(WorkerConfig, {**config, **message}), pidfd, others)
        for descriptor in descriptors:
            os.close(descriptor)


def fork_or_report(pid_namespace: int, channel: int) -> int:
    """Fork as `fork` does, or tell the host on a channel why that is impossible.

    Invariant: this process lives on, as everything that runs would end with it.

    Returns:
        The child's pid; 0 in the child; -1 if there is none.
    """
    try:
        return fork(pid_namespace)
    except OSError as error:
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(channel)) as supervisor:
            wire.send(supervisor, {"failed": error.strerror})
        return -1


def fork(pid_namespace: int) -> int:
    """Fork, and let the child be the first process of a new pid namespace if this process has one of its own.

    Raises:
        OSError: There are too many processes.
    """
    if pid_namespace < 0:
        return os.fork()
    unshare(CLONE_NEWPID)
    pid = -1
    try:
        pid = os.fork()
    finally:
        if pid:
            setns(pid_namespace, CLONE_NEWPID)
    return pid
