"""The library worker: has the preloaded libraries, and forks the processes of programs that use them.

A fork of a process with such libraries costs more than all else of a run. So supervisors are forks of the small worker, and
only the program's process is a fork of this one, made in the namespaces of the supervisor's sandbox. It never runs code of a
program itself.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from . import processes, program, wire
from .config import WorkerConfig
from .polling import readable
from .states import StateProcess
from .syscalls import CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, setns

NAMESPACES = (("pid", CLONE_NEWPID), ("mnt", CLONE_NEWNS), ("net", CLONE_NEWNET))
"""The namespaces of a sandbox that the process of its program joins."""


@dataclass(frozen=True)
class StartedProgram:
    """The process of a program that was just forked.

    Attributes:
        process: The process.
        shared_bytes: Memory that it shares with a library worker; 0 if the supervisor has forked it.
        threads: Threads of the process that it was forked from, of which it lacks all but one.
    """

    process: StateProcess
    shared_bytes: int
    threads: int


def request_process(worker: socket.socket, streams: list[int]) -> StartedProgram:
    """Have the library worker fork a process in the sandbox of the calling supervisor.

    Args:
        worker: Socket to the library worker.
        streams: Descriptors of the program's results, output and errors.

    Raises:
        OSError: It could not.
    """
    channel, program_channel = wire.pair()
    exits, worker_exits = wire.pair()
    namespaces = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name, _ in NAMESPACES]
    wire.send(worker, {}, [worker_exits.fileno(), *namespaces, program_channel.fileno(), *streams])
    program_channel.close()
    worker_exits.close()
    for namespace in namespaces:
        os.close(namespace)
    reply, descriptors = wire.receive(exits)
    if reply is None or not descriptors:
        raise ChildProcessError("the library worker could not fork")
    pid = processes.pid_of(descriptors[0])
    os.close(descriptors[0])
    channel.setblocking(False)
    return StartedProgram(StateProcess(pid, channel, exits=exits), **reply)


def serve(supervisors: socket.socket, config: WorkerConfig, pid_namespace: int) -> NoReturn:
    """Fork processes for supervisors, and tell each how its process ended. It never returns.

    Args:
        supervisors: Socket from all supervisors.
        config: The configuration of the worker.
        pid_namespace: Descriptor of this process's pid namespace.
    """
    # By this name, as /proc is that of the worker's sandbox, where this process has another pid.
    greeting = {"shared_bytes": processes.resident("self"), "threads": config["threads"]}
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for ready in readable([supervisors.fileno(), *running], None):
            if ready in running:
                pid, exits = running.pop(ready)
                os.close(ready)
                report_exit(pid, exits)
                continue
            message, descriptors = wire.receive(supervisors)
            if message is None:
                os._exit(0)
            exits = socket.socket(fileno=descriptors.pop(0))
            try:
                pid = fork_into_sandbox(descriptors, config, pid_namespace)
                pidfd = os.pidfd_open(pid)
                running[pidfd] = pid, exits
                wire.send(exits, greeting, [pidfd])
            except OSError:  # There are too many processes, or the supervisor has ended.
                if not any(exits is one for _, one in running.values()):
                    exits.close()  # Then the supervisor knows.
            for descriptor in descriptors:
                os.close(descriptor)


def fork_into_sandbox(descriptors: Sequence[int], config: WorkerConfig, pid_namespace: int) -> int:
    """Fork the process of a program in the namespaces of its sandbox; return its pid.

    Args:
        descriptors: Those of `NAMESPACES`, of the channel to the supervisor, and of the program's streams.
        config: The configuration of the run.
        pid_namespace: Descriptor of this process's pid namespace.

    Raises:
        OSError: There are too many processes, or the sandbox is gone.
    """
    sandbox_pids, *others = descriptors[: len(NAMESPACES)]
    setns(sandbox_pids, CLONE_NEWPID)  # Children are born there.
    pid = -1
    try:
        pid = os.fork()
    finally:
        if pid:
            setns(pid_namespace, CLONE_NEWPID)
    if pid:
        return pid
    try:
        for namespace, (_, kind) in zip(others, NAMESPACES[1:], strict=True):
            setns(namespace, kind)
        os.chdir("/box")
        channel, *streams = descriptors[len(NAMESPACES) :]
        program.main(socket.socket(fileno=channel), streams, config)
    finally:
        os._exit(70)


def report_exit(pid: int, exits: socket.socket) -> None:
    """Reap a process, and report its exit code and peak memory to its supervisor."""
    code, peak = processes.wait(pid)
    with exits, contextlib.suppress(OSError):  # The supervisor has ended.
        wire.send(exits, {"exit": code, "peak": peak})
