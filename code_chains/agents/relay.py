"""The process that a shell is for its middleware: it runs the shell in the sandbox, and passes its streams on.

What runs in the sandbox is hostile. It can call functions here that read and write the standard streams of this process,
and one that reports its start. If this process ends, however that happens, the sandbox ends with it.
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from langchain_core.tools import StructuredTool

from code_chains.errors import CodeChainsError, ExecutorError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.executors.values import value_of
from code_chains.state import Execution

READ_SECONDS = 60.0
"""After so long the shell asks again whether there is input, within the time that one call may take."""
CHUNK_BYTES = 1 << 16
NOT_RUN = 125
"""The exit code of Docker where it could not run a command."""
NEW_SHELL = b"[This is a new shell. Files, directory and variables of the one before are lost.]\n"
SHELL = """
import os, select, subprocess, threading, time
def _feed(target):
    try:
        while (data := read_input()) is not None:
            target.write(data.encode("latin-1"))
    finally:
        target.close()
def _shell():
    pipe = subprocess.PIPE
    shell = subprocess.Popen(
        command, env={**os.environ, **variables}, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe
    )
    report_start()
    threading.Thread(target=_feed, args=(shell.stdin,), daemon=True).start()
    sources, end = {shell.stdout.fileno(): write_output, shell.stderr.fileno(): write_errors}, None
    while sources:
        if end is None and shell.poll() is not None:
            end = time.monotonic() + 0.2  # What it has left behind may write on.
        ready = select.select([*sources], [], [], 0.02)[0]
        for source in ready:
            if data := os.read(source, 1 << 14):
                sources[source](data.decode("latin-1"))
            else:
                del sources[source]
        if end is not None and (not ready or time.monotonic() > end):
            break
    code = shell.wait()
    return code if code >= 0 else 128 - code
_shell()
"""
"""Invariant: input and output cross as text in which each character is a byte."""


def main(descriptor: int) -> None:
    """Run a shell until it ends, and exit as it did; end at once if nobody holds the other end of the socket.

    Args:
        descriptor: A socket over which the description of the shell is read, and told that it has started.
    """
    relay = Relay(socket.socket(fileno=descriptor))
    try:
        execution = relay.run()
    except CodeChainsError as error:
        relay.end(type(error).__name__, str(error))
    if not execution.ok:
        relay.end(ExecutorError.__name__, execution.summary)
    code = value_of(execution)
    os._exit(code & 0xFF if isinstance(code, int) else NOT_RUN)


class Relay:
    """Passes the streams of a shell on.

    Args:
        control: The socket to the process that wants the shell.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        with control.makefile("r", encoding="utf-8") as file:
            self._spec: dict[str, Any] = json.loads(file.readline())
        self._is_started = False
        self._is_unannounced = bool(self._spec["is_new"])
        self._marker = str(self._spec["marker"]).encode()
        self._last = b"\n"
        threading.Thread(target=self._watch, daemon=True).start()

    def run(self) -> Execution:
        """Run the shell in the sandbox."""
        spec = self._spec
        limits = Limits(**spec["limits"])
        streams = (self.read_input, self.write_output, self.write_errors, self.report_start)
        tools = [StructuredTool.from_function(stream) for stream in streams]
        for each in tools:  # Of pure calls a thousand are recorded, 16 MB; others would fill the memory.
            each.metadata = {"pure": True}
        with SandboxExecutor(
            limits=limits, network=spec["network"], preload=(), min_idle=0, commands=True
        ) as executor:
            variables = {"command": spec["command"], "variables": spec["environment"]}
            files = {name: Path(path) for name, path in spec["files"].items()}
            return executor.run(SHELL, files=files, variables=variables, tools=tools, return_value=True)

    def end(self, kind: str, message: str) -> NoReturn:
        """Tell why there is no shell, to whoever waits for its start, later on its standard error; and exit."""
        if self._is_started:
            _write(2, f"The shell has ended. {message}\n".encode())
        else:
            self._control.sendall(json.dumps({"error": kind, "message": message}).encode() + b"\n")
        os._exit(NOT_RUN)

    def _watch(self) -> None:
        """End everything once nobody holds the other end: a shell that is busy would not notice."""
        with suppress(OSError):
            self._control.recv(1)
        os._exit(NOT_RUN)

    # -- what the sandbox calls ------------------------------------------------------------------------------

    def read_input(self) -> str | None:
        """Return input; nothing if there is none yet, None at its end."""
        if not select.select([0], [], [], READ_SECONDS)[0]:
            return ""
        data = os.read(0, CHUNK_BYTES)
        if self._is_unannounced and data:  # Not earlier: what is printed between commands is dropped.
            self._is_unannounced = False
            _write(1, NEW_SHELL)
        return data.decode("latin-1") if data else None

    def write_output(self, data: str) -> None:
        """Write to standard output."""
        output = data.encode("latin-1")
        if self._marker in output:
            # The middleware finds it at the beginning of a line alone, and would wait after output without a line end.
            output = re.sub(rb"(?<!\n)" + re.escape(self._marker), b"\n" + self._marker, self._last + output)[
                1:
            ]
        self._last = output[-1:] or self._last
        _write(1, output)

    def write_errors(self, data: str) -> None:
        """Write to standard error."""
        _write(2, data.encode("latin-1"))

    def report_start(self) -> None:
        """Report that the shell has started."""
        if not self._is_started:
            self._is_started = True
            self._control.sendall(b"{}\n")


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
