"""The program's process: it is isolated by itself or by its template, proves it, and then runs what it receives.

The supervisor and the host's clock decide how a run ended; what this process reports after a program started
is untrusted.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import linecache
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing import spawn
from typing import Any, NoReturn

from .. import cell, roles, rpc, serialization, tables, tools, wire
from ..kernel import landlock, seccomp
from ..kernel.polling import readable
from ..kernel.syscalls import (
    CLONE_NEWUSER,
    PR_SET_DUMPABLE,
    change_user,
    close_others,
    drop_capabilities,
    map_user,
    prctl,
    unshare,
)
from ..wire import Json
from . import confine, determinism, memory, multiprocess, open_files, warmup
from .config import RunLimits, WorkerConfig

NICENESS, SEED_BYTES = 5, 4
REHEARSAL_DELAY_S = 0.02
"""How long nobody must need this process before it rehearses: under load that takes more time than it saves."""
FORK_RETRIES, FORK_RETRY_INTERVAL_S = 100, 0.02
get_preparation_data: Callable[[str], dict[str, Any]] = spawn.get_preparation_data
# Taken before a program runs, which may replace anything in its process.
_get_random_state, _set_random_state = random.getstate, random.setstate


def main(
    channel: int,
    streams: list[int],
    config: WorkerConfig,
    layers: list[str] | None = None,
    *,
    is_proven: bool = False,
) -> NoReturn:
    """Run programs until the channel is closed. It never returns, whatever happens.

    Args:
        channel: Descriptor of the socket to the supervisor, which sends what to run.
        streams: Descriptors for results, output and errors.
        config: The configuration of the run.
        layers: What `isolate` returned in the template that this process is a fork of, which is prepared as well;
            None if there is none.
        is_proven: Whether another process was probed for this one, which then reports nothing.
    """
    result, out, err = streams
    try:
        channel = move_descriptor(channel, config["limits"])
        result = move_descriptor(result, config["limits"])
        set_up_descriptors(result, channel, out, err)
        has_own_user = config["namespaces"] or os.geteuid() == 0
        # Before it is isolated: then it sees nobody else.
        others = 0 if has_own_user else confine.count_others()
        if layers is None:
            layers = isolate(config)
            prepare(config)
            confine.set_limits(config["limits"], confined=config["confined"], others=others)
        if not is_proven:
            found = confine.probe(config["probe"], is_namespaced=config["namespaces"])
            write_all(result, wire.frame({"probe": found, "layers": layers}))
        start_anew(config)
        serve(socket.socket(fileno=channel), result, config)
    except BaseException as error:
        with contextlib.suppress(OSError):
            write_all(result, wire.frame({"broken": f"{type(error).__name__}: {error}"}))
    finally:
        os._exit(70)


def move_descriptor(descriptor: int, limits: RunLimits) -> int:
    """Move a descriptor to a number that no program reaches by counting from 3."""
    moved: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(32, limits["open_files"]) - 8)
    os.close(descriptor)
    return moved


def set_up_descriptors(result: int, channel: int, out: int, err: int) -> None:
    """Set up the program's standard streams, and close all other descriptors except our two."""
    os.setsid()
    os.nice(NICENESS)  # Many processes must not starve the supervisor.
    null = os.open(os.devnull, os.O_RDWR)
    for source, target in ((null, 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    close_others([result, channel])


def isolate(config: WorkerConfig, own_process: int | None = None) -> list[str]:
    """Isolate this process with every available layer of the kernel; return the names of these layers.

    Args:
        config: The configuration of the run.
        own_process: Descriptor of this process's directory in /proc, if it is not in the /proc that it sees.
    """
    layers = []
    if config["namespaces"]:
        uid, gid = os.getuid(), os.getgid()
        unshare(CLONE_NEWUSER)  # The kernel counts its processes apart from those of other runs.
        prctl(PR_SET_DUMPABLE, 1)  # Otherwise our own /proc would belong to root.
        map_user(uid, gid, own_process)
        drop_capabilities()
        layers.append("namespaces")
    elif config.get("hosted"):
        with contextlib.suppress(OSError):  # The sandbox may allow no change of them.
            drop_capabilities()
    elif os.geteuid() == 0 and config["confined"]:
        change_user(config["uid"])
    prctl(PR_SET_DUMPABLE, 1)
    os.environ.clear()
    os.environ.update(config["environment"])
    if config["commands"] and config["namespaces"]:
        # Invariant: a command cannot write to the pipe of results, which it would find among the files of this process.
        prctl(PR_SET_DUMPABLE, 0)
    if config["confined"]:
        layers += restrict(config)
    return [*layers, "rlimits"]


def restrict(config: WorkerConfig) -> list[str]:
    """Restrict paths and system calls; return the names of the layers in force."""
    layers = []
    has_network = bool(config["network"] or config.get("hosted"))
    readable = ["/"] if config["namespaces"] else config["readable"]
    version = landlock.restrict(readable, config["writable"], network=has_network)
    if version >= (1 if config["namespaces"] else landlock.MIN_VERSION):
        layers.append("landlock")
    if version < landlock.SCOPE_VERSION and not config["namespaces"] and not config["uid"]:
        seccomp.install_signal_filter(os.getpid())
    if seccomp.install_filter(namespaces=config["namespaces"], network=has_network):
        layers.append("seccomp")
    if config["uid"]:
        layers.append("user")
    return layers


def prepare(config: WorkerConfig) -> None:
    """Give programs what a new interpreter has: its signals, its modules, and streams that survive a kill.

    The standard streams must be pipes already.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path.insert(0, "")
    if config["confined"]:
        memory.replace_mmap("/dev/shm" if config["namespaces"] else None)
        if not config["namespaces"]:
            multiprocess.replace(f"{config['root']}/shm")
    spawn.get_preparation_data = preparation_data
    cell.hide(config["own_modules"])
    cell.set_streams()
    cell.new_main()


def start_anew(config: WorkerConfig) -> None:
    """Give this process what no other one has: its own random numbers, its clock, and a garbage collector that runs."""
    gc.enable()
    if "numpy" in sys.modules and config["seed"] is None:
        # Its own way to seed costs more than a small program.
        sys.modules["numpy"].random.seed(int.from_bytes(os.urandom(SEED_BYTES), sys.byteorder))
    if config["seed"] is not None:
        determinism.start(config["seed"], config["frozen_at"])


def preparation_data(name: str) -> Json:
    """Return what a spawned process needs: its main module is this program, which is not a file by itself."""
    data: Json = get_preparation_data(name)
    lines = linecache.getlines(cell.SOURCE_NAME)
    if data.pop("init_main_from_path", None) and lines:
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
            file.writelines(lines)
        data["init_main_from_path"] = file.name
    return data


def rehearse(channel: socket.socket) -> None:
    """Run a small program while nobody waits, so that the memory it writes to is copied before the real one starts."""
    if readable([channel.fileno()], REHEARSAL_DELAY_S):
        return
    cell.run("1 + 1", {"__name__": "__main__"}, ends=False)
    if "pandas" in sys.modules:
        warmup.warm_up("pandas")


def serve(channel: socket.socket, result: int, config: WorkerConfig) -> NoReturn:
    """Run one program and exit, or each in a fork that becomes the new state if it succeeds."""
    names, max_view_bytes, folder = vars(sys.modules["__main__"]), config["limits"]["artifacts"], os.getcwd()
    group = os.getpgrp()
    confine.set_program_limits(config["limits"])
    rehearse(channel)
    kept: open_files.Kept | None = None
    has_lost_threads = False
    while True:
        message, descriptors = wire.receive(channel)
        if message is None:
            os._exit(0)
        is_session = message["is_session"]
        if is_session and not message["is_forked"]:
            kept = open_files.keep(kept, [channel.fileno(), *descriptors])
            had_threads, number = native_threads(), message["number"]
            runs_ahead = had_threads and number > 0
            note = {"is_swapped": runs_ahead, "has_lost_threads": has_lost_threads or had_threads}
            channel, is_child = branch(channel, descriptors, config["limits"], note)
            has_lost_threads |= had_threads and is_child
            if is_child == runs_ahead or not number:
                continue
        pid, before, kept = os.getpid(), kept, None
        if is_session:  # It may have been replaced by another directory of this name after a failure.
            with contextlib.suppress(OSError):
                os.chdir(folder)
        request = read_request(descriptors)
        names |= serialization.unpack_all(request["variables"]) | tables.read(request["tables"])
        names |= tools.connect(request["tools"])
        cell.set_input(request["stdin"])
        source = f"<code-{message['number']}>" if is_session else cell.SOURCE_NAME
        peer = rpc.RpcChannel(*request["channel"]) if request["channel"] else None
        outcome = roles.run(
            request,
            names,
            peer,
            source=source,
            ends=not is_session,
            max_view_bytes=max_view_bytes,
        )
        if os.getpid() != pid:
            os._exit(0)  # A process that the program forked, and that returned from it.
        tools.disconnect()
        open_files.warn(before if outcome["status"] != "ok" else None)
        write_all(result, wire.outcome_frame(outcome))
        if not is_session:
            if threading.active_count() == 1:  # Others would not let this one go on for a while.
                os.sched_yield()  # The host may wait for this processor, which frees this process's memory next.
            os._exit(0)
        with contextlib.suppress(OSError):
            folder = os.getcwd()
        report_outcome(channel, ok=outcome["status"] == "ok", group=group)


def native_threads() -> bool:
    """Return whether libraries have threads in this process that Python does not know, as those of polars."""
    try:
        return len(os.listdir("/proc/self/task")) > threading.active_count() == 1
    except OSError:
        return False


def branch(
    channel: socket.socket, descriptors: list[int], limits: RunLimits, note: Json
) -> tuple[socket.socket, bool]:
    """Fork a session's process; return the channel of each, and whether it is the child.

    Invariant: from here on one of both holds the state from before the run: the parent, unless that has threads of a
    library, which a fork does not get: then it runs the program, and is swapped with the child.
    """
    if (child := fork_state()) > 0:
        for descriptor in descriptors[-1:] if note["is_swapped"] else descriptors:
            os.close(descriptor)
        del descriptors[-1:]
        wire.send(channel, {"pid": child, **note})
        return channel, False
    channel.close()
    channel = socket.socket(fileno=move_descriptor(descriptors.pop(), limits))
    for descriptor in descriptors if note["is_swapped"] else ():
        os.close(descriptor)
    return channel, True


def read_request(descriptors: list[int]) -> Json:
    """Return the request, which is in a file, with the descriptors of its tables, its tools and its channel."""
    with os.fdopen(descriptors[0], "rb") as file:
        file.seek(0)
        request: Json = wire.decode(file.read().decode())
    tables_end = 1 + len(request["tables"])
    tools_end = tables_end + (2 if request["tools"] else 0)
    for table, descriptor in zip(request["tables"].values(), descriptors[1:], strict=False):
        table["descriptor"] = descriptor
    if request["tools"]:
        request["tools"]["descriptors"] = descriptors[tables_end:tools_end]
    return request | {"channel": descriptors[tools_end:]}


def fork_state() -> int:
    """Fork the process of a session; the child goes on with the same random numbers, as with all other state."""
    generator = None
    with contextlib.suppress(Exception):  # A program may have damaged it.
        generator = _get_random_state()
    child = fork()
    if not child and generator is not None:
        with contextlib.suppress(Exception):
            _set_random_state(generator)  # Python's own hook has seeded it anew.
    return child


def fork() -> int:
    """Fork, even if other sandboxes of this user have too many processes for a moment."""
    for _ in range(FORK_RETRIES):
        with contextlib.suppress(BlockingIOError):
            return os.fork()
        time.sleep(FORK_RETRY_INTERVAL_S)
    return os.fork()


def report_outcome(channel: socket.socket, *, ok: bool, group: int) -> None:
    """Report how a session's program ended, and continue without threads of Python, as the state must not change."""
    # A group of its own would get SIGHUP once the previous state is discarded.
    with contextlib.suppress(OSError):
        os.setpgid(0, group)
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)
    try:
        has_threads = len(os.listdir("/proc/self/task")) > 1 and not native_threads()
    except OSError:
        has_threads = True
    pid = fork_state() if has_threads else os.getpid()
    if pid:
        wire.send(channel, {"ok": ok, "pid": pid})
    if has_threads and pid:
        os._exit(0)


def write_all(result: int, frame: bytes) -> None:
    data = memoryview(frame)
    while data:
        data = data[os.write(result, data) :]
