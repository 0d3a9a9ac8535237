"""What a Python interpreter consists of. As a script it tells that of the one that runs it, as JSON."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass


@dataclass(frozen=True)
class Interpreter:
    """A Python and where its parts are.

    Attributes:
        executable: Its path.
        prefixes: Roots of its installation: of the environment, and of the Python that this was made from.
        paths: Directories of the standard library and of packages.
        missing: Which of the asked packages it cannot import.
    """

    executable: str
    prefixes: tuple[str, ...]
    paths: tuple[str, ...]
    missing: tuple[str, ...] = ()


def this(packages: tuple[str, ...] = ()) -> Interpreter:
    """The interpreter that runs this."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    found = [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    paths = dict.fromkeys([*(sysconfig.get_path(name) for name in names), *found])
    prefixes = tuple(dict.fromkeys((sys.prefix, sys.base_prefix, sys.exec_prefix)))
    return Interpreter(sys.executable, prefixes, tuple(paths), tuple(filter(_is_missing, packages)))


def _is_missing(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is None
    except (ImportError, ValueError):
        return True


def other(executable: str, packages: tuple[str, ...] = ()) -> Interpreter:
    """The interpreter at a path.

    Raises:
        OSError: It cannot be started.
        ValueError: It is no Python, or too old a one.
    """
    command = [os.path.abspath(executable), "-I", "-B", os.path.abspath(__file__), *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={"LANG": "C.UTF-8"})
    try:
        told = json.loads(done.stdout)
        return Interpreter(told["executable"], *(tuple(told[name]) for name in ("prefixes", "paths", "missing")))
    except (ValueError, KeyError, TypeError):
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise ValueError(said[0]) from None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(vars(this(tuple(sys.argv[1:])))))
