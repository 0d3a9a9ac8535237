"""The program's process: it locks itself in, proves it, and then runs what it is given.

How a run ended is told by the watcher and the host's clock; what this process says after a program began is data from a
stranger.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import io
import json
import linecache
import os
import signal
import socket
import sys
import tempfile
from multiprocessing import spawn
from typing import Any, NoReturn

from . import cell, confine, first_steps, memory, remote, tables, wire
from .kernel import NEWUSER, PR_CAPBSET_DROP, PR_SET_DUMPABLE, drop_capabilities, map_user, prctl, unshare
from .wire import Json

prepared = spawn.get_preparation_data


def live(line: socket.socket, streams: list[int], config: Json) -> NoReturn:
    """Be the program's process until the line ends. It never returns, whatever happens.

    Args:
        line: Where the watcher says what to run.
        streams: Where results, output and errors go.
        config: What the box is like.
    """
    result, out, err = streams
    try:
        line = socket.socket(fileno=move_up(line.detach(), config["limits"]))
        result = move_up(result, config["limits"])
        wire_up(result, line.fileno(), out, err)
        layers = lock_in(config)
        found = {"probe": confine.probe(config["probe"]), "layers": layers}
        tell(result, found)
        prepare(config)
        serve(line, result, config)
    except BaseException as error:
        with contextlib.suppress(OSError):
            tell(result, {"broken": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(70)


def move_up(descriptor: int, limits: Json) -> int:
    """Move a descriptor to a number that no program reaches by counting from 3."""
    moved: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(32, limits["open_files"]) - 8)
    os.close(descriptor)
    return moved


def wire_up(result: int, line: int, out: int, err: int) -> None:
    """Standard streams for the program, and no other descriptor but our two."""
    os.setsid()
    os.nice(5)  # A storm must not starve the watcher,
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # and if memory runs out, this goes first.
    nothing = os.open(os.devnull, os.O_RDWR)
    for source, target in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    low, high = sorted((result, line))
    os.closerange(3, low)
    os.closerange(low + 1, high)
    os.closerange(high + 1, 1 << 16)


def lock_in(config: Json) -> list[str]:
    """Put every layer of the kernel's on this process that is to be had; returns their names."""
    layers = []
    if config["namespaces"]:
        uid, gid = os.getuid(), os.getgid()
        unshare(NEWUSER)  # Its processes are counted apart from those of other runs.
        prctl(PR_SET_DUMPABLE, 1)  # Or our own /proc would not be ours.
        map_user(uid, gid)
        drop_capabilities()
        layers.append("namespaces")
    elif os.geteuid() == 0 and config["confined"]:
        become(config["uid"])
    prctl(PR_SET_DUMPABLE, 1)
    os.environ.clear()
    os.environ.update(config["environment"])
    if config["confined"]:
        readable = ["/"] if config["namespaces"] else config["readable"]
        if confine.landlock(readable, config["writable"], network=bool(config["network"])):
            layers.append("landlock")
        if confine.filter_calls(namespaces=config["namespaces"], network=bool(config["network"])):
            layers.append("seccomp")
    return [*layers, "rlimits"]


def become(uid: int) -> None:
    """Be another user than root for good, and without any capability."""
    os.setgroups([])
    for number in range(64):
        prctl(PR_CAPBSET_DROP, number)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    drop_capabilities()


def prepare(config: Json) -> None:
    """Be as a fresh interpreter is: own random numbers, own clock where asked for, lines that survive a kill."""
    gc.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    sys.path.insert(0, "")
    if config["confined"]:
        memory.bound("/dev/shm" if config["namespaces"] else None)
    if "numpy" in sys.modules and config["seed"] is None:
        sys.modules["numpy"].random.seed()
    if config["seed"] is not None:
        from . import repeat

        repeat.start(config["seed"], config["moment"])
    spawn.get_preparation_data = main_from_source  # A process that is spawned wants the program as a file.
    cell.hide(config["own"])


def main_from_source(name: str) -> Json:
    """What a spawned process is told; its main module is this program, which has no file of its own."""
    told: Json = prepared(name)
    lines = linecache.getlines(cell.SOURCE)
    if told.pop("init_main_from_path", None) and lines:
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
            file.writelines(lines)
        told["init_main_from_path"] = file.name
    return told


def rehearse() -> None:
    """Go the way that a program will go, while nobody waits: what is written to now need not be copied then."""
    cell.run("1 + 1", {"__name__": "__main__"}, ends=False)
    if "pandas" in sys.modules:
        first_steps.take("pandas")


def serve(line: socket.socket, result: int, config: Json) -> NoReturn:
    """Run what comes: one program and end, or each in a fork that is the new state if it went well."""
    names, room, here = cell.fresh(), config["limits"]["artifacts"], os.getcwd()
    confine.limit(config["limits"], confined=config["confined"])
    rehearse()
    while True:
        message, descriptors = wire.receive(line)
        if message is None:
            os._exit(0)
        me, keep = os.getpid(), message["keep"]
        if keep:
            if (child := os.fork()) > 0:
                for descriptor in descriptors:
                    os.close(descriptor)
                wire.send(line, {"pid": child})
                continue  # From here on this process holds the state as it was.
            line.close()
            me, line = os.getpid(), socket.socket(fileno=move_up(descriptors.pop(), config["limits"]))
            if not message["number"]:
                continue
            with contextlib.suppress(OSError):
                os.chdir(here)  # It may be another directory of the same name, put back after a failure.
        request = request_from(descriptors)
        names |= request["variables"] | tables.read(request["tables"])
        source = f"<code-{message['number']}>" if keep else cell.SOURCE
        run = on_a_line if request["line"] else alone
        ending = run(request, names, source=source, ends=not keep, room=room)
        if os.getpid() != me:
            os._exit(0)  # A process that the program forked, and that came out of it at its end.
        tell(result, ending)
        if not keep:
            os._exit(0)
        with contextlib.suppress(OSError):
            here = os.getcwd()
        go_on(line, ok=ending["status"] == "ok")


def alone(request: Json, names: Json, **options: Any) -> Json:
    """Run a program."""
    return cell.run(request["code"], names, **options)


def on_a_line(request: Json, names: Json, *, source: str, ends: bool, room: int) -> Json:
    """Run tests that call the program of another box, or a program that is then called by such tests."""
    line = remote.Line(*request["line"])
    if request["asks"]:
        return cell.run(request["code"], remote.Names(names, line), source=source, room=room, may_exit=False)
    ending = cell.run(request["code"], names, source=source, ends=False, room=room)
    if ending["status"] == "ok":
        remote.answer(line, names)
    cell.call_exit_handlers()
    cell.flush()
    return ending


def request_from(descriptors: list[int]) -> Json:
    """The request, which is in a file, with the descriptors of its tables."""
    with os.fdopen(descriptors[0], encoding="utf-8") as file:
        file.seek(0)
        request: Json = json.load(file)
    several = len(request["tables"])
    for table, descriptor in zip(request["tables"].values(), descriptors[1:], strict=False):
        table["descriptor"] = descriptor
    return request | {"line": descriptors[1 + several :]}


def go_on(line: socket.socket, *, ok: bool) -> None:
    """Say how it went, and go on in a process of one thread: others would go on writing into a state that is kept."""
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)
    try:
        several = len(os.listdir("/proc/self/task")) > 1
    except OSError:
        several = True
    pid = os.fork() if several else os.getpid()
    if pid:
        wire.send(line, {"ok": ok, "pid": pid})
    if several and pid:
        os._exit(0)


def tell(result: int, frame: Json) -> None:
    data = memoryview(wire.encode(frame).encode() + b"\n")
    while data:
        data = data[os.write(result, data) :]
