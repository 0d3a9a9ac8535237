"""JSON messages with descriptors over a socket that keeps their borders."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

LARGEST = 1 << 17
DESCRIPTORS = 100
encode = json.JSONEncoder().encode  # Bound before any program can replace it.
decode = json.JSONDecoder().decode


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(line: socket.socket, message: Json, descriptors: Sequence[int] = ()) -> None:
    """Send one message; `OSError` when the other end is gone."""
    data = encode(message).encode()
    if descriptors:
        socket.send_fds(line, [data], descriptors, socket.MSG_NOSIGNAL)
    else:
        line.send(data, socket.MSG_NOSIGNAL)


def receive(line: socket.socket) -> tuple[Json | None, list[int]]:
    """The next message with its descriptors; None at the end of the line, or for what is no message."""
    data, descriptors, _, _ = socket.recv_fds(line, LARGEST, DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
    try:
        message = decode(data.decode())
    except (ValueError, RecursionError):
        return None, descriptors
    return (message if isinstance(message, dict) else None), descriptors
