"""The kernel sandbox behind a command: everything as at home, and a server that fails ends nothing but its runs."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from code_chains.apps.terminal.cli import cli
from code_chains.arguments import resolve_executor
from code_chains.errors import ConfigurationError, ExecutorError, InputError, OverloadedError, SessionError
from code_chains.executors import EngineExecutor, Executor, Limits, Session, StdioExecutor
from code_chains.executors.remote import stdio, stdio_connection
from code_chains.executors.remote.engine import write_context
from code_chains.executors.remote.stdio import SERVER
from code_chains.executors.values import value_of
from code_chains.testing import ExecutorContract, SessionContract
from code_chains.toolbox import Toolbox
from tests.conftest import descendants, soon

pytestmark = [pytest.mark.slow, pytest.mark.kernel_sandbox]
LIMITS = Limits(seconds=3, memory="256M", output="64K", tool_seconds=1)


@pytest.fixture(scope="module")
def shared() -> Iterator[StdioExecutor]:
    with StdioExecutor([sys.executable, *SERVER], limits=LIMITS) as executor:
        yield executor


@pytest.fixture
def own() -> Iterator[StdioExecutor]:
    """An executor whose server a test may end."""
    with StdioExecutor([sys.executable, *SERVER], limits=LIMITS) as executor:
        yield executor


class TestContract(ExecutorContract):
    @pytest.fixture
    def executor(self, own: StdioExecutor) -> Executor:
        return own


class TestSessions(SessionContract):
    @pytest.fixture
    def session(self, shared: StdioExecutor) -> Iterator[Session]:
        with shared.session() as session:
            yield session


# -- values, files and tools -------------------------------------------------------------------------------------------


def test_tables_cross_in_both_directions(shared: StdioExecutor) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"n": [1, 2], "at": pd.to_datetime(["2024-01-05", "2024-01-06"])})
    done = shared.run("df.assign(m=df.n * 2)", variables={"df": frame}, return_value=True)
    pd.testing.assert_frame_equal(value_of(done), frame.assign(m=[2, 4]))


def test_files_go_in_and_come_out(shared: StdioExecutor, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    given = {"a.txt": tmp_path / "a.txt", "b.bin": io.BytesIO(b"\0\1")}
    done = shared.run(
        "open('c.bin', 'wb').write(open('a.txt', 'rb').read() + open('b.bin', 'rb').read())", files=given
    )
    assert [(artifact.name, artifact.data) for artifact in done.artifacts] == [("c.bin", b"text\0\1")]


def pay(amount: int) -> str:
    """Pay an amount."""
    if amount < 0:
        raise ValueError("nothing is paid back")
    return f"paid {amount}"


async def pay_later(amount: int) -> str:
    """Pay an amount on the event loop."""
    await asyncio.sleep(0.01)
    return f"paid {amount}"


def test_tools_run_in_the_application_and_are_recorded_there(shared: StdioExecutor) -> None:
    done = shared.run(
        "print(pay(5))\ntry:\n    pay(amount=-1)\nexcept ToolError as error:\n    print(error)", tools=[pay]
    )
    assert done.stdout == "paid 5\npay: ValueError: nothing is paid back\n"
    assert [(call.name, call.status) for call in done.tool_calls] == [("pay", "ok"), ("pay", "error")]


async def test_async_tools_run_on_the_loop_of_the_application(shared: StdioExecutor) -> None:
    assert (await shared.arun("print(pay_later(5))", tools=[pay_later])).stdout == "paid 5\n"


def test_a_call_may_wait_for_approval_and_a_slow_tool_is_abandoned(shared: StdioExecutor) -> None:
    def approve(request: Any) -> bool:
        time.sleep(1.5)
        return True

    def sleep() -> int:
        """Sleep for long."""
        time.sleep(5)
        return 1

    assert shared.run("print(pay(5))", tools=Toolbox([pay], approve=approve)).stdout == "paid 5\n"
    done = shared.run("try:\n    sleep()\nexcept ToolError as error:\n    print(error)", tools=[sleep])
    assert "took longer than 1 seconds" in done.stdout


def test_hidden_tests_decide(shared: StdioExecutor) -> None:
    outcomes = [shared.run_tests("def f(x): return x + 1", f"assert f(1) == {n}")[1].status for n in (2, 3)]
    assert outcomes == ["ok", "error"]


def test_a_tested_program_may_call_tools(shared: StdioExecutor) -> None:
    ran, tested = shared.run_tests("def f(x): return pay(x)", "assert f(1) == 'paid 1'", tools=[pay])
    assert (ran.status, tested.status, [call.name for call in ran.tool_calls]) == ("ok", "ok", ["pay"])


def test_output_arrives_while_a_program_runs(shared: StdioExecutor) -> None:
    program = "import time\nfor n in range(3):\n    print(n, flush=True)\n    time.sleep(0.3)"
    *parts, done = shared.stream(program)
    assert (len(parts) > 1, "".join(map(str, parts)), done.stdout) == (True, "0\n1\n2\n", "0\n1\n2\n")  # type: ignore[union-attr]


def test_bad_input_is_named(shared: StdioExecutor) -> None:
    with pytest.raises(InputError, match="'n' cannot be passed"):
        shared.run("1", variables={"n": object()})


def test_sessions_are_limited_and_those_that_ended_count_no_more() -> None:
    with StdioExecutor([sys.executable, *SERVER], max_sessions=1) as executor:
        first = executor.session()
        with pytest.raises(OverloadedError, match="1 sessions are open"):
            executor.session()
        first.close()
        assert executor.session().is_open


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def server_of(executor: StdioExecutor) -> int:
    executor.warm_up()
    assert executor._connection is not None
    return executor._connection._process.pid


async def test_a_run_that_is_cancelled_ends_at_once_and_the_next_one_runs(own: StdioExecutor) -> None:
    own.warm_up()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(own.arun("while True: pass"), 1)
    assert (await own.arun("1")).result == "1"


def test_a_server_that_is_killed_fails_its_runs_and_sessions_alone(own: StdioExecutor) -> None:
    session = own.session()
    session.run("a = 1")
    os.kill(server_of(own), signal.SIGKILL)
    assert soon(lambda: not session.alive)
    with pytest.raises(SessionError, match="its server has ended"):
        session.run("a")
    assert own.run("2").result == "2"


def test_a_run_whose_server_dies_is_an_error_that_may_be_retried(own: StdioExecutor) -> None:
    program = "import time; time.sleep(2)"
    server = server_of(own)

    async def kill() -> None:
        run = asyncio.create_task(own.arun(program))
        await asyncio.sleep(0.5)
        os.kill(server, signal.SIGKILL)
        await run

    with pytest.raises(ExecutorError, match="is gone: it ended") as caught:
        asyncio.run(kill())
    assert caught.value.is_retryable


def test_closing_leaves_no_process() -> None:
    before = set(descendants())
    with StdioExecutor([sys.executable, *SERVER], limits=LIMITS) as executor:
        executor.run("1")
    assert soon(lambda: set(descendants()) <= before)


def says(*frames: bytes, then: str = "") -> list[str]:
    """Return the command of a server that says this."""
    return [sys.executable, "-c", f"import os, time; os.write(1, {b''.join(frames)!r}); {then}"]


LATER = "time.sleep(0.5); os.write(1, {!r}); time.sleep(60)"
READY = struct.pack("!I", 41) + b'{"id": 0, "done": {"guidance": "hello."}}'


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["no-such-program"], "cannot be started"),
        ([sys.executable, "-c", "import sys; sys.exit('no such image')"], "It said: no such image"),
        (says(b"hello, world"), "cannot be read"),
        (says(b"\0\0\0\2[]"), "cannot be read"),
        (says(b"\xff\xff\xff\xff"), "cannot be read"),
        (says(b"\0\0\1\0{"), "it ended"),
        (says(READY[:20], then="time.sleep(60)"), "not ready after"),
        (says(READY), "it ended"),
        (says(READY, then=LATER.format(b'\0\0\0\x17{"id":1,"call":1,"x":1}')), "cannot be read"),
        (
            says(READY, b'\0\0\0\x11{"id":1,"done":{}}', then="time.sleep(60)"),
            "(malformed|cannot be read|it ended)",
        ),
        (says(READY, then="time.sleep(60)"), "nothing came for"),
    ],
)
def test_a_server_that_is_none_is_an_error_that_says_so(
    command: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio_connection, "START_TIMEOUT_S", 3.0)
    monkeypatch.setattr(stdio, "STALLED_S", 1.0)
    with (
        StdioExecutor(command, limits=Limits(seconds=1)) as executor,
        pytest.raises(ExecutorError, match=said),
    ):
        executor.run("1")


@pytest.mark.parametrize("command", ["docker run", [], [1]])
def test_a_command_is_a_list_of_words(command: Any) -> None:
    with pytest.raises(ConfigurationError, match="a list of words"):
        StdioExecutor(command)


# -- engines -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine that notes how it is called, and runs what it is to run here."""
    program = tmp_path / "docker"
    program.write_text(
        f"""#!{sys.executable}
import os, sys
with open({str(tmp_path / "calls")!r}, "a") as calls:
    print(*sys.argv[1:], file=calls)
if sys.argv[1] == "image":
    sys.exit(0)
if sys.argv[1] == "build":
    sys.exit(0 if "FROM python" in open(sys.argv[-1] + "/Dockerfile").read() else 1)
if not os.path.exists({str(tmp_path / "image")!r}):
    sys.exit("Unable to find image 'code-chains:0' locally")
os.execv(sys.executable, [sys.executable, *sys.argv[sys.argv.index("python3") + 1:]])
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_an_engine_without_the_image_says_how_to_build_it(engine: Path) -> None:
    with (
        EngineExecutor("docker") as executor,
        pytest.raises(ExecutorError, match="code-chains image build --engine docker"),
    ):
        executor.run("1")


def test_one_container_without_a_network_serves_all_runs(engine: Path) -> None:
    (engine / "image").touch()
    with resolve_executor("docker") as executor:
        assert [executor.run(f"print({n})").output for n in (1, 2)] == ["1", "2"]
    (call,) = (engine / "calls").read_text().splitlines()
    assert call.startswith("run --rm --interactive --network=none")


def test_the_image_is_built_from_this_library_and_its_requirements(engine: Path) -> None:
    assert CliRunner().invoke(cli, ["image", "build"]).exit_code == 0
    assert CliRunner().invoke(cli, ["image", "build", "--base", "other:1"]).exit_code == 1
    assert CliRunner().invoke(cli, ["image", "build", "--context", str(engine / "context")]).exit_code == 0
    written = (engine / "context" / "Dockerfile").read_text()
    assert "FROM python:3" in written
    assert "'langchain" in written
    assert "'pandas" in written
    assert (engine / "context" / "code_chains" / "executors" / "remote" / "stdio_server.py").exists()


def test_an_image_leaves_conditions_of_requirements_to_its_own_pip(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    needs = ["plain>=1", "other; extra == 'wasm'", "windows; extra == 'data' and sys_platform == 'win32'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: needs)
    write_context(tmp_path, "python:3")
    written = (tmp_path / "Dockerfile").read_text()
    assert """'plain>=1' 'windows; python_version > "0" and sys_platform == "win32"'""" in written
    assert "other" not in written


def test_another_engine_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'docker' or 'podman'"):
        EngineExecutor("lxc")
