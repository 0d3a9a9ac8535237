"""The program inside the box: the standard library alone, and sandlock for Landlock where it can be imported.

It is started as the first process of the box and stays outside the program's reach: it reads the request, forks a child,
and watches the child's clock, memory, processes and files. The child locks itself in, proves it with a probe, tells the
host what the probe found, and only then runs the program. How the run ended is told by the watcher alone; what the child
says after the program began is data from a stranger.

Usage: worker.py CONTROL STATUS RESULT STDOUT STDERR REQUEST (numbers of open descriptors).
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import io
import json
import os
import platform
import resource
import select
import signal
import socket
import struct
import sys
import time
import types
from collections.abc import Callable
from typing import Any, NoReturn

Json = dict[str, Any]
Confine = Callable[[list[str]], bool]

TICK = 0.02
encode = json.JSONEncoder().encode  # Bound before any program can replace it.
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 4, 36, 38, 22
REASONABLE_REPR = 100_000


def main(argv: list[str]) -> None:
    control, status, result, out, err, described = map(int, argv)
    with os.fdopen(described, encoding="utf-8") as file:
        file.seek(0)
        request: Json = json.load(file)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    if request["uid"]:
        os.setgroups([])
        os.setresgid(request["uid"], request["uid"], request["uid"])
        os.setresuid(request["uid"], request["uid"], request["uid"])
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # A change of user clears it.
    prctl(PR_SET_DUMPABLE, 0)  # No one of the same user may look into the watcher.
    os.chdir(request["workdir"])
    place_files(request["files"])
    confine = load_landlock() if request["confine"] else None
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            be_the_program(request, result, out, err, confine)
        finally:
            os._exit(70)  # Whatever happens: never fall through into the watcher's code.
    for descriptor in (result, out, err):
        os.close(descriptor)
    ending = watch(child, control, request, began)
    kill_tree(child)
    send(status, ending)


# -- the watcher -----------------------------------------------------------------------------------------------------------


def watch(child: int, control: int, request: Json, began: float) -> Json:
    """Wait until the child ends or breaks a limit; returns how it ended."""
    limits: Json = request["limits"]
    reason: str | None = None
    poll = select.poll()
    poll.register(control, select.POLLIN | select.POLLHUP)
    with contextlib.suppress(AttributeError, OSError):
        poll.register(os.pidfd_open(child), select.POLLIN)
    code = usage = None
    while code is None or usage is None:
        left = began + limits["seconds"] - time.monotonic()
        ready = poll.poll(max(0, min(TICK, left)) * 1000)
        if any(descriptor == control for descriptor, _ in ready):
            kill_tree(child)  # The host is gone, or wants the run to end.
            os._exit(1)
        code, usage = reap(child)
        if code is None:
            reason = reason or ("timeout" if left <= 0 else over_limit(child, limits))
            if reason:
                os.kill(child, signal.SIGKILL)
    seconds = time.monotonic() - began
    killed = -code if code < 0 else None
    return {"exit": code, "signal": killed, "reason": reason, "seconds": seconds, "peak": usage.ru_maxrss * 1024}


def reap(child: int) -> tuple[int | None, resource.struct_rusage | None]:
    """Collect every process that ended; the child's exit code and usage once it is among them."""
    code = usage = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, raw, used = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code, usage = os.waitstatus_to_exitcode(raw), used
    return code, usage


def over_limit(child: int, limits: Json) -> str | None:
    pids = tree(child)
    if len(pids) > limits["processes"]:
        return "processes"
    if sum(map(resident, pids)) > limits["memory"] and sum(map(proportional, pids)) > limits["memory"]:
        return "memory"
    if sum(map(mapped, pids)) > limits["memory"] and sum(map(shared, pids)) > limits["memory"]:
        return "memory"
    if limits["places"] and sum(map(files_in, limits["places"])) > limits["files"]:
        return "files"
    return None


def tree(child: int) -> list[int]:
    """Processes of the run: all others in a box of its own, the watcher's descendants elsewhere."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return [child]
    if os.getpid() == 1:
        return [pid for pid in pids if pid != 1]
    parents = {pid: parent(pid) for pid in pids}
    found: set[int] = set()
    fresh = {os.getpid()}
    while fresh:
        fresh = {pid for pid, above in parents.items() if above in fresh} - found
        found |= fresh
    return sorted(found)


def parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def resident(pid: int) -> int:
    """Resident bytes that are not read from files."""
    return status(pid, (b"RssAnon:", b"RssShmem:"))


def mapped(pid: int) -> int:
    """Bytes of address space."""
    return status(pid, (b"VmSize:",))


def status(pid: int, names: tuple[bytes, ...]) -> int:
    """A sum of lines of a process's status; of another thread's where the first one has ended alone."""
    found = field(f"/proc/{pid}/status", names)
    if found or not os.path.isdir(f"/proc/{pid}/task"):
        return found
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return 0
    return max((field(f"/proc/{pid}/task/{thread}/status", names) for thread in threads[:8]), default=0)


def shared(pid: int) -> int:
    """Bytes of shared memory without a file. They stay in use when a process forgets the pages, so their size counts."""
    total = 0
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            for line in file:
                if line.rstrip().endswith(b"/dev/zero (deleted)"):
                    low, _, high = line.split()[0].partition(b"-")
                    total += int(high, 16) - int(low, 16)
    except (OSError, ValueError):
        return total
    return total


def proportional(pid: int) -> int:
    """Resident bytes with shared pages divided among those who share them."""
    return field(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")) or resident(pid)


def field(path: str, names: tuple[bytes, ...]) -> int:
    try:
        with open(path, "rb") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(names))
    except (OSError, ValueError):
        return 0


def files_in(place: str) -> int:
    try:
        found = os.statvfs(place)
    except OSError:
        return 0
    return found.f_files - found.f_ffree


def kill_tree(child: int) -> None:
    """Kill everything the run started and wait until it is gone."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if os.getpid() == 1:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(-1, signal.SIGKILL)
        else:
            for pid in tree(child):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            if os.getpid() == 1 or not tree(child):
                return
        time.sleep(0.001)


def place_files(files: list[tuple[int, str]]) -> None:
    """Copy each file from its descriptor into the working directory, read-only."""
    for descriptor, name in files:
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with os.fdopen(descriptor, "rb") as source, open(name, "wb") as target:
            while chunk := source.read(1 << 20):
                target.write(chunk)
        os.chmod(name, 0o444)


# -- the child: lock in, prove it, run ------------------------------------------------------------------------------------


def be_the_program(request: Json, result: int, out: int, err: int, confine: Confine | None) -> NoReturn:
    log = 2
    try:
        result, log = move_up(result), move_up(os.dup(2))
        found = prepare(request, result, log, out, err, confine)
    except BaseException as error:
        os.write(log, f"{type(error).__name__}: {error}\n".encode())
        os._exit(70)
    os.close(log)
    if any(name not in found["layers"] and not found["probe"].get(name) for name in request["require"]):
        os._exit(0)
    ending = run(request["code"], request["variables"])
    send(result, ending)
    os._exit(0)


def prepare(request: Json, result: int, log: int, out: int, err: int, confine: Confine | None) -> Json:
    """Lock this process in and tell the host what a probe finds then."""
    os.setsid()
    prctl(PR_SET_DUMPABLE, 1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for source, target in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    low, high = sorted((result, log))
    os.closerange(3, low)
    os.closerange(low + 1, high)
    os.closerange(high + 1, 1 << 16)
    os.environ.clear()
    os.environ.update(request["environment"])
    layers = lock_in(request, confine)
    found = {"probe": probe(request["probe"]), "layers": layers}
    send(result, found)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # What was printed survives a kill.
    sys.path.insert(0, "")
    return found


def move_up(descriptor: int) -> int:
    """Move a descriptor to a number that no program reaches by counting from 3."""
    import fcntl

    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 200)
    os.close(descriptor)
    return moved


def send(descriptor: int, frame: Json) -> None:
    data = memoryview(encode(frame).encode() + b"\n")
    while data:
        data = data[os.write(descriptor, data) :]


def lock_in(request: Json, confine: Confine | None) -> list[str]:
    """Put the kernel's limits on this process; returns the names of the layers in force."""
    limits, layers = request["limits"], list(request["layers"])
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits["disk"]),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_NPROC, limits["processes"] + 2 if request["confine"] else None),
        (resource.RLIMIT_DATA, limits["memory"] + own_data()),
        (resource.RLIMIT_AS, limits["memory"] + (2 << 30)),
        (resource.RLIMIT_CPU, int(limits["seconds"] * limits["processes"]) + 2),
    ):
        if value is not None:
            hard = resource.getrlimit(kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))
    layers.append("rlimits")
    if request["confine"]:
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        if confine and confine(request["writable"]):
            layers.append("landlock")
        if filter_calls():
            layers.append("seccomp")
    return layers


def own_data() -> int:
    """Bytes of data this process had before the program began."""
    return field("/proc/self/status", (b"VmData:",))


def load_landlock() -> Confine | None:
    """Sandlock's Landlock for the calling process, or None where it or the kernel lacks it."""
    try:
        import sandlock

        sandlock.landlock_abi_version()
    except Exception:
        return None

    def confine(writable: list[str]) -> bool:
        places = [place for place in writable if os.path.exists(place)]
        try:
            sandlock.confine(sandlock.Sandbox(fs_readable=["/"], fs_writable=places))
        except Exception:
            return False
        return True

    return confine


def probe(canaries: Json) -> dict[str, bool]:
    """Try to get out, the plain way; True is what was found closed."""
    return {
        "filesystem": not can(lambda: open(canaries["file"]).close())
        and not can(lambda: os.close(os.open(canaries["file"] + ".made", os.O_CREAT | os.O_WRONLY))),
        "network": not can(lambda: socket.create_connection(("127.0.0.1", canaries["port"]), 0.5).close()),
        "processes": not can(lambda: os.kill(canaries["pid"], 0)) or alone(),
        "environment": set(os.environ) <= set(canaries["environment"]) and not inherited(canaries),
    }


def can(action: Callable[[], object]) -> bool:
    try:
        action()
    except OSError:
        return False
    return True


def alone() -> bool:
    """Whether every process that can be seen is the watcher or this one."""
    seen = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    return os.getppid() == 1 and seen <= {1, os.getpid()}


def inherited(canaries: Json) -> bool:
    """Whether the environment this process was started with holds anything of the host's."""
    try:
        with open("/proc/self/environ", "rb") as file:
            names = {entry.partition(b"=")[0].decode() for entry in file.read().split(b"\0") if entry}
    except OSError:
        return False
    return not names <= set(canaries["environment"])


# -- the system-call filter -------------------------------------------------------------------------------------------------

# Numbers on x86_64 and aarch64; None where the call does not exist.
DENIED: dict[str, tuple[int, int | None]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "pidfd_getfd": (438, 438), "personality": (135, 92),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "uselib": (134, None),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "syslog": (103, 116), "vhangup": (153, 58), "sethostname": (170, 161), "setdomainname": (171, 162),
    "fanotify_init": (300, 262), "move_pages": (279, 239), "migrate_pages": (256, 238), "process_madvise": (440, 440),
    "lookup_dcookie": (212, 18), "nfsservctl": (180, 42),
    # Memory that belongs to no process and that no limit of one counts.
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186),
}  # fmt: skip
# Calls that may name another process, with the argument that must be 0, "myself": the watcher is of the same user.
ON_ITSELF = {
    "prlimit64": (302, 261, 0), "sched_setscheduler": (144, 119, 0), "sched_setparam": (142, 118, 0),
    "sched_setattr": (314, 274, 0), "sched_setaffinity": (203, 122, 0), "setpriority": (141, 140, 1),
    "ioprio_set": (251, 30, 1),
}  # fmt: skip
# Options that are refused: buffers beyond the usual, and hiding one's memory from the watcher. (call, argument, values)
OPTIONS = {"setsockopt": (54, 208, 2, (7, 8, 32, 33)), "prctl": (157, 167, 0, (PR_SET_DUMPABLE,))}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
CLONE, CLONE3, SOCKET = (56, 220), (435, 435), (41, 198)
NEW_NAMESPACES = 0x7E020000
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06


def filter_program(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter as classic BPF instructions `(code, jump if true, jump if false, value)`."""
    column, arch = MACHINES[machine]
    program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, arch), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    if machine == "x86_64":
        program += [(AT_LEAST, 0, 1, 0x40000000), (RETURN, 0, 0, KILL)]  # The x32 numbers would slip past the list.
    for number in (numbers[column] for numbers in DENIED.values()):
        if number is not None:
            program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, EPERM)]
    for *numbers, argument in ON_ITSELF.values():
        program += [(EQUAL, 0, 4, numbers[column]), (LOAD, 0, 0, 16 + 8 * argument)]
        program += [(EQUAL, 1, 0, 0), (RETURN, 0, 0, EPERM), (RETURN, 0, 0, ALLOW)]
    for x86, arm, argument, values in OPTIONS.values():
        tests = [test for value in values for test in ((EQUAL, 0, 1, value), (RETURN, 0, 0, EPERM))]
        program += [(EQUAL, 0, 2 + len(tests), (x86, arm)[column]), (LOAD, 0, 0, 16 + 8 * argument)]
        program += [*tests, (RETURN, 0, 0, ALLOW)]
    program += [(EQUAL, 0, 1, CLONE3[column]), (RETURN, 0, 0, ENOSYS)]  # Its flags are behind a pointer; clone follows.
    program += [(EQUAL, 0, 4, CLONE[column]), (LOAD, 0, 0, 16)]
    program += [(ANY_BIT, 0, 1, NEW_NAMESPACES), (RETURN, 0, 0, EPERM), (RETURN, 0, 0, ALLOW)]
    program += [(EQUAL, 0, 4, SOCKET[column]), (LOAD, 0, 0, 16)]
    program += [(EQUAL, 1, 0, socket.AF_UNIX), (RETURN, 0, 0, EPERM), (RETURN, 0, 0, ALLOW)]
    return [*program, (RETURN, 0, 0, ALLOW)]


def filter_calls() -> bool:
    """Install the filter; False where this machine is not known."""
    if platform.machine() not in MACHINES or sys.maxsize < 2**32:
        return False
    program = filter_program(platform.machine())
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(packed))
    return prctl(PR_SET_SECCOMP, 2, ctypes.create_string_buffer(header)) == 0


def prctl(option: int, *values: Any) -> int:
    """Linux's prctl; -1 elsewhere."""
    if not sys.platform.startswith("linux"):
        return -1
    arguments = [value if isinstance(value, ctypes.Array) else ctypes.c_ulong(value) for value in values]
    arguments += [ctypes.c_ulong(0)] * (4 - len(arguments))
    return int(ctypes.CDLL(None, use_errno=True).prctl(option, *arguments))


# -- running the program --------------------------------------------------------------------------------------------------


def run(code: str, variables: Json) -> Json:
    """Run the program as `__main__`; returns its ending with the value a notebook would show."""
    import linecache

    lines = [line + "\n" for line in code.split("\n")]
    linecache.cache["<code>"] = (len(code), None, lines, "<code>")
    module = types.ModuleType("__main__")
    module.__dict__.update(variables)
    sys.modules["__main__"] = module
    names = module.__dict__
    try:
        value = execute(code, names)
        finish_threads()
        result = show(value) if value is not None else show_named(names, variables)
        ending: Json = {"status": "ok", "result": result, "error": None}
    except SystemExit as error:
        ending = {"status": "ok", "result": None, "error": None}
        if error.code not in (None, 0):
            ending = {"status": "error", "result": None, "error": describe(error)}
    except MemoryError as error:
        ending = {"status": "memory", "result": None, "error": describe(error)}
    except BaseException as error:
        ending = {"status": "error", "result": None, "error": describe(error)}
    flush()
    return ending


def execute(code: str, names: Json) -> Any:
    """Run all statements; the value of the last one if it is an expression."""
    tree = ast.parse(code, "<code>")
    last = tree.body[-1] if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    tree.body = tree.body[:-1] if last else tree.body
    value = step(compile(tree, "<code>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True), names)
    if isinstance(last, ast.Expr):
        value = step(compile(ast.Expression(last.value), "<code>", "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True), names)
    return value


def step(compiled: types.CodeType, names: Json) -> Any:
    import inspect

    value = eval(compiled, names)  # noqa: S307 - this is what the box is for
    if compiled.co_flags & inspect.CO_COROUTINE:
        import asyncio

        async def wait() -> Any:
            return await value

        value = asyncio.run(wait())
    return value


def show_named(names: Json, variables: Json) -> str | None:
    value = names.get("result")
    return None if value is None or "result" in variables else show(value)


def show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= REASONABLE_REPR else text[:REASONABLE_REPR] + "…"


def finish_threads() -> None:
    """What an ordinary script does at its end: wait for threads, then call exit handlers."""
    import atexit
    import threading

    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()


def flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):
            stream.flush()  # type: ignore[union-attr]  # Whatever the program made of it.


def describe(error: BaseException) -> Json:
    """An exception as JSON: frames of the program alone, and the names of the frame that failed."""
    import traceback

    frames: list[types.TracebackType] = []
    trace = error.__traceback__
    while trace:
        frames.append(trace)
        trace = trace.tb_next
    own = [number for number, frame in enumerate(frames) if frame.tb_frame.f_code.co_filename == "<code>"]
    shown = error.with_traceback(frames[own[0]] if own else None)
    line = frames[own[-1]].tb_lineno if own else getattr(error, "lineno", None)
    names = frames[own[-1]].tb_frame.f_locals if own else {}
    with contextlib.suppress(Exception):
        text = "".join(traceback.format_exception(type(shown), shown, shown.__traceback__, limit=-8))
        return pack(error, line, text, names)
    return {"type": type(error).__name__, "message": "", "line": line, "traceback": "", "locals": {}}


def pack(error: BaseException, line: int | None, text: str, names: Json) -> Json:
    message = "\n".join(str(error).splitlines()[:20])[:2000]
    text = text if len(text) <= 6000 else text[:2000] + "\n…\n" + text[-4000:]
    return {
        "type": type(error).__name__,
        "message": message,
        "line": line if isinstance(line, int) else None,
        "traceback": text,
        "locals": short_locals(names),
    }


def short_locals(names: Json) -> dict[str, str]:
    import reprlib

    plain = types.ModuleType | types.FunctionType | types.BuiltinFunctionType | type
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = 100
    found: dict[str, str] = {}
    for name, value in list(names.items()):
        if not name.startswith("_") and not isinstance(value, plain) and len(found) < 12:
            with contextlib.suppress(Exception):
                found[name] = " ".join(brief.repr(value).split())[:200]
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
