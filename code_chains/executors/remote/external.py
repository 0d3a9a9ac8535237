"""The base of all executors that need an engine or a service: loading it, and a probe that tries to get out of it.

The probe is plain Python that interpreters of a subset and of all of Python run alike. An attempt must fail
because the sandbox is closed and for no other reason; a test runs it where everything is open.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import secrets
import select
import socket
import tempfile
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from typing import Any

from code_chains.errors import ConfigurationError, ExecutorError, needs
from code_chains.executors.base import Executor
from code_chains.executors.limits import Limits
from code_chains.executors.sandbox.canary import shared_memory
from code_chains.executors.sandbox.provider import ALLOWED_VARIABLES
from code_chains.records import PROBED, Isolation, Level
from code_chains.temporary import process_folder

PROBE = """
import json

def closed(attempt):
    try:
        attempt()
    except (TimeoutError, MemoryError):
        return False
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
        import hashlib
        assert hashlib.sha256(file.read()).hexdigest() == canary["command"]

def signal_the_host():
    import os
    os.kill(canary["pid"], 0)
    if os.path.exists("/proc/self"):
        see_the_host()

def look_into_the_host():
    see_the_host()
    with open("/proc/" + str(canary["pid"]) + "/mem", "rb") as file:
        file.read(0)

def attach():
    import ctypes
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    assert canary["segment"] >= 0 and libc.shmat(canary["segment"], None, 0o10000) not in (None, 2**64 - 1)

def inherited():
    import os
    pairs = [canary["salt"] + name + "=" + os.environ[name] for name in os.environ]
    try:
        import hashlib
    except Exception:
        return pairs
    return [hashlib.sha256(pair.encode(errors="replace")).hexdigest() for pair in pairs]

try:
    found = inherited()
except Exception:
    found = []

print(json.dumps({
    "filesystem": [closed(read_a_file), closed(make_a_file)] == [True, True],
    "network": closed(connect),
    "processes": closed(see_the_host),
    "signals": closed(signal_the_host),
    "ptrace": closed(look_into_the_host),
    "ipc": closed(attach),
    "environment": found,
}))
"""
COMMON_VARIABLES = ALLOWED_VARIABLES | frozenset(
    (
        "PATH HOME PWD OLDPWD TMPDIR LANG LC_ALL LC_CTYPE TZ SHELL SHLVL TERM _ USER LOGNAME HOSTNAME GPG_KEY"
        " PYTHON_VERSION PYTHON_SHA256 PYTHONUNBUFFERED"
    ).split()
)
"""Variables that an image or a launcher sets itself; the same value inside and outside proves nothing."""
MAX_SHOWN_CHARS = 200


class ExternalExecutor(Executor):
    """An executor on an engine that may be unreachable, which is found out before a model is paid."""

    def __init__(self, *, limits: Limits | None = None) -> None:
        super().__init__(limits=limits)
        self._failure = ""

    def warm_up(self) -> None:
        """Reach the engine, and wait for it.

        Raises:
            ConfigurationError: The engine is not installed, or refuses the key.
            ExecutorError: It cannot be reached; `check_capacity` raises it again.
        """
        self._failure = ""
        try:
            self._start()
        except ExecutorError as error:
            self._failure = str(error)
            raise

    def check_capacity(self) -> None:
        """Raise if the engine could not be reached when that was tried last.

        Raises:
            ExecutorError: It could not.
        """
        if self._failure:
            raise ExecutorError(self._failure, is_retryable=True)

    def _start(self) -> None:
        """Make sure that the engine can be reached."""


def load_extra(module: str, extra: str) -> Any:
    """Import a package that an extra installs.

    Raises:
        ConfigurationError: It is not installed; the message names the extra.
    """
    with needs(extra, "executor", extra):
        return importlib.import_module(module)


def check_required(required_isolation: Collection[str]) -> tuple[str, ...]:
    """Return what the probe must find closed.

    Raises:
        ConfigurationError: The probe does not look for it.
    """
    if isinstance(required_isolation, str) or not set(required_isolation) <= set(PROBED):
        raise ConfigurationError("required_isolation", required_isolation, f"some of {PROBED}")
    return tuple(required_isolation)


class Canary(dict[str, Any]):
    """What the probe must not reach, by its name in the probe.

    Args:
        server: The listening socket.
    """

    def __init__(self, server: socket.socket, **targets: Any) -> None:
        super().__init__(targets)
        self._server = server

    def reached(self) -> set[str]:
        """Return what was reached, whatever the probe says."""
        is_made = os.path.exists(f"{self['file']}.made")
        is_connected = bool(select.select([self._server], [], [], 0)[0])
        return {name for name, found in (("filesystem", is_made), ("network", is_connected)) if found}


@contextlib.contextmanager
def canary() -> Iterator[Canary]:
    """Yield what the probe must not reach: a file, a listening socket, shared memory, this process and its variables."""
    with (
        tempfile.TemporaryDirectory(prefix="canary-", dir=process_folder()) as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        os.chmod(folder, 0o755)  # noqa: S103 - it must be the sandbox that keeps others out, not a mode
        path = os.path.join(folder, "canary")
        with open(path, "w") as file:
            file.write("canary")
        segment, detach = shared_memory()
        try:
            yield Canary(
                server,
                file=path,
                port=server.getsockname()[1],
                segment=segment,
                pid=os.getpid(),
                command=_command(),
                salt=secrets.token_hex(8),
            )
        finally:
            detach()


def _command() -> str:
    """Return a hash of this process's command line, which distinguishes it from another process of the same pid.

    Invariant: neither the command line nor a variable leaves this process, as a third party may see the probe.
    """
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return sha256(file.read()).hexdigest()
    except OSError:
        return ""


def _variables(salt: str) -> set[str]:
    """Return this process's variables that a sandbox does not set itself, plain and hashed, as the probe may say them."""
    pairs = {f"{salt}{name}={os.environ[name]}" for name in set(os.environ) - COMMON_VARIABLES}
    return pairs | {sha256(pair.encode(errors="replace")).hexdigest() for pair in pairs}


def isolation(
    level: Level, launcher: str, output: str, salt: str, reached: Collection[str] = ()
) -> Isolation:
    """Parse the probe's output; the level is `none` if it found anything open.

    Args:
        level: The level if everything is closed.
        launcher: What runs programs.
        output: What the probe has printed.
        salt: The salt of its canary.
        reached: What of its canary was reached, whatever the output says.

    Raises:
        ExecutorError: The output is malformed.
    """
    try:
        report: Mapping[str, Any] = json.loads(output)
        closed: dict[str, Any] = {name: report[name] is True for name in PROBED if name != "environment"}
        closed["environment"] = _variables(salt).isdisjoint(report["environment"])
        closed |= dict.fromkeys(reached, False)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        shown = output[:MAX_SHOWN_CHARS]
        raise ExecutorError(f"The output of the probe inside {launcher} is malformed: {shown!r}.") from error
    return Isolation(level if all(closed.values()) else "none", launcher, **closed)
