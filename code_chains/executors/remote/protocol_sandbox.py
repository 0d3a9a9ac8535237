"""A sandbox of LangChain's protocol as executors use it: its folders, commands and files, and the probe inside it."""

from __future__ import annotations

import contextlib
import inspect
import math
import re
import secrets
import shlex
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from hashlib import sha256
from typing import Any, NoReturn, Protocol, TypeVar

from code_chains.errors import ConfigurationError, ExecutorError, InputError, IsolationError
from code_chains.executors.limits import Limits
from code_chains.executors.remote.external import MAX_SHOWN_CHARS, PROBE, canary, check_required, isolation
from code_chains.executors.remote.supervised import execution_of, find_report, parse_line
from code_chains.records import Execution, Isolation
from code_chains.records.printable import printable

PARENT = "/tmp"  # noqa: S108 - the sandbox's own
GRACE_S = 5.0
"""Seconds that a command may take besides its program, in the sandbox."""
ANSWER_TIMEOUT_S = 60.0
"""Seconds that a sandbox may take to answer beyond that, such as for a slow upload."""
SETTLE_S = 8.0
"""Seconds for which a run waits until nothing of a cancelled one is left; then the sandbox is discarded."""
TOO_OLD = 41
"""Exit code of a command that found a Python older than 3.11."""
NO_FILES = 43
"""Exit code of a command that does not find what was uploaded, as it was uploaded."""
NOT_RUNNABLE, NOT_FOUND, TIMED_OUT = 126, 127, (124, 137)
MAX_OUTPUT_CHARS = 1 << 18
"""What a command may print."""
BUNDLE = "bundle.zip"
"""All files of a run as one, since each upload takes a request or two."""
PYTHON, _WHERE = "python3", "import sys; print(sys.executable)"
_CHECK = f"import sys; sys.exit({TOO_OLD} * (sys.version_info < (3, 11)))"
_START = f"""
import hashlib, io, os, sys, zipfile
try:
    with open({BUNDLE!r}, "rb") as file:
        content = file.read()
    os.remove({BUNDLE!r})
except OSError:
    sys.exit({NO_FILES})
if hashlib.sha256(content).hexdigest() != sys.argv[1]:
    sys.exit({NO_FILES})
zipfile.ZipFile(io.BytesIO(content)).extractall()
os.execv(sys.executable, [sys.executable, "-I", *sys.argv[2:]])
"""
"""Unpacks what was uploaded if it is complete, and starts a program of it."""
T = TypeVar("T")


class SandboxProtocol(Protocol):
    """What a sandbox has to offer, as `deepagents.backends.protocol.SandboxBackendProtocol` says."""

    def execute(self, command: str) -> Any:
        """Run a command in a shell; return an object with `output` and `exit_code`."""

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[Any]:
        """Write files at absolute paths; return an object with `error` for each."""

    def download_files(self, paths: list[str]) -> list[Any]:
        """Read files at absolute paths; return an object with `content` and `error` for each."""


def is_backend(value: object) -> bool:
    """Return whether an object looks like a sandbox of LangChain's protocol."""
    names = ("execute", "upload_files", "download_files")
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in names)


class ProtocolSandbox:
    """A sandbox of LangChain's protocol.

    Args:
        backend: The sandbox.
        required_isolation: What the probe must find closed.

    Raises:
        ConfigurationError: An argument is invalid.

    Attributes:
        python: Its interpreter: a name, and its path once that was looked up, before any program has run.
    """

    def __init__(self, backend: SandboxProtocol, required_isolation: Collection[str]) -> None:
        if not is_backend(backend) or inspect.iscoroutinefunction(backend.execute):
            remedy = (
                "an object with execute, upload_files and download_files, none of them a coroutine function"
            )
            raise ConfigurationError("backend", backend, remedy)
        self.required_isolation: tuple[str, ...] = check_required(required_isolation)
        self._backend = backend
        self._takes_timeout = _takes(backend.execute, "timeout")
        self.python: str = PYTHON
        self._is_discarded = False
        self._cancelled = list[RunFolder]()

    @property
    def name(self) -> str:
        """How messages call it."""
        return type(self._backend).__name__

    def start(self, folder: RunFolder | None = None) -> None:
        """Make sure that there is a sandbox in which nothing of another run goes on unwatched.

        Args:
            folder: The folder of the run that asks, which is not waited for.

        Raises:
            ExecutorError: It was discarded.
        """
        for cancelled in [one for one in self._cancelled if one is not folder]:
            if not cancelled.is_settled.wait(SETTLE_S):
                self.discard()
            with contextlib.suppress(ValueError):
                self._cancelled.remove(cancelled)
        self.check_usable()

    def check_usable(self) -> None:
        """Raise `ExecutorError` if it was discarded, and there is no other one."""
        if self._is_discarded:
            raise ExecutorError(
                f"A program in {self.name} may still run unwatched: it ended its supervisor, or no report of it came."
                " Replace the sandbox, and make another executor of it."
            )

    def cancel(self, folder: RunFolder) -> None:
        """End a run for which nobody waits any more; the next one waits until nothing of it is left."""
        with folder.lock:
            folder.is_given_up = folder.is_cancelled = True
        if folder.has_begun and not folder.is_settled.is_set():
            self._cancelled.append(folder)
        if folder.close is None:
            with contextlib.suppress(ExecutorError):  # It must not take the place of the cancellation.
                self.remove(folder)  # The supervisor notices that, and stops the program.
            return
        if not folder.close():
            self.discard()
        folder.is_settled.set()

    def give_up(self) -> None:
        """Do what is to be done after an error, such as delete a sandbox that has ended."""

    def discard(self) -> None:
        """Use the sandbox no more.

        A program of which no signed report came may have ended its supervisor, and left processes that change later runs.
        """
        self._is_discarded = True

    def launch(
        self, folder: RunFolder, bundle: bytes, arguments: Sequence[str], seconds: float
    ) -> tuple[Isolation, Any]:
        """Probe the sandbox, unpack a bundle in a new folder, and run a program of it.

        Args:
            folder: The folder.
            bundle: What is unpacked there.
            arguments: The arguments of the interpreter that start the program.
            seconds: Time that it may take.

        Returns:
            What the probe found, and what the program answered.

        Raises:
            IsolationError: Something required is open.
            ExecutorError: The sandbox broke, or nobody waits any more.
        """
        folder.check()
        found = self._prepare(folder)
        folder.check()
        self.upload([(f"{folder.path}/{BUNDLE}", bundle)])
        folder.check()
        # Isolated, so that nothing that an earlier program left is imported.
        start = shlex.join([self.python, "-I", "-c", _START, sha256(bundle).hexdigest(), *arguments])
        self.check_usable()
        try:
            response = self.execute(f"cd {folder.path} || exit {NO_FILES}; exec {start}", seconds)
        except ExecutorError:
            self.discard()
            raise
        if response.exit_code == NO_FILES:  # Nothing was run if that is because it was cancelled meanwhile.
            folder.check()
        return found, response

    def _prepare(self, folder: RunFolder) -> Isolation:
        """Make the folder of a run, and probe the sandbox.

        Raises:
            IsolationError: Something required is open.
            ExecutorError: The sandbox has no usable Python.
        """
        with canary() as targets:
            probe = shlex.quote(f"canary = {targets!r}\n{PROBE}\n{_WHERE}")
            python = f"{shlex.quote(self.python)} -I -c"
            check = f"{python} {shlex.quote(_CHECK)} || exit $?"
            make = f"command -p mkdir -p -m 700 {folder.path}"
            response = self.execute(f"{check}; {make} && {python} {probe}", GRACE_S)
            reached = targets.reached()
        if response.exit_code:
            self._refuse(response)
        line = next((line for line in response.output.split("\n") if parse_line(line)), response.output)
        found = isolation("container", self.name, line, targets["salt"], reached)
        # Invariant: what an earlier program has put where commands are looked for is never run.
        paths = [text for text in response.output.split("\n") if text.startswith("/")]
        self.python = paths[-1] if paths and self.python == PYTHON else self.python
        if leaks := [name for name in found.open if name in self.required_isolation]:
            reach = f"a program in {self.name} can reach of this machine: {', '.join(leaks)}"
            message = f"Nothing was run: {reach}; the executor's argument required_isolation=… accepts that."
            raise IsolationError(message)
        return found

    def _refuse(self, response: Any) -> NoReturn:
        """Raise for a probe that was not run."""
        text = printable(response.output.strip(), MAX_SHOWN_CHARS)
        if response.exit_code in (NOT_RUNNABLE, NOT_FOUND, TOO_OLD):
            raise ExecutorError(f"{self.name} has no python3 that it can run, or one older than 3.11. {text}")
        message = f"{self.name} did not run the probe (exit code {response.exit_code}). {text}"
        raise ExecutorError(message, is_retryable=True)

    def read_report(self, response: Any, key: str, number: int, max_bytes: int) -> dict[str, Any] | None:
        """Return the report on a request that a command has printed; None if there is none.

        Args:
            response: What the command answered.
            key: The secret with which reports are signed.
            number: The number of the request; 0 for the start of a server, or its only one.
            max_bytes: How long a report in a file may be.

        Raises:
            ExecutorError: The sandbox lost a file.
        """
        try:
            report = self._report(response, key, number, max_bytes)
        except ExecutorError:
            self.discard()
            raise
        # What a shell reads would run before each later command, and see how it is made.
        if report and (report.pop("changes_startup", False) or "remains" in report):
            self.discard()
        return report

    def _report(self, response: Any, key: str, number: int, max_bytes: int) -> dict[str, Any] | None:
        if response.exit_code == NO_FILES:
            raise ExecutorError(
                f"In {self.name}, uploaded files are not where commands look for them, or not complete."
            )
        report = find_report(response.output, key, number)
        return self._long_report(report, max_bytes) if report and "path" in report else report

    def check_alive(self, response: Any) -> None:
        """Raise `ExecutorError` if the sandbox has ended, or a program makes it look so."""
        if not self.is_alive():
            self.discard()
            text = printable(response.output.strip()[-MAX_SHOWN_CHARS:])
            raise ExecutorError(f"{self.name} ended during a run. {text}".strip(), is_retryable=True)

    def execution_of(self, report: Mapping[str, Any] | None, limits: Limits, found: Isolation) -> Execution:
        """Build the record of a run.

        Raises:
            ExecutorError: The report is malformed.
        """
        try:
            return execution_of(report, limits, found)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ExecutorError(
                f"{self.name} returned a malformed report: {type(error).__name__}."
            ) from error

    def _long_report(self, signed: Mapping[str, Any], max_bytes: int) -> dict[str, Any]:
        """Return the report in a file of the sandbox, which is signed, and remove that."""
        path = str(signed["path"])
        is_short = isinstance(signed.get("size"), int) and signed["size"] <= max_bytes
        if not is_short or not re.fullmatch(rf"{PARENT}/code_chains-report-\w+", path):
            raise ExecutorError(f"{self.name} returned a malformed report.")
        responses = list(self.ask("download_files", lambda: self._backend.download_files([path])) or ())
        content = getattr(responses[0], "content", None) if responses else None
        data = content if isinstance(content, bytes) else b""
        is_whole = sha256(data).hexdigest() == signed.get("sha256")
        report = parse_line(data.decode(errors="replace")) if is_whole else None
        with contextlib.suppress(ExecutorError):
            self.execute(f"command -p rm -f {path}", GRACE_S)
        if report is None:
            raise ExecutorError(f"{self.name} did not return the report of a run.", is_retryable=True)
        return report

    def is_alive(self) -> bool:
        """Return whether the sandbox still runs commands."""
        try:
            return "alive" in self.execute("echo alive", GRACE_S).output.split()
        except ExecutorError:
            return False

    def execute(self, command: str, seconds: float) -> Any:
        """Return what a command answers.

        It has a shell of its own, as some sandboxes run it in one that must outlive it.
        """
        command = shlex.join(["/bin/sh", "-c", command])
        options = {"timeout": math.ceil(seconds)} if self._takes_timeout else {}
        response = self.ask("execute", lambda: self._backend.execute(command, **options), seconds)
        if not isinstance(getattr(response, "output", None), str) or not hasattr(response, "exit_code"):
            kind = type(response).__name__
            raise ExecutorError(f"{self.name}.execute returned {kind}, without output and exit code.")
        if len(response.output) > MAX_OUTPUT_CHARS:  # Ours are short; a program may write to the same stream.
            raise ExecutorError(f"In {self.name}, a command printed more than it was made to.")
        return response

    def upload(self, files: list[tuple[str, bytes]]) -> None:
        """Write files at absolute paths.

        Raises:
            ExecutorError: The sandbox did not take all of them.
        """
        responses = list(self.ask("upload_files", lambda: self._backend.upload_files(files)) or ())
        errors = [
            f"{path}: {error}"
            for (path, _), error in zip(files, map(_error, responses), strict=False)
            if error
        ]
        if errors or len(responses) != len(files):
            raise ExecutorError(
                f"{self.name} did not take all files. {'; '.join(errors[:3])}", is_retryable=True
            )

    def remove(self, folder: RunFolder) -> None:
        """Remove a folder; what a supervisor runs there is stopped."""
        self.execute(removal(folder), GRACE_S)

    def ask(self, what: str, call: Callable[[], T], seconds: float = 0.0) -> T:
        """Call the sandbox, and wait for its answer for a limited time.

        Raises:
            ExecutorError: It raised, or did not answer in time.
        """
        future: Future[T] = Future()
        thread = threading.Thread(target=fulfil, args=(future, call), name=f"{self.name}.{what}", daemon=True)
        thread.start()
        try:
            return future.result(seconds + ANSWER_TIMEOUT_S)
        except FutureTimeoutError:
            raise ExecutorError(f"{self.name} did not answer in time ({what}).", is_retryable=True) from None
        except (ExecutorError, InputError, ConfigurationError):
            raise
        except Exception as error:
            message = f"{self.name}.{what} failed: {type(error).__name__}: {error}"
            raise ExecutorError(message[:500], is_retryable=True) from error


def removal(folder: RunFolder) -> str:
    """Return the command that removes a folder."""
    gone = (
        f"{folder.path}.gone"  # A program that makes files there all the time may keep it from being removed.
    )
    move = f"command -p mv {folder.path} {gone} 2>/dev/null"
    return f"{move}; command -p chmod -R u+rwX {gone} 2>/dev/null; command -p rm -rf {gone} {folder.path}"


class RunFolder:
    """The folder of a run in the sandbox.

    Attributes:
        path: Its path.
        is_given_up: Whether nobody waits for the run any more.
        is_cancelled: Whether that is so by `ProtocolSandbox.cancel`.
        has_begun: Whether something was asked of the sandbox.
        is_settled: Set once nothing of the run is left, or the sandbox is discarded.
        close: Ends the server of the run, and returns whether that says that nothing is left; None without one.
        lock: Held while it is cancelled, or gets its server.
    """

    def __init__(self) -> None:
        self.path: str = f"{PARENT}/code_chains-{secrets.token_hex(8)}"
        self.is_given_up: bool = False
        self.is_cancelled: bool = False
        self.has_begun: bool = False
        self.is_settled: threading.Event = threading.Event()
        self.close: Callable[[], bool] | None = None
        self.lock: threading.Lock = threading.Lock()

    def check(self) -> None:
        """Raise `ExecutorError` if nobody waits for the run any more."""
        if self.is_given_up:
            raise ExecutorError("The run was cancelled.")


def fulfil(future: Future[T], call: Callable[[], T]) -> None:
    """Set what a call returns or raises."""
    try:
        future.set_result(call())
    except Exception as error:
        future.set_exception(error)
    except BaseException as error:  # It must not end the application.
        future.set_exception(RuntimeError(repr(error)))


def _takes(function: Callable[..., Any], name: str) -> bool:
    """Return whether a function takes an argument of this name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def _error(response: Any) -> str:
    return str(getattr(response, "error", None) or "")
