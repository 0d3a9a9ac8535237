"""Third-party sandboxes of LangChain's protocol as executors: the contract in a real one, and sandboxes that misbehave."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from code_chains import create_code_chain
from code_chains.deepagents import SandboxBackend
from code_chains.errors import ConfigurationError, ExecutorError, InputError, IsolationError
from code_chains.executors import BackendExecutor, Limits
from code_chains.executors.values import value_of
from code_chains.testing import ExecutorContract, ScriptedModel, asks_for_code
from tests.conftest import soon

LIMITS = Limits(seconds=2, memory="256M", output="64K", processes=16, disk="8M", artifacts="1M")


@pytest.fixture(scope="module")
def backend() -> Iterator[SandboxBackend]:
    limits = Limits(seconds=60, memory="1G", processes=128, disk="256M", output="8M")
    with SandboxBackend(limits=limits) as backend:
        backend.execute(
            "true"
        )  # The first command is started in another way, which tests that count processes must not see.
        yield backend


@pytest.fixture
def executor(backend: SandboxBackend) -> BackendExecutor:
    return BackendExecutor(backend, limits=LIMITS)


@pytest.mark.slow
class TestContract(ExecutorContract):
    """The contract of executors, in a sandbox that knows nothing of it."""

    @pytest.fixture
    def executor(self, backend: SandboxBackend) -> BackendExecutor:
        # Time enough to fill the memory on a busy machine.
        # The shell of this sandbox ends what a command leaves running, so there are no sessions.
        return BackendExecutor(backend, limits=replace(LIMITS, seconds=6), max_sessions=0)


def left(backend: SandboxBackend) -> str:
    return backend.execute("ls /tmp /box; pgrep -c python3").output


def test_files_come_in_and_go_out(executor: BackendExecutor, backend: SandboxBackend, sales: Path) -> None:
    program = (
        "import os, shutil\nos.makedirs('out/ü b')\nshutil.copyfile('my sales.csv', 'out/ü b/copy.csv')\n"
        "os.symlink('/etc/passwd', 'link')\nopen('big', 'wb').write(bytes(2 << 20))"
    )
    done = executor.run(program, files={"my sales.csv": sales})
    assert done.ok, done.error
    assert [(file.name, file.data) for file in done.artifacts] == [("out/ü b/copy.csv", sales.read_bytes())]
    assert done.truncated  # For the file that is larger than the limit.


def test_values_figures_and_long_output_come_back(executor: BackendExecutor) -> None:
    done = executor.run("print('x' * 50_000)\n{'a': [1, 2.5, None], 'b': {3}}", return_value=True)
    assert value_of(done) == {"a": [1, 2.5, None], "b": {3}}
    assert len(done.stdout) == 50_001
    assert done.isolation is not None
    assert (done.isolation.level, done.isolation.open) == ("container", ())


@pytest.mark.slow
def test_nothing_is_left_behind(executor: BackendExecutor, backend: SandboxBackend) -> None:
    before = left(backend)
    executor.run("import subprocess; open('/tmp/own', 'w'); subprocess.Popen(['sleep', '60'])")
    executor.run("while True: pass")
    backend.execute("rm -f /tmp/own")
    assert left(backend) == before


@pytest.mark.slow
def test_a_cancelled_run_is_stopped_inside(executor: BackendExecutor, backend: SandboxBackend) -> None:
    before = left(backend)

    async def cancel() -> None:
        task = asyncio.create_task(executor.arun("import time; time.sleep(60)"))
        await asyncio.sleep(0.7)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert soon(lambda: left(backend) == before, 20)


def test_variables_keep_their_types(executor: BackendExecutor) -> None:
    variables = {"day": date(2024, 2, 29), "ids": {1, 2}, "share": Decimal("0.10"), "by_id": {1: b"x"}}
    done = executor.run("day.year, ids, share, by_id", variables=variables)
    assert done.result == "(2024, {1, 2}, Decimal('0.10'), {1: b'x'})"


def test_a_table_is_refused_before_anything_starts(executor: BackendExecutor) -> None:
    with pytest.raises(InputError, match=r"'t' is a table, and this executor takes none\. Pass "):
        executor.run("1", variables={"t": pd.Series([1])})


def test_a_chain_takes_a_sandbox_by_its_shape(backend: SandboxBackend) -> None:
    model = ScriptedModel(
        lambda messages: "```python\nprint(6 * 7)\n```" if asks_for_code(messages) else "It is 42."
    )
    with create_code_chain(model, executor=backend, limits=LIMITS) as chain:
        result = chain.invoke({"query": "What is 6 times 7?"})
    isolation = result["execution"].isolation
    assert (result["answer"], isolation and isolation.launcher) == ("It is 42.", "SandboxBackend")
    assert backend.execute("echo alive").output == "alive\n"  # Who made it closes it.


def test_the_shell_of_this_machine_is_no_sandbox(tmp_path: Path) -> None:
    from deepagents.backends import LocalShellBackend

    executor = BackendExecutor(LocalShellBackend(root_dir=tmp_path, inherit_env=True), limits=LIMITS)
    with pytest.raises(
        IsolationError,
        match=r"in LocalShellBackend can reach .*: filesystem.*required_isolation=",
    ):
        executor.run(f"open({str(tmp_path / 'made')!r}, 'w')")
    assert list(tmp_path.iterdir()) == []


@dataclass
class Response:
    """An answer to a command, or about a file."""

    output: str = ""
    exit_code: int | None = 0
    content: bytes | None = None
    error: str | None = None


class Sandbox:
    """A sandbox that does what a test says instead of what another one does."""

    def __init__(self, inner: SandboxBackend, **instead: Callable[..., Any]) -> None:
        self.inner, self.instead = inner, instead

    def execute(self, command: str) -> Any:
        """Run a command."""
        return self.instead.get("execute", self.inner.execute)(command)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[Any]:
        """Write files."""
        return self.instead.get("upload_files", self.inner.upload_files)(files)  # type: ignore[no-any-return]

    def download_files(self, paths: list[str]) -> list[Any]:
        """Read files."""
        return self.instead.get("download_files", self.inner.download_files)(paths)  # type: ignore[no-any-return]


def dies(*_: object) -> Any:
    raise ConnectionError("the sandbox is gone")


BROKEN: dict[str, tuple[dict[str, Callable[..., Any]], str]] = {
    "it is gone": ({"execute": dies}, "Sandbox.execute failed: ConnectionError: the sandbox is gone"),
    "no Python": (
        {"execute": lambda command: Response("sh: python3: not found", 127)},
        "has no python3 that it can run, or one older",
    ),
    "an old Python": ({"execute": lambda command: Response("", 41)}, "older than 3.11"),
    "an answer of another kind": ({"execute": lambda command: None}, "returned NoneType"),
    "a probe that says nothing": ({"execute": lambda command: Response("hello")}, "is malformed: 'hello'"),
    "it takes no files": ({"upload_files": dies}, "upload_files failed"),
    "it refuses a file": (
        {"upload_files": lambda files: [Response(error="permission_denied") for _ in files]},
        "did not take all files. /tmp/.*permission_denied",
    ),
    "it takes some files": ({"upload_files": lambda files: []}, "did not take all files"),
    "it takes files elsewhere": (
        {"upload_files": lambda files: [Response() for _ in files]},
        "uploaded files are not where commands look",
    ),
    "it says nothing of files": ({"upload_files": lambda files: None}, "did not take all files"),
    "it returns no report": ({"download_files": lambda paths: []}, "did not return the report"),
    "it says nothing of the report": ({"download_files": lambda paths: None}, "did not return the report"),
    "it exits": (
        {"upload_files": lambda files: sys.exit(3)},
        r"upload_files failed: RuntimeError: SystemExit\(3",
    ),
}


@pytest.mark.rows(3)
@pytest.mark.parametrize(("instead", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_sandbox_is_a_clear_error(
    backend: SandboxBackend, instead: dict[str, Callable[..., Any]], message: str
) -> None:
    with pytest.raises(ExecutorError, match=message):
        BackendExecutor(Sandbox(backend, **instead), limits=LIMITS).run("print('x' * 50_000)")


FORGED: dict[str, dict[str, Any]] = {
    "an unknown reason": {"reason": "zzz"},
    "a reason of another kind": {"reason": ["x"]},
    "an exit code of another kind": {"exit": None},
    "a result of another kind": {"result": 5},
    "output of another kind": {"stdout": {"a": 1}},
    "files of another kind": {"files": 5},
    "files without content": {"files": [{"a": 1}]},
}


@pytest.mark.rows(2)
@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_malformed_report_is_a_clear_error(
    backend: SandboxBackend, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(command: str) -> Any:
        response = backend.execute(command)
        lines = [json.loads(line) for line in response.output.splitlines() if '"proof"' in line]
        if not lines:
            return response
        report = json.dumps({**json.loads(lines[0]["report"]), **change})
        return Response(json.dumps({**lines[0], "report": report}))

    # The sandbox itself knows the key, and a program that has broken out of its limits might.
    monkeypatch.setattr("hmac.compare_digest", lambda expected, proof: True)
    with pytest.raises(ExecutorError, match="malformed report"):
        BackendExecutor(Sandbox(backend, execute=execute), limits=LIMITS).run("1")


def test_a_report_that_is_not_signed_is_none(backend: SandboxBackend) -> None:
    def execute(command: str) -> Any:
        response = backend.execute(command)
        return Response(response.output.replace("sum: 3", "sum: 4"))

    done = BackendExecutor(Sandbox(backend, execute=execute), limits=LIMITS).run("print('sum: 3')")
    assert (done.status, done.stdout) == ("killed", "")


def test_what_an_earlier_program_left_is_not_imported(
    executor: BackendExecutor, backend: SandboxBackend
) -> None:
    planted = "import os, sys; os.write(1, b'PLANTED'); os._exit(0)"
    site = "/box/.local/lib/python3.11/site-packages"
    paths = ["/box/json.py", "/box/hashlib.py", f"{site}/usercustomize.py", f"{site}/sitecustomize.py"]
    backend.upload_files([(path, planted.encode()) for path in paths])
    try:
        assert executor.run("import json\n1 + 1").result == "2"
    finally:
        backend.execute("rm -rf /box/* /box/.local")


def test_artifacts_are_what_they_seem(executor: BackendExecutor) -> None:
    program = (
        "import os\nos.makedirs('dev')\nopen('dev/zero', 'w').write('y')\nopen('plain', 'w').write('z')\n"
        "os.mkfifo('pipe')\nopen('a\\nb', 'w').write('x')\nos.rename('../box', '../other')\nos.symlink('/', '../box')"
    )
    names = [artifact.name for artifact in executor.run(program).artifacts]
    assert set(names) <= {"dev/zero", "plain"}


def test_a_folder_that_cannot_be_entered_is_removed_as_well(
    executor: BackendExecutor, backend: SandboxBackend
) -> None:
    executor.run("import os\nos.mkdir('d')\nopen('d/x', 'w')\nos.chmod('d', 0)")
    assert "code_chains-" not in backend.execute("ls /tmp").output


def test_neither_command_line_nor_variables_leave_this_process(
    backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET_NAME", "hunter2")
    commands: list[str] = []

    def execute(command: str) -> Any:
        commands.append(command)
        return backend.execute(command)

    BackendExecutor(Sandbox(backend, execute=execute), limits=LIMITS).run("1")
    assert not any(word in " ".join(commands) for word in ("hunter2", "MY_SECRET"))


@pytest.mark.slow
def test_a_run_that_is_cancelled_early_never_starts(backend: SandboxBackend) -> None:
    commands: list[str] = []

    def execute(command: str) -> Any:
        commands.append(command)
        time.sleep(0.4)
        return backend.execute(command)

    async def cancel() -> None:
        executor = BackendExecutor(Sandbox(backend, execute=execute), limits=LIMITS)
        task = asyncio.create_task(executor.arun("1"))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(1.5)

    asyncio.run(cancel())
    assert not any("session_server" in command for command in commands)


def test_a_sandbox_that_never_answers_is_not_waited_for(
    backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_chains.executors.remote.protocol_sandbox.ANSWER_TIMEOUT_S", 0.2)
    started = time.monotonic()
    with pytest.raises(ExecutorError, match="did not answer in time"):
        BackendExecutor(Sandbox(backend, upload_files=lambda files: time.sleep(5)), limits=LIMITS).run("1")
    assert time.monotonic() - started < 4


def test_a_program_cannot_forge_the_report(executor: BackendExecutor) -> None:
    forged = '{"token": "x", "exit": 0, "reason": null, "result": "{}", "stdout": "forged", "stderr": ""}'
    done = executor.run(
        f"import os\nos.write(1, {forged!r}.encode())\nprint(sorted(os.listdir('..')))\n1 / 0"
    )
    assert (done.status, "token" in done.stdout.rpartition("[")[2]) == ("error", False)


def test_wrong_arguments_are_named_before_anything_is_asked(backend: SandboxBackend) -> None:
    with pytest.raises(ConfigurationError, match="execute, upload_files and download_files"):
        BackendExecutor(object())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="required_isolation"):
        BackendExecutor(backend, required_isolation=["nothing"])
    with pytest.raises(ConfigurationError, match="a sandbox of LangChain's protocol"):
        create_code_chain(ScriptedModel(lambda messages: ""), executor=object())  # type: ignore[arg-type]
    executor = BackendExecutor(backend, limits=LIMITS)
    with pytest.raises(InputError):
        executor.run("1", variables={"x": object()})
    executor.close()
    with pytest.raises(ExecutorError, match="closed"):
        executor.run("1")


# -- what may be wrong with a sandbox ----------------------------------------------------------------------------------


def files_left(backend: SandboxBackend) -> str:
    return backend.execute(
        "ls -A -I .cache -I .config /tmp /box"
    ).output  # Matplotlib's list of fonts may stay.


class LocalShell:
    """The shell of this machine, which isolates nothing, with few programs and a Python of the test's choice."""

    def __init__(self, programs: Path, python: str | Path) -> None:
        for name in ("sh", "mkdir", "rm", "chmod"):
            (programs / name).symlink_to(str(shutil.which(name)))
        (programs / "python3").symlink_to(python)
        self.programs = programs

    def execute(self, command: str) -> Response:
        """Run a command."""
        done = subprocess.run(
            [self.programs / "sh", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": str(self.programs)},
            check=False,
        )
        return Response(done.stdout.decode(errors="replace"), done.returncode)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[Any]:
        """Write files."""
        raise AssertionError("Nothing is uploaded to a sandbox that cannot run it.")

    def download_files(self, paths: list[str]) -> list[Any]:
        """Read files."""
        raise AssertionError("Nothing is downloaded from a sandbox that ran nothing.")


def test_an_old_python_is_named_and_gets_no_program(tmp_path: Path) -> None:
    places = [Path("/usr/bin"), Path("/usr/local/bin"), *Path(sys.base_prefix).parent.glob("3.*/bin")]
    found = [place / f"python3.{minor}" for place in places for minor in (8, 9, 10)]
    old = next(filter(Path.exists, found), None)
    if old is None:
        pytest.skip("no Python before 3.11 is installed")
    with pytest.raises(ExecutorError, match=r"LocalShell has no python3 .* older than 3\.11"):
        BackendExecutor(LocalShell(tmp_path, old), limits=LIMITS).run("1")


def test_a_python_for_another_architecture_is_named(tmp_path: Path) -> None:
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + (2).to_bytes(2, "little") + (0xFFF0).to_bytes(2, "little")
    (tmp_path / "foreign").write_bytes(header + bytes(44))
    (tmp_path / "foreign").chmod(0o755)
    with pytest.raises(ExecutorError, match="LocalShell has no python3 that it can run"):
        BackendExecutor(LocalShell(tmp_path, tmp_path / "foreign"), limits=LIMITS).run("1")


CLOSED = dict.fromkeys(("filesystem", "network", "processes", "signals", "ptrace", "ipc"), True)
LIES: dict[str, dict[str, Any]] = {
    "all is closed": {**CLOSED, "environment": []},
    "truth of another kind": {**CLOSED, "network": "yes", "environment": []},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_sandbox_that_says_it_is_closed_while_it_reaches_this_machine_runs_nothing(
    tmp_path: Path, lie: dict[str, Any]
) -> None:
    class Liar(LocalShell):
        def execute(self, command: str) -> Response:
            return Response(json.dumps(lie), super().execute(command).exit_code)

    with pytest.raises(IsolationError, match=r"can reach of this machine: .*network"):
        BackendExecutor(Liar(tmp_path, sys.executable), limits=LIMITS).run("1")


def test_a_sandbox_that_ends_during_a_run_is_an_error_and_not_the_end_of_the_program(
    backend: SandboxBackend,
) -> None:
    before, is_gone = files_left(backend), False

    def execute(command: str) -> Any:
        nonlocal is_gone
        is_gone = is_gone or "zipfile" in command
        # As langchain-e2b says it.
        gone = Response("Error executing command (SandboxException): it is gone", 1)
        return gone if is_gone else backend.execute(command)

    with pytest.raises(ExecutorError, match=r"Sandbox ended during a run\. .*it is gone") as caught:
        BackendExecutor(Sandbox(backend, execute=execute), limits=LIMITS).run("1")
    assert caught.value.is_retryable
    backend.execute("rm -rf /tmp/code_chains-*")
    assert files_left(backend) == before


@pytest.mark.parametrize("share", [0, 0.5, 0.99])
def test_half_an_upload_is_an_error_and_nothing_of_it_runs(backend: SandboxBackend, share: float) -> None:
    before = files_left(backend)

    def upload(files: list[tuple[str, bytes]]) -> list[Any]:
        return backend.upload_files([(path, data[: int(len(data) * share)]) for path, data in files])

    with pytest.raises(ExecutorError, match="not complete"):
        BackendExecutor(Sandbox(backend, upload_files=upload), limits=LIMITS).run("1")
    assert files_left(backend) == before


def test_half_a_report_is_an_error_and_leaves_nothing(backend: SandboxBackend) -> None:
    before = files_left(backend)

    def download(paths: list[str]) -> list[Any]:
        return [Response(content=one.content and one.content[:9000]) for one in backend.download_files(paths)]

    executor = BackendExecutor(Sandbox(backend, download_files=download), limits=LIMITS)
    with pytest.raises(ExecutorError, match="did not return the report of a run"):
        executor.run("print('x' * 50_000)")
    assert files_left(backend) == before


@pytest.mark.slow
def test_a_slow_upload_does_not_count_as_time_of_the_program(backend: SandboxBackend) -> None:
    def upload(files: list[tuple[str, bytes]]) -> list[Any]:
        time.sleep(LIMITS.seconds + 0.5)
        return backend.upload_files(files)

    done = BackendExecutor(Sandbox(backend, upload_files=upload), limits=LIMITS).run("6 * 7")
    assert (done.result, done.duration < LIMITS.seconds) == ("42", True)


@pytest.mark.slow
def test_two_chains_on_one_sandbox_see_nothing_of_each_other(backend: SandboxBackend) -> None:
    before = files_left(backend)

    def ask(number: int) -> str:
        code = f"import os, time\nn = {number}\nopen('own', 'w')\ntime.sleep(0.3)\nprint(n, os.listdir())"
        model = ScriptedModel(
            lambda messages: f"```python\n{code}\n```" if asks_for_code(messages) else "Done."
        )
        with create_code_chain(model, executor=backend, limits=LIMITS) as chain:
            return str(chain.invoke({"query": "What is there?"})["execution"].stdout)

    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(ask, (1, 2))] == ["1 ['own']\n", "2 ['own']\n"]
    assert files_left(backend) == before


def test_a_command_runs_in_a_shell_of_its_own(backend: SandboxBackend) -> None:
    """Daytona runs commands in the shell of a session, which `exec` and `exit` would end before it reports."""

    def execute(command: str) -> Any:
        done = backend.execute(f"{{ {command}\n}}; code=$?; echo; echo session=$code")
        output, reported, code = done.output.rpartition("\nsession=")
        assert reported, "The command ended the shell of its session."
        return Response(output, int(code))

    assert BackendExecutor(Sandbox(backend, execute=execute), limits=LIMITS).run("6 * 7").result == "42"
