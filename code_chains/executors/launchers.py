"""How a worker is put into a box.

A launcher is a function from a `Box` to the command that starts the worker in it. `bubblewrap` is used where it is
installed, else namespaces of our own; `none` starts a plain process and only when asked for by name.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from code_chains.errors import IsolationError

__all__ = ["LAUNCHERS", "Box", "Launcher", "choose_launcher", "readable_paths"]

HERE = Path(__file__).parent
WORKDIR = "/box"
INSIDE = "/run/worker.py"
SYSTEM = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache",
          "/etc/ssl/openssl.cnf", "/usr/share/zoneinfo", "/etc/localtime", "/usr/share/fonts", "/etc/fonts")  # fmt: skip
FILES = (
    ("/etc/passwd", "sandbox:x:1000:1000::/box:/bin/false\n"),
    ("/etc/group", "sandbox:x:1000:\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n"),
)


@dataclass
class Box:
    """What one run's box consists of.

    Attributes:
        uid: User to become inside, where the host's user is root; 0 keeps the host's user.
        disk: Bytes that may be written to each writable place.
        inputs: Bytes of the input files, which come on top in the working directory.
        descriptors: Open descriptors the worker inherits, in the order of its arguments.
        extra: Descriptors of input files, which it inherits too.
        own: Descriptors opened for the launcher alone; closed once it has started.
    """

    uid: int
    disk: int
    inputs: int
    descriptors: tuple[int, ...]
    extra: tuple[int, ...] = ()
    own: list[int] = field(default_factory=list)

    @property
    def tmpfs(self) -> tuple[tuple[str, int], ...]:
        """Writable places with their sizes in bytes."""
        return ((WORKDIR, self.disk + self.inputs), ("/tmp", self.disk), ("/dev/shm", self.disk))  # noqa: S108 - the box's

    def worker(self, script: str) -> list[str]:
        """The command that starts the worker."""
        return [sys.executable, "-I", "-B", script, *map(str, self.descriptors)]

    def hold(self, text: str) -> int:
        """Put text into a file without a name and give its descriptor to the launcher."""
        with tempfile.TemporaryFile() as file:
            file.write(text.encode())
            file.flush()
            self.own.append(os.dup(file.fileno()))
        os.lseek(self.own[-1], 0, os.SEEK_SET)
        return self.own[-1]


Launcher = Callable[[Box], list[str]]


@cache
def readable_paths() -> tuple[tuple[str, str], ...]:
    """What the box shows of the host, read-only: the interpreter with its packages, and shared libraries.

    Returns:
        Pairs of a real path on the host and the path in the box. Nothing of a home directory or of the current project
        is among them, but for the environment that Python itself runs from.
    """
    shown = dict.fromkeys(
        path for path in (*_interpreter(), *SYSTEM) if os.path.exists(path) and not os.path.islink(path)
    )
    pairs = {path: os.path.realpath(path) for path in shown}
    pairs |= {real: real for real in pairs.values()}
    kept = [path for path in pairs if not any(_below(path, other) and pairs[other] == other for other in pairs)]
    return tuple((pairs[path], path) for path in sorted(kept))


def _interpreter() -> Iterator[str]:
    system = {"/", "/usr", "/usr/local"}
    yield from (prefix for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix) if prefix not in system)
    if system & {sys.prefix, sys.base_prefix}:
        yield from (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
        yield os.path.realpath(sys.executable)
    yield from (path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"})


def _below(path: str, other: str) -> bool:
    return path != other and path.startswith(other.rstrip("/") + "/")


def _links() -> list[tuple[str, str]]:
    """Links of the host's root that programs rely on, such as `/lib -> usr/lib`."""
    links = [(os.readlink(path), path) for path in SYSTEM if os.path.islink(path)]
    path = sys.executable
    while os.path.islink(path):  # A virtual environment's python leads to the system's over several links.
        if not any(_below(path, shown) for _, shown in readable_paths()):
            links.append((os.path.realpath(path), path))
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    return links


def bubblewrap(box: Box) -> list[str]:
    """A box made by bubblewrap (`bwrap`), the small tool that Flatpak isolates applications with."""
    command = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    command += ["--as-pid-1", "--new-session"]
    if box.uid:
        command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        command += ["--unshare-user", "--uid", "1000", "--gid", "1000"]
    for path, size in box.tmpfs[:-1]:  # Before the binds: Python may live below /tmp.
        command += ["--perms", "1777", "--size", str(size), "--tmpfs", path]
    binds = (*readable_paths(), (str(HERE / "worker.py"), INSIDE))
    for folder in sorted({str(above) for _, target in binds for above in Path(target).parents}):
        command += ["--perms", "0755", "--dir", folder]  # bubblewrap itself would make them for root alone.
    for source, target in binds:
        command += ["--ro-bind", source, target]
    for target, link in _links():
        command += ["--symlink", target, link]
    for path, text in FILES:
        command += ["--file", str(box.hold(text)), path]
    path, size = box.tmpfs[-1]
    command += ["--dev", "/dev", "--proc", "/proc", "--perms", "1777", "--size", str(size), "--tmpfs", path]
    return [*command, "--remount-ro", "/", "--chdir", "/", "--", *box.worker(INSIDE)]


def namespaces(box: Box) -> list[str]:
    """A box made by `namespaces.py`, in pure Python."""
    spec = {
        "binds": [*readable_paths(), (str(HERE / "worker.py"), INSIDE)],
        "links": _links(),
        "files": FILES,
        "tmpfs": box.tmpfs,
        "argv": box.worker(INSIDE),
        "descriptors": [*box.descriptors, *box.extra],
    }
    return [sys.executable, "-I", "-S", "-B", str(HERE / "namespaces.py"), str(box.hold(json.dumps(spec)))]


def none(box: Box) -> list[str]:
    """No box: a plain process of the same user in a temporary directory. It protects nothing but the caller's time."""
    return box.worker(str(HERE / "worker.py"))


LAUNCHERS: dict[str, Launcher] = {"bubblewrap": bubblewrap, "namespaces": namespaces, "none": none}


def choose_launcher() -> str:
    """The name of the strongest launcher that can be tried on this machine.

    Raises:
        IsolationError: There is none; it says what to install.
    """
    if not sys.platform.startswith("linux"):
        raise IsolationError(
            f"The sandbox needs Linux; this is {sys.platform}. Run in a Linux container or virtual machine, or accept no"
            " protection at all with executor='none'."
        )
    return "bubblewrap" if shutil.which("bwrap") else "namespaces"
