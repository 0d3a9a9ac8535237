"""The worker: forks a supervisor for each run. No program's code ever runs in it.

It is the first process of its sandbox, or a fork of that, and single-threaded. If possible, it takes a user
and a pid namespace of its own, so that every run gets a pid namespace by a single fork. It is small; libraries are in
spawners, which start with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn, cast

from .. import wire
from ..kernel.polling import readable
from ..kernel.syscalls import (
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    PR_SET_DUMPABLE,
    close_others,
    map_user,
    mount,
    prctl,
    setns,
    unshare,
)
from . import confine, filesystem, processes, spawner
from .config import WorkerConfig
from .supervisor import supervise

COMMON_MODULES = ("csv", "datetime", "decimal", "math", "random", "statistics", "string", "typing")
"""Modules of the standard library that programs often import."""
OOM_SCORE = "1000"
EXIT_TIMEOUT_S = 2.0


def main(control: int) -> NoReturn:
    """Serve the host on a socket until it disconnects. It never returns.

    Args:
        control: The socket's descriptor.
    """
    host = socket.socket(fileno=control)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        # If memory runs out, the kernel kills this process and its forks before the app.
        file.write(OOM_SCORE)
    try:
        message, _ = wire.receive(host)
        if message is not None:
            config = cast(WorkerConfig, message)
            confine.allow_open_files(config["limits"])
            if config["namespaces"]:
                enter_namespaces(config["uid"], config["shared"], config["cache"])
            elif config["uid"]:
                processes.prove_rule_over(config["uid"])
            pid_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY) if config["namespaces"] else -1
            os.environ.clear()
            os.environ.update(config["environment"])
            spawner.load(config, COMMON_MODULES)
            spawners = start_spawners(config)
            try:
                serve(host, config, pid_namespace, spawners)
            finally:
                spawners.end()
    except OSError as error:
        sys.stderr.write(f"{error.strerror or error}\n")
        os._exit(71)
    finally:
        os._exit(0)


def enter_namespaces(uid: int, shared: Iterable[str], empty: str) -> None:
    """Become an unprivileged user that owns new namespaces, and the first of their processes.

    Args:
        uid: The user; 0 for the one that this is.
        shared: What of the host is visible.
        empty: An empty folder.
    """
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
    filesystem.hide_sockets(shared, empty)
    if child := os.fork():
        close_others([])
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


@dataclass(frozen=True)
class Spawners:
    """The worker's side of the processes that are forked for sandboxes; see `spawner`.

    Attributes:
        channels: Sockets to them, by how many of the preloaded libraries they have. Without namespaces there is one at most,
            which is another worker.
        pidfds: Pidfds of those that this process has forked; each ends with those that it has forked itself.
    """

    channels: dict[int, socket.socket] = field(default_factory=dict)
    pidfds: list[int] = field(default_factory=list)

    def start(self, serve_requests: ServeRequests, numbers: Sequence[int], config: WorkerConfig) -> None:
        """Fork a process that serves the other ends of new sockets.

        Args:
            serve_requests: Serves them, and never returns.
            numbers: Of how many libraries each of them is.
            config: The configuration of the worker.
        """
        pairs = [wire.pair() for _ in numbers]
        pid = os.fork()
        if pid == 0:
            try:
                theirs = [end for _, end in pairs]
                # Invariant: done before libraries are loaded, which may open files that they use after a fork.
                close_others([end.fileno() for end in theirs])
                serve_requests(theirs, config)
            finally:
                os._exit(70)
        self.pidfds.append(os.pidfd_open(pid))
        for number, (ours, end) in zip(numbers, pairs, strict=True):
            self.channels[number] = ours
            end.close()

    def end(self) -> None:
        """Kill them and wait for that: the host removes folders then, to which one that still imports would write.

        In a pid namespace the kernel does so when its first process ends.
        """
        for pidfd in self.pidfds:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        for pidfd in self.pidfds:
            readable([pidfd], EXIT_TIMEOUT_S)


ServeRequests = Callable[[Sequence[socket.socket], WorkerConfig], NoReturn]


def start_spawners(config: WorkerConfig) -> Spawners:
    """Fork the processes that are forked for sandboxes: one without libraries, and the others."""
    spawners, count = Spawners(), len(config["preload"])
    if config["namespaces"]:
        spawners.start(spawner.serve_without_libraries, [0], config)
        if count:
            spawners.start(spawner.serve_with_libraries, range(1, count + 1), config)
    elif count:
        spawners.start(serve_as_worker, [count], config)
    return spawners


def serve_as_worker(requests: Sequence[socket.socket], config: WorkerConfig) -> NoReturn:
    """Import all configured libraries, and fork supervisors for requests that the worker passes on."""
    spawner.load_libraries(config, config["preload"])
    serve(requests[0], config, -1, Spawners())
    os._exit(0)


def serve(host: socket.socket, config: WorkerConfig, pid_namespace: int, spawners: Spawners) -> None:
    """Fork a supervisor for each run that the host requests, until it disconnects or a spawner is gone.

    Args:
        host: Socket to the host, or without namespaces from the worker to the one that has the libraries.
        config: The configuration of this worker.
        pid_namespace: Descriptor of this process's pid namespace; -1 for none of its own.
        spawners: See `start_spawners`.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Supervisors are reaped automatically.
    pidfd, channels = os.pidfd_open(os.getpid()), spawners.channels
    while readable([host.fileno(), *spawners.pidfds], None).isdisjoint(spawners.pidfds):
        message, descriptors = wire.receive(host)
        if message is None:
            return
        # Without namespaces a supervisor must be an ancestor of what it supervises.
        if pid_namespace < 0 and message["libraries"] and channels:
            wire.send(next(iter(channels.values())), message, descriptors)
        elif spawner.fork_or_report(descriptors[0], partial(fork, pid_namespace)) == 0:
            os.close(host.detach())
            if pid_namespace < 0:
                while channels:
                    channels.popitem()[1].close()
            channel = socket.socket(fileno=descriptors[0])
            supervise(channel, descriptors[1:], cast(WorkerConfig, {**config, **message}), pidfd, channels)
        for descriptor in descriptors:
            os.close(descriptor)


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
