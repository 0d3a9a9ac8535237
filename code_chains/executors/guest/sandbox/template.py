"""Templates: confined processes without a program, which are forked for each program of a sandbox.

It costs more to confine a process than to run most programs, so that is done before there is a program, and once for all
that use the same folders. A template never runs a program, and no program can name it: it belongs to the pid namespace of
the worker, and only its children are born in that of the sandbox.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from .. import wire
from ..kernel.syscalls import CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, setns
from ..wire import Json
from . import confine, processes, program
from .config import WorkerConfig
from .states import StateProcess

NAMESPACES = (("pid", CLONE_NEWPID), ("mnt", CLONE_NEWNS), ("net", CLONE_NEWNET))
"""The namespaces of a sandbox that a template joins, for itself or for its children."""


MAX_MESSAGE_BYTES, MAX_DESCRIPTORS = 100, 10
PROBE_INTERVAL = 20
"""The first of so many programs is probed; the others inherit the isolation that it has proven."""


@dataclass
class Template:
    """The supervisor's side of a template.

    Attributes:
        channel: Socket to it; it ends when this is closed.
        shared_bytes: Memory that its forks share with it.
        threads: Threads of the process that it was forked from, of which it lacks all but one.
        started: Programs that it was forked for.
        confinement: What the kernel says of the process of the first one; empty if it tells that of none.
    """

    channel: socket.socket
    shared_bytes: int
    threads: int
    started: int = 0
    confinement: tuple[object, ...] = ()

    @property
    def is_proven(self) -> bool:
        """Whether the next program is not probed, as an earlier one was."""
        return self.started % PROBE_INTERVAL > 0 and bool(self.confinement)

    def start(self, streams: list[int]) -> StateProcess:
        """Start the process of a program. The template reports its end on the channel.

        Args:
            streams: Descriptors of the program's results, output and errors.

        Raises:
            OSError: There are too many processes, the template is gone, or the process is not confined like the first one.
        """
        ours, theirs = wire.pair()
        with theirs:
            wire.send(self.channel, {"is_proven": self.is_proven}, [theirs.fileno(), *streams])
        self.started += 1
        reply, descriptors = wire.receive(self.channel)
        if reply is None or not descriptors:
            ours.close()
            raise error_of(reply, "the template has ended")
        pid = processes.pid_of(descriptors[0])
        confinement = processes.confinement(pid)
        self.confinement = self.confinement or confinement
        if confinement != self.confinement:
            raise PermissionError(errno.EPERM, "the process of a program is not confined like others")
        ours.setblocking(False)
        return StateProcess(pid, ours, exits=self.channel, pidfd=descriptors[0])


def request(spawner: socket.socket) -> Template:
    """Have a spawner fork a template in the sandbox of the calling supervisor.

    Raises:
        OSError: It could not, or the template cannot be confined.
    """
    ours, theirs = wire.pair()
    namespaces = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name, _ in NAMESPACES]
    with theirs:
        wire.send(spawner, {}, [theirs.fileno(), *namespaces])
    for namespace in namespaces:
        os.close(namespace)
    reply, _ = wire.receive(ours)
    if reply is None or "failed" in reply:
        ours.close()
        raise error_of(reply, "no process can be forked")
    return Template(ours, **reply)


def error_of(reply: Json | None, default: str) -> OSError:
    """Return what a template reports as an exception."""
    report = reply or {}
    return OSError(report.get("errno") or errno.EIO, report.get("failed", default))


def main(descriptors: Sequence[int], config: WorkerConfig) -> NoReturn:
    """Join a sandbox, become confined in it, and fork a process for each program. It never returns.

    Args:
        descriptors: The socket to the supervisor, and those of `NAMESPACES`.
        config: The configuration of the worker.
    """
    try:
        channel = socket.socket(fileno=descriptors[0])
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        shared_bytes = processes.resident("self")
        own_process = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for namespace, (_, kind) in zip(descriptors[1:], NAMESPACES, strict=True):
            setns(namespace, kind)
            os.close(namespace)
        os.chdir("/box")
        _, out = os.pipe()  # Streams are made for pipes, in whose place each program gets its own.
        for descriptor in (1, 2):
            os.dup2(out, descriptor)
        layers = program.isolate(config, own_process)
        program.prepare(config)
        confine.set_limits(config["limits"], confined=config["confined"], own_process=own_process)
        os.close(own_process)
        wire.send(channel, {"shared_bytes": shared_bytes, "threads": config["threads"]})
        serve(channel, config, layers)
    except BaseException as error:
        wire.send_failure(channel, error)
    finally:
        os._exit(70)


def serve(channel: socket.socket, config: WorkerConfig, layers: list[str]) -> NoReturn:
    """Fork a process for one program after the other, until the supervisor disconnects. It never returns.

    Messages are JSON, but not encoded and parsed here: what that writes to would have to be copied after each fork.
    """
    proven = wire.encode({"is_proven": True}).encode()
    while True:
        message, descriptors, _, _ = socket.recv_fds(
            channel, MAX_MESSAGE_BYTES, MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        if not message:
            break
        try:
            pid = os.fork()
        except OSError as error:  # There are too many processes, or the sandbox is gone.
            pid = -1
            wire.send(channel, {"failed": error.strerror, "errno": error.errno})
        if pid == 0:
            channel.close()
            program.main(descriptors[0], descriptors[1:], config, layers, is_proven=message == proven)
        for descriptor in descriptors:
            os.close(descriptor)
        if pid > 0:
            report_process(channel, pid)
    os._exit(0)


def report_process(channel: socket.socket, pid: int) -> None:
    """Hand a process over to the supervisor, wait for its end, and report its exit code and peak memory."""
    pidfd = os.pidfd_open(pid)
    socket.send_fds(channel, [b"{}"], [pidfd], socket.MSG_NOSIGNAL)
    os.close(pidfd)
    _, status, usage = os.wait4(pid, 0)
    report = (os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)
    channel.send(b'{"exit": %d, "peak": %d}' % report, socket.MSG_NOSIGNAL)
