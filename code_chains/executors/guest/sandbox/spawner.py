"""Spawners: processes without a program that are forked for each sandbox, some of them with preloaded libraries.

A fork of a process with all libraries costs more than all else of a run. So supervisors are forks of the small worker, and
what runs a program is a fork of the spawner that has just the libraries which the program needs. Each spawner with libraries
is a fork of the one before, and has imported one more.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import platform
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from .. import cell, wire
from ..kernel.polling import readable
from ..kernel.seccomp import MACHINES, packed_filter
from ..kernel.syscalls import CLONE_NEWNS, MS_NODEV, MS_NOSUID, mount, unshare
from . import template, warmup
from .config import LARGE_MODULES, WorkerConfig


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


def load_libraries(config: WorkerConfig, names: Iterable[str]) -> None:
    """Import configured libraries and what comes with the first one, with a cache folder that no program can write to."""
    os.environ["MPLCONFIGDIR"] = config["cache"]
    if config["namespaces"]:
        unshare(CLONE_NEWNS)
        mount("tmpfs", config["cache"], "tmpfs", MS_NOSUID | MS_NODEV, "size=64M")
    load(config, [*LARGE_MODULES, *names])


def serve_without_libraries(requests: Sequence[socket.socket], config: WorkerConfig) -> NoReturn:
    """Serve the one socket, without a library."""
    serve(requests[0], config)


def serve_with_libraries(requests: Sequence[socket.socket], config: WorkerConfig) -> NoReturn:
    """Import the configured libraries one after the other, and serve a socket with each number of them.

    Args:
        requests: Sockets of supervisors whose programs need one library, two, and so on.
        config: The configuration of the worker.
    """
    first, *others = config["preload"]
    load_libraries(config, [first])
    successor = -1
    for number, name in enumerate(others):
        pid = os.fork()
        if pid:
            successor = os.pidfd_open(pid)
            break
        requests[number].close()
        load(config, [name])
    else:
        number = len(others)
    for later in requests[number + 1 :]:
        later.close()
    serve(requests[number], config, successor)


def serve(requests: socket.socket, config: WorkerConfig, successor: int = -1) -> NoReturn:
    """Fork a template for each supervisor that asks for one. It never returns.

    Args:
        requests: Socket from all supervisors.
        config: The configuration of the worker.
        successor: Pidfd of the spawner with one more library; this one ends with it, and so the worker does.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Templates are reaped automatically.
    while successor not in readable([requests.fileno(), successor], None):
        message, descriptors = wire.receive(requests)
        if message is None:
            break
        if fork_or_report(descriptors[0]) == 0:
            requests.close()
            template.main(descriptors, config)
        for descriptor in descriptors:
            os.close(descriptor)
    os._exit(0)


def fork_or_report(channel: int, fork: Callable[[], int] = os.fork) -> int:
    """Fork, or report on a channel why that is impossible.

    Invariant: this process lives on, as everything that runs would end with it.

    Args:
        channel: Descriptor of the socket to whoever needs the child.
        fork: How to fork.

    Returns:
        The child's pid; 0 in the child; -1 if there is none.
    """
    try:
        return fork()
    except OSError as error:
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(channel)) as peer:
            wire.send(peer, {"failed": error.strerror, "errno": error.errno})
        return -1
