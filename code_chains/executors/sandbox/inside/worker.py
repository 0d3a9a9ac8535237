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
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, NoReturn, cast

from . import cell, confine, spawner, warmup, wire
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
            serve(host, config, pid_namespace, start_spawners(config))
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


class Spawner(NamedTuple):
    """The worker's side of a spawner, or without namespaces of another worker that has the libraries.

    Attributes:
        channel: Socket to it.
        pidfd: Its pidfd.
    """

    channel: socket.socket
    pidfd: int


def start_spawners(config: WorkerConfig) -> dict[bool, Spawner]:
    """Fork the processes that are forked for sandboxes, by whether they have the preloaded libraries."""
    spawners = {}
    if config["namespaces"]:
        spawners[False] = start(spawner.serve, config)
    if config["preload"]:
        spawners[True] = start(serve_with_libraries, config)
    return spawners


def start(serve_requests: Callable[[socket.socket, WorkerConfig], NoReturn], config: WorkerConfig) -> Spawner:
    """Fork a process that serves the other end of a socket."""
    ours, theirs = wire.pair()
    pid = os.fork()
    if pid:
        theirs.close()
        return Spawner(ours, os.pidfd_open(pid))
    try:
        # Invariant: closed before libraries are loaded, which may open files that they use after a fork.
        os.closerange(3, theirs.fileno())
        os.closerange(theirs.fileno() + 1, MAX_DESCRIPTORS)
        serve_requests(theirs, config)
    finally:
        os._exit(70)


def serve_with_libraries(requests: socket.socket, config: WorkerConfig) -> NoReturn:
    """Import the configured libraries, and be forked: for templates, or without namespaces for supervisors."""
    load_libraries(config)
    if config["namespaces"]:
        spawner.serve(requests, config)
    serve(requests, config, -1, {})
    os._exit(0)


def load_libraries(config: WorkerConfig) -> None:
    """Import the configured libraries, with a cache folder that no program can write to."""
    os.environ["MPLCONFIGDIR"] = config["cache"]
    if config["namespaces"]:
        unshare(CLONE_NEWNS)
        mount("tmpfs", config["cache"], "tmpfs", MS_NOSUID | MS_NODEV, "size=64M")
    load(config, [*LARGE_MODULES, *config["preload"]])


def serve(
    host: socket.socket, config: WorkerConfig, pid_namespace: int, spawners: Mapping[bool, Spawner]
) -> None:
    """Fork a supervisor for each run that the host requests, until it disconnects or a spawner is gone.

    Args:
        host: Socket to the host, or without namespaces from the worker to the one that has the libraries.
        config: The configuration of this worker.
        pid_namespace: Descriptor of this process's pid namespace; -1 for none of its own.
        spawners: See `start_spawners`.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Supervisors are reaped automatically.
    pidfd, watched = os.pidfd_open(os.getpid()), [spawner.pidfd for spawner in spawners.values()]
    channels = {libraries: spawner.channel for libraries, spawner in spawners.items()}
    while readable([host.fileno(), *watched], None).isdisjoint(watched):
        message, descriptors = wire.receive(host)
        if message is None:
            return
        # Without namespaces a supervisor must be an ancestor of what it supervises.
        if pid_namespace < 0 and message["libraries"] and True in channels:
            wire.send(channels[True], message, descriptors)
        elif fork_or_report(pid_namespace, descriptors[0]) == 0:
            os.close(host.detach())
            if pid_namespace < 0:
                while channels:
                    channels.popitem()[1].close()
            channel = socket.socket(fileno=descriptors[0])
            supervise(channel, descriptors[1:], cast(WorkerConfig, {**config, **message}), pidfd, channels)
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
