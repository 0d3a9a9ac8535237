"""The kernel sandbox behind a command: everything as at home, and a server that fails ends nothing but its runs."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from code_chains.apps.terminal.cli import cli
from code_chains.chains.validate import ValidateChain
from code_chains.errors import ConfigurationError, ExecutorError, InputError, OverloadedError, SessionError
from code_chains.executors import EngineExecutor, Executor, Limits, Session, StdioExecutor
from code_chains.executors.registry import resolve_executor
from code_chains.executors.remote import stdio, stdio_connection
from code_chains.executors.remote.engine import ready_engine, write_context
from code_chains.executors.remote.stdio import SERVER
from code_chains.executors.remote.stdio_frames import HEADER, frame
from code_chains.executors.values import value_of
from code_chains.records.runs import PROBED
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


def framed(message: Any, *blobs: bytes) -> bytes:
    """Return a frame as a server sends it."""
    return b"".join(frame(message, blobs))


READY = framed({"id": 0, "done": {"guidance": "hello."}})


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["no-such-program"], "cannot be started"),
        ([sys.executable, "-c", "import sys; sys.exit('no such image')"], "It said: no such image"),
        (says(b"hello, world, how are you"), "cannot be read"),
        (says(HEADER.pack(0, 2, 0) + b"[]"), "cannot be read"),
        (says(b"\xff" * HEADER.size), "cannot be read"),
        (says(HEADER.pack(0, 256, 0) + b"{"), "it ended|can be written"),
        (says(HEADER.pack(0, 2 << 20, 0)), "bytes at once"),
        (says(READY[:20], then="time.sleep(60)"), "not ready after"),
        (says(READY), "it ended|can be written"),
        (says(READY, then=LATER.format(framed({"id": 1, "call": 1, "x": 1}))), "cannot be read"),
        (
            says(READY, framed({"id": 1, "done": {}}), then="time.sleep(60)"),
            "malformed|cannot be read|it ended|no answer",
        ),
        (says(READY, then="time.sleep(60)"), "no answer came"),
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


DATA = (b"data", b"1\n", b"", b"x" * 500_000, b"x" * 1_100_000)
GOOD: dict[str, Any] = {
    "status": "ok",
    "error": None,
    "result": None,
    "stdout": 1,
    "stderr": 2,
    "files": [],
    "displays": [],
    "seconds": 0.1,
    "peak": 1,
    "truncated": False,
    "isolation": None,
}
LEVEL = {
    "level": "perfect",
    "launcher": "\x1b[2J",
    "layers": ["x" * 5000] * 50,
    **dict.fromkeys(PROBED, 1),
}
FORGED: dict[str, dict[str, Any]] = {
    "a path above": {"files": [["../../x", 0]]},
    "an absolute path": {"files": [["/x", 0]]},
    "escapes in a name": {"files": [["a\n\x1b[31mb", 0]]},
    "a long name": {"files": [["x" * 5000, 0], ["/".join("x" * 500), 1]]},
    "a display of another kind": {"displays": [["text/html\r\nX: y", 0], ["image/png", 0]]},
    "no number": {"seconds": float("nan"), "peak": -5},
    "a long output": {"stdout": 3, "stderr": 3},
    "a level": {
        "isolation": {
            "level": "perfect",
            "launcher": "\x1b[2J",
            "layers": ["x" * 5000] * 50,
            **dict.fromkeys(PROBED, 1),
        }
    },
    "calls": {"tool_calls": [{"name": "pay"}]},
}


MALFORMED: dict[str, dict[str, Any]] = {
    "one blob for many files": {"files": [[f"{number}.txt", 0] for number in range(2)]},
    "many files": {"files": [[f"{number}.txt", number] for number in range(101)]},
    "data that is not there": {"files": [["a.txt", 7]]},
    "a text that is not there": {"stdout": 7},
    "another type": {"stdout": "1"},
    "a long outcome": {"result": 4},
    "a long error": {"status": "error", "error": {"type": "E", "message": "x" * 200_000}},
    "an unknown status": {"status": "splendid"},
    "no error": {"status": "error", "error": [1, 2]},
}


def claiming(forged: dict[str, Any], folder: Path) -> list[str]:
    """Return the command of a server that streams more than a run may print, and then claims this of it."""
    parts = b"".join([framed({"id": 1, "part": 0}, b"p" * 60_000)] * 20)
    said = folder / "said"
    said.write_bytes(parts + framed({"id": 1, "done": [{**GOOD, **forged}]}, *DATA))
    then = f"time.sleep(0.5); out = open(1, 'wb'); out.write(open({str(said)!r}, 'rb').read()); out.flush(); time.sleep(60)"
    return says(READY, then=then)


def test_what_cannot_be_read_of_one_run_ends_no_other(own: StdioExecutor) -> None:
    def count(numbers: list[int]) -> int:
        """Count numbers."""
        return len(numbers)

    assert own.run("print(count([1] * 100_000))", tools=[count]).stdout == "100000\n"
    connection = own._connection
    assert connection is not None
    request = stdio_connection.Request()
    connection.register(request)
    connection._take(request.number, b"[" * 100_000, b"")
    with pytest.raises(ExecutorError, match="cannot be read"):
        request.outcome()
    connection.forget(request)
    assert own.run("1").result == "1"
    assert own._connection is connection


@pytest.mark.parametrize(
    "part",
    [
        framed({"id": 1, "part": 0}, b"p" * 60_000),
        framed({"id": 1, "part": 0}, b""),
        framed({"id": 0, "beat": True}),
    ],
)
def test_a_server_that_writes_without_an_end_is_given_up(part: bytes) -> None:
    then = f"out = open(1, 'wb'); more = {part!r} * 100\nwhile True: out.write(more)"
    with (
        StdioExecutor(
            [sys.executable, "-c", f"import os, time; os.write(1, {READY!r}); time.sleep(0.5); {then}"]
        ) as executor,
        pytest.raises(ExecutorError, match=r"without an end|nobody asked for"),
    ):
        executor.run("1")


def test_a_server_that_answers_and_reads_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio_connection, "MAX_UNREAD_S", 1.0)
    answers = tmp_path / "answers"
    answers.write_bytes(b"".join(framed({"id": number, "done": [GOOD]}, *DATA[:3]) for number in range(1, 5)))
    serving = f"\nwhile True: time.sleep(0.2); os.write(1, open({str(answers)!r}, 'rb').read())"
    with StdioExecutor(says(READY, then=serving), limits=LIMITS) as executor:
        large, started = {"a.bin": bytes(1 << 20)}, time.monotonic()
        for _ in range(4):
            assert executor.run("1", files=large).stdout == "1\n"
        with pytest.raises(ExecutorError, match="read nothing"):
            executor.run("1", files=large)
        assert time.monotonic() - started < 20


@pytest.mark.parametrize("forged", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_record_is_an_error(forged: dict[str, Any], tmp_path: Path) -> None:
    with (
        StdioExecutor(claiming(forged, tmp_path), limits=LIMITS) as executor,
        pytest.raises(ExecutorError, match="malformed"),
    ):
        executor.run("1")


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_a_server_claims_is_checked_as_reports_of_hosted_sandboxes_are(
    forged: dict[str, Any], tmp_path: Path
) -> None:
    with StdioExecutor(claiming(forged, tmp_path), limits=LIMITS) as executor:
        done = executor.run("1")
    assert all(artifact.name == f"{number}.txt" for number, artifact in enumerate(done.artifacts))
    assert len(done.artifacts) <= 100
    assert max(len(done.stdout), len(done.stderr)) <= LIMITS.output_bytes
    assert (0 <= done.duration < 1, done.peak_memory >= 0, done.tool_calls) == (True, True, ())
    if done.isolation is not None:
        assert (done.isolation.level, "(as claimed)" in done.isolation.launcher) == ("none", True)
        assert "\x1b" not in done.isolation.launcher


def test_a_program_and_uploads_that_wait_for_each_other_stop_nothing(own: StdioExecutor) -> None:
    def take(text: str) -> str:
        """Return a text as it is."""
        return text

    calling = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool: print(sum(map(len, pool.map(take, ['x' * 100_000] * 24))))"
    )

    async def ask() -> float:
        runs = [own.arun("print(1)", files={"a.bin": bytes(20 << 20)}) for _ in range(2)]
        waiting = asyncio.gather(own.arun(calling, tools=[take]), *runs)
        worst, started = 0.0, time.monotonic()
        while not waiting.done():
            await asyncio.sleep(0.01)
            worst, started = max(worst, time.monotonic() - started), time.monotonic()
        done = await waiting
        assert [run.stdout for run in done] == ["2400000\n", "1\n", "1\n"]
        return worst

    own.warm_up()
    assert asyncio.run(ask()) < 2.0


def test_a_server_that_reads_nothing_or_is_paused_ends_a_run_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "SILENT_S", 1.0)
    monkeypatch.setattr(stdio, "CHECK_INTERVAL_S", 0.2)

    async def ask(executor: StdioExecutor) -> float:
        run = asyncio.create_task(executor.arun("1", files={"a.bin": bytes(8 << 20)}))
        worst, started = 0.0, time.monotonic()
        while not run.done():
            await asyncio.sleep(0.01)
            worst, started = max(worst, time.monotonic() - started), time.monotonic()
        with pytest.raises(ExecutorError, match="no answer came"):
            await run
        return worst

    with StdioExecutor(says(READY, then="time.sleep(60)"), limits=LIMITS) as executor:
        executor.warm_up()
        started = time.monotonic()
        assert asyncio.run(ask(executor)) < 1.0
        assert time.monotonic() - started < 5


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


def test_an_engine_that_does_not_answer_is_none_that_lacks_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\nexec sleep 60")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("code_chains.executors.remote.engine._ASK_TIMEOUT_S", 0.2)
    ready_engine.cache_clear()
    with pytest.raises(ExecutorError, match="is unknown") as raised:
        ready_engine()
    assert raised.value.is_retryable


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


def test_first_runs_at_once_start_one_server(own: StdioExecutor) -> None:
    before = len(descendants())
    threads = [threading.Thread(target=own.run, args=("print(1)",)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    own.close()
    assert soon(lambda: len(descendants()) <= before)


async def test_a_server_is_asked_for_modules_off_the_event_loop() -> None:
    loop, asked = threading.get_ident(), list[int]()

    class Asked(StdioExecutor):
        def has_module(self, name: str) -> bool | None:
            asked.append(threading.get_ident())
            return True

    with Asked([sys.executable, *SERVER], limits=LIMITS) as executor:
        chain = ValidateChain(has_module=executor.has_module)
        await chain.ainvoke({"code": "import zzfoo\nprint(zzfoo.x)"})
        await chain.ainvoke({"code": "import zzfoo\nprint(zzfoo.x)"})
    assert asked
    assert loop not in asked
