"""What a probe inside the sandbox tries to reach."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import tempfile
import threading
import weakref
from collections.abc import Callable, Collection, Iterable
from typing import IO, Any

from code_chains.temporary import process_folder

IPC_PRIVATE, IPC_CREAT, IPC_RMID = 0, 0o1000, 0
SEGMENT_BYTES = 4096
CONTENT = "canary"


class Canary:
    """What a probe inside the sandbox must not reach: a file, sockets and shared memory of this process.

    A socket and a FIFO are in a folder that is visible in the sandbox, as those beside the interpreter may be.

    Args:
        environment: Names of the environment variables that the sandbox may have.
    """

    def __init__(self, environment: Collection[str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._request: dict[str, Any] | None = None
        self._listener: socket.socket | None = None
        self._release: Callable[[], object] = lambda: None

    def request(self) -> dict[str, Any]:
        """Return what the probe receives; created at the first run, and again in a forked process."""
        with self._lock:
            if self._request is None or self._request["pid"] != os.getpid():
                self._request = self._create()
            return self._request

    def _create(self) -> dict[str, Any]:
        folder = tempfile.mkdtemp(prefix="canary-", dir=process_folder())
        os.chmod(folder, 0o1777)  # noqa: S103 - it must be the sandbox that keeps others out, not its mode
        path = os.path.join(folder, "canary")
        with open(path, "w") as file:
            file.write(CONTENT)
        os.chmod(path, 0o666)  # noqa: S103
        segment, detach = shared_memory()
        self._listener = listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        mailbox, address = _mailbox(folder)
        exposed = os.path.join(folder, "exposed")
        os.mkdir(exposed)
        os.chmod(exposed, 0o755)  # noqa: S103
        held = (listener, mailbox, _mailbox(exposed)[0], _fifo(exposed))
        self._release = weakref.finalize(self, _release, os.getpid(), held, folder, detach)
        return {
            "file": path,
            "size": len(CONTENT),
            "segment": segment,
            "socket": address,
            "exposed": exposed,
            "port": listener.getsockname()[1],
            "pid": os.getpid(),
            "environment": sorted(self._environment),
        }

    def hang_up(self) -> None:
        """Close connections of probes that got through, so that later probes get through as well."""
        with self._lock, contextlib.suppress(OSError):
            while self._listener is not None:
                self._listener.accept()[0].close()

    def close(self) -> None:
        """Remove the file, the sockets and the shared memory."""
        with self._lock:
            self._release()
            self._request = self._listener = None


def shared_memory() -> tuple[int, Callable[[], object]]:
    """Create a segment of System V shared memory, which ends with this process at the latest.

    Returns:
        Its number, by which processes in the same namespace can attach it, or -1 if such memory is not
        available; and a function that releases it.
    """
    try:
        libc = ctypes.CDLL(None)
        libc.shmat.restype = ctypes.c_void_p
        segment = libc.shmget(IPC_PRIVATE, SEGMENT_BYTES, IPC_CREAT | 0o666)
    except (OSError, AttributeError):
        return -1, lambda: None
    address = ctypes.c_void_p(libc.shmat(segment, None, 0))
    if segment < 0 or address.value in (None, ctypes.c_void_p(-1).value):
        return -1, lambda: None
    libc.shmctl(segment, IPC_RMID, None)  # The kernel removes it once it is attached nowhere.
    return segment, lambda: libc.shmdt(address)


def _mailbox(folder: str) -> tuple[socket.socket, str]:
    """Return a socket that anybody can send to by its path; closed if the path is too long for that."""
    mailbox, path = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), os.path.join(folder, "mailbox")
    try:
        mailbox.bind(path)
        os.chmod(path, 0o666)  # noqa: S103
    except OSError:
        mailbox.close()
    return mailbox, path


def _fifo(folder: str) -> IO[bytes]:
    """Return a FIFO that anybody may write to, which needs a reader."""
    path = os.path.join(folder, "fifo")
    os.mkfifo(path)
    os.chmod(path, 0o666)  # noqa: S103
    return open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def _release(
    pid: int, held: Iterable[IO[bytes] | socket.socket], folder: str, detach: Callable[[], object]
) -> None:
    for each in held:
        each.close()
    detach()
    if os.getpid() == pid:  # In a forked process it belongs to the parent.
        shutil.rmtree(folder, ignore_errors=True)
