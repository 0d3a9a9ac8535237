"""Third-party sandboxes behind LangChain's sandbox protocol: E2B, Modal, Daytona, Runloop, LangSmith, or your own."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import json
import math
import re
import secrets
import shlex
import threading
import zipfile
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

from code_chains.errors import ConfigurationError, ExecutorError, InputError, IsolationError
from code_chains.executors.base import Limits, Program
from code_chains.executors.external import (
    MAX_SHOWN_CHARS,
    PROBE,
    ExternalExecutor,
    canary,
    check_required,
    isolation,
)
from code_chains.executors.supervised import (
    COPIED_FILES,
    execution_of,
    find_report,
    parse_line,
    supervisor_limits,
    timed_out,
)
from code_chains.inputs import check_code, check_json_variables, files_on_disk
from code_chains.state import PROBED, Execution, Isolation

__all__ = ["BackendExecutor", "SandboxProtocol", "is_backend"]

PARENT = "/tmp"  # noqa: S108 - the sandbox's own
GRACE_S = 5.0
"""Seconds that a command may take besides its program, in the sandbox."""
ANSWER_TIMEOUT_S = 60.0
"""Seconds that a sandbox may take to answer beyond that, such as for a slow upload."""
TOO_OLD = 41
"""Exit code of a command that found a Python older than 3.11."""
BUNDLE = "bundle.zip"
"""All files of a run as one, since each upload takes a request or two."""
NO_FILES = 43
"""Exit code of a command that does not find what was uploaded, as it was uploaded."""
NOT_RUNNABLE, NOT_FOUND, TIMED_OUT = 126, 127, (124, 137)
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
os.execv(sys.executable, [sys.executable, "-I", "container_program.py"])
"""
"""Unpacks what was uploaded if it is complete, and starts the supervisor."""
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


class BackendExecutor(ExternalExecutor):
    """Run each program in a third-party sandbox that implements LangChain's sandbox protocol.

    A supervisor inside enforces the time, output, processes, memory and disk of the run, and reports how it ended. Before
    each run a probe tries to reach this machine; its findings are in `Execution.isolation`. Each run has a folder of its
    own, which is removed; the sandbox itself is shared by its runs and everybody else who uses it, and belongs to the
    caller, who closes it.

    Args:
        backend: The sandbox, e.g. `langchain_daytona.DaytonaSandbox(sandbox=…)`. It needs Linux with `python3` 3.11 or
            newer; programs can import what that has installed.
        limits: Limits of one run.
        required_isolation: What the probe must find closed.

    Raises:
        ConfigurationError: An argument is invalid.
        IsolationError: Something required is open; raised by a run.

    Example:
        executor = BackendExecutor(DaytonaSandbox(sandbox=Daytona().create()))
        executor.run("sum(range(1, 6))").output
    """

    language = "python"
    guidance = (
        "Write Python with the standard library alone, unless you are told what else is installed. Files are in the working"
        " directory."
    )
    returns_values = True

    def __init__(
        self,
        backend: SandboxProtocol,
        *,
        limits: Limits | None = None,
        required_isolation: Collection[str] = PROBED,
    ) -> None:
        super().__init__(limits=limits)
        if not is_backend(backend) or inspect.iscoroutinefunction(backend.execute):
            remedy = (
                "an object with execute, upload_files and download_files, none of them a coroutine function"
            )
            raise ConfigurationError("backend", backend, remedy)
        self.required_isolation = check_required(required_isolation)
        self._backend = backend
        self._takes_timeout = _takes(backend.execute, "timeout")
        self._is_closed = False

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What distinguishes its runs from those of other executors: the kind of the sandbox, and its name."""
        return {**super().fingerprint, "backend": self._name, "id": str(getattr(self._backend, "id", ""))}

    @property
    def _name(self) -> str:
        return type(self._backend).__name__

    def run(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        return_value: bool = False,
    ) -> Execution:
        """Run a program to its end; see `Executor.run`."""
        return self._run(RunFolder(), Program(code, files, variables, return_value=return_value))

    async def arun(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        return_value: bool = False,
    ) -> Execution:
        """Run a program to its end without blocking the event loop; see `Executor.arun`."""
        folder = RunFolder()
        program = Program(code, files, variables, return_value=return_value)
        try:
            return await asyncio.to_thread(self._run, folder, program)
        except asyncio.CancelledError:
            folder.is_given_up = True
            # The supervisor notices that its folder is gone, and stops the program.
            await asyncio.shield(asyncio.to_thread(self._remove, folder))
            raise

    def close(self) -> None:
        """Refuse further runs; the sandbox stays as it is."""
        self._is_closed = True

    def _run(self, folder: RunFolder, program: Program) -> Execution:
        if self._is_closed:
            raise ExecutorError("This executor is closed. Make a new one.")
        token = secrets.token_hex(16)
        with files_on_disk(program.files) as files:
            bundle = self._bundle(folder, program, files, token)
            self._start()
            try:
                return self._run_in(folder, bundle, token)
            finally:
                with contextlib.suppress(ExecutorError):
                    self._remove(folder)

    def _run_in(self, folder: RunFolder, bundle: bytes, token: str) -> Execution:
        """Run what a bundle contains, in a folder of its own."""
        folder.check()
        found = self._prepare(folder)
        folder.check()
        self._upload([(f"{folder.path}/{BUNDLE}", bundle)])
        folder.check()
        # Isolated, so that nothing that an earlier program left is imported.
        start = shlex.join(["python3", "-I", "-c", _START, sha256(bundle).hexdigest()])
        command = f"cd {folder.path} || exit {NO_FILES}; exec {start}"
        return self._execution(self._execute(command, self.limits.seconds + GRACE_S), token, found)

    def _bundle(self, folder: RunFolder, program: Program, files: Mapping[str, Path], token: str) -> bytes:
        """Return what a run needs, by its path in the folder of the run."""
        size = sum(path.stat().st_size for path in files.values())
        request = {
            "code": check_code(program.code),
            "variables": check_json_variables(program.variables),
            "workdir": f"{folder.path}/box",
            "limits": supervisor_limits(self.limits, size, [folder.path]),
            "return_value": program.return_value,
            "is_shared": True,
        }
        bundle = io.BytesIO()
        with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr("request.json", json.dumps(request))
            archive.writestr("token", token)
            for name, path in {
                **COPIED_FILES,
                **{f"box/{name}": path for name, path in files.items()},
            }.items():
                archive.writestr(name, path.read_bytes())
        return bundle.getvalue()

    def _prepare(self, folder: RunFolder) -> Isolation:
        """Make the folder of a run, and probe the sandbox.

        Raises:
            IsolationError: Something required is open.
            ExecutorError: The sandbox has no usable Python.
        """
        with canary() as targets:
            probe = shlex.quote(f"canary = {targets!r}\n{PROBE}")
            check = f"python3 -I -c {shlex.quote(_CHECK)} || exit $?"
            response = self._execute(f"{check}; mkdir -p {folder.path}/box && python3 -I -c {probe}", GRACE_S)
            reached = targets.reached()
        if response.exit_code:
            self._refuse(response)
        line = next((line for line in response.output.split("\n") if parse_line(line)), response.output)
        found = isolation("container", self._name, line, targets["salt"], reached)
        if leaks := [name for name in found.open if name in self.required_isolation]:
            remedy = "BackendExecutor(…, required_isolation=…) accepts that"
            message = f"Nothing was run: a program in {self._name} can reach of this machine: {', '.join(leaks)}; {remedy}."
            raise IsolationError(message)
        return found

    def _refuse(self, response: Any) -> NoReturn:
        """Raise for a probe that was not run."""
        text = response.output.strip()[:MAX_SHOWN_CHARS]
        if response.exit_code in (NOT_RUNNABLE, NOT_FOUND, TOO_OLD):
            raise ExecutorError(
                f"{self._name} has no python3 that it can run, or one older than 3.11. {text}"
            )
        message = f"{self._name} did not run the probe (exit code {response.exit_code}). {text}"
        raise ExecutorError(message, is_retryable=True)

    def _execution(self, response: Any, token: str, found: Isolation) -> Execution:
        """Build the record of a run from what its command has printed.

        Raises:
            ExecutorError: The sandbox lost a file, or the report is malformed.
        """
        if response.exit_code == NO_FILES:
            raise ExecutorError(
                f"In {self._name}, uploaded files are not where commands look for them, or not complete."
            )
        report = find_report(response.output, token)
        if report is None and response.exit_code in TIMED_OUT:
            return timed_out(self.limits, found)
        if report is None and not self._is_alive():
            text = response.output.strip()[-MAX_SHOWN_CHARS:]
            raise ExecutorError(f"{self._name} ended during a run. {text}".strip(), is_retryable=True)
        if report is not None and "path" in report:
            report = self._long_report(str(report["path"]), token)
        try:
            return execution_of(report, self.limits, found)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ExecutorError(
                f"{self._name} returned a malformed report: {type(error).__name__}."
            ) from error

    def _long_report(self, path: str, token: str) -> dict[str, Any]:
        """Return the report in a file of the sandbox, and remove that."""
        if not re.fullmatch(rf"{PARENT}/code_chains-report-\w+", path):
            raise ExecutorError(f"{self._name} returned a malformed report.")
        responses = list(self._ask("download_files", lambda: self._backend.download_files([path])) or ())
        content = getattr(responses[0], "content", None) if responses else None
        report = find_report(content.decode(errors="replace"), token) if isinstance(content, bytes) else None
        with contextlib.suppress(ExecutorError):
            self._execute(f"rm -f {path}", GRACE_S)
        if report is None:
            raise ExecutorError(f"{self._name} did not return the report of a run.", is_retryable=True)
        return report

    def _is_alive(self) -> bool:
        """Return whether the sandbox still runs commands."""
        try:
            return "alive" in self._execute("echo alive", GRACE_S).output.split()
        except ExecutorError:
            return False

    # -- the sandbox -----------------------------------------------------------------------------------------

    def _execute(self, command: str, seconds: float) -> Any:
        """Return what a command answers.

        It has a shell of its own, as some sandboxes run it in one that must outlive it.
        """
        command = shlex.join(["sh", "-c", command])
        options = {"timeout": math.ceil(seconds)} if self._takes_timeout else {}
        response = self._ask("execute", lambda: self._backend.execute(command, **options), seconds)
        if not isinstance(getattr(response, "output", None), str) or not hasattr(response, "exit_code"):
            kind = type(response).__name__
            raise ExecutorError(f"{self._name}.execute returned {kind}, without output and exit code.")
        return response

    def _upload(self, files: list[tuple[str, bytes]]) -> None:
        responses = list(self._ask("upload_files", lambda: self._backend.upload_files(files)) or ())
        errors = [
            f"{path}: {error}"
            for (path, _), error in zip(files, map(_error, responses), strict=False)
            if error
        ]
        if errors or len(responses) != len(files):
            raise ExecutorError(
                f"{self._name} did not take all files. {'; '.join(errors[:3])}", is_retryable=True
            )

    def _remove(self, folder: RunFolder) -> None:
        self._execute(f"chmod -R u+rwX {folder.path}; rm -rf {folder.path}", GRACE_S)

    def _ask(self, what: str, call: Callable[[], T], seconds: float = 0.0) -> T:
        """Call the sandbox, and wait for its answer for a limited time.

        Raises:
            ExecutorError: It raised, or did not answer in time.
        """
        future: Future[T] = Future()
        thread = threading.Thread(
            target=_fulfil, args=(future, call), name=f"{self._name}.{what}", daemon=True
        )
        thread.start()
        try:
            return future.result(seconds + ANSWER_TIMEOUT_S)
        except FutureTimeoutError:
            raise ExecutorError(f"{self._name} did not answer in time ({what}).", is_retryable=True) from None
        except (ExecutorError, InputError, ConfigurationError):
            raise
        except Exception as error:
            message = f"{self._name}.{what} failed: {type(error).__name__}: {error}"
            raise ExecutorError(message[:500], is_retryable=True) from error


class RunFolder:
    """The folder of a run in the sandbox.

    Attributes:
        path: Its path.
        is_given_up: Whether nobody waits for the run any more.
    """

    def __init__(self) -> None:
        self.path = f"{PARENT}/code_chains-{secrets.token_hex(8)}"
        self.is_given_up = False

    def check(self) -> None:
        """Raise `ExecutorError` if nobody waits for the run any more."""
        if self.is_given_up:
            raise ExecutorError("The run was cancelled.")


def _fulfil(future: Future[T], call: Callable[[], T]) -> None:
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
