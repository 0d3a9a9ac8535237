"""Monty as an executor: it fulfils the contract where it can, and reports where it cannot."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from code_chains.errors import ConfigurationError, ExecutorError, InputError, IsolationError
from code_chains.executors.base import Executor
from code_chains.executors.limits import Limits
from code_chains.executors.monty import MontyExecutor
from code_chains.executors.remote.external import PROBE, canary, isolation
from code_chains.executors.runner import RUN_DEADLINE
from code_chains.executors.sandbox.executor import ProcessExecutor
from code_chains.state import PROBED
from code_chains.testing import ExecutorContract
from tests.conftest import descendants, soon


@pytest.mark.slow
class TestMonty(ExecutorContract):
    HOARDS = "x = ['x' * (1 << 20) + str(n) for n in range(100_000)]"
    EXITS = None

    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        with MontyExecutor(limits=Limits(seconds=2, memory="256M", output="64K")) as executor:
            yield executor


@pytest.fixture(scope="module")
def monty() -> Iterator[MontyExecutor]:
    with MontyExecutor(limits=Limits(seconds=1, memory="128M")) as executor:
        yield executor


def test_a_probe_finds_everything_closed(monty: MontyExecutor) -> None:
    found = monty.run("1").isolation
    assert found is not None
    assert (found.level, found.launcher, found.open) == ("interpreter", "monty", ())


@pytest.mark.kernel_sandbox
def test_the_probe_gets_out_where_everything_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    said: list[str] = []
    with canary() as given:
        exec(PROBE, {"canary": given, "print": said.append})
        assert Path(f"{given['file']}.made").exists()
    found = isolation("interpreter", "here", said[0], given["salt"])
    assert "hunter2" not in said[0]
    assert (found.level, found.open) == ("none", PROBED)


def test_malformed_probe_output_is_an_error() -> None:
    for output in (
        "",
        "[]",
        '{"filesystem": true}',
        '{"filesystem": 1, "network": 1, "processes": 1, "environment": 5}',
    ):
        with pytest.raises(ExecutorError, match="malformed"):
            isolation("interpreter", "here", output, "salt")


def test_nothing_runs_if_the_probe_finds_an_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.dumps({**dict.fromkeys(PROBED, True), "filesystem": False, "environment": {}})
    monkeypatch.setattr("code_chains.executors.monty.PROBE", f"print({found!r})")
    with MontyExecutor() as executor, pytest.raises(IsolationError, match="filesystem"):
        executor.run("1")


@pytest.mark.rows(4)
@pytest.mark.parametrize(
    "code",
    [
        "print(sorted({3: 'a', 1: 'b'}.items()))\n[n ** 2 for n in range(5)]",
        "'é'; ('ü', (1 + 1))  # a comment",
        "*[1, 2], 3",
        "(y := 4)",
        "x = 5; x + 1; x + 2",
        "'''a\nb'''",
        "def f(n):\n    return 1 if n < 2 else n * f(n - 1)\nf(20)",
        "result = 5\nNone",
        "result = 5\nresult + 1",
        "result = None",
        "class A:\n    def __repr__(self):\n        return 'mine'\nA()",
        "a = [1]\r\na + [2]\r\n",
        "range(3), len('ab'), 1.5, 1j, b'x', {1}, ...",
        "async def f():\n    return 5\nawait f()",
        "import json, math\nprint(math.pi)\njson.dumps({'a': [1, None]})",
        "",
    ],
)
def test_it_shows_what_python_shows(monty: MontyExecutor, code: str) -> None:
    with ProcessExecutor() as python:
        there, here = python.run(code), monty.run(code)
    assert (here.status, here.stdout, here.result) == ("ok", there.stdout, there.result)


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("class A: pass\nclass B(A): pass", "refused", "NotImplementedError"),
        ("def f():\n    yield 1", "refused", "NotImplementedError"),
        ("import numpy", "error", "ModuleNotFoundError"),
        ("import socket", "error", "ModuleNotFoundError"),
        ("open('/etc/passwd')", "error", "PermissionError"),
        ("open('new', 'w')", "error", "PermissionError"),
        ("import os\nos.getenv('HOME')", "error", "RuntimeError"),
    ],
)
def test_unsupported_features_are_reported_with_an_alternative(
    monty: MontyExecutor, code: str, status: str, kind: str
) -> None:
    done = monty.run(code)
    assert done.error is not None
    assert (done.status, done.error.type) == (status, kind)
    assert "use the sandbox" in done.error.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("while True: pass", "timeout"),
        ("x = [1]\nfor _ in range(60): x = [x, x]\nx", "timeout"),
        ("class A:\n  def __repr__(self):\n    while True: pass\nA()", "timeout"),
        ("a = 5\nclass A:\n  def __repr__(self):\n    while True: pass\nb = A()\n1 / 0", "error"),
        ("try:\n  while True: pass\nexcept BaseException: pass", "timeout"),
        ("import re\nre.search('(x+x+)+y\\\\1', 'x' * 50)", "error"),
        ("9 ** 9 ** 9", "memory"),
        ("'a' * 10 ** 12", "memory"),
        ("x = list(range(10 ** 10))", "memory"),
        ("import sys\nwhile True: print('x' * 10000, file=sys.stderr)", "output_limit"),
        ("def f(): f()\nf()", "error"),
        ("raise TimeoutError('feed time limit exceeded')", "error"),
        ("x = []\nfor _ in range(100000): x = [x]\nresult = x", "ok"),
        ("(" * 3000 + ")" * 3000, "error"),
        ("-" * 100000 + "1", "error"),
        ("print(", "error"),
        ("x = '\0'", "error"),
        ("raise ValueError('caf\\udce9')", "error"),
    ],
)
def test_every_ending_is_a_value_within_its_limit(monty: MontyExecutor, code: str, status: str) -> None:
    began = time.monotonic()
    done = monty.run(code)
    assert (done.status, done.to_json() != "") == (status, True)
    assert time.monotonic() - began < monty.limits.seconds * 1.25 + 3
    assert monty.run("1 + 1").result == "2"


def test_an_error_shows_the_lines_of_the_program(monty: MontyExecutor) -> None:
    error = monty.run("def share(n):\n    return 1 / n\n\nshare(0)").error
    assert error is not None
    assert (error.type, error.message, error.line) == ("ZeroDivisionError", "division by zero", 2)
    assert 'File "<code>", line 4, in <module>\n    share(0)' in error.traceback
    assert "__shown__" not in error.traceback


def test_files_are_copies_that_cannot_be_changed(monty: MontyExecutor, sales: Path) -> None:
    assert monty.run("open('data/s.csv').read().count('\\n')", files={"data/s.csv": sales}).result == "3"
    assert monty.run("open('data/s.csv', 'a').write('x')", files={"data/s.csv": sales}).status == "error"
    assert monty.run("open('/box/data/s.csv').read()").status == "error"
    assert sales.read_text().endswith("south,32\n")


def test_a_link_next_to_a_file_leads_nowhere(monty: MontyExecutor, sales: Path, tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(sales)
    assert monty.run("len(open('link.csv').read())", files={"link.csv": tmp_path / "link.csv"}).result == "32"
    for path in ("../sales.csv", "sales.csv", str(sales), "/proc/self/environ"):
        assert monty.run(f"open({path!r})", files={"link.csv": tmp_path / "link.csv"}).status == "error"


def test_an_input_named_result_is_not_shown(monty: MontyExecutor) -> None:
    assert monty.run("x = result", variables={"result": 5}).result is None


@pytest.mark.slow
async def test_a_run_does_not_block_the_loop(monty: MontyExecutor) -> None:
    task, turns = asyncio.create_task(monty.arun("while True: pass")), 0
    while not task.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert turns > 20


async def test_cancelling_ends_the_program() -> None:
    with MontyExecutor(limits=Limits(seconds=60)) as executor:
        task = asyncio.create_task(executor.arun("while True: pass"))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert soon(lambda: threading.active_count() < 50 and executor.run("1").ok)


def test_threads_do_not_mix(monty: MontyExecutor) -> None:
    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(lambda n: monty.run(f"print({n}); {n} * 2"), range(40)))
    assert [(one.stdout, one.result) for one in done] == [(f"{n}\n", str(n * 2)) for n in range(40)]


def test_closing_ends_the_workers() -> None:
    before = descendants()
    with MontyExecutor() as executor:
        executor.run("1")
        assert descendants() > before
    assert soon(lambda: descendants() <= before)


FORKED = """
import os
from code_chains.errors import ExecutorError
from code_chains.executors.monty import MontyExecutor
place = MontyExecutor()
place.run("1")
child = os.fork()
if child == 0:
    try:
        place.run("1")
    except ExecutorError as error:
        os._exit(7 if "forked" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), place.run("1 + 1").result)
place.close()
"""


@pytest.mark.slow
def test_a_forked_process_gets_an_error_instead_of_hanging() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.stdout == "7 2\n", done.stderr


def test_code_must_be_text(monty: MontyExecutor) -> None:
    with pytest.raises(InputError, match="must be text"):
        monty.run(5)  # type: ignore[arg-type]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with pytest.raises(ConfigurationError, match=r'pip install -e "\.\[monty\]"'):
        MontyExecutor()


def test_a_program_ends_with_the_time_of_a_budget() -> None:
    started = time.monotonic()
    token = RUN_DEADLINE.set(started + 0.3)
    try:
        with MontyExecutor(limits=Limits(seconds=20)) as executor:
            assert executor.run("while True: pass").status == "timeout"
    finally:
        RUN_DEADLINE.reset(token)
    assert time.monotonic() - started < 5
