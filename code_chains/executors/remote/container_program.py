"""The supervisor inside a third-party container: runs a program as its child, enforces limits and reports how it ended.

It is copied into the container with the modules that run a program, and a request as JSON; it needs the
standard library alone. It reads what the child prints, up to the limit, and reports as one line of JSON.
Invariant: that line carries a token that is read and removed before the child may start, so that a program
cannot forge the report.

Usage: python3 container_program.py (the request is next to it)
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import fcntl
import io
import json
import os
import resource
import selectors
import signal
import site
import sys
import time
from typing import Any, NoReturn

Json = dict[str, Any]
CHECK_INTERVAL_S = 0.02
CHECKS_PER_DISK_CHECK = 10
KILL_TIMEOUT_S, KILL_RETRY_INTERVAL_S = 2.0, 0.001
MAX_REPORT_BYTES = 2 << 20
"""Bytes of a program's frame besides its views, and more than these, so that a frame that is too long is seen as such."""
READ_BYTES = 1 << 16
STORM_RATIO = 4
"""With so many times the allowed processes, there is no time to check which of them are zombies."""
FIRST_PRIVATE_DESCRIPTOR = 200
NICENESS = 19
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36


def main() -> None:
    """Run the program of the request and print a report."""
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.flags.isolated:
        sys.path.insert(0, here)
    with open(os.path.join(here, "request.json"), encoding="utf-8") as file:
        request: Json = json.load(file)
    from inside.collection import files_below, made_files  # It is copied next to this file.
    from inside.reports import as_line

    os.makedirs(request["workdir"], exist_ok=True)
    os.chdir(request["workdir"])
    inputs = set(files_below("."))
    for name in inputs:
        os.chmod(name, 0o444)
    is_shared = request.get("is_shared", False)

    def is_input(name: str, status: os.stat_result) -> bool:
        return name in inputs and not status.st_mode & 0o222

    others = None if is_shared else processes() | {os.getpid()}
    set_option(PR_SET_CHILD_SUBREAPER, 1)
    set_option(PR_SET_DUMPABLE, 0)  # The program runs as the same user and must not inspect this process.
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
    supervisor = Supervisor(request["limits"], child, others, [read for read, _ in pipes], here)
    report = supervisor.run() | {"seconds": time.monotonic() - started, "token": token}
    report["files"] = list(made_files(".", is_input, request["limits"]["views"]))
    line = as_line(report, os.path.dirname(here)) if is_shared else json.dumps(report)
    sys.stdout.write(f"\n{line}\n")


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
        others: Pids that do not belong to the run; None where others run processes at the same time: then those that
            descend from this one belong to it.
        pipes: Descriptors of the program's result, output and errors.
        folder: Where the request is; once that is removed, the run is stopped.
    """

    child: int
    folder: str
    limits: Json
    others: set[int] | None

    def __init__(
        self, limits: Json, child: int, others: set[int] | None, pipes: list[int], folder: str
    ) -> None:
        self.limits, self.child, self.others, self.folder = limits, child, others, folder
        self.buffers: dict[int, bytearray] = {pipe: bytearray() for pipe in pipes}
        self.result_pipe: int = pipes[0]
        self.reason: str | None = None
        self.last_disk_check: float = 0.0
        self.selector: selectors.BaseSelector = selectors.DefaultSelector()
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
                stopped = None if os.path.isdir(self.folder) else "stopped"
                timeout = "timeout" if time.monotonic() >= deadline else stopped
                self.reason = self.reason or self.exceeded_limit() or timeout
                if self.reason:
                    os.kill(self.child, signal.SIGKILL)
                    self.kill_all()
        self.kill_all()
        while self.selector.get_map() and self.read(0):
            pass  # What was still in the pipes.
        result, *streams = map(bytes, self.buffers.values())
        out, err = (text.decode(errors="replace") for text in streams)
        return {
            "exit": code,
            "reason": self.reason,
            "peak": peak,
            "result": base64.b64encode(result).decode(),
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
                max_bytes += MAX_REPORT_BYTES + self.limits["views"]
            buffer += data[: max_bytes - len(buffer)]
            if not data:
                self.selector.unregister(key.fd)
            elif len(buffer) >= max_bytes:
                self.reason = self.reason or "output"
        return bool(ready) and self.reason != "output"

    def exceeded_limit(self) -> str | None:
        """Return the limit that the whole run exceeds, if any; disk is checked less often."""
        if self.others is not None:
            strangers = visible_pids() - self.others
            if len(strangers) > STORM_RATIO * self.limits["processes"]:
                return "processes"
        pids = self.own_processes()
        if len(pids) > self.limits["processes"]:
            return "processes"
        if sum(map(resident, pids)) > self.limits["memory"]:
            return "memory"
        if time.monotonic() - self.last_disk_check < CHECKS_PER_DISK_CHECK * CHECK_INTERVAL_S:
            return None
        from inside.collection import disk_usage

        size, count = disk_usage(self.limits["folders"])
        self.last_disk_check = time.monotonic()
        if count > self.limits["files"]:
            return "files"
        return "disk" if size > self.limits["disk"] else None

    def own_processes(self) -> set[int]:
        """Return the pids of the run's processes that have not ended."""
        return descendants() if self.others is None else processes() - self.others

    def kill_all(self) -> None:
        """Kill everything that the run started. Processes that are not visible end with the container."""
        deadline = time.monotonic() + KILL_TIMEOUT_S
        while (pids := self.own_processes()) and time.monotonic() < deadline:
            is_alone = self.others is not None and self.others <= {1, os.getpid()}
            for pid in [-1] if is_alone else pids:  # -1 is atomic: all except the first process and this one.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(KILL_RETRY_INTERVAL_S)


def processes() -> set[int]:
    """Return the pids of all visible processes that are no zombies."""
    return {pid for pid in visible_pids() if resident(pid) >= 0}


def descendants() -> set[int]:
    """Return the pids of this process's descendants that have not ended; as it adopts orphans, none gets lost."""
    parents = {pid: parent(pid) for pid in processes()}
    found, generation = set[int](), {os.getpid()}
    while generation:
        generation = {pid for pid, ppid in parents.items() if ppid in generation} - found
        found |= generation
    return found


def parent(pid: int) -> int:
    """Return the parent of a process; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


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


def run_program(request: Json, result: int, out: int, err: int) -> NoReturn:
    """Become the program's process: own session, limits and output; run the program and report how it ended."""
    from inside.cell import hide, new_main, own_modules, run  # It is copied next to this file.
    from inside.wire import outcome_frame

    set_option(PR_SET_DUMPABLE, 1)
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
    if sys.flags.isolated:  # What it leaves out is for programs, not for the supervisor.
        sys.path.append(site.getusersitepackages())
    hide(own_modules())
    names = new_main()
    names |= request["variables"]
    views = {"max_view_bytes": request["limits"]["views"], "return_value": request.get("return_value", False)}
    outcome = run(request["code"], names, **views)
    data = memoryview(outcome_frame(outcome))
    while data:
        data = data[os.write(result, data) :]
    os._exit(0)


def set_option(option: int, value: int) -> None:
    """Set an option of this process with `prctl`."""
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


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
