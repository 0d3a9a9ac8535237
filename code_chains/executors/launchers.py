"""How a worker is put into a box.

A launcher is a function from a `Box` to the command that starts the worker in it. `bubblewrap` is used where it is
installed, else namespaces of our own; `landlock` has no namespaces and needs to be accepted by name, and so does `none`,
a plain process.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from code_chains.errors import IsolationError
from code_chains.executors.interpreter import Interpreter

__all__ = ["CACHE", "LAUNCHERS", "PLACES", "Box", "Launcher", "candidates", "links", "readable_paths"]

HERE = Path(__file__).parent
PLACES = ("/box", "/tmp", "/dev/shm")  # noqa: S108 - the box's own
"""Where a program may write: its working directory, temporary files, shared memory."""
ZEROS = 1 << 20
INSIDE, CACHE = "/run/code_chains", "/run/cache"
SYSTEM = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache",
          "/etc/ssl/openssl.cnf", "/usr/share/zoneinfo", "/etc/localtime", "/usr/share/fonts", "/etc/fonts")  # fmt: skip
START = "import sys; sys.path.insert(0, {!r}); from inside.worker import main; sys.path.pop(0); main({})"


@dataclass
class Box:
    """What a worker's box consists of.

    Attributes:
        python: The interpreter that runs in it.
        control: Descriptor of the worker's line to this process.
        as_root: Whether the host's user is root, so that the worker must become someone else.
        hosts: Names and addresses that programs may find, as `/etc/hosts` has them.
        own: Descriptors opened for the launcher alone; closed once it has started.
    """

    python: Interpreter
    control: int
    as_root: bool
    hosts: str = "127.0.0.1 localhost\n"
    own: list[int] = field(default_factory=list)

    @property
    def files(self) -> dict[str, str]:
        """Small files that many programs look for."""
        return {
            "/etc/passwd": "sandbox:x:1000:1000::/box:/bin/false\n",
            "/etc/group": "sandbox:x:1000:\n",
            "/etc/hosts": self.hosts,
            "/etc/nsswitch.conf": "hosts: files\n",
        }

    @property
    def binds(self) -> tuple[tuple[str, str], ...]:
        """What is shown of the host, read-only, and where."""
        return (*readable_paths(self.python), (str(HERE / "inside"), f"{INSIDE}/inside"))

    def worker(self, home: str) -> list[str]:
        """The command that starts the worker, whose modules are in a package `inside` in `home`."""
        return [self.python.executable, "-s", "-P", "-B", "-c", START.format(home, self.control)]

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
def readable_paths(python: Interpreter) -> tuple[tuple[str, str], ...]:
    """What the box shows of the host, read-only: the interpreter with its packages, and shared libraries.

    Returns:
        Pairs of a real path on the host and the path in the box. Nothing of a home directory or of the current project
        is among them, but for the environment that Python itself runs from.
    """
    shown = dict.fromkeys(
        path for path in (*_parts(python), *SYSTEM) if os.path.exists(path) and not os.path.islink(path)
    )
    pairs = {path: os.path.realpath(path) for path in shown}
    pairs |= {real: real for real in pairs.values()}
    kept = [path for path in pairs if not any(_below(path, other) and pairs[other] == other for other in pairs)]
    return tuple((pairs[path], path) for path in sorted(kept))


def _parts(python: Interpreter) -> Iterator[str]:
    system = {"/", "/usr", "/usr/local"}
    yield from (prefix for prefix in python.prefixes if prefix not in system)
    if system & set(python.prefixes):
        yield from python.paths
        yield os.path.realpath(python.executable)
    yield from (path for path in python.paths if Path(path).name in {"site-packages", "dist-packages"})


def _below(path: str, other: str) -> bool:
    return path != other and path.startswith(other.rstrip("/") + "/")


@cache
def links(python: Interpreter) -> tuple[tuple[str, str], ...]:
    """Links of the host's root that programs rely on, such as `/lib -> usr/lib`."""
    found = [(os.readlink(path), path) for path in SYSTEM if os.path.islink(path)]
    path = python.executable
    while os.path.islink(path):  # A virtual environment's python leads to the system's over several links.
        if not any(_below(path, shown) for _, shown in readable_paths(python)):
            found.append((os.path.realpath(path), path))
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    return tuple(found)


def bubblewrap(box: Box) -> list[str]:
    """A box made by bubblewrap (`bwrap`), the small tool that Flatpak isolates applications with."""
    command = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    command += ["--hostname", "sandbox"]
    command += ["--as-pid-1", "--new-session"]
    if box.as_root:
        command += ["--cap-drop", "ALL"]
        command += [word for name in ("SETUID", "SETGID", "SYS_ADMIN") for word in ("--cap-add", f"CAP_{name}")]
    else:
        command += ["--unshare-user", "--uid", "1000", "--gid", "1000"]
    folders = {str(above) for _, target in box.binds for above in Path(target).parents}
    for folder in sorted({*folders, *PLACES[:2], CACHE}):
        command += ["--perms", "0755", "--dir", folder]  # bubblewrap itself would make them for root alone.
    for source, target in box.binds:
        command += ["--ro-bind", source, target]
    for target, link in links(box.python):
        command += ["--symlink", target, link]
    for path, text in box.files.items():
        command += ["--perms", "0644", "--file", str(box.hold(text)), path]
    # Shared memory of the real device would be seen by no limit.
    command += [
        "--dev",
        "/dev",
        "--perms",
        "0444",
        "--ro-bind-data",
        str(box.hold("\0" * ZEROS)),
        "/dev/zero",
        "--proc",
        "/proc",
    ]
    command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"]
    return [*command, *box.worker(INSIDE)]


def namespaces(box: Box) -> list[str]:
    """A box made by `namespaces.py`, in pure Python."""
    spec = {
        "binds": box.binds,
        "links": links(box.python),
        "files": list(box.files.items()),
        "folders": [*PLACES, CACHE],
        "argv": box.worker(INSIDE),
        "descriptors": [box.control],
    }
    return [sys.executable, "-I", "-S", "-B", str(HERE / "namespaces.py"), str(box.hold(json.dumps(spec)))]


def plain(box: Box) -> list[str]:
    """No box: what isolation there is, each run's process takes on by itself."""
    return box.worker(str(HERE))


LAUNCHERS: dict[str, Launcher] = {
    "bubblewrap": bubblewrap,
    "namespaces": namespaces,
    "landlock": plain,
    "none": plain,
}


def candidates(require: str) -> list[str]:
    """Names of the launchers that may do for what is required, the strongest first.

    Raises:
        IsolationError: There is none; it says what to install.
    """
    if require == "none" and not sys.platform.startswith("linux"):
        return ["none"]
    if not sys.platform.startswith("linux"):
        raise IsolationError(
            f"The sandbox needs Linux; this is {sys.platform}. Run in a Linux container or virtual machine, use"
            ' ContainerExecutor (`pip install "code-chains[container]"`), or accept no protection at all with'
            " executor='none'."
        )
    weaker = {"kernel": [], "landlock": ["landlock"], "none": ["landlock", "none"]}[require]
    return [*(["bubblewrap"] if shutil.which("bwrap") else []), "namespaces", *weaker]
