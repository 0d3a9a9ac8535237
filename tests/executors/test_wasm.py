"""Programs in WebAssembly: the contract of executors, ways out, and what this Python can and cannot do."""

from __future__ import annotations

import asyncio
import datetime
import gc
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from code_chains import create_code_chain
from code_chains.errors import ConfigurationError, ExecutorError
from code_chains.executors import Executor, Limits, WasmExecutor
from code_chains.executors.guest.wire import FRAME_HEADER
from code_chains.executors.runner import RUN_DEADLINE
from code_chains.executors.values import value_of
from code_chains.executors.wasm import runtime as wasm_runtime
from code_chains.state import Execution
from code_chains.testing import ExecutorContract, ScriptedModel
from tests.attacks import test_escapes
from tests.conftest import descendants, soon

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")
# Each starts Python in WebAssembly; those marked `smoke` stand for the others in every run.
pytestmark = pytest.mark.slow
LIMITS = Limits(seconds=4, memory="256M", output="64K", disk="8M", files=500)


@pytest.mark.slow
class TestWasm(ExecutorContract):
    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        with WasmExecutor(limits=LIMITS) as executor:
            yield executor


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Python is compiled before anything is timed; a new machine takes some ten seconds for it."""
    wasm_runtime.runtime()


@pytest.fixture(scope="module")
def shared() -> Iterator[WasmExecutor]:
    with WasmExecutor(limits=LIMITS, min_idle=2) as executor:
        yield executor


@pytest.fixture
def own_folder(shared: WasmExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder that only this test uses: what runs are made in advance was made elsewhere."""
    shared.warm_up()
    assert soon(lambda: len(shared._ready) == 2, 30)
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
    "above the working directory": "each(lambda p: peek('/work/../..' + p)); each(lambda path: peek('../../..' + path))",
    "by a link upwards": "each(lambda path: (os.symlink('../../../..' + path, 'up'), peek('up'), os.unlink('up')))",
    "by a link to a folder": "os.symlink('../..', 'up')\neach(lambda path: peek('up' + path)); print(os.listdir('up'))",
    "by renaming across folders": "each(lambda path: os.rename('/work', '/tmp/../../..' + path + '2'))",
    "by a hard link upwards": "each(lambda path: (os.link('../../..' + path, 'x'), peek('x')))",
    "by other descriptors": """
for n in range(3, 300):
    go(lambda: each(lambda path: os.open(path, os.O_RDWR, dir_fd=n)))
    go(lambda: os.listdir(n))
""",
    "into what the next run imports": """
for parent, folders, names in os.walk('/code_chains'):
    for name in names: go(lambda: (open(os.path.join(parent, name), 'a'), granted))
    go(lambda: (open(os.path.join(parent, 'new.py'), 'w'), granted))
""",
    "by network calls of the system": "import _socket\ngo(lambda: (_socket.socket(), granted))",
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


def test_a_python_other_than_the_verified_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(wasm_runtime, "PYTHON_SHA256", "0" * 64)
    with WasmExecutor() as executor, pytest.raises(ExecutorError, match="is not the Python"):
        executor.run("1")
    assert [path.name for path in (tmp_path / "code_chains" / "wasm").iterdir() if path.is_dir()] == []


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
os.symlink('../../../etc/passwd', 'link')
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
        ("import hashlib, zlib, random, statistics; statistics.mean([1, 2, 6])", "3"),
        ("import sys; sys.stdout.buffer.write('naïve ✓'.encode()); None", "naïve ✓"),
        ("import time; t = time.time(); time.sleep(0.2); 0.19 < time.time() - t", "True"),
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
        ("import time; time.sleep(60)", "timeout", "Timeout"),
        ("open('x', 'wb').write(b'x' * (20 << 20))", "disk_limit", ""),
        ("for n in range(40): open(f'x{n}', 'wb').write(b'x' * (1 << 20))\nimport time; time.sleep(9)",
         "disk_limit", "DiskLimit"),
        ("for n in range(100000): open(str(n), 'w').close()", "disk_limit", "DiskLimit"),
        ("while True: open('/report/more', 'ab').write(b'x' * (1 << 20))", "disk_limit", ""),
        ("import os; os.write(1, b'x' * (1 << 20))", "output_limit", "OutputLimit"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_reported(shared: WasmExecutor, code: str, status: str, error: str) -> None:
    done = shared.run(code)
    assert done.error is not None
    assert (done.status, done.error.type) == (status, error or done.error.type)


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("import threading; threading.Thread(target=print).start()", "no threads, processes, sockets"),
        ("import subprocess; subprocess.run(['ls'])", "no threads, processes, sockets"),
        (
            "import urllib.request; urllib.request.urlopen('http://127.0.0.1')",
            "no threads, processes, sockets",
        ),
        ("import asyncio; asyncio.run(asyncio.sleep(0))", "or event loop"),
        ("import multiprocessing", "This Python lacks that part of the standard library."),
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


def test_a_sparse_file_is_no_artifact(shared: WasmExecutor) -> None:
    done = shared.run("open('x', 'wb').truncate(4 << 20); open('y', 'w').write('y')")
    assert "y" in [artifact.name for artifact in done.artifacts]


@pytest.mark.smoke
@pytest.mark.slow
def test_a_forged_report_is_data_and_a_malformed_one_no_success(shared: WasmExecutor) -> None:
    write = "import json, os; open('/report/outcome', 'w').write({!r}); os._exit(0)"
    for report in (
        "",
        "[]",
        "nonsense",
        json.dumps({"status": "root", "result": 5}),
        '{"status": "ok", "views": 5}',
    ):
        done = shared.run(write.format(report))
        assert done.status in ("killed", "ok")
        assert done.isolation is not None
        assert done.isolation.level == "wasm"


LINK = """
import os
os.unlink('/report/outcome'); os.symlink({target!r}, '/report/outcome'); os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [lambda path: path.write_text('{"status": "ok", "result": "SECRET"}'), lambda path: os.mkfifo(path)],
)
def test_a_link_in_place_of_the_report_is_not_followed(
    shared: WasmExecutor, tmp_path: Path, make: Callable[[Path], object]
) -> None:
    secret = tmp_path / "secret.json"
    make(secret)
    began = time.monotonic()
    for up in range(3, 6):
        done = shared.run(LINK.format(target="../" * up + str(secret).lstrip("/")))
        assert (done.status, done.result) == ("killed", None)
    assert time.monotonic() - began < 12


HOARD = """
block = b'x' * (7 << 20)
def hoard(folder, keep=True):
    for number in range(30):
        made.append(os.open(f'{folder}/h{number}', os.O_CREAT | os.O_RDWR))
        if not keep: os.unlink(f'{folder}/h{number}')
        os.write(made[-1], block)
    time.sleep(30)
made = []
"""
HOARDS = {
    "below a long path": """
path = '/work'
for _ in range(16):
    path += '/' + 'n' * 240
    os.mkdir(path)
hoard(path)
""",
    "below many folders": """
path = '/work'
for _ in range(1100):
    path += '/a'
    os.mkdir(path)
hoard('/tmp')
""",
    "folders beside the report": "for number in range(10**6): os.mkdir(f'/report/{number}')",
    "many descriptors": "hoard('/work')",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            "hoard('/tmp', keep=False)",
            id="unlinked files",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="Windows tells nobody their size"),
        ),
        *(pytest.param(program, id=name) for name, program in HOARDS.items()),
    ],
)
def test_what_is_hidden_from_the_eye_counts_as_well(own_folder: Path, program: str) -> None:
    with WasmExecutor(limits=LIMITS, min_idle=0) as executor:
        began = time.monotonic()
        done = executor.run("import os, time\n" + HOARD + program)
        assert done.status == "disk_limit"
        assert time.monotonic() - began < 4
    assert list(own_folder.glob("*/*")) == []


def test_half_a_character_in_a_forged_report_is_replaced(shared: WasmExecutor) -> None:
    message = b'{"status": "ok", "result": true, "sizes": [3]}'
    report = FRAME_HEADER.pack(len(message)) + message + b"\xed\xa0\x80"
    done = shared.run(f"import os; open('/report/outcome', 'wb').write({report!r}); os._exit(0)")
    assert (done.status, done.output) == ("ok", "���")


# -- many runs -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_runs_at_once_are_apart(shared: WasmExecutor) -> None:
    code = "open('mine', 'w').write(str(n)); import time; time.sleep(0.2); open('mine').read()"
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda n: shared.run(code, variables={"n": n}).output, range(6)))
    assert outputs == [f"'{n}'" for n in range(6)]


async def test_a_cancelled_run_leaves_nothing() -> None:
    with WasmExecutor(limits=Limits(seconds=60), min_idle=0) as executor:
        running = asyncio.create_task(executor.arun("import time; time.sleep(60)"))
        assert await asyncio.to_thread(lambda: soon(lambda: bool(executor._running), seconds=60))
        (instance,) = executor._running
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await asyncio.to_thread(lambda: soon(lambda: not executor._running, seconds=60))
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
        soon(lambda: set(descendants()) != before)
        time.sleep(1)
        for pid in set(descendants()) - before:
            os.kill(pid, 9)
        time.sleep(0.1)
        assert executor.run("6 * 7").output == "42"


@pytest.mark.slow
def test_a_run_that_is_killed_from_outside_says_so() -> None:
    with WasmExecutor(min_idle=0) as executor, ThreadPoolExecutor(1) as pool:
        running = pool.submit(executor.run, "import time; time.sleep(60)")
        assert soon(lambda: bool(executor._running), seconds=60)
        time.sleep(1)
        for instance in executor._running:
            os.kill(instance._process.pid, 9)
        assert running.result().status == "killed"


@pytest.mark.slow
def test_a_fork_of_the_application_uses_none_of_its_runs() -> None:
    with WasmExecutor() as executor:
        assert executor.run("1").output == "1"
        assert soon(lambda: bool(executor._ready))
        child = os.fork()
        if not child:
            ended = 1
            try:
                executor.close()
                ended = 0
            finally:
                os._exit(ended)
        assert os.waitpid(child, 0)[1] == 0
        assert executor._ready[0][0].is_alive
        assert executor.run("6 * 7").output == "42"


@pytest.mark.slow
def test_an_executor_that_nobody_closes_leaves_nothing(own_folder: Path) -> None:
    before = set(descendants())

    def use() -> None:
        executor = WasmExecutor()
        executor.run("1")
        assert soon(lambda: bool(executor._ready))

    use()
    gc.collect()
    assert soon(lambda: set(descendants()) <= before)
    assert soon(lambda: not list(own_folder.glob("*/*")))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists instead of modes")
def test_what_others_could_have_written_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    previous = os.umask(0o002)
    try:
        compiled = wasm_runtime.runtime()
        assert wasm_runtime.runtime() == compiled
        assert compiled.module.is_relative_to(tmp_path)
    finally:
        os.umask(previous)
    (compiled.lib / "main.py").chmod(0o666)
    wasm_runtime._trusted.clear()
    monkeypatch.setattr(wasm_runtime, "_temporary", lambda: tmp_path / "elsewhere")
    assert wasm_runtime.runtime().module == tmp_path / "elsewhere" / "python.cwasm"


# -- in a chain ------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_chain_answers_with_it() -> None:
    model = ScriptedModel(lambda messages: "```python\nprint(6 * 7)\n```")
    with create_code_chain(model, executor="wasm", interpret=False) as chain:
        result: dict[str, Any] = chain.invoke({"query": "What is 6 times 7?"})
    execution: Execution = result["execution"]
    assert (result["output"], execution.isolation and execution.isolation.level) == ("42", "wasm")


@pytest.mark.smoke
@pytest.mark.parametrize(
    "arguments", [{"concurrency": 0}, {"min_idle": -1}, {"min_idle": True}, {"limits": 5}]
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
