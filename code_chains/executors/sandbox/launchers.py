"""Launch a worker inside a sandbox.

A launcher is a function from a `SandboxSpec` to the command that starts the worker. `bubblewrap` is used
where it is installed, namespaces of our own otherwise; `landlock` has no namespaces and must be accepted by
name, and so must `none`, a plain process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from code_chains.errors import ExecutorError, IsolationError
from code_chains.executors.guest.wire import SHORTAGES
from code_chains.executors.sandbox.interpreter import Interpreter, executable

PACKAGE_FOLDER = Path(__file__).parents[1]
WRITABLE_FOLDERS = ("/box", "/tmp", "/dev/shm")  # noqa: S108 - the sandbox's own
"""Where a program may write: its working directory, temporary files, shared memory."""
ZERO_BYTES = 1 << 20
CAP_SYS_ADMIN = 21
MODULES_FOLDER, CACHE_FOLDER, CANARY_FOLDER = "/run/code_chains", "/run/cache", "/run/canary"
SYSTEM_PATHS = tuple(
    (
        "/lib /lib32 /lib64 /usr/lib /usr/lib32 /usr/lib64 /usr/local/lib /etc/ld.so.cache /etc/ssl/openssl.cnf"
        " /usr/share/zoneinfo /etc/localtime /usr/share/fonts /etc/fonts"
    ).split()
)
COMMAND_PATHS = (
    *("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/libexec", "/usr/share"),
    "/etc/alternatives",
)
"""What commands of the machine consist of, besides shared libraries."""
SYSTEM_PREFIXES = {"/", "/usr", "/usr/local"}
CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SYS_ADMIN")
WASM_PYTHON = (3, 12)
"""The oldest Python that eryx has packages for."""
CHECK_TIMEOUT_S = 30.0
REFUSED = 77
"""Exit code of the check if the kernel refuses. Invariant: whatever else ends it, as an error of Python, is no finding."""
TRY_NAMESPACES = f"""
import os, sys
sys.path.insert(0, sys.argv[1])
try:
    import namespaces
    namespaces.unshare_all()
    namespaces.mount(None, "/", None, namespaces.MS_REC | namespaces.MS_PRIVATE)
    namespaces.mount("tmpfs", "/tmp", "tmpfs", 0)
    child = os.fork()
    if not child:
        namespaces.mount("proc", "/proc", "proc", 0)
        os._exit(0)
except OSError as error:
    os._exit(1 if error.errno in {SHORTAGES} else {REFUSED})
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
START_CODE = (
    "import sys; sys.path.insert(0, {!r}); from guest.sandbox.worker import main; sys.path.pop(0); main({})"
)


@dataclass
class SandboxSpec:
    """What a worker's sandbox consists of.

    Attributes:
        python: The interpreter that runs in it.
        control: Descriptor of the worker's socket to this process.
        as_root: Whether the host's user is root, so that the worker must become another user.
        hosts: Content of `/etc/hosts`.
        commands: Whether the commands of the machine are visible.
        canary: A folder of the probe's that is visible as well.
        descriptors: Descriptors for the launcher alone; closed once it has started.
    """

    python: Interpreter
    control: int
    as_root: bool
    hosts: str = "127.0.0.1 localhost\n"
    commands: bool = False
    canary: str = ""
    descriptors: list[int] = field(default_factory=list)

    @property
    def files(self) -> dict[str, str]:
        """Small files that many programs need."""
        return {
            "/etc/passwd": "sandbox:x:1000:1000::/box:/bin/false\n",
            "/etc/group": "sandbox:x:1000:\n",
            "/etc/hosts": self.hosts,
            "/etc/nsswitch.conf": "hosts: files\n",
        }

    @property
    def binds(self) -> tuple[tuple[str, str], ...]:
        """Paths of the host that are visible read-only, with their paths in the sandbox."""
        readable = readable_paths(self.python, commands=self.commands)
        own = [(str(PACKAGE_FOLDER / "guest"), f"{MODULES_FOLDER}/guest"), (self.canary, CANARY_FOLDER)]
        return (*readable, *own)

    def worker_command(self, home: str) -> list[str]:
        """Return the command that starts the worker, whose modules are in a package `guest` in `home`."""
        return [self.python.executable, "-s", "-P", "-B", "-c", START_CODE.format(home, self.control)]

    def pass_text(self, text: str) -> int:
        """Return a descriptor of an unnamed file with a text, for the launcher."""
        with tempfile.TemporaryFile() as file:
            file.write(text.encode())
            file.flush()
            self.descriptors.append(os.dup(file.fileno()))
        os.lseek(self.descriptors[-1], 0, os.SEEK_SET)
        return self.descriptors[-1]


Launcher = Callable[[SandboxSpec], list[str]]


@cache
def readable_paths(python: Interpreter, *, commands: bool = False) -> tuple[tuple[str, str], ...]:
    """Return what the sandbox sees of the host, read-only: the interpreter with its packages, and shared libraries.

    Args:
        python: The interpreter.
        commands: Whether it sees the commands of the machine as well.

    Returns:
        Pairs of a real path on the host and the path in the sandbox. Nothing of a home directory or of the
        current project is among them, except for the environment that Python itself runs from.
    """
    existing = dict.fromkeys(
        path
        for path in (*_parts(python), *_system_paths(commands=commands))
        if os.path.exists(path) and not os.path.islink(path)
    )
    targets = {path: os.path.realpath(path) for path in existing}
    targets |= {real: real for real in targets.values()}
    # A path below another one that is visible under its real name needs no bind of its own.
    unnested = [
        path
        for path in targets
        if not any(_is_below(path, other) and targets[other] == other for other in targets)
    ]
    return tuple((targets[path], path) for path in sorted(unnested))


def _system_paths(*, commands: bool) -> tuple[str, ...]:
    return (*SYSTEM_PATHS, *COMMAND_PATHS) if commands else SYSTEM_PATHS


def _parts(python: Interpreter) -> Iterator[str]:
    yield from (prefix for prefix in python.prefixes if prefix not in SYSTEM_PREFIXES)
    if SYSTEM_PREFIXES & set(python.prefixes):
        yield from python.paths
        yield os.path.realpath(python.executable)
    yield from (path for path in python.paths if Path(path).name in {"site-packages", "dist-packages"})


def _is_below(path: str, other: str) -> bool:
    return path != other and path.startswith(other.rstrip("/") + "/")


@cache
def links(python: Interpreter, *, commands: bool = False) -> tuple[tuple[str, str], ...]:
    """Return links of the host's root that programs rely on, such as `/lib -> usr/lib`."""
    pairs = [(os.readlink(path), path) for path in _system_paths(commands=commands) if os.path.islink(path)]
    path = python.executable
    while os.path.islink(path):  # A virtual environment's python leads to the system's through several links.
        if not any(_is_below(path, visible) for _, visible in readable_paths(python, commands=commands)):
            pairs.append((os.path.realpath(path), path))
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    return tuple(pairs)


def bubblewrap(spec: SandboxSpec) -> list[str]:
    """Use bubblewrap (`bwrap`), the small tool with which Flatpak isolates applications."""
    command = [
        "bwrap",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]
    command += ["--hostname", "sandbox", "--as-pid-1", "--new-session"]
    if spec.as_root:
        command += ["--cap-drop", "ALL"]
        for capability in CAPABILITIES:
            command += ["--cap-add", capability]
    else:
        command += ["--unshare-user", "--uid", "1000", "--gid", "1000"]
    parents = {str(parent) for _, target in spec.binds for parent in Path(target).parents}
    for folder in sorted({*parents, *WRITABLE_FOLDERS[:2], CACHE_FOLDER}):
        command += ["--perms", "0755", "--dir", folder]  # bubblewrap itself would create them for root alone.
    for source, target in spec.binds:
        command += ["--ro-bind", source, target]
    for target, link in links(spec.python, commands=spec.commands):
        command += ["--symlink", target, link]
    for path, text in spec.files.items():
        command += ["--perms", "0644", "--file", str(spec.pass_text(text)), path]
    # Shared memory of the real device would escape every limit.
    zeros = str(spec.pass_text("\0" * ZERO_BYTES))
    command += ["--dev", "/dev", "--perms", "0444", "--ro-bind-data", zeros, "/dev/zero", "--proc", "/proc"]
    command += [
        "--tmpfs",
        "/dev/pts",
        "--remount-ro",
        "/dev/pts",
    ]  # Terminals are counted for the whole machine.
    command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"]
    return [*command, *spec.worker_command(MODULES_FOLDER)]


def namespaces(spec: SandboxSpec) -> list[str]:
    """Use `namespaces.py`, in pure Python."""
    parts = {
        "binds": spec.binds,
        "links": links(spec.python, commands=spec.commands),
        "files": list(spec.files.items()),
        "folders": [*WRITABLE_FOLDERS, CACHE_FOLDER],
        "argv": spec.worker_command(MODULES_FOLDER),
        "descriptors": [spec.control],
    }
    descriptor = spec.pass_text(json.dumps(parts))
    return [
        executable(),
        "-I",
        "-S",
        "-B",
        str(PACKAGE_FOLDER / "sandbox" / "namespaces.py"),
        str(descriptor),
    ]


def plain(spec: SandboxSpec) -> list[str]:
    """Start a plain process; each run's process isolates itself as far as it can."""
    return spec.worker_command(str(PACKAGE_FOLDER))


LAUNCHERS: dict[str, Launcher] = {
    "bubblewrap": bubblewrap,
    "namespaces": namespaces,
    "landlock": plain,
    "none": plain,
}


def has_privileges() -> bool:
    """Return whether this process may make namespaces without a user namespace; root of most containers may not."""
    fields = Path("/proc/self/status").read_text(encoding="utf-8").partition("\nCapEff:")[2].split(maxsplit=1)
    return bool(int(fields[0], 16) >> CAP_SYS_ADMIN & 1)


@cache
def may_make_namespaces() -> bool:
    """Return whether a process of this user can make namespaces; a process of its own tries what the sandbox needs.

    Raises:
        ExecutorError: That could not be found out now. Invariant: only a refusal of the kernel lowers the level.
    """
    if not sys.platform.startswith("linux") or lacking_call():
        return False
    commands = [[executable(), "-I", "-S", "-c", TRY_NAMESPACES, str(PACKAGE_FOLDER / "sandbox")]]
    if bubblewrap := shutil.which("bwrap"):
        commands.append([bubblewrap, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"])
    failures = list[ExecutorError]()
    for command in commands:
        try:
            if _succeeds(command):
                return True
        except ExecutorError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return False


def lacking_call() -> str:
    """Return which system call this kernel lacks that each level of the sandbox needs, as gVisor's does; empty if none.

    Raises:
        ExecutorError: That could not be found out now.
    """
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        if error.errno in SHORTAGES:
            raise _undecided(str(error)) from error
        return "pidfd_open"
    return ""


def names_shortage(text: str) -> bool:
    """Return whether what a process said before its end is that the machine lacked something for the moment."""
    return any(os.strerror(number) in text for number in SHORTAGES)


def _succeeds(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _undecided(str(error)) from error
    is_refusal = done.returncode == REFUSED or (command[0] != executable() and done.returncode == 1)
    if done.returncode and (not is_refusal or names_shortage(done.stderr)):
        raise _undecided(done.stderr.strip()[-200:] or f"the check ended with code {done.returncode}")
    return not done.returncode


def _undecided(reason: str) -> ExecutorError:
    return ExecutorError(
        f"Whether this system lets the sandbox make namespaces could not be found out: {reason}. The machine may be"
        " busy: try again, or name an executor.",
        is_retryable=True,
    )


def needed_python() -> str:
    """Return that this Python is too old for WebAssembly; empty if it is not."""
    if sys.version_info >= WASM_PYTHON:
        return ""
    return f"WebAssembly needs Python 3.12 or newer, and this is {sys.version_info[0]}.{sys.version_info[1]}"


def webassembly() -> str:
    """Return how messages name the executor in WebAssembly."""
    reason = needed_python()
    return f"executor='wasm' (the extra `wasm`{f'; {reason}' if reason else ''})"


def check_system() -> None:
    """Check that this system has what every launcher needs, the plain process included.

    Raises:
        IsolationError: It is not Linux; the message says what to use instead.
    """
    if not sys.platform.startswith("linux"):
        raise IsolationError(
            f"The sandbox needs Linux, and so does executor='none'; this is {sys.platform}. Use {webassembly()} for programs"
            " with the standard library, executor='docker' for all of Python, or a Linux virtual machine."
        )


def candidates(min_isolation: str) -> list[str]:
    """Return the names of the launchers that may provide an isolation level, the strongest first."""
    weaker = {"kernel": [], "landlock": ["landlock"], "none": ["landlock", "none"]}[min_isolation]
    installed = ["bubblewrap"] if shutil.which("bwrap") else []
    return [*installed, "namespaces", *weaker]
