"""The program inside a container of others: runs a program as its child, watches it and tells how it ended.

It is copied into the container with the module that runs a program, and a request as JSON; the standard library is all
it needs. What the child prints is read here, up to the limit; the ending is one line of JSON. That line carries a token
which is read and removed before the child may begin, so that a program cannot speak in this process's name.

Usage: python3 contained.py (the request is next to it)
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import io
import json
import os
import resource
import selectors
import signal
import sys
import time
from typing import Any, NoReturn

Json = dict[str, Any]
TICK = 0.02


def main() -> None:
    """Run the program of the request and print its ending."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "request.json"), encoding="utf-8") as file:
        request: Json = json.load(file)
    os.makedirs(request["workdir"], exist_ok=True)
    os.chdir(request["workdir"])
    for folder, _, names in os.walk("."):
        for name in names:
            os.chmod(os.path.join(folder, name), 0o444)
    before = processes()
    dumpable(0)  # The program is of the same user: it must not look into this process.
    *pipes, go = [os.pipe() for _ in range(4)]
    child = os.fork()
    if child == 0:
        try:
            os.close(go[1])
            os.read(go[0], 1)
            be_the_program(request, *(write for _, write in pipes))
        finally:
            os._exit(70)
    token = take(os.path.join(here, "token"))
    began = time.monotonic()
    for descriptor in (go[0], go[1], *(write for _, write in pipes)):
        os.close(descriptor)
    ending = Watch(request["limits"], child, before | {os.getpid()}, [read for read, _ in pipes]).until_the_end()
    told = ending | {"seconds": time.monotonic() - began, "token": token}
    sys.stdout.write("\n" + json.dumps(told, ensure_ascii=False) + "\n")


def take(path: str) -> str:
    """Read a file that no one reads again."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    os.remove(path)
    return text


class Watch:
    """Reads what the child says, and ends it when a limit is broken."""

    def __init__(self, limits: Json, child: int, others: set[int], pipes: list[int]) -> None:
        self.limits, self.child, self.others = limits, child, others
        self.kept = {pipe: bytearray() for pipe in pipes}
        self.reason: str | None = None
        self.looked = 0.0
        self.selector = selectors.DefaultSelector()
        for pipe in pipes:
            self.selector.register(pipe, selectors.EVENT_READ)

    def until_the_end(self) -> Json:
        """Wait until the child ends or breaks a limit; how it ended and what it said."""
        deadline = time.monotonic() + self.limits["seconds"]
        code, peak = None, 0
        while code is None:
            self.read(min(TICK, max(0.0, deadline - time.monotonic())))
            pid, raw, usage = os.wait4(self.child, os.WNOHANG)
            if pid:
                code, peak = os.waitstatus_to_exitcode(raw), usage.ru_maxrss * 1024
            else:
                late = "timeout" if time.monotonic() >= deadline else None
                self.reason = self.reason or self.over_limit() or late
                if self.reason:
                    os.kill(self.child, signal.SIGKILL)
                    self.end_all()
        self.end_all()
        while self.selector.get_map() and self.read(0):
            pass  # What was still in the pipes.
        result, out, err = (bytes(kept).decode(errors="replace") for kept in self.kept.values())
        return {"exit": code, "reason": self.reason, "peak": peak, "result": result, "stdout": out, "stderr": err}

    def read(self, seconds: float) -> bool:
        """Keep what there is, up to the limit; whether there was anything."""
        ready = self.selector.select(seconds)
        for key, _ in ready:
            data, kept = os.read(key.fd, 1 << 16), self.kept[key.fd]
            most = self.limits["output"] + (1 << 20 if key.fd == next(iter(self.kept)) else 0)
            kept += data[: most - len(kept)]
            if not data:
                self.selector.unregister(key.fd)
            elif len(kept) >= most:
                self.reason = self.reason or "output"
        return bool(ready) and self.reason != "output"

    def over_limit(self) -> str | None:
        """The limit that the whole run has broken; what it wrote is looked at less often."""
        if len(numbers() - self.others) > 4 * self.limits["processes"]:
            return "processes"  # A storm: there is no time to ask which of them have ended.
        pids = processes() - self.others
        if len(pids) > self.limits["processes"]:
            return "processes"
        if sum(map(resident, pids)) > self.limits["memory"]:
            return "memory"
        if time.monotonic() - self.looked < 10 * TICK:
            return None
        size, count = written(self.limits["places"])
        self.looked = time.monotonic()
        if count > self.limits["files"]:
            return "files"
        return "disk" if size > self.limits["disk"] else None

    def end_all(self) -> None:
        """Kill everything the run started. Who cannot be seen ends with the container."""
        deadline = time.monotonic() + 2
        while (pids := processes() - self.others) and time.monotonic() < deadline:
            alone = self.others <= {1, os.getpid()}
            for pid in [-1] if alone else pids:  # -1 is all but the first process and this one, at a stroke.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)


def processes() -> set[int]:
    """Every process that can be seen and is no zombie."""
    return {pid for pid in numbers() if resident(pid) >= 0}


def numbers() -> set[int]:
    """Every process that can be seen."""
    try:
        return {int(name) for name in os.listdir("/proc") if name.isdigit()}
    except OSError:
        return set()


def resident(pid: int) -> int:
    """Resident bytes that are not read from files; -1 for a process that has ended."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = dict(line.split(b":", 1) for line in file if b":" in line)
    except (OSError, ValueError):
        return -1
    if lines.get(b"State", b"").split()[:1] in ([b"Z"], [b"X"]):
        return -1
    return sum(int(lines[name].split()[0]) * 1024 for name in (b"RssAnon", b"RssShmem") if name in lines)


def written(places: list[str]) -> tuple[int, int]:
    """Bytes and files below some folders."""
    size = count = 0
    for place in places:
        for folder, _, names in os.walk(place):
            count += len(names) + 1
            for name in names:
                with contextlib.suppress(OSError):
                    size += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return size, count


def be_the_program(request: Json, result: int, out: int, err: int) -> NoReturn:
    """Become the program: own session, limits, its own output; then say how it ended."""
    from inside.cell import fresh, hide, own_modules, run  # It is copied next to this file.

    dumpable(1)
    os.nice(19)  # However many it starts, the watcher gets its turn.
    os.setsid()
    result = fcntl.fcntl(result, fcntl.F_DUPFD_CLOEXEC, 200)
    for source, target in ((os.open(os.devnull, os.O_RDWR), 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    os.closerange(3, 200)
    limit(request["limits"])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # What was printed survives a kill.
    sys.path[0] = ""
    hide(own_modules())
    encode = json.JSONEncoder().encode  # Bound before the program can replace it.
    names = fresh()
    names |= request["variables"]
    data = memoryview(encode(run(request["code"], names)).encode() + b"\n")
    while data:
        data = data[os.write(result, data) :]
    os._exit(0)


def dumpable(value: int) -> None:
    """Whether processes of the same user may look into this one."""
    ctypes.CDLL(None).prctl(4, value, 0, 0, 0)


def limit(limits: Json) -> None:
    """Put the kernel's limits on this process."""
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits["disk"]),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_DATA, limits["memory"]),
        (resource.RLIMIT_CPU, int(limits["seconds"] * limits["processes"]) + 2),
    ):
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


if __name__ == "__main__":
    main()
