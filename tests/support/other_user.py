"""An executor that belongs to an unprivileged user, where the tests are run by root.

It is a process that was forked from this one and became that user irrevocably. It receives programs as JSON.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, Self

import pytest

from code_chains.errors import ExecutorError, SessionError
from code_chains.executors import SandboxExecutor
from code_chains.executors.sandbox import interpreter, launchers
from code_chains.state import Execution

NOBODY = 58_000 + os.getpid() % 3000
"""A user without rights, of this process alone: processes are counted by user."""
READABLE = "/usr/bin/python3"
"""An interpreter that every user can read."""


def for_landlock() -> str | None:
    """Return an interpreter for programs without namespaces, which run as another user for root; None for this one."""
    if os.geteuid() != 0:
        return None
    if not os.path.exists(READABLE):
        pytest.skip("there is no interpreter that others can read")
    return READABLE


class OtherUser:
    """An executor of another user, which runs programs, alone or in sessions, and has canaries of its own.

    Attributes:
        targets: Where a program finds the canaries of this process: its pid, and a secret in its memory.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._folder = tempfile.mkdtemp()
        os.chmod(self._folder, 0o711)
        shutil.copytree(launchers.PACKAGE_FOLDER, f"{self._folder}/executors")
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            ours.close()
            _serve(theirs, dict(options), Path(self._folder, "executors"))
        theirs.close()
        self._socket, self._stream = ours, ours.makefile("rw")
        self.targets: dict[str, Any] = json.loads(self._stream.readline())
        self._numbers = itertools.count(1)

    def run(self, code: str, **more: Any) -> Execution:
        return self._ask("run", code, **more)

    @contextmanager
    def session(self) -> Iterator[OtherSession]:
        number = next(self._numbers)
        try:
            yield OtherSession(self, number)
        finally:
            self._say({"op": "end", "number": number})

    def _ask(self, op: str, code: str, number: int = 0, **more: Any) -> Execution:
        files = {name: str(path) for name, path in (more.get("files") or {}).items()}
        reply = self._say(
            {"op": op, "number": number, "code": code, "files": files, "variables": more.get("variables")}
        )
        if "session" in reply:
            raise SessionError(reply["session"])
        if "error" in reply:
            raise ExecutorError(reply["error"])
        return Execution.from_json(reply["done"])

    def _say(self, message: dict[str, Any]) -> dict[str, Any]:
        self._stream.write(json.dumps(message) + "\n")
        self._stream.flush()
        reply: dict[str, Any] = json.loads(self._stream.readline())
        return reply

    def close(self) -> None:
        # Others that were forked later hold this line as well: its end would not be seen.
        self._say({"op": "close"})
        self._stream.close()
        self._socket.close()
        os.waitpid(self._pid, 0)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class OtherSession:
    """A session of such an executor."""

    def __init__(self, target: OtherUser, number: int) -> None:
        self._place, self._number = target, number

    def run(self, code: str, **more: Any) -> Execution:
        return self._place._ask("cell", code, self._number, **more)


def _serve(channel: socket.socket, options: dict[str, Any], executors: Path) -> NoReturn:
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        os.environ["HOME"] = tempfile.gettempdir()
        sys.executable, launchers.PACKAGE_FOLDER = READABLE, executors
        interpreter.__file__ = str(executors / "sandbox" / "interpreter.py")
        _answer(channel, options)
    finally:
        os._exit(0)


def _answer(channel: socket.socket, options: dict[str, Any]) -> None:
    secret = ctypes.create_string_buffer(
        f"memory-{os.environ.get('HOST_TOKEN', '').partition('-')[2]}".encode()
    )
    file, sessions = channel.makefile("rw"), dict[int, Any]()
    with SandboxExecutor(**options, python=READABLE) as executor:
        _write(file, {"pid": os.getpid(), "address": ctypes.addressof(secret)})
        for request in map(json.loads, file):
            if request["op"] == "close":
                break
            if request["op"] == "end":
                session = sessions.pop(request["number"], None)
                if session is not None:
                    session.close()
                _write(file, {})
                continue
            if request["op"] == "cell" and request["number"] not in sessions:
                sessions[request["number"]] = executor.session()
            target = sessions.get(request["number"], executor)
            try:
                files = {name: Path(path) for name, path in request["files"].items()}
                done = target.run(request["code"], files=files, variables=request["variables"])
                _write(file, {"done": done.to_json()})
            except SessionError as error:
                _write(file, {"session": str(error)})
            except ExecutorError as error:
                _write(file, {"error": str(error)})
    _write(file, {})


def _write(file: Any, message: dict[str, Any]) -> None:
    file.write(json.dumps(message) + "\n")
    file.flush()


__all__ = ["NOBODY", "READABLE", "OtherUser", "for_landlock"]
