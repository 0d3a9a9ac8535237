"""A sandbox at a service that is created when it is needed, replaced when it has ended, and deleted with this process."""

from __future__ import annotations

import atexit
import contextlib
import inspect
import os
import threading
import time
import weakref
from typing import Any

from code_chains.errors import ExecutorError
from code_chains.executors.remote.cloud_service import HostedSandbox, Service

IDLE_S = 900
"""Seconds without use after which the service ends a sandbox; it outlives a process that was killed by that."""
EXTEND_S = 60.0
"""Seconds after which that end is postponed again."""


class CloudSandbox:
    """A sandbox of LangChain's protocol that `open` creates at a service.

    Args:
        service: Where it is created.
        network: Whether its programs may use the network.
        run_seconds: The longest time that a command takes.
    """

    def __init__(self, service: Service, *, network: bool, run_seconds: int) -> None:
        self._service, self._network = service, network
        self._lifetime = IDLE_S + run_seconds
        self._creating, self._lock = threading.Lock(), threading.Lock()
        self._hosted: HostedSandbox | None = None
        self._is_closed, self._pid = False, os.getpid()
        self._used = self._extended = 0.0

    def open(self) -> None:
        """Create the sandbox unless there is one that is alive, as far as its service says.

        Raises:
            ConfigurationError: The service has refused the key.
            ExecutorError: There is no sandbox; this one was closed.
        """
        with self._creating:
            if not self._is_usable():
                self.delete()
                self._create()
            self._used = time.monotonic()

    def _is_usable(self) -> bool:
        now, hosted = time.monotonic(), self._hosted
        if hosted is None or now - self._used > IDLE_S - EXTEND_S:
            return False
        if now - self._extended > EXTEND_S:
            try:
                hosted.extend()
            except Exception:
                return False
            self._extended = now
        return True

    def _create(self) -> None:
        try:
            hosted = self._service.create(self._lifetime, network=self._network)
        except Exception as error:
            if self._service.is_wrong_key(error):
                reason = f"{self._service.title} has refused this one"
                raise self._service.wrong_key(reason) from None
            raise
        # Registered after the SDK is in use, so that it runs before the SDK ends itself.
        self._at_exit = _DeleteAtExit(self)
        self._extended = time.monotonic()
        with self._lock:
            self._hosted, is_closed = hosted, self._is_closed
        if is_closed:
            self.delete()
            raise ExecutorError("This executor was closed during the operation.")

    def execute(self, command: str, *, timeout: int | None = None) -> Any:
        """Run a command in a shell."""
        backend = self._backend()
        takes_timeout = "timeout" in inspect.signature(backend.execute).parameters
        return backend.execute(command, **({"timeout": timeout} if takes_timeout else {}))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[Any]:
        """Write files at absolute paths."""
        return self._backend().upload_files(files)  # type: ignore[no-any-return]

    def download_files(self, paths: list[str]) -> list[Any]:
        """Read files at absolute paths."""
        return self._backend().download_files(paths)  # type: ignore[no-any-return]

    def _backend(self) -> Any:
        hosted = self._hosted
        if hosted is None:
            raise ExecutorError(f"There is no sandbox of {self._service.title}.", is_retryable=True)
        return hosted.backend

    def delete(self) -> None:
        """Delete the sandbox at its service, if there is one; `open` creates another one."""
        with self._lock:
            hosted, self._hosted = self._hosted, None
        if hosted is None:
            return
        self._at_exit.cancel()
        if os.getpid() == self._pid:  # It is the sandbox of the process that created it, not of its forks.
            with contextlib.suppress(Exception):  # The service ends it after some time.
                hosted.delete()

    def close(self) -> None:
        """Delete the sandbox, and create no more."""
        with self._lock:
            self._is_closed = True
        self.delete()


class _DeleteAtExit:
    """Deletes a sandbox when the interpreter ends, unless it was cancelled."""

    def __init__(self, sandbox: CloudSandbox) -> None:
        self._sandbox = weakref.ref(sandbox)
        atexit.register(self._delete)

    def _delete(self) -> None:
        if sandbox := self._sandbox():
            sandbox.close()

    def cancel(self) -> None:
        atexit.unregister(self._delete)
