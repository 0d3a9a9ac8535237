"""What a probe inside the box tries to reach."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import threading
import weakref
from collections.abc import Callable, Collection
from typing import Any

__all__ = ["Canary"]


class Canary:
    """What a probe inside the box must not reach: a file and a listening socket of this process.

    Args:
        environment: Names of the environment variables that the box may have.
    """

    def __init__(self, environment: Collection[str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._request: dict[str, Any] | None = None
        self._listener: socket.socket | None = None
        self._release: Callable[[], object] = lambda: None

    def request(self) -> dict[str, Any]:
        """What the probe is told; made at the first run, and anew in a forked process."""
        with self._lock:
            if self._request is None or self._request["pid"] != os.getpid():
                folder = tempfile.mkdtemp(prefix="code_chains-canary-")
                os.chmod(folder, 0o755)  # noqa: S103 - it must be the box that keeps others out, not its mode
                path = os.path.join(folder, "canary")
                with open(path, "w") as file:
                    file.write("canary")
                self._listener = listener = socket.create_server(("127.0.0.1", 0))
                listener.setblocking(False)
                port = listener.getsockname()[1]
                self._request = {
                    "file": path,
                    "port": port,
                    "pid": os.getpid(),
                    "environment": sorted(self._environment),
                }
                self._release = weakref.finalize(self, _release, os.getpid(), listener, folder)
            return self._request

    def hang_up(self) -> None:
        """Let go of probes that got through, so that the next ones do."""
        with self._lock, contextlib.suppress(OSError):
            while self._listener is not None:
                self._listener.accept()[0].close()

    def close(self) -> None:
        """Take the canaries away."""
        with self._lock:
            self._release()
            self._request = self._listener = None


def _release(pid: int, listener: socket.socket, folder: str) -> None:
    listener.close()
    if os.getpid() == pid:  # A forked process must not take away what is its parent's.
        shutil.rmtree(folder, ignore_errors=True)
