"""Locate the parts of a Python interpreter.

Run as a script, it prints those of the interpreter that runs it, as JSON.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass

START_TIMEOUT_S = 60


_MODULE = re.compile(r"\w+(?:\.py|(?:\..*)?\.(?:so|pyd))?")
"""Names of files and folders that can be imported."""


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter.

    Attributes:
        executable: Its path.
        prefixes: Roots of its installation: of the environment, and of the Python that this was created from.
        paths: Directories of the standard library and of packages.
        missing: The requested packages that it cannot import.
    """

    executable: str
    prefixes: tuple[str, ...]
    paths: tuple[str, ...]
    missing: tuple[str, ...] = ()

    def has(self, module: str) -> bool:
        """Return whether a package or module is installed, without importing anything."""
        return any(module in _modules_in(path, _changed_at(path)) for path in self.paths)


def _changed_at(path: str) -> int:
    """Return when a folder was changed, in nanoseconds; 0 if there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


@functools.lru_cache(maxsize=32)
def _modules_in(path: str, changed_at: int) -> frozenset[str]:
    """Return the packages and modules in a folder, read once until it changes."""
    try:
        names = os.listdir(path)
    except OSError:
        return frozenset()
    return frozenset(name.partition(".")[0] for name in names if _MODULE.fullmatch(name))


def this(packages: tuple[str, ...] = ()) -> Interpreter:
    """Return the interpreter that runs this."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    packages_paths = [
        path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")
    ]
    paths = dict.fromkeys([*(sysconfig.get_path(name) for name in names), *packages_paths])
    prefixes = tuple(dict.fromkeys(map(os.path.realpath, (sys.prefix, sys.base_prefix, sys.exec_prefix))))
    return Interpreter(executable(), prefixes, tuple(paths), tuple(filter(_is_missing, packages)))


def executable() -> str:
    """Return the Python that runs this, as an absolute path; `sys.executable` is as it was called.

    Called as `../.venv/bin/python` that holds "..", and found in a relative folder of PATH it is relative. Links of
    the folder are resolved. The file may be a link: in a virtual environment that is what leads to its packages.
    """
    folder, name = os.path.split(sys.executable)
    if not os.path.isabs(folder) and not os.path.exists(sys.executable):  # The working directory has changed.
        folder = sysconfig.get_path("scripts")
    return os.path.join(os.path.realpath(folder), name)


def _is_missing(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is None
    except (ImportError, ValueError):
        return True


def other(path: str, packages: tuple[str, ...] = ()) -> Interpreter:
    """Return the interpreter at a path.

    Raises:
        OSError: It cannot be started.
        ValueError: It is not Python, or too old.
    """
    folder, name = os.path.split(path)
    command = [os.path.join(os.path.realpath(folder), name), "-I", "-B", os.path.abspath(__file__), *packages]
    completed = subprocess.run(
        command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False, env={"LANG": "C.UTF-8"}
    )
    try:
        fields = json.loads(completed.stdout)
        return Interpreter(
            fields["executable"], tuple(fields["prefixes"]), tuple(fields["paths"]), tuple(fields["missing"])
        )
    except (ValueError, KeyError, TypeError):
        lines = completed.stderr.strip().splitlines() or [f"exit code {completed.returncode}"]
        raise ValueError(lines[-1]) from None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(vars(this(tuple(sys.argv[1:])))))
