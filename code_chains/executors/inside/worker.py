"""The worker: loads libraries once and forks a watcher for each run. No program's code ever runs in it.

It is the first process of its box, or one forked from that, and has one thread. Where it may, it takes a user and a
process namespace of its own, so that every run gets a process namespace by a single fork.
"""

from __future__ import annotations

import gc
import importlib
import os
import platform
import signal
import socket
import sys
from typing import NoReturn

from . import cell, first_steps, wire
from .confine import MACHINES, packed_filter
from .kernel import (
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    NEWNS,
    NEWPID,
    NEWUSER,
    PR_SET_DUMPABLE,
    enter,
    map_user,
    mount,
    prctl,
    unshare,
)
from .watcher import watch
from .wire import Json

COMMON = ("asyncio", "csv", "datetime", "decimal", "math", "random", "statistics", "string", "typing")
"""What programs often import of the standard library."""


def main(control: int) -> NoReturn:
    """Serve the host at the other end of a descriptor until it hangs up. It never returns."""
    host = socket.socket(fileno=control)
    try:
        config, _ = wire.receive(host)
        if config is not None:
            if config["namespaces"]:
                own_namespaces(config["uid"])
            own = os.open("/proc/self/ns/pid", os.O_RDONLY) if config["namespaces"] else -1
            wire.send(host, preload(config))
            serve(host, config, own)
    except OSError as error:
        sys.stderr.write(f"{error.strerror or error}\n")
        os._exit(71)
    finally:
        os._exit(0)


def own_namespaces(uid: int) -> None:
    """Be an ordinary user who is master of new namespaces, and the first of their processes."""
    if uid:
        unshare(NEWNS)
        mount(None, "/", None, MS_REC | MS_PRIVATE)
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        prctl(PR_SET_DUMPABLE, 1)  # A change of user clears it, and with it the right to our own /proc.
    uid, gid = os.getuid(), os.getgid()
    unshare(NEWUSER)
    map_user(uid, gid)
    unshare(NEWNS | NEWPID)
    if first := os.fork():
        os.closerange(3, 1 << 16)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF)


def preload(config: Json) -> Json:
    """Import what is there of the libraries that were asked for; returns what the host wants to know."""
    os.environ.clear()
    os.environ.update({**config["environment"], "MPLCONFIGDIR": config["cache"]})
    if config["namespaces"]:
        mount("tmpfs", config["cache"], "tmpfs", MS_NOSUID | MS_NODEV, "size=64M")
    gc.disable()  # What it frees would leave holes, and every page with a hole is written to by every fork.
    loaded = []
    for name in (*COMMON, *config["preload"]):
        try:
            importlib.import_module(name)
            first_steps.take(name)
            loaded.append(name)
        except ImportError:
            continue
    if config["namespaces"]:
        mount(None, config["cache"], None, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
    if platform.machine() in MACHINES:
        packed_filter(platform.machine(), namespaces=config["namespaces"], network=bool(config["network"]))
    config["own"] = cell.own_modules()
    gc.freeze()
    threads = len(os.listdir("/proc/self/task"))
    return {"loaded": loaded[len(COMMON) :], "threads": threads, "python": sys.version.split()[0]}


def serve(host: socket.socket, config: Json, own: int) -> None:
    """Fork a watcher for each run that the host asks for."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # They are collected by themselves.
    me = os.pidfd_open(os.getpid())
    while True:
        message, descriptors = wire.receive(host)
        if message is None:
            return
        if own >= 0:
            unshare(NEWPID)
        if os.fork() == 0:
            os.close(host.detach())
            line = socket.socket(fileno=descriptors[0])
            watch(line, descriptors[1:], config | message, me)
        if own >= 0:
            enter(own, NEWPID)
        for descriptor in descriptors:
            os.close(descriptor)
