"""What executors on engines of others share: loading the engine, and a probe that tries to get out of it.

The probe is plain Python that an interpreter of a subset and a whole one understand alike, so that it runs in both. An
attempt must fail because the place is closed and for no other reason; a test runs it where everything is open.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from code_chains.errors import ExecutorError, needs
from code_chains.state import PROBED, Isolation, Level

__all__ = ["PROBE", "canary", "isolation", "load_extra"]

PROBE = """
import json

def closed(attempt):
    try:
        attempt()
    except Exception:
        return True
    return False

def read_a_file():
    with open(canary["file"]) as file:
        file.read()

def make_a_file():
    with open(canary["file"] + ".made", "w") as file:
        file.write("made")

def connect():
    import socket
    socket.create_connection(("127.0.0.1", canary["port"]), 0.5).close()

def see_the_host():
    with open("/proc/" + str(canary["pid"]) + "/cmdline", "rb") as file:
        assert list(file.read()) == canary["command"]

def signal_the_host():
    import os
    os.kill(canary["pid"], 0)
    if os.path.exists("/proc/self"):
        see_the_host()

def look_into_the_host():
    see_the_host()
    with open("/proc/" + str(canary["pid"]) + "/mem", "rb") as file:
        file.read(0)

def inherited():
    found = {}
    for name in canary["names"]:
        try:
            import os
            value = os.getenv(name)
        except Exception:
            value = None
        if value is not None:
            found[name] = value
    return found

print(json.dumps({
    "filesystem": [closed(read_a_file), closed(make_a_file)] == [True, True],
    "network": closed(connect),
    "processes": closed(see_the_host),
    "signals": closed(signal_the_host),
    "ptrace": closed(look_into_the_host),
    "environment": inherited(),
}))
"""
HARMLESS = {
    *("PATH", "HOME", "PWD", "OLDPWD", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SHELL", "SHLVL", "TERM", "_"),
    *("USER", "LOGNAME", "HOSTNAME", "GPG_KEY", "PYTHON_VERSION", "PYTHON_SHA256", "PYTHONUNBUFFERED"),
}
"""Names that an image or a launcher sets by itself; a value that is the same there as here says nothing."""


def load_extra(module: str, extra: str) -> Any:
    """Import a package that only an extra installs.

    Raises:
        ConfigurationError: It is not installed; the message says how to.
    """
    with needs(extra, "executor", extra):
        return importlib.import_module(module)


@contextlib.contextmanager
def canary() -> Iterator[dict[str, Any]]:
    """What the probe must not reach: a file, a listening socket, this process and its environment's names."""
    with (
        tempfile.TemporaryDirectory(prefix="code_chains-canary-") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        os.chmod(folder, 0o755)  # noqa: S103 - it must be the place that keeps others out, not a mode
        path = os.path.join(folder, "canary")
        with open(path, "w") as file:
            file.write("canary")
        names = sorted(set(os.environ) - HARMLESS)
        yield {"file": path, "port": server.getsockname()[1], "pid": os.getpid(), "command": _command(), "names": names}


def _command() -> list[int]:
    """The bytes of this process's command line, which tell it from another process of the same number."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return list(file.read())
    except OSError:
        return []


def isolation(level: Level, launcher: str, said: str) -> Isolation:
    """What the probe's output means; `none` as level if it found anything open.

    Raises:
        ExecutorError: That is not what the probe says.
    """
    try:
        found: Mapping[str, Any] = json.loads(said)
        closed: dict[str, Any] = {name: found[name] is True for name in PROBED if name != "environment"}
        closed["environment"] = not any(os.environ.get(name) == value for name, value in found["environment"].items())
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ExecutorError(f"The probe inside {launcher} said nothing that is understood: {said[:200]!r}.") from error
    return Isolation(level if all(closed.values()) else "none", launcher, **closed)
