"""A sandbox of LangChain's protocol whose processes outlive their command, as those of the services do: bubblewrap's."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Self

import pytest

SERVER = """
import base64, json, os, subprocess, sys, threading
lock = threading.Lock()
def execute(command):
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return {"output": done.stdout.decode(errors="replace"), "exit_code": done.returncode}
def upload(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(base64.b64decode(content))
    return {}
def download(path):
    with open(path, "rb") as file:
        return {"content": base64.b64encode(file.read()).decode()}
def serve(number, what, arguments):
    try:
        answer = globals()[what](*arguments)
    except OSError as error:
        answer = {"error": str(error)}
    with lock:
        print(json.dumps([number, answer]), flush=True)
for line in sys.stdin:
    threading.Thread(target=serve, args=json.loads(line)).start()
"""


@dataclass
class Response:
    """An answer to a command, or about a file."""

    output: str = ""
    exit_code: int | None = None
    content: bytes | None = None
    error: str | None = None


class PersistentSandbox:
    """A sandbox without network, with files of its own in `/tmp`, and processes that end with it alone.

    Args:
        user: The user who runs programs, as services differ in that.
    """

    def __init__(self, user: int = 0) -> None:
        if shutil.which("bwrap") is None:
            pytest.skip("bubblewrap is not installed")
        system = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache")
        paths = [*filter(os.path.exists, system), sys.base_prefix]
        mounts = [argument for path in paths for argument in ("--ro-bind", path, path)]
        folders = [
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--tmpfs",
            "/tmp",
            "--tmpfs",
            "/box",
            "--chdir",
            "/box",
        ]
        search = f"{sys.base_prefix}/bin:/usr/bin:/bin"
        variables = ["--clearenv", "--setenv", "PATH", search, "--setenv", "HOME", "/box"]
        command = [
            "bwrap",
            "--unshare-all",
            "--uid",
            str(user),
            "--gid",
            str(user),
            "--die-with-parent",
            *mounts,
            *folders,
            *variables,
        ]
        self._process = subprocess.Popen(
            [*command, f"{sys.base_prefix}/bin/python3", "-I", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._answers: dict[int, Future[dict[str, Any]]] = {}
        self._lock, self._number = threading.Lock(), 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            number, answer = json.loads(line)
            self._answers.pop(number).set_result(answer)
        for future in list(self._answers.values()):
            future.set_exception(ConnectionError("the sandbox is gone"))

    def _ask(self, what: str, *arguments: str) -> dict[str, Any]:
        future: Future[dict[str, Any]] = Future()
        with self._lock:
            if self._process.poll() is not None:
                raise ConnectionError("the sandbox is gone")
            self._number += 1
            self._answers[self._number] = future
            assert self._process.stdin
            self._process.stdin.write(json.dumps([self._number, what, arguments]).encode() + b"\n")
            self._process.stdin.flush()
        return future.result()

    def execute(self, command: str) -> Response:
        """Run a command."""
        return Response(**self._ask("execute", command))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[Any]:
        """Write files."""
        return [
            Response(**self._ask("upload", path, base64.b64encode(data).decode())) for path, data in files
        ]

    def download_files(self, paths: list[str]) -> list[Any]:
        """Read files."""
        answers = [self._ask("download", path) for path in paths]
        return [_file(answer) for answer in answers]

    def left(self) -> str:
        """Return which files and how many processes of programs are there."""
        return self.execute("ls -A /tmp /box; pgrep -c python3").output

    def kill(self) -> None:
        """End it with everything in it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]  # Both are pipes.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def _file(answer: dict[str, Any]) -> Response:
    if "error" in answer:
        return Response(error=answer["error"])
    return Response(content=base64.b64decode(answer["content"]))
