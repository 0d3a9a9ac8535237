"""Runs in a third-party sandbox or container, where the host can only run commands: a single run, or a session's server.

One command starts it. A single run is its first request, and the command prints the reply. The server of a session, or of a
run that calls tools, outlives its command; each later one connects to its socket, hands a request over and prints the reply.
It is to the supervisor what the host is in a sandbox of ours.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import signal
import site
import socket
import stat
import sys
import time
from functools import partial
from typing import NoReturn

from ..kernel.polling import readable
from ..kernel.syscalls import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, prctl
from ..reports import as_line, sign
from ..wire import Json
from . import processes
from .supervisor_client import SupervisorClient
from .talk import Answer, Talk

SOCKET, KEY, SETTINGS, REQUEST = "socket", "key", "settings.json", "request.zip"
CHECK_INTERVAL_S = 1.0
"""Pause between looks at the folder at rest: once it is removed, nobody can reach this process any more."""
CLIENT_TIMEOUT_S, ANSWER_TIMEOUT_S = 1.0, 5.0
"""Time that a client may take to hand its request over, and to take the answer."""
STARTUP_FILES = (
    ".profile",
    ".bash_profile",
    ".bash_login",
    ".bashrc",
    ".bash_logout",
    ".zshenv",
    ".zprofile",
    ".zshrc",
    *(".bash_aliases", ".zlogin", ".cshrc", ".tcshrc", ".login"),
    *(".config/fish/config.fish", ".config/fish/conf.d", ".cargo/env", ".local/bin/env"),
    ".pam_environment",
    ".inputrc",
)
"""What shells of a user read when they start, or what these files often read."""
LISTEN_TIMEOUT_S = 60.0
"""Time until the host asks how a run has ended that it has talked to."""
MAX_REQUEST_BYTES = 1 << 20
READ_BYTES = 1 << 16


def main() -> None:
    """Start the server that the folder describes; print whether it is ready."""
    folder = os.getcwd()
    with open(SETTINGS, encoding="utf-8") as file:
        settings: Json = json.load(file)
    sys.path.remove(folder)
    # What isolation leaves out is for programs, not for this one.
    sys.path.append(site.getusersitepackages())
    if settings["has_request"]:
        serve_once(folder, settings)
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            serve_session(folder, settings, writing)
        finally:
            os._exit(70)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as status:
        sys.stdout.write(f"\n{status.readline()}\n")


def startup_files() -> list[tuple[str, int, int, int]]:
    """Return the state of the files that shells of this user read: who changes them runs with each command.

    Invariant: a program can set the time of a change of content, but not that of a change of the file's state.
    """
    found = []
    for name in STARTUP_FILES:
        path = os.path.join(os.path.expanduser("~"), name)
        with contextlib.suppress(OSError):
            state = os.stat(path)
            found.append((name, state.st_ino, state.st_size, state.st_ctime_ns))
    return found


def take_key(folder: str) -> bytes:
    """Return the host's secret, and remove it.

    Invariant: by then all processes are there which programs are forked from, as these inherit memory; none runs yet.
    """
    path = os.path.join(folder, KEY)
    with open(path, encoding="utf-8") as file:
        key = file.read()
    os.remove(path)
    return key.encode()


def serve_once(folder: str, settings: Json) -> NoReturn:
    """Run the program that came with the server, and print how it ended."""
    output = fcntl.fcntl(sys.stdout, fcntl.F_DUPFD_CLOEXEC, 3)
    with open(REQUEST, "rb") as file:
        bundle = file.read()
    os.remove(REQUEST)
    detach()
    supervisor: SupervisorClient | None = None
    report: Json = {}
    before = startup_files()
    try:
        supervisor = SupervisorClient(folder, settings)
    except (OSError, RuntimeError) as error:
        processes.kill_all()
        report = {"failed": f"{type(error).__name__}: {error}"}
    key = take_key(folder)
    if supervisor is not None:
        try:
            report = supervisor.run_program({"op": "run"}, bundle)
        except Exception as error:  # Whatever a program has sent, the report is signed.
            report = {"failed": f"{type(error).__name__}: {error}"}
        report = {**report, "layers": supervisor.layers} if supervisor.stop() else {"remains": True}
    report["changes_startup"] = startup_files() != before
    line = as_line(report, key, 0, os.path.dirname(folder))
    with os.fdopen(output, "w", encoding="utf-8") as stream:
        stream.write(f"\n{line}\n")
    os._exit(0)


def serve_session(folder: str, settings: Json, status: int) -> NoReturn:
    """Become the server of a session, and report on a pipe whether it is ready."""
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    detach()
    report: Json = {"ready": True}
    key = b""
    try:
        supervisor = SupervisorClient(folder, settings)
        key = take_key(folder)
        server = SessionServer(folder, key, supervisor)
    except (OSError, RuntimeError) as error:
        processes.kill_all()
        report = {"failed": f"{type(error).__name__}: {error}"}
        key = key or take_key(folder)
    os.write(status, as_line(report, key, 0, os.path.dirname(folder)).encode() + b"\n")
    os.close(status)
    if "failed" in report:
        os._exit(70)
    try:
        server.serve()
    finally:  # Invariant: nothing that a program started outlives this process.
        supervisor.stop()
        os._exit(70)


def detach() -> None:
    """Part from the command's streams, adopt orphans, and let nobody inspect this process."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)  # Programs run as the same user.


class SessionServer:
    """Serves the requests of one session, or of one run that is talked about.

    Args:
        folder: Its folder, in which it makes its socket.
        key: The host's secret.
        supervisor: What runs its programs.

    Raises:
        OSError: The sandbox admits no socket.
    """

    def __init__(self, folder: str, key: bytes, supervisor: SupervisorClient) -> None:
        self._folder, self._key, self._supervisor = folder, key, supervisor
        self._numbers = set[int]()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(SOCKET)
        self._listener.listen()
        supervisor.interrupts[self._listener.fileno()] = self._obey_meanwhile
        self._startup_files = startup_files()
        self._talk: Talk | None = None

    def serve(self) -> NoReturn:
        """Serve requests until the session, or the only run, ends."""
        control = self._supervisor.control.fileno()
        while os.path.isdir(self._folder):
            ready = readable([self._listener.fileno(), control], CHECK_INTERVAL_S)
            if control in ready:  # It was idle for too long, or something of it ran.
                break
            if ready and (accepted := self._accept()):
                connection, request, body = accepted
                answer = partial(self._answer, connection, request["number"])
                report = self._serve_one(request, body, answer)
                if "broken" in report and not self._supervisor.end():
                    report["remains"] = True
                report["changes_startup"] = startup_files() != self._startup_files
                report["layers"] = self._supervisor.layers
                self._last_answer(answer)(report)
                if "broken" in report or request["op"] == "run":
                    break
        self._supervisor.stop()
        os._exit(0)

    def _last_answer(self, first: Answer) -> Answer:
        """Return what takes the report of a request: the command that asked last, if its run was talked about.

        Of a run that nobody asks about any more the report is dropped.
        """
        talk, self._talk = self._talk, None
        if talk is None:
            return first
        deadline = time.monotonic() + LISTEN_TIMEOUT_S
        answer = talk.take_answer()
        while answer is None and time.monotonic() < deadline and os.path.isdir(self._folder):
            if readable([self._listener.fileno()], CHECK_INTERVAL_S):
                self._obey(talk)
                answer = talk.take_answer()
        talk.close()
        return answer or (lambda report: None)

    def _accept(self) -> tuple[socket.socket, Json, bytes] | None:
        """Return the next connection with its request; None if it is not the host's.

        Invariant: what a program has sent is never obeyed, nor is a request twice.
        """
        connection, _ = self._listener.accept()
        try:
            text, proof, body = receive_all(connection).split(b"\n", 2)
            if not hmac.compare_digest(sign(self._key, text.decode()).encode(), proof):
                raise ValueError("it is somebody else's")
            request: Json = json.loads(text)
            if request["number"] in self._numbers:
                raise ValueError("it was served already")
        except (OSError, ValueError):
            connection.close()
            return None
        self._numbers.add(request["number"])
        return connection, request, body

    def _serve_one(self, request: Json, body: bytes, answer: Answer) -> Json:
        try:
            bundle = self._bundle(request, body)
        except (OSError, ValueError):
            return {"incomplete": True}
        if request.get("talk"):
            details = request["talk"]
            self._talk = Talk(request["number"], details["channels"], details["extra_seconds"])
            self._talk.listen(answer, 0.0)
        try:
            report: Json = getattr(self, f"on_{request['op']}")(request, bundle)
        except Exception as error:  # Whatever a program has sent, the report is signed.
            return {"broken": f"{type(error).__name__}: {error}"}
        return report

    def _bundle(self, request: Json, body: bytes) -> bytes:
        """Return what belongs to a request; if that is large, it was uploaded.

        Raises:
            OSError, ValueError: It did not arrive as it was sent.
        """
        content = body
        if not request["is_inline"]:
            content = self._uploaded(os.path.basename(request["upload"]))
        if hashlib.sha256(content).hexdigest() != request["bundle"]:
            raise ValueError("it is not complete")
        return content

    def _uploaded(self, name: str) -> bytes:
        """Return an uploaded file. Invariant: it is one, as a program may have put something else there."""
        path = os.path.join(self._folder, name)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ValueError("it is no file")
            os.remove(path)
            return file.read()

    def _answer(self, connection: socket.socket, number: int, report: Json) -> None:
        line = as_line(report, self._key, number, os.path.dirname(self._folder))
        with contextlib.suppress(OSError), connection:  # The client may be gone.
            connection.settimeout(ANSWER_TIMEOUT_S)
            connection.sendall(line.encode())

    def on_cell(self, request: Json, bundle: bytes) -> Json:
        """Run a program in the state."""
        command = {"op": "cell", "number": request["number"]}
        return self._supervisor.run_program(command, bundle, self._talk)

    def on_run(self, request: Json, bundle: bytes) -> Json:
        """Run the only program, to the end of all that it started."""
        report = self._supervisor.run_program({"op": "run"}, bundle, self._talk)
        return report if self._supervisor.end() else {"remains": True}

    def on_command(self, request: Json, bundle: bytes) -> Json:
        """Let the supervisor roll back, save or restore the state."""
        return self._supervisor.carry_out(request["command"])

    def on_say(self, request: Json, bundle: bytes) -> Json:
        """Ignore what is said to a program that has ended."""
        return {"heard": False}

    on_listen = on_expire = on_ping = on_say

    def on_close(self, request: Json, bundle: bytes) -> Json:
        """End the session."""
        return {"broken": "it was closed"} if self._supervisor.stop() else {"remains": True}

    def _obey_meanwhile(self) -> None:
        """Take part in what is said while a program runs, and end the session if the host asks for it."""
        self._obey(self._talk)

    def _obey(self, talk: Talk | None) -> None:
        accepted = self._accept()
        if accepted is None:
            return
        connection, request, body = accepted
        answer = partial(self._answer, connection, request["number"])
        if request["op"] == "close":
            answer(self.on_close(request, b""))
            self._supervisor.break_off("it was closed")
        elif talk and request.get("run") == talk.run:
            self._converse(talk, request, body, answer)
        else:  # It is about a run that has ended, or asks whether anybody is there.
            answer({"heard": False})

    def _converse(self, talk: Talk, request: Json, body: bytes, answer: Answer) -> None:
        if request["op"] == "listen":
            talk.listen(answer, request["wait"])
        elif request["op"] == "say":
            answer(self._hear(talk, request, body))
        else:
            if request["op"] == "expire":
                talk.expired_at = talk.expired_at or time.monotonic()
            answer({"heard": True})

    def _hear(self, talk: Talk, request: Json, body: bytes) -> Json:
        try:
            data = self._bundle(request, body)
        except (OSError, ValueError):
            return {"incomplete": True}
        if not talk.has_room:
            return {"heard": False, "is_full": True}
        talk.hear(request["channel"], data, is_end=request["is_end"])
        return {"heard": True}


def receive_all(connection: socket.socket) -> bytes:
    """Return all that a client sends in its time, however it is divided.

    Raises:
        OSError, ValueError: It took longer, or sent too much.
    """
    data, deadline = bytearray(), time.monotonic() + CLIENT_TIMEOUT_S
    while True:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        if not (chunk := connection.recv(READ_BYTES)):
            break
        data += chunk
        if len(data) > MAX_REQUEST_BYTES:
            raise ValueError("it is too long")
    return bytes(data)
