"""Spawners: processes without a program that are forked for each sandbox, one of them with the preloaded libraries.

A fork of a process with such libraries costs more than all else of a run. So supervisors are forks of the small worker, and
only what runs programs that use them is a fork of the large spawner.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from typing import NoReturn

from . import template, wire
from .config import WorkerConfig


def serve(supervisors: socket.socket, config: WorkerConfig) -> NoReturn:
    """Fork a template for each supervisor that asks for one. It never returns.

    Args:
        supervisors: Socket from all supervisors.
        config: The configuration of the worker.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Templates are reaped automatically.
    while True:
        message, descriptors = wire.receive(supervisors)
        if message is None:
            os._exit(0)
        with contextlib.suppress(OSError):  # The supervisor then finds its channel closed.
            if os.fork() == 0:
                supervisors.close()
                template.main(descriptors, config)
        for descriptor in descriptors:
            os.close(descriptor)
