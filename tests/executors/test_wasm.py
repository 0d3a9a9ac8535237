"""Programs in WebAssembly: the contracts of executors and sessions, ways out, and what this Python can and cannot do."""

from __future__ import annotations

import asyncio
import datetime
import gc
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from code_chains import create_code_chain
from code_chains.errors import ConfigurationError, ExecutorError, OverloadedError, SessionError
from code_chains.executors import Executor, Limits, Session, WasmExecutor
from code_chains.executors.runner import RUN_DEADLINE
from code_chains.executors.values import value_of
from code_chains.executors.wasm import runtime as wasm_runtime
from code_chains.state import Execution
from code_chains.testing import ExecutorContract, ScriptedModel, SessionContract
from code_chains.toolbox import Toolbox
from tests.attacks import test_escapes
from tests.conftest import descendants, soon

pytest.importorskip("eryx", reason="the extra wasm is not installed, which needs Python 3.12 or newer")
# Each starts a process for WebAssembly; those marked `smoke` stand for the others in every run.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
LIMITS = Limits(seconds=4, memory="256M", output="64K", disk="8M")


@pytest.mark.slow
class TestWasm(ExecutorContract):
    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        with WasmExecutor(limits=LIMITS) as executor:
            yield executor


@pytest.mark.slow
class TestWasmSession(SessionContract):
    @pytest.fixture
    def session(self, shared: WasmExecutor) -> Iterator[Session]:
        with shared.session() as session:
            yield session


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Python is compiled before anything is timed; a new machine takes half a minute for it."""
    wasm_runtime.runtime()


@pytest.fixture(scope="module")
def shared() -> Iterator[WasmExecutor]:
    with WasmExecutor(limits=LIMITS) as executor:
        yield executor


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder that only this test uses."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


# -- ways out --------------------------------------------------------------------------------------------------

NEEDS_A_KERNEL = re.compile(
    r"libc|call\(|ctypes|mmap|resource\.|signal\.|fcntl|subprocess|socket|fork|threading|_exit|/proc|kill"
)
"""What WebAssembly does not have at all: there, such a row would hold for want of a module."""
HELD = [
    pytest.param(program, id=f"{group}: {name}")
    for group, table in test_escapes.GROUPS.items()
    for name, (program, judge) in table.items()
    if judge is test_escapes.held and not NEEDS_A_KERNEL.search(program)
]
PRELUDE = "import glob, json, os, sys, time\n" + test_escapes.PRELUDE[test_escapes.PRELUDE.index("def go(") :]
WAYS_OUT = {
    "above the working directory": """
each(lambda path: peek('/tmp/work/../..' + path)); each(lambda path: peek('../../..' + path))
""",
    "by a link upwards": "each(lambda path: (os.symlink('../../../..' + path, 'up'), peek('up'), os.unlink('up')))",
    "by a link to a folder": "os.symlink('../..', 'up')\neach(lambda path: peek('up' + path)); print(os.listdir('up'))",
    "by renaming across folders": "each(lambda path: os.rename('/tmp/work', '/tmp/../../..' + path + '2'))",
    "by a hard link upwards": "each(lambda path: (os.link('../../..' + path, 'x'), peek('x')))",
    "by other descriptors": """
for n in range(3, 300):
    go(lambda: each(lambda path: os.open(path, os.O_RDWR, dir_fd=n)))
    go(lambda: os.listdir(n))
""",
    "into what the next run reads": """
for top in ('/host', '/zones', '/python-stdlib', '/site-packages'):
    go(lambda: (open(os.path.join(top, 'new.py'), 'w'), granted))
    for parent, folders, names in os.walk(top):
        for name in names[:20]: go(lambda: (open(os.path.join(parent, name), 'a'), granted))
""",
    "by links in folders of the host": """
for top in ('/host', '/zones'):
    each(lambda path: peek(top + '/../../../..' + path)); each(lambda path: os.symlink(path, top + '/link'))
""",
    "by network calls of eryx": """
import _eryx
for port in (22, 80, *(host.get('ports') or ())):
    kind, found = _eryx._eryx_tcp_connect('127.0.0.1', port)
    if kind != 1: print('GRANTED', kind, found)
""",
    "by callbacks of eryx": """
import _eryx
for name in ('open', 'eval', 'next', 'mcp'): go(lambda: (_eryx._eryx_invoke(name, '{}'), granted))
""",
}
PARAMETERS = [*HELD, *(pytest.param(program, id=name) for name, program in WAYS_OUT.items())]


@pytest.mark.rows(2)
@pytest.mark.attack
@pytest.mark.parametrize("program", PARAMETERS)
def test_no_known_technique_escapes(shared: WasmExecutor, host: test_escapes.Host, program: str) -> None:
    done = shared.run(PRELUDE + program, variables={"host": host.told()})
    assert [line for line in done.stdout.splitlines() if "GRANTED" in line] == []
    assert host.harm(done) == []


def test_the_prelude_reaches_canaries_where_nothing_is_closed(host: test_escapes.Host) -> None:
    """A row that cannot fail would prove nothing."""
    from code_chains.executors import ProcessExecutor

    with ProcessExecutor() as open_executor:
        done = open_executor.run(PRELUDE + "each(peek)", variables={"host": host.told()})
    assert host.harm(done) != []


@pytest.mark.smoke
def test_the_probe_must_find_everything_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    with WasmExecutor() as executor:
        done = executor.run("import os; 'hunter2' in str(os.environ)")
    assert done.isolation is not None
    assert (done.result, done.isolation.level, done.isolation.open) == ("False", "wasm", ())


# -- what runs -------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_files_are_copies_and_artifacts_are_returned(shared: WasmExecutor, tmp_path: Path) -> None:
    source = tmp_path / "in put.csv"
    source.write_text("a,b\n1,ü\n")
    code = """
import csv, os
rows = list(csv.DictReader(open('sub folder/größe.csv', encoding='utf-8')))
os.mkdir('out')
open('out/ré sult.txt', 'w').write(rows[0]['b'])
"""
    done = shared.run(code, files={"sub folder/größe.csv": source})
    assert done.ok, done.error
    assert [(one.name, one.data) for one in done.artifacts] == [("out/ré sult.txt", "ü".encode())]
    assert source.read_text() == "a,b\n1,ü\n"


@pytest.mark.smoke
def test_values_keep_their_types(shared: WasmExecutor) -> None:
    code = "import decimal, datetime\n{'a': decimal.Decimal('1.10'), 'b': datetime.date(2024, 2, 29)}"
    assert str(value_of(shared.run(code, return_value=True))["a"]) == "1.10"


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("import sqlite3; sqlite3.connect(':memory:').execute('select 6 * 7').fetchone()[0]", "42"),
        ("import zoneinfo, datetime as d; d.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).hour", "0"),
        ("import tempfile; f = tempfile.NamedTemporaryFile('w+'); f.write('x'); f.seek(0); f.read()", "'x'"),
        ("open('own.py', 'w').write('x = 5'); import own; own.x", "5"),
        ("open('/tmp/x', 'w').write('x'); open('/tmp/x').read()", "'x'"),
        ("import zipfile; open('a', 'w').close(); zipfile.ZipFile('z', 'w').write('a'); zipfile.is_zipfile('z')", "True"),
        ("import hashlib, zlib, random, statistics; statistics.mean([1, 2, 6])", "3"),
        ("import sys; sys.stdout.buffer.write('naïve ✓'.encode()); None", "naïve ✓"),
        ("import time; t = time.time(); time.sleep(0.2); 0.19 < time.time() - t", "True"),
        ("import asyncio; asyncio.run(asyncio.sleep(0.01, 'slept'))", "'slept'"),
        ("import asyncio; await asyncio.gather(asyncio.sleep(0, 1), asyncio.to_thread(len, 'ab'))", "[1, 2]"),
        ("import asyncio; await asyncio.wait_for(asyncio.sleep(9), 0.01)", ""),
        ("'x' * 10 + chr(0x1F600)", "'xxxxxxxxxx😀'"),
        ("print(len(text))", "3000000"),
    ],
)  # fmt: skip
def test_the_standard_library_works(shared: WasmExecutor, code: str, output: str) -> None:
    variables = {"text": "x" * 3_000_000} if "text" in code else {}
    assert shared.run(code, variables=variables).output == output


def test_variables_keep_their_types(shared: WasmExecutor) -> None:
    variables = {"day": datetime.date(2024, 2, 29), "ids": {1, 2}, "by_id": {1: b"x"}}
    done = shared.run("day.year, ids, by_id", variables=variables)
    assert done.result == "(2024, {1, 2}, {1: b'x'})"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("import numpy", "error", "ModuleNotFoundError"),
        ("import threading; threading.Thread(target=print).start()", "error", "RuntimeError"),
        ("import subprocess; subprocess.run(['ls'])", "error", "OSError"),
        ("input()", "error", "EOFError"),
        ("def f(n): return f(n + 1)\nf(0)", "error", "RecursionError"),
        ("import sys; sys.exit(3)", "error", "SystemExit"),
        ("import asyncio; await asyncio.Event().wait()", "error", "RuntimeError"),
        ("import time; time.sleep(60)", "timeout", "Timeout"),
        ("import re; re.match(r'(a+)+$', 'a' * 40 + 'b')", "timeout", "Timeout"),
        ("10 ** 10 ** 9", "timeout", "Timeout"),
        ("open('x', 'wb').write(b'x' * (20 << 20))", "disk_limit", "OSError"),
        ("for n in range(40): open(f'x{n}', 'wb').write(b'x' * (1 << 20))", "disk_limit", "OSError"),
        ("open('x', 'wb').truncate(1 << 40)", "disk_limit", "OSError"),
        ("import os; os.write(1, b'x' * (1 << 20))", "output_limit", "OutputLimit"),
        ("import os; os.write(2, b'x' * (1 << 20))", "output_limit", "OutputLimit"),
    ],
)
def test_what_cannot_be_done_is_reported(shared: WasmExecutor, code: str, status: str, error: str) -> None:
    done = shared.run(code)
    assert done.error is not None
    assert (done.status, done.error.type) == (status, error or done.error.type)


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("import threading; threading.Thread(target=print).start()", "no threads, processes"),
        ("import subprocess; subprocess.run(['ls'])", "no threads, processes"),
        ("import os; os.system('ls')", "no threads, processes"),
        ("import urllib.request; urllib.request.urlopen('http://127.0.0.1')", "no threads, processes"),
        ("import os; os.symlink('a', 'b')", "or links"),
        ("import ctypes", "This Python lacks that part of the standard library."),
        ("import lzma", "This Python lacks that part of the standard library."),
        ("import requests", "It is not installed. Available are the standard library."),
    ],
)
def test_models_are_told_what_webassembly_lacks(shared: WasmExecutor, code: str, hint: str) -> None:
    done = shared.run(code)
    assert done.error is not None
    assert hint in done.error.hint


def test_a_program_that_leaves_webassembly_is_killed(shared: WasmExecutor) -> None:
    done = shared.run("import os; os.abort()")
    assert done.error is not None
    assert (done.status, done.error.type) == ("killed", "Trap")


STORMS = {
    "recursion": "import sys; sys.setrecursionlimit(10 ** 9)\ndef f(n): return f(n + 1)\nf(0)",
    "recursion in C": "import json; json.loads('[' * 100_000)",
    "a deep syntax tree": "eval('(' * 10_000 + ')' * 10_000)",
}


@pytest.mark.slow
@pytest.mark.parametrize("program", [pytest.param(program, id=name) for name, program in STORMS.items()])
def test_a_program_that_ends_its_process_ends_nothing_else(shared: WasmExecutor, program: str) -> None:
    """Wasmtime ends the whole process when a program has used up the stack; what was printed before is kept each time."""
    for _ in range(5):
        done = shared.run(f"print('before', flush=True)\n{program}")
        assert done.status in ("killed", "error", "timeout")
        assert (done.stdout, shared.run("6 * 7").output) == ("before\n", "42")


@pytest.mark.parametrize("size", [1023, 1024, 1025, 1 << 16, 1 << 20])
def test_what_is_printed_too_much_ends_one_program_alone(size: int) -> None:
    with WasmExecutor(limits=Limits(output="1K")) as executor:
        done = [executor.run(f"print('x' * {size}, end='', flush=True)\nNone") for _ in range(5)]
    expected = ("ok", size) if size < 1024 else ("output_limit", 1024)
    assert {(one.status, len(one.stdout)) for one in done} == {expected}


HOARDS = {
    "names of files": "for n in range(10**9): open(f'/tmp/{n}' + 'n' * 100_000, 'w').close()",
    "what is sent": "while True: _eryx._eryx_report_output(1, b'z' * (10 << 20))",
    "requests for messages": "while True: _eryx._eryx_report_output(1, b'n')",
    "traces": "while True: _eryx._eryx_report_trace(0, 'x' * (10 << 20), '')",
    "calls that nobody awaits": "while True: _eryx._eryx_invoke_async('x' * (1 << 20), '{}')",
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere less is known of a process")
@pytest.mark.slow
@pytest.mark.parametrize("program", [pytest.param(program, id=name) for name, program in HOARDS.items()])
def test_what_a_program_makes_the_host_remember_is_limited(program: str) -> None:
    peak, is_over = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not is_over.wait(0.005):
            peak = max([peak, *(resident(instance._process.pid) for instance in executor._pool._running)])

    with WasmExecutor(limits=Limits(seconds=10, memory="64M", disk="8M")) as executor:
        executor.run("1")
        thread = threading.Thread(target=watch)
        thread.start()
        done = executor.run(f"import _eryx\n{program}")
        is_over.set()
        thread.join()
        assert done.status in ("memory", "killed", "timeout", "error")
        assert executor.run("6 * 7").output == "42"
    assert peak < 700 << 20


def resident(pid: int) -> int:
    """Return the memory of a process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def test_what_python_makes_itself_is_no_artifact(shared: WasmExecutor) -> None:
    done = shared.run("open('own.py', 'w').write('x = 5'); import own")
    assert [artifact.name for artifact in done.artifacts] == ["own.py"]


def test_a_sparse_file_is_no_artifact_if_it_is_too_large(shared: WasmExecutor) -> None:
    done = shared.run("open('x', 'wb').truncate(4 << 20); open('y', 'w').write('y')")
    assert "y" in [artifact.name for artifact in done.artifacts]


SEND = "import _eryx\nsend = lambda data: _eryx._eryx_report_output(1, data)\n"
FORGED = [
    b"o",
    b"o[]",
    b"ononsense",
    b"f[]",
    b'f["../x", "eA=="]',
    b'f["x", "!"]',
    b"n",
    b"t",
    b"p",
    b"z",
    b"t\0\0\0\2{}",
]


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize("ends", [False, True])
def test_a_forged_message_is_data_and_no_success(shared: WasmExecutor, ends: bool) -> None:
    end = "import os; os._exit(0)" if ends else "6 * 7"
    for message in FORGED:
        done = shared.run(f"{SEND}send({message!r})\n{end}", tools=[double])
        assert (done.status, done.result) == (("killed", None) if ends else ("ok", "42"))
        assert done.isolation is not None
        assert done.isolation.level == "wasm"
        assert [artifact.name for artifact in done.artifacts] == []


def test_more_than_a_report_may_hold_ends_the_program(shared: WasmExecutor) -> None:
    done = shared.run(f"{SEND}while True: send(b'f' * (1 << 20))")
    assert done.error is not None
    assert (done.status, done.error.type) == ("killed", "Garbled")


# -- tools, tests and sessions -----------------------------------------------------------------------------------------


def double(number: int) -> int:
    """Return twice a number."""
    return 2 * number


@pytest.mark.smoke
def test_tools_are_called_from_anywhere_and_awaited(shared: WasmExecutor) -> None:
    code = """
import asyncio
def inner(n): return double(n) + 1
async def main(): return await asyncio.gather(double(1), double(2)), await double(3)
[*map(inner, range(3))], asyncio.run(main())
"""
    done = shared.run(code, tools=[double])
    assert done.result == "([1, 3, 5], ([2, 4], 6))"
    assert [call.status for call in done.tool_calls] == ["ok"] * 6


def test_what_a_tool_refuses_and_raises_is_an_error_of_the_program(shared: WasmExecutor) -> None:
    def fail(text: str) -> str:
        """Fail."""
        raise ValueError(f"no {text}")

    code = """
for argument in ('bread', 5, '\\ud800', 'x' * 5_000_000):
    try: fail(argument)
    except ToolError as error: print(error)
"""
    done = shared.run(code, tools=[fail])
    assert done.ok, done.error
    first, *others = done.stdout.splitlines()
    assert "no bread" in first
    assert len(others) == 3
    refused = shared.run("fail('bread')", tools=Toolbox([fail], approve=lambda request: False))
    assert refused.error is not None
    assert (refused.error.type, refused.tool_calls[0].status) == ("ToolError", "refused")


async def test_async_tools_run_on_the_loop_of_the_application(shared: WasmExecutor) -> None:
    loop = asyncio.get_running_loop()

    async def where() -> bool:
        """Return whether this is the application's loop."""
        return asyncio.get_running_loop() is loop

    assert (await shared.arun("where()", tools=[where])).result == "True"


def test_the_clock_stands_still_while_a_tool_works() -> None:
    def slow() -> str:
        """Wait."""
        time.sleep(1.5)
        return "done"

    with WasmExecutor(limits=Limits(seconds=1)) as executor:
        assert executor.run("slow()", tools=[slow]).result == "'done'"
        assert executor.run("slow()\nwhile True: pass", tools=[slow]).status == "timeout"


def test_a_tool_returns_no_tables(shared: WasmExecutor) -> None:
    pandas = pytest.importorskip("pandas")

    def rows() -> Any:
        """Return a table."""
        return pandas.DataFrame({"a": [1]})

    done = shared.run("rows()", tools=[rows])
    assert done.error is not None
    assert "return a list of rows" in done.error.message


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("program", "tests", "statuses"),
    [
        ("class A:\n    def f(self, x): return x + 1", "a = A()\nassert a.f(1) == 2", ("ok", "ok")),
        ("def f(g): return g(2)", "assert f(lambda x: x * 5) == 10", ("ok", "ok")),
        ("def f(): raise KeyError('k')", "f()", ("ok", "error")),
        ("import os\ndef f(): os._exit(0)", "assert f() is None", ("killed", "error")),
        ("def f():\n    while True: pass", "assert f() is None", ("timeout", "error")),
        ("class Any:\n    def __eq__(self, other): return True\ndef f(): return Any()", "assert f() == 5", ("ok", "error")),
        ("async def f(): return 5", "import asyncio\nassert asyncio.run(f()) == 5", ("ok", "ok")),
        ("1 / 0", "assert True", ("error", "ok")),
    ],
)  # fmt: skip
def test_hidden_tests_judge_a_program_that_cannot_reach_them(
    shared: WasmExecutor, program: str, tests: str, statuses: tuple[str, str]
) -> None:
    ran, judged = shared.run_tests(program, tests)
    # Both have the same time.
    assert (ran.status, "error" if judged.status == "timeout" else judged.status) == statuses


async def test_tests_do_not_block_the_loop_and_can_be_cancelled(shared: WasmExecutor) -> None:
    running = asyncio.create_task(shared.arun_tests("def f():\n    while True: pass", "f()"))
    await asyncio.sleep(0.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await shared.arun("6 * 7")).result == "42"


@pytest.mark.smoke
def test_a_session_that_failed_has_what_no_copy_could_keep(shared: WasmExecutor) -> None:
    """Generators, connections, closures, random numbers and answers of tools are as they were."""
    asked: list[int] = []

    def ask(number: int) -> int:
        """Return how often it was asked."""
        asked.append(number)
        return len(asked)

    with shared.session() as session:
        session.run(
            "import random, sqlite3, uuid\ng = iter(range(9)); next(g); c = sqlite3.connect(':memory:'); n = ask(5)",
            tools=[ask],
        )
        session.run(
            "c.execute('create table t (a)'); c.execute('insert into t values (1)'); r = random.random(), uuid.uuid4()"
        )
        before = session.run("r, n").result
        session.run("next(g); c.execute('delete from t'); n = r = 0; 1 / 0")
        shown = session.run("next(g), c.execute('select * from t').fetchall(), (r, n)").result
    assert (shown, asked) == (f"(1, [(1,)], {before})", [5])


@pytest.mark.parametrize(
    "failure", ["while True: pass", "import os; os._exit(0)", "import json; json.loads('[' * 100_000)"]
)
def test_a_session_outlives_what_ends_its_process(shared: WasmExecutor, failure: str) -> None:
    with shared.session() as session:
        session.run("x = [1]", files={"a.txt": b"one"})
        assert not session.run(f"x.append(2)\n{failure}").ok
        assert session.run("x, open('a.txt').read()").result == "([1], 'one')"


def test_what_a_check_refuses_is_undone(shared: WasmExecutor) -> None:
    with shared.session() as session:
        session.run("x = 1")
        assert session.run("x = 2; x", check=lambda execution: (False, "too large")).status == "error"
        assert session.run("x").result == "1"


def test_a_session_goes_on_after_a_program_that_showed_the_time(shared: WasmExecutor) -> None:
    with shared.session() as session:
        session.run("import time; x = 1; print(f'took {time.perf_counter():.6f} s')")
        session.run("1 / 0")
        assert session.run("x").result == "1"


def test_a_session_ends_if_its_state_cannot_be_restored(shared: WasmExecutor) -> None:
    until = time.time() + 4
    with shared.session() as session:
        session.run(
            "import time; print('early' if time.time() < until else 'late')", variables={"until": until}
        )
        session.run("1 / 0")
        time.sleep(max(0, until - time.time()))
        with pytest.raises(SessionError, match="showed something else"):
            session.run("1")


def test_inputs_that_come_later_have_room(shared: WasmExecutor) -> None:
    with shared.session() as session:
        session.run("x = 1")
        done = session.run("import os; os.path.getsize('big')", files={"big": b"x" * (20 << 20)})
        assert (done.result, session.run("x").result) == (str(20 << 20), "1")


def test_no_more_sessions_than_declared_are_open() -> None:
    with WasmExecutor(max_sessions=1, session_timeout=0.2) as executor, executor.session() as session:
        session.run("1")
        with pytest.raises(OverloadedError):
            executor.session()
        time.sleep(0.3)
        with pytest.raises(SessionError, match="idle"):
            session.run("1")
        executor.session().close()


# -- many runs -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_runs_at_once_are_apart(shared: WasmExecutor) -> None:
    code = "open('mine', 'w').write(str(n)); import time; time.sleep(0.2); open('mine').read()"
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda n: shared.run(code, variables={"n": n}).output, range(6)))
    assert outputs == [f"'{n}'" for n in range(6)]


async def test_a_cancelled_run_leaves_nothing() -> None:
    with WasmExecutor(limits=Limits(seconds=60)) as executor:
        running = asyncio.create_task(executor.arun("import time; time.sleep(60)"))
        assert await asyncio.to_thread(lambda: soon(lambda: bool(executor._pool._running), seconds=60))
        (instance,) = executor._pool._running
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await asyncio.to_thread(lambda: soon(lambda: not executor._pool._running, seconds=60))
        assert not instance.is_alive


@pytest.mark.slow
def test_closing_ends_runs_and_removes_their_folders(own_folder: Path) -> None:
    executor = WasmExecutor(limits=Limits(seconds=60))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(executor.run, "import time; time.sleep(60)")
        soon(lambda: any(own_folder.glob("*/wasm-*")))
        time.sleep(1)
        began = time.monotonic()
        executor.close()
        with pytest.raises(ExecutorError, match="closed"):
            running.result()
    assert time.monotonic() - began < 5
    assert soon(lambda: not list(own_folder.glob("*/*")))


@pytest.mark.slow
def test_an_idle_python_that_was_killed_is_replaced() -> None:
    with WasmExecutor() as executor:
        before = set(descendants())
        executor.run("1")
        for pid in set(descendants()) - before:
            os.kill(pid, 9)
        time.sleep(0.1)
        assert executor.run("6 * 7").output == "42"


@pytest.mark.slow
def test_a_run_that_is_killed_from_outside_says_so() -> None:
    with WasmExecutor() as executor, ThreadPoolExecutor(1) as pool:
        running = pool.submit(executor.run, "import time; time.sleep(60)")
        assert soon(lambda: bool(executor._pool._running), seconds=60)
        time.sleep(1)
        for instance in executor._pool._running:
            os.kill(instance._process.pid, 9)
        assert running.result().status == "killed"


@pytest.mark.slow
def test_a_fork_of_the_application_uses_none_of_its_runs() -> None:
    with WasmExecutor() as executor:
        assert executor.run("1").output == "1"
        assert soon(lambda: bool(executor._pool._ready))
        child = os.fork()
        if not child:
            ended = 1
            try:
                executor.close()
                ended = 0
            finally:
                os._exit(ended)
        assert os.waitpid(child, 0)[1] == 0
        assert executor._pool._ready[0][0].is_alive
        assert executor.run("6 * 7").output == "42"


@pytest.mark.slow
def test_an_executor_that_nobody_closes_leaves_nothing(own_folder: Path) -> None:
    before = set(descendants())

    def use() -> None:
        executor = WasmExecutor()
        executor.run("1")
        assert soon(lambda: bool(executor._pool._ready))

    use()
    gc.collect()
    assert soon(lambda: set(descendants()) <= before)
    assert soon(lambda: not list(own_folder.glob("*/*")))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists instead of modes")
def test_what_others_could_have_written_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(wasm_runtime, "_compile", lambda folder: folder.mkdir(mode=0o755))
    monkeypatch.setattr(wasm_runtime, "_temporary", lambda: tmp_path / "elsewhere")
    compiled = wasm_runtime.runtime()
    assert wasm_runtime.runtime() == compiled
    assert compiled.is_relative_to(tmp_path)
    compiled.chmod(0o777)
    wasm_runtime._trusted.clear()
    assert wasm_runtime.runtime() == tmp_path / "elsewhere"


# -- in a chain ------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_chain_answers_with_it() -> None:
    model = ScriptedModel(lambda messages: "```python\nprint(6 * 7)\n```")
    with create_code_chain(model, executor="wasm", interpret=False) as chain:
        result: dict[str, Any] = chain.invoke({"query": "What is 6 times 7?"})
    execution: Execution = result["execution"]
    assert (result["output"], execution.isolation and execution.isolation.level) == ("42", "wasm")


def test_turns_of_a_conversation_share_their_variables() -> None:
    replies = iter(
        ["kept = 41", "import csv; rows = list(csv.DictReader(open('rows.csv'))); print(kept + len(rows))"]
    )
    seen: list[str] = []

    def reply(messages: list[Any]) -> str:
        seen.append(str(messages))
        return f"```python\n{next(replies)}\n```"

    with create_code_chain(ScriptedModel(reply), executor="wasm", interpret=False) as chain:
        chain.invoke({"query": "Keep 41.", "session_id": "one"})
        second = {"query": "Add the rows.", "session_id": "one", "files": {"rows.csv": b"north,south\n1,2\n"}}
        assert chain.invoke(second)["output"] == "42"
    assert "south" in seen[-1]  # The profile of the file was made in WebAssembly, too.


@pytest.mark.parametrize(
    ("body", "given", "verdict"),
    [("2 * x", {}, "verified"), ("double(x)", {"tools": [double]}, "unverified")],
)
def test_tests_and_tools_of_a_chain_are_used(body: str, given: dict[str, Any], verdict: str) -> None:
    """A program that calls a tool with effects is not run again for its tests."""
    model = ScriptedModel(lambda messages: f"```python\ndef twice(x): return {body}\nprint(twice(21))\n```")
    with create_code_chain(model, executor="wasm", interpret=False, **given) as chain:
        result = chain.invoke({"query": "Define twice.", "tests": "assert twice(2) == 4"})
    assert (result["output"], result["verdict"].status) == ("42", verdict)


@pytest.mark.smoke
@pytest.mark.parametrize(
    "arguments",
    [{"concurrency": 0}, {"max_sessions": -1}, {"max_sessions": True}, {"session_timeout": 0}, {"limits": 5}],
)
def test_invalid_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        WasmExecutor(**arguments)


@pytest.mark.slow
@pytest.mark.parametrize("code", ["import time; time.sleep(9)", "while True: pass"])
def test_a_program_ends_with_the_time_of_a_budget(code: str) -> None:
    with WasmExecutor(limits=Limits(seconds=20)) as executor:
        executor.run("1")
        started = time.monotonic()
        token = RUN_DEADLINE.set(started + 0.5)
        try:
            assert executor.run(code).status == "timeout"
        finally:
            RUN_DEADLINE.reset(token)
        assert time.monotonic() - started < 5
