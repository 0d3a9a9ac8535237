"""JSON messages with descriptors over a socket that preserves message boundaries."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

Json = dict[str, Any]
Read = Callable[[int, int], bytes]
Write = Callable[[int, bytes], int]
"""How `os.read` and `os.write` are called."""

MAX_MESSAGE_BYTES = 1 << 17
MAX_FRAME_BYTES = 1 << 17
"""JSON of one frame of a program's process."""
FRAME_HEADER = struct.Struct("!I")
MAX_DESCRIPTORS = 100
WALL_FACTOR = 10
"""How much more wall time than processor time a test may take."""
OUT_OF_TIME = frozenset(getattr(signal, name, None) for name in ("SIGXCPU", "SIGPROF"))
"""Signals by which the kernel ends a process that has spent its processor time."""
SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EINTR)
"""Errors of a machine that lacks something for the moment. Invariant: they say nothing of what is allowed or closed."""
# Invariant: bound at import, before any program can replace them.
encode: Callable[[object], str] = json.JSONEncoder().encode
encode_unicode: Callable[[object], str] = json.JSONEncoder(ensure_ascii=False).encode
decode: Callable[[str], Any] = json.JSONDecoder().decode


def frame(message: Json, blobs: Sequence[bytes] = ()) -> bytes:
    """Return a message and its binary data for a stream; lone surrogates become "?"."""
    header = encode_unicode({**message, "sizes": [len(blob) for blob in blobs]}).encode("utf-8", "replace")
    return b"".join([FRAME_HEADER.pack(len(header)), header, *blobs])


def read_frame(stream: BinaryIO) -> tuple[Json, bytes] | None:
    """Return the next message of a stream with its binary data; None at its end. It trusts whoever wrote it."""
    header = stream.read(FRAME_HEADER.size)
    if len(header) < FRAME_HEADER.size:
        return None
    text = stream.read(FRAME_HEADER.unpack(header)[0])
    try:
        message: Json = decode(text.decode())
        return message, stream.read(sum(message["sizes"]))
    except (ValueError, KeyError):  # It ended within.
        return None


def outcome_frame(outcome: Json) -> bytes:
    """Return how a program ended as a frame, with its result and its views, `(name, media type, data)`, as binary data."""
    text, views = outcome["result"], outcome.get("views", [])
    headers = [{"name": name, "media_type": media_type} for name, media_type, _ in views]
    message = {**outcome, "result": text is not None, "views": headers}
    return frame(message, [(text or "").encode("utf-8", "replace"), *(data for _, _, data in views)])


def pair() -> tuple[socket.socket, socket.socket]:
    """Return two connected sockets."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(channel: socket.socket, message: Json, descriptors: Sequence[int] = ()) -> None:
    """Send one message; raise `OSError` if the peer is gone."""
    data = encode(message).encode()
    if descriptors:
        socket.send_fds(channel, [data], descriptors, socket.MSG_NOSIGNAL)
    else:
        channel.send(data, socket.MSG_NOSIGNAL)


def send_failure(channel: socket.socket, error: BaseException) -> None:
    """Report an exception, unless the peer is gone."""
    with contextlib.suppress(OSError):
        send(channel, {"failed": f"{type(error).__name__}: {error}", "errno": getattr(error, "errno", 0)})


def receive(channel: socket.socket) -> tuple[Json | None, list[int]]:
    """Return the next message with its descriptors; None at the end of the stream or for a malformed message."""
    data, descriptors, _, _ = socket.recv_fds(
        channel, MAX_MESSAGE_BYTES, MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
    )
    try:
        message = decode(data.decode())
    except (ValueError, RecursionError):
        return None, descriptors
    return (message if isinstance(message, dict) else None), descriptors


def receive_untrusted(channel: socket.socket) -> Json | None:
    """Return the next message of a program's process; descriptors that it sent along are closed."""
    message, descriptors = receive(channel)
    for descriptor in descriptors:
        os.close(descriptor)
    return message
