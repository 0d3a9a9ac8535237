"""The supervisor inside a third-party container: runs a program as its child, enforces limits and reports how it ended.

It is copied into the container with the modules that run a program, and a request as JSON; it needs the
standard library alone. It reads what the child prints, up to the limit, and reports as one line of JSON.
Invariant: that line carries a token that is read and removed before the child may start, so that a program
cannot forge the report.

Usage: python3 container_program.py (the request is next to it)
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
CHECK_INTERVAL_S = 0.02
CHECKS_PER_DISK_CHECK = 10
KILL_TIMEOUT_S, KILL_RETRY_INTERVAL_S = 2.0, 0.001
MAX_RESULT_BYTES = 1 << 20
READ_BYTES = 1 << 16
BLOCK_BYTES = 512
STORM_RATIO = 4
"""With so many times the allowed processes, there is no time to check which of them are zombies."""
FIRST_PRIVATE_DESCRIPTOR = 200
NICENESS = 19
PR_SET_DUMPABLE = 4


def main() -> None:
    """Run the program of the request and print a report."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "request.json"), encoding="utf-8") as file:
        request: Json = json.load(file)
    os.makedirs(request["workdir"], exist_ok=True)
    os.chdir(request["workdir"])
    for folder, _, names in os.walk("."):
        for name in names:
            os.chmod(os.path.join(folder, name), 0o444)
    existing = processes()
    set_dumpable(0)  # The program runs as the same user and must not inspect this process.
    *pipes, start = [os.pipe() for _ in range(4)]
    child = os.fork()
    if child == 0:
        try:
            os.close(start[1])
            os.read(start[0], 1)
            run_program(request, *(write for _, write in pipes))
        finally:
            os._exit(70)
    token = take(os.path.join(here, "token"))
    started = time.monotonic()
    for descriptor in (*start, *(write for _, write in pipes)):
        os.close(descriptor)
    supervisor = Supervisor(request["limits"], child, existing | {os.getpid()}, [read for read, _ in pipes])
    report = supervisor.run() | {"seconds": time.monotonic() - started, "token": token}
    sys.stdout.write("\n" + json.dumps(report, ensure_ascii=False) + "\n")


def take(path: str) -> str:
    """Read a file and remove it."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    os.remove(path)
    return text


class Supervisor:
    """Reads what the child prints, and ends it when it exceeds a limit.

    Args:
        limits: The limits.
        child: Pid of the program's process.
        others: Pids that do not belong to the run.
        pipes: Descriptors of the program's result, output and errors.
    """

    def __init__(self, limits: Json, child: int, others: set[int], pipes: list[int]) -> None:
        self.limits, self.child, self.others = limits, child, others
        self.buffers = {pipe: bytearray() for pipe in pipes}
        self.result_pipe = pipes[0]
        self.reason: str | None = None
        self.last_disk_check = 0.0
        self.selector = selectors.DefaultSelector()
        for pipe in pipes:
            self.selector.register(pipe, selectors.EVENT_READ)

    def run(self) -> Json:
        """Wait until the child ends or exceeds a limit; return how it ended and what it printed."""
        deadline = time.monotonic() + self.limits["seconds"]
        code, peak = None, 0
        while code is None:
            self.read(min(CHECK_INTERVAL_S, max(0.0, deadline - time.monotonic())))
            pid, raw, usage = os.wait4(self.child, os.WNOHANG)
            if pid:
                code, peak = os.waitstatus_to_exitcode(raw), usage.ru_maxrss * 1024
            else:
                timeout = "timeout" if time.monotonic() >= deadline else None
                self.reason = self.reason or self.exceeded_limit() or timeout
                if self.reason:
                    os.kill(self.child, signal.SIGKILL)
                    self.kill_all()
        self.kill_all()
        while self.selector.get_map() and self.read(0):
            pass  # What was still in the pipes.
        result, out, err = (bytes(buffer).decode(errors="replace") for buffer in self.buffers.values())
        return {
            "exit": code,
            "reason": self.reason,
            "peak": peak,
            "result": result,
            "stdout": out,
            "stderr": err,
        }

    def read(self, timeout: float) -> bool:
        """Read what has arrived, up to the limit; return whether there may be more."""
        ready = self.selector.select(timeout)
        for key, _ in ready:
            data, buffer = os.read(key.fd, READ_BYTES), self.buffers[key.fd]
            max_bytes = self.limits["output"]
            if key.fd == self.result_pipe:
                max_bytes += MAX_RESULT_BYTES
            buffer += data[: max_bytes - len(buffer)]
            if not data:
                self.selector.unregister(key.fd)
            elif len(buffer) >= max_bytes:
                self.reason = self.reason or "output"
        return bool(ready) and self.reason != "output"

    def exceeded_limit(self) -> str | None:
        """Return the limit that the whole run exceeds, if any; disk is checked less often."""
        if len(visible_pids() - self.others) > STORM_RATIO * self.limits["processes"]:
            return "processes"
        pids = processes() - self.others
        if len(pids) > self.limits["processes"]:
            return "processes"
        if sum(map(resident, pids)) > self.limits["memory"]:
            return "memory"
        if time.monotonic() - self.last_disk_check < CHECKS_PER_DISK_CHECK * CHECK_INTERVAL_S:
            return None
        size, count = disk_usage(self.limits["folders"])
        self.last_disk_check = time.monotonic()
        if count > self.limits["files"]:
            return "files"
        return "disk" if size > self.limits["disk"] else None

    def kill_all(self) -> None:
        """Kill everything that the run started. Processes that are not visible end with the container."""
        deadline = time.monotonic() + KILL_TIMEOUT_S
        while (pids := processes() - self.others) and time.monotonic() < deadline:
            is_alone = self.others <= {1, os.getpid()}
            for pid in [-1] if is_alone else pids:  # -1 is atomic: all except the first process and this one.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(KILL_RETRY_INTERVAL_S)


def processes() -> set[int]:
    """Return the pids of all visible processes that are no zombies."""
    return {pid for pid in visible_pids() if resident(pid) >= 0}


def visible_pids() -> set[int]:
    """Return the pids of all visible processes."""
    try:
        return {int(name) for name in os.listdir("/proc") if name.isdigit()}
    except OSError:
        return set()


def resident(pid: int) -> int:
    """Return resident bytes that are not read from files; -1 for a process that has ended."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            fields = dict(line.split(b":", 1) for line in file if b":" in line)
    except (OSError, ValueError):
        return -1
    if fields.get(b"State", b"").split()[:1] in ([b"Z"], [b"X"]):
        return -1
    return sum(int(fields[name].split()[0]) * 1024 for name in (b"RssAnon", b"RssShmem") if name in fields)


def disk_usage(folders: list[str]) -> tuple[int, int]:
    """Return bytes and number of files and folders below some folders."""
    size = count = 0
    for root in folders:
        for folder, _, names in os.walk(root):
            count += len(names) + 1
            for name in names:
                with contextlib.suppress(OSError):
                    size += os.lstat(os.path.join(folder, name)).st_blocks * BLOCK_BYTES
    return size, count


def run_program(request: Json, result: int, out: int, err: int) -> NoReturn:
    """Become the program's process: own session, limits and output; run the program and report how it ended."""
    from inside.cell import hide, new_main, own_modules, run  # It is copied next to this file.

    set_dumpable(1)
    os.nice(NICENESS)  # Many processes must not starve the supervisor.
    os.setsid()
    result = fcntl.fcntl(result, fcntl.F_DUPFD_CLOEXEC, FIRST_PRIVATE_DESCRIPTOR)
    for source, target in ((os.open(os.devnull, os.O_RDWR), 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    os.closerange(3, FIRST_PRIVATE_DESCRIPTOR)
    set_limits(request["limits"])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # What was printed survives a kill.
    sys.path[0] = ""
    hide(own_modules())
    encode = json.JSONEncoder().encode  # Invariant: bound before the program can replace it.
    names = new_main()
    names |= request["variables"]
    data = memoryview(encode(run(request["code"], names)).encode() + b"\n")
    while data:
        data = data[os.write(result, data) :]
    os._exit(0)


def set_dumpable(value: int) -> None:
    """Set whether processes of the same user may inspect this one."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, value, 0, 0, 0)


def set_limits(limits: Json) -> None:
    """Set the kernel's limits of this process."""
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
