"""Sockets and FIFOs of the host below a visible folder, such as a virtual environment, are out of reach of programs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from code_chains.errors import IsolationError
from code_chains.executors import SandboxExecutor
from tests.conftest import PatchInside
from tests.support.other_user import OtherUser

REACH = """
import os, socket
reached = []
for name in sorted(os.listdir(folder)):
    path = os.path.join(folder, name)
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as client:
            try:
                client.connect(path)
                reached.append(name)
            except OSError:
                pass
    try:
        os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), b"x")
        reached.append(name)
    except OSError:
        pass
sorted(os.listdir(folder)), reached
"""


class Listeners:
    """Sockets of each kind and a FIFO in a folder, which anybody may use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held: list[socket.socket] = []
        os.mkfifo(folder / "fifo")
        self.reader = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        self.listen("stream", socket.SOCK_STREAM)
        self.listen("datagram", socket.SOCK_DGRAM)
        self.listen("packets", socket.SOCK_SEQPACKET)

    def listen(self, name: str, kind: socket.SocketKind) -> None:
        listener = socket.socket(socket.AF_UNIX, kind)
        listener.bind(str(self.folder / name))
        if kind != socket.SOCK_DGRAM:
            listener.listen()
        self.held.append(listener)

    def close(self) -> None:
        os.close(self.reader)
        for listener in self.held:
            listener.close()

    def open_to_all(self) -> list[str]:
        for path in self.folder.iterdir():
            path.chmod(0o777)
        return sorted(os.listdir(self.folder))


@pytest.fixture(params=["/tmp", "/var/tmp"])  # Below a folder that programs may write to, and elsewhere.
def environment(request: pytest.FixtureRequest) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=request.param, prefix="an env, ") as folder:
        Path(folder).chmod(0o755)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        yield Path(folder)


@pytest.fixture
def listeners(environment: Path) -> Iterator[Listeners]:
    folder = environment / "run"
    folder.mkdir(mode=0o755)
    listeners = Listeners(folder)
    yield listeners
    listeners.close()


@pytest.mark.attack
def test_they_reach_nobody_even_if_they_are_newer(
    environment: Path, listeners: Listeners, launcher: Any
) -> None:
    python, variables = str(environment / "bin/python"), {"folder": str(listeners.folder)}
    with SandboxExecutor(launcher=launcher, python=python, preload=()) as executor:
        names = listeners.open_to_all()
        assert executor.run(REACH, variables=variables).output == repr((names, []))
        listeners.listen("newer", socket.SOCK_STREAM)
        names = listeners.open_to_all()
        assert executor.run(REACH, variables=variables).output == repr((names, []))


@pytest.mark.attack
def test_they_are_covered_where_the_kernel_makes_no_overlay(
    environment: Path, listeners: Listeners, patch_inside: PatchInside, launcher: Any
) -> None:
    patch_inside("filesystem", '"overlay", MS_RDONLY', '"no such kind", MS_RDONLY')
    python, variables = str(environment / "bin/python"), {"folder": str(listeners.folder)}
    with SandboxExecutor(launcher=launcher, python=python, preload=()) as executor:
        names = listeners.open_to_all()
        assert executor.run(REACH, variables=variables).output == repr((names, []))


@pytest.mark.smoke
@pytest.mark.attack
def test_the_probe_finds_them(patch_inside: PatchInside, launcher: Any) -> None:
    patch_inside("worker", "    filesystem.hide_sockets(shared, empty)\n", "")
    with (
        SandboxExecutor(launcher=launcher, preload=()) as executor,
        pytest.raises(IsolationError, match="ipc"),
    ):
        executor.run("1")


@pytest.mark.attack
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_another_user_does_not_reach_them_either(launcher: str) -> None:
    with OtherUser({"launcher": launcher, "preload": ()}) as user:
        done = user.run("1")
        assert (done.ok, done.isolation.ipc if done.isolation else None) == (True, True)
