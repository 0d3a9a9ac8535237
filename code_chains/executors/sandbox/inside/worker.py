"""The worker: loads libraries once and forks a supervisor for each run. No program's code ever runs in it.

It is the first process of its sandbox, or a fork of that, and single-threaded. If possible, it takes a user
and a pid namespace of its own, so that every run gets a pid namespace by a single fork.
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
from typing import NoReturn, cast

from . import cell, warmup, wire
from .config import WorkerConfig
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
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    PR_SET_DUMPABLE,
    map_user,
    mount,
    prctl,
    setns,
    unshare,
)
from .wire import Json

COMMON_MODULES = ("asyncio", "csv", "datetime", "decimal", "math", "random", "statistics", "string", "typing")
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
            if config["namespaces"]:
                enter_namespaces(config["uid"])
            pid_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY) if config["namespaces"] else -1
            wire.send(host, preload(config))
            serve(host, config, pid_namespace)
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


def preload(config: WorkerConfig) -> Json:
    """Import the configured libraries if they are installed; return the greeting for the host."""
    os.environ.clear()
    os.environ.update({**config["environment"], "MPLCONFIGDIR": config["cache"]})
    if config["namespaces"]:
        mount("tmpfs", config["cache"], "tmpfs", MS_NOSUID | MS_NODEV, "size=64M")
    gc.disable()  # Freed objects would leave holes, and every fork copies the pages with holes that it writes to.
    loaded = []
    for name in (*COMMON_MODULES, *config["preload"]):
        try:
            importlib.import_module(name)
            warmup.warm_up(name)
            loaded.append(name)
        except ImportError:
            continue
    if config["namespaces"]:
        mount(None, config["cache"], None, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
    if platform.machine() in MACHINES:
        packed_filter(platform.machine(), namespaces=config["namespaces"], network=bool(config["network"]))
    config["own_modules"] = cell.own_modules()
    gc.freeze()
    threads = len(os.listdir("/proc/self/task"))
    return {"loaded": loaded[len(COMMON_MODULES) :], "threads": threads, "python": sys.version.split()[0]}


def serve(host: socket.socket, config: WorkerConfig, pid_namespace: int) -> None:
    """Fork a supervisor for each run that the host requests.

    Args:
        host: Socket to the host.
        config: The configuration of this worker.
        pid_namespace: Descriptor of this process's pid namespace; -1 for none of its own.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Supervisors are reaped automatically.
    pidfd = os.pidfd_open(os.getpid())
    while True:
        message, descriptors = wire.receive(host)
        if message is None:
            return
        if pid_namespace >= 0:
            unshare(CLONE_NEWPID)
        if os.fork() == 0:
            os.close(host.detach())
            channel = socket.socket(fileno=descriptors[0])
            supervise(channel, descriptors[1:], cast(WorkerConfig, {**config, **message}), pidfd)
        if pid_namespace >= 0:
            setns(pid_namespace, CLONE_NEWPID)
        for descriptor in descriptors:
            os.close(descriptor)
