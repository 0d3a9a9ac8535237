"""The server of runs in a third-party sandbox, where the host can only run commands, one at a time.

One command starts it. A single run is its first request, and the command prints the reply. The server of a session outlives
its command; each later one connects to its socket, hands a request over and prints the reply. It is to the supervisor what
the host is in a sandbox of ours.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import io
import json
import os
import shutil
import signal
import site
import socket
import stat
import sys
import tempfile
import time
import zipfile
from typing import NoReturn

from .. import cell, wire
from ..collection import made_files
from ..frames import FrameReader
from ..kernel.polling import readable
from ..kernel.syscalls import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, prctl
from ..reports import as_line, encode_frame, sign, token_of
from ..wire import Json
from . import filesystem, processes
from .config import WorkerConfig
from .snapshot import FOLDER_FLAGS
from .supervisor import supervise

SOCKET, KEY, SETTINGS, REQUEST, ROOT = "socket", "key", "settings.json", "request.zip", "files"
INPUTS = "box/"
"""The folder of files in a bundle."""
START_TIMEOUT_S = 10.0
REPLY_GRACE_S = 15.0
"""Time that the supervisor may take to reply, besides the program's."""
END_TIMEOUT_S, RETRY_INTERVAL_S = 5.0, 0.005
CHECK_INTERVAL_S, RUN_CHECK_INTERVAL_S = 1.0, 0.1
"""Pauses between looks at the folder, at rest and during a run: once it is removed, nobody waits any more."""
CLIENT_TIMEOUT_S = 1.0
"""Time that a client may take to hand its request over."""
MAX_REQUEST_BYTES = 1 << 20
READ_BYTES = 1 << 16
MAX_PIPE_READS = 1000
FILES_PER_MESSAGE = 50
LOST = "the process that supervises it has ended"
SEALS = 0x0001 | 0x0002 | 0x0004 | 0x0008
"""No more seals, and no change of a file's size or content."""


def main() -> None:
    """Start the server that the folder describes; print whether it is ready."""
    folder = os.getcwd()
    with open(SETTINGS, encoding="utf-8") as file:
        settings: Json = json.load(file)
    with open(KEY, encoding="utf-8") as file:
        key = file.read().encode()
    # Invariant: the key is gone before a program can look for it.
    os.remove(KEY)
    sys.path.remove(folder)
    # What isolation leaves out is for programs, not for this one.
    sys.path.append(site.getusersitepackages())
    if not settings["is_session"]:
        serve_once(folder, settings, key)
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            serve_session(folder, settings, key, writing)
        finally:
            os._exit(70)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as status:
        sys.stdout.write(f"\n{status.readline()}\n")


def serve_once(folder: str, settings: Json, key: bytes) -> NoReturn:
    """Run the program that came with the server, and print how it ended."""
    output = fcntl.fcntl(sys.stdout, fcntl.F_DUPFD_CLOEXEC, 3)
    with open(REQUEST, "rb") as file:
        bundle = file.read()
    os.remove(REQUEST)
    detach()
    try:
        server = SessionServer(folder, settings, key)
        report = server.run_program({"op": "run"}, bundle)
    except (OSError, RuntimeError) as error:
        processes.kill_all()
        report = {"failed": f"{type(error).__name__}: {error}"}
    else:
        server.stop()
    line = as_line({**report, "token": token_of(key, 0)}, os.path.dirname(folder))
    with os.fdopen(output, "w", encoding="utf-8") as stream:
        stream.write(f"\n{line}\n")
    os._exit(0)


def serve_session(folder: str, settings: Json, key: bytes, status: int) -> NoReturn:
    """Become the server of a session, and report on a pipe whether it is ready."""
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    detach()
    report: Json = {"token": token_of(key, 0), "ready": True}
    try:
        server = SessionServer(folder, settings, key)
        server.listen()
    except (OSError, RuntimeError) as error:
        report = {"token": token_of(key, 0), "failed": f"{type(error).__name__}: {error}"}
    os.write(status, json.dumps(report).encode() + b"\n")
    os.close(status)
    if "failed" in report:
        processes.kill_all()
        os._exit(70)
    server.serve()


def detach() -> None:
    """Part from the command's streams, adopt orphans, and let nobody inspect this process."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)  # Programs run as the same user.


class SessionServer:
    """Serves the requests of one session.

    Args:
        folder: Its folder, with the socket, and the files of its programs in a folder below.
        settings: Limits, and seconds without a request after which the session ends.
        key: The host's secret.

    Raises:
        OSError, RuntimeError: The supervisor did not start.
    """

    def __init__(self, folder: str, settings: Json, key: bytes) -> None:
        self._folder, self._key, self._limits = folder, key, settings["limits"]
        self._max_output_bytes: int = settings["max_output_bytes"]
        self._number = 0
        self._marks: dict[str, tuple[int, int, int]] = {}
        self._root = os.path.join(folder, ROOT)
        os.mkdir(self._root, 0o700)
        self._reader = FrameReader(self._limits["artifacts"])
        self._listener: socket.socket | None = None
        self._start_supervisor(self._config(settings))
        shutil.rmtree(os.path.join(self._folder, "guest"))  # It is loaded, and nobody is to change it.

    def _config(self, settings: Json) -> WorkerConfig:
        """Return the configuration of the supervisor; the sandbox isolates, so it does not."""
        return {
            "namespaces": False,
            "confined": False,
            "network": [],
            "preload": (),
            "environment": {**os.environ, "TMPDIR": f"{self._root}/tmp"},
            "cache": "",
            "probe": {},
            "commands": False,
            "visible": [],
            "readable": [],
            "writable": [],
            "session_timeout": settings["session_timeout"],
            "seed": None,
            "frozen_at": 0.0,
            "limits": settings["limits"],
            "uid": 0,
            "root": self._root,
            "counted": settings["counted"],
            "libraries": 0,
            "own_modules": cell.own_modules(),
            "threads": 1,
        }

    def _start_supervisor(self, config: WorkerConfig) -> None:
        self._control, theirs = wire.pair()
        pipes = [os.pipe() for _ in range(3)]
        own = os.pidfd_open(os.getpid())
        self._supervisor = os.fork()
        if self._supervisor == 0:
            self._control.close()
            for reading, _ in pipes:
                os.close(reading)
            supervise(theirs, [writing for _, writing in pipes], config, own, {})
        theirs.close()
        for reading, writing in pipes:
            os.set_blocking(reading, False)
            os.close(writing)
        self._result, *streams = (reading for reading, _ in pipes)
        self._output = {stream: bytearray() for stream in streams}
        self._forget()
        self._await_reply(START_TIMEOUT_S)
        if not self._reply or "ready" not in self._reply:
            raise RuntimeError((self._reply or {}).get("failed", LOST))
        # Invariant: nothing runs yet, so that the first frame is that of the process which is to run programs.
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._frames and time.monotonic() < deadline:
            self._take(readable([self._result], CHECK_INTERVAL_S))
        if not self._frames or "broken" in self._frames[0]:
            raise RuntimeError((self._frames or [{}])[0].get("broken", LOST))

    def listen(self) -> None:
        """Let later commands reach this process.

        Raises:
            OSError: The sandbox admits no socket.
        """
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(SOCKET)
        self._listener.listen()

    # -- requests --------------------------------------------------------------------------------------------

    def serve(self) -> NoReturn:
        """Serve requests until the session ends."""
        while self._listener is not None and os.path.isdir(self._folder):
            ready = readable([self._listener.fileno(), self._control.fileno()], CHECK_INTERVAL_S)
            if self._control.fileno() in ready:  # It was idle for too long, or something of it ran.
                break
            if ready and (accepted := self._accept(self._listener)):
                connection, request, body = accepted
                report = self._serve_one(request, body)
                self._answer(connection, request["number"], report)
                if "broken" in report:
                    break
        self.stop()
        os._exit(0)

    def _accept(self, listener: socket.socket) -> tuple[socket.socket, Json, bytes] | None:
        """Return the next connection with its request; None if it is not the host's.

        Invariant: what a program has sent is never obeyed, nor is a request twice.
        """
        connection, _ = listener.accept()
        connection.settimeout(CLIENT_TIMEOUT_S)
        try:
            text, proof, body = receive_all(connection).split(b"\n", 2)
            if not hmac.compare_digest(sign(self._key, text.decode()), proof.decode()):
                raise ValueError("it is somebody else's")
            request: Json = json.loads(text)
            if request["number"] <= self._number:
                raise ValueError("it was served already")
        except (OSError, ValueError):
            connection.close()
            return None
        self._number = request["number"]
        return connection, request, body

    def _serve_one(self, request: Json, body: bytes) -> Json:
        try:
            bundle = self._bundle(request, body)
        except OSError:
            return {"incomplete": True}
        if hashlib.sha256(bundle).hexdigest() != request["bundle"]:
            return {"incomplete": True}
        try:
            report: Json = getattr(self, f"on_{request['op']}")(request, bundle)
        except OSError as error:
            return {"broken": f"{type(error).__name__}: {error}"}
        return report

    def _bundle(self, request: Json, body: bytes) -> bytes:
        """Return what belongs to a request; if that is large, it was uploaded."""
        if request["is_inline"]:
            return body
        path = os.path.join(self._folder, f"{request['number']}.zip")
        with open(path, "rb") as file:
            content = file.read()
        os.remove(path)
        return content

    def _answer(self, connection: socket.socket, number: int, report: Json) -> None:
        line = as_line({**report, "token": token_of(self._key, number)}, os.path.dirname(self._folder))
        connection.settimeout(END_TIMEOUT_S)
        with contextlib.suppress(OSError), connection:  # The client may be gone.
            connection.sendall(line.encode())

    def on_cell(self, request: Json, bundle: bytes) -> Json:
        """Run a program in the state."""
        return self.run_program({"op": "cell", "number": request["number"]}, bundle)

    def run_program(self, command: Json, bundle: bytes) -> Json:
        """Let the supervisor run a program; return how it ended, with what it printed and made."""
        self._begin()
        is_session = command["op"] == "cell"
        with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
            inputs = [name for name in archive.namelist() if name.startswith(INPUTS)]
            self._send_files(archive, inputs, is_session=is_session)
            self._send({**command, "extra_seconds": 0.0}, [archive.read("request.json")])
        reply = self._await_reply(self._limits["seconds"] + REPLY_GRACE_S)
        if "ended" not in reply:
            return reply
        for pipe in (self._result, *self._output):
            self._drain(pipe)
        ended: Json = reply["ended"]
        if not is_session:
            ended["ok"] = ended["exit"] == 0 and ended["reason"] is None
        return self._report(ended, {name.removeprefix(INPUTS) for name in inputs})

    def on_command(self, request: Json, bundle: bytes) -> Json:
        """Let the supervisor roll back, save or restore the state."""
        self._begin()
        self._send(request["command"])
        reply = self._await_reply(self._limits["seconds"] + REPLY_GRACE_S)
        self._collect_files(set(), 0)
        return reply

    def on_close(self, request: Json, bundle: bytes) -> Json:
        """End the session."""
        self.stop()
        return {"broken": "it was closed"}

    # -- the supervisor --------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Forget the last run, also what is left in the pipes: nothing of it runs any more."""
        self._forget()
        for pipe in (self._result, *self._output):
            self._drain(pipe)
        self._forget()

    def _forget(self) -> None:
        self._reader.clear()
        self._frames: list[Json] = []
        self._reply: Json | None = None
        self._reason: str | None = None
        for output in self._output.values():
            output.clear()

    def _send(self, message: Json, contents: list[bytes] | None = None) -> None:
        """Send a command with files to the supervisor."""
        descriptors = [memory_file(content) for content in contents or ()]
        try:
            wire.send(self._control, message, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _send_files(self, archive: zipfile.ZipFile, paths: list[str], *, is_session: bool) -> None:
        size = sum(archive.getinfo(path).file_size for path in paths)
        for start in range(0, len(paths), FILES_PER_MESSAGE):
            chunk = paths[start : start + FILES_PER_MESSAGE]
            names = [path.removeprefix(INPUTS) for path in chunk]
            # The first message announces the size of all files.
            message = {"op": "files", "names": names, "size": 0 if start else size, "is_session": is_session}
            self._send(message, [archive.read(path) for path in chunk])

    def _await_reply(self, seconds: float) -> Json:
        """Wait for the supervisor's reply, and take in what is printed meanwhile."""
        deadline = time.monotonic() + seconds
        watched = [self._control.fileno(), self._result, *self._output]
        while self._reply is None and time.monotonic() < deadline and os.path.isdir(self._folder):
            listeners = [self._listener.fileno()] if self._listener else []
            ready = readable([*watched, *listeners], RUN_CHECK_INTERVAL_S)
            if self._listener and ready.intersection(listeners):
                self._obey_close(self._listener)
            self._take(ready)
        return self._reply or {"broken": "its supervisor did not reply"}

    def _obey_close(self, listener: socket.socket) -> None:
        """End the session while a program runs, if the host asks for it; nothing else is served meanwhile."""
        accepted = self._accept(listener)
        if accepted is None:
            return
        connection, request, _ = accepted
        if request["op"] == "close":
            self._answer(connection, request["number"], self.on_close(request, b""))
            self._reply = {"broken": "it was closed"}
        else:
            connection.close()

    def _take(self, ready: set[int]) -> None:
        for pipe in (self._result, *self._output):
            if pipe in ready:
                self._read(pipe)
        if self._control.fileno() in ready:
            message, descriptors = wire.receive(self._control)
            for descriptor in descriptors:
                os.close(descriptor)
            self._reply = message or {"broken": LOST}

    def _read(self, pipe: int) -> bool:
        """Read from a pipe, up to the limit; return whether there may be more."""
        try:
            data = os.read(pipe, READ_BYTES)
        except BlockingIOError:
            return False
        if pipe == self._result:
            self._frames += self._reader.feed(data)
            return bool(data)
        output = self._output[pipe]
        output += data[: self._max_output_bytes - len(output)]
        if len(output) >= self._max_output_bytes and self._reason is None:
            self._reason = "output"
            with contextlib.suppress(OSError):
                self._send({"op": "stop"})
        return bool(data)

    def _drain(self, pipe: int) -> None:
        for _ in range(MAX_PIPE_READS):
            if not self._read(pipe):
                break

    # -- what a program has printed and made -----------------------------------------------------------------

    def _report(self, ended: Json, inputs: set[str]) -> Json:
        """Return how a program ended, as the supervisor of a single run reports it."""
        # A session that fails returns to its files; those of a single run stay.
        room = self._limits["artifacts"] if ended["ok"] or self._listener is None else 0
        frame = self._frames[0] if self._frames else {}
        peak = frame.get("peak")
        out, err = (bytes(output).decode(errors="replace") for output in self._output.values())
        reason = "timeout" if ended["signal"] == signal.SIGXCPU else ended["reason"]
        return {
            "exit": ended["exit"],
            "reason": self._reason or reason,
            "peak": ended["peak"] or (peak if isinstance(peak, int) else 0),
            "seconds": ended["seconds"],
            "result": encode_frame(frame) if frame else "",
            "stdout": out,
            "stderr": err,
            "files": self._collect_files(inputs, room),
            "is_committed": ended["ok"],
        }

    def _collect_files(self, inputs: set[str], room: int) -> list[tuple[str, str | None]]:
        """Return the files that were made since the last time, as far as there is room, and remember all."""
        known, self._marks = self._marks, {}

        def is_known(name: str, status: os.stat_result) -> bool:
            mark = self._marks[name] = (status.st_ino, status.st_size, status.st_ctime_ns)
            is_input = name in inputs and stat.S_IMODE(status.st_mode) == 0o444
            return is_input or known.get(name) == mark

        try:
            os.chdir(self._root)
            # Invariant: a program may have replaced its folder by a link.
            box = os.open("box", FOLDER_FLAGS)
        except OSError:
            return []
        try:
            os.fchdir(box)
            files = list(made_files(".", is_known, room))
        finally:
            os.close(box)
            os.chdir("/")
        return files if room else []

    # -- the end ---------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Let the supervisor end everything, end what it did not, and remove the folder."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + END_TIMEOUT_S
        while processes.parent(self._supervisor) == os.getpid() and time.monotonic() < deadline:
            time.sleep(RETRY_INTERVAL_S)
        processes.kill_all()
        filesystem.remove(self._folder)


def receive_all(connection: socket.socket) -> bytes:
    """Return all that a client sends."""
    data = bytearray()
    while chunk := connection.recv(READ_BYTES):
        data += chunk
        if len(data) > MAX_REQUEST_BYTES:
            raise ValueError("it is too long")
    return bytes(data)


def memory_file(content: bytes) -> int:
    """Return the descriptor of a file in memory, sealed, as a program could otherwise grow it."""
    try:
        descriptor = os.memfd_create("request", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError:  # Some sandboxes have no such files.
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, 1033, SEALS)  # F_ADD_SEALS
    return descriptor
