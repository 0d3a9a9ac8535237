"""A failed run leaves no trace in what processes share: positions of open files, mapped memory, pipes and locks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from code_chains.executors import Limits, SandboxExecutor, Session
from code_chains.executors.base import discard
from tests.executors.sandbox.test_sessions import launcher as launcher
from tests.executors.sandbox.test_sessions import open_executor

FAIL = "1 / 0"
RUNS: dict[str, tuple[str, str, str, str]] = {
    "text": (
        "f = open('a', 'w'); f.write('one '); f.flush()",
        "f.write('two '); f.flush()",
        "f.write('three'); f.flush(); open('a').read()",
        "'one three'",
    ),
    "csv": (
        "import csv; f = open('a', 'w'); w = csv.writer(f); w.writerow([1]); f.flush()",
        "w.writerow([2]); f.flush()",
        "w.writerow([3]); f.flush(); open('a').read().split()",
        "['1', '3']",
    ),
    "logging": (
        "import logging; logging.basicConfig(filename='a', filemode='w', format='%(message)s'); logging.error(1)",
        "logging.error(2)",
        "logging.error(3); open('a').read().split()",
        "['1', '3']",
    ),
    "unbuffered": (
        "open('a', 'w').write('abcdef'); f = open('a', 'rb', buffering=0); f.read(2)",
        "f.read(2)",
        "f.read(2)",
        "b'cd'",
    ),
    "gzip": (
        "import gzip; g = gzip.open('a', 'wb'); g.write(b'one '); g.flush()",
        "g.write(b'two '); g.flush()",
        "g.write(b'three'); g.close(); gzip.open('a').read()",
        "b'one three'",
    ),
    "truncated": (
        "f = open('a', 'w'); f.write('one '); f.flush()",
        "f.seek(0); f.truncate(); f.write('longer than before'); f.flush()",
        "f.write('two'); f.flush(); open('a').read()",
        "'one two'",
    ),
    "removed": (
        "import os; f = open('a', 'w'); f.write('one '); f.flush()",
        "os.remove('a')",
        "f.write('two'); f.flush(); open('a').read()",
        "'one two'",
    ),
    "replaced": (
        "import os; f = open('a', 'w'); f.write('one '); f.flush()",
        "os.rename('a', 'b'); f.write('two '); f.flush()",
        "f.write('three'); f.flush(); (open('a').read(), os.path.exists('b'))",
        "('one three', False)",
    ),
    "unnamed": (
        "import tempfile; f = tempfile.TemporaryFile(); f.write(b'one '); f.flush()",
        "f.seek(0); f.write(b'something else'); f.flush()",
        "f.write(b'two'); f.seek(0); f.read()",
        "b'one two'",
    ),
    "shared value": (
        "import multiprocessing; v = multiprocessing.RawValue('i', 1)",
        "v.value = 9",
        "v.value",
        "1",
    ),
    "shared memory": ("import mmap; m = mmap.mmap(-1, 9); m[0] = 1", "m[0] = 9", "m[0]", "1"),
    "mapped file": (
        "import mmap; open('a', 'w').write('one'); f = open('a', 'r+'); m = mmap.mmap(f.fileno(), 3)",
        "m[:] = b'two'; m.flush()",
        "(m[:], open('a').read())",
        "(b'one', 'one')",
    ),
    "pipe": (
        "import os; r, w = os.pipe(); os.write(w, b'one ')",
        "os.read(r, 9); os.write(w, b'two ')",
        "os.write(w, b'three'); os.read(r, 99)",
        "b'one three'",
    ),
    "connection": (
        "import multiprocessing; a, b = multiprocessing.Pipe(); a.send(1); a.send(2)",
        "b.recv(); a.send(3)",
        "(b.recv(), b.recv(), b.poll())",
        "(1, 2, False)",
    ),
    "lock": (
        "import fcntl; f = open('a', 'w')",
        "fcntl.flock(f, fcntl.LOCK_EX)",
        "fcntl.flock(open('a'), fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "None",
    ),
    "flags": ("import os; r, w = os.pipe()", "os.set_blocking(r, False)", "os.get_blocking(r)", "True"),
    "transaction": (
        "import sqlite3; c = sqlite3.connect('a'); c.execute('create table t(x)'); c.execute('insert into t values(1)')",
        "c.execute('insert into t values(2)'); c.commit()",
        "c.execute('insert into t values(3)'); c.commit(); sqlite3.connect('a').execute('select x from t').fetchall()",
        "[(1,), (3,)]",
    ),
    "write-ahead log": (
        "import sqlite3; c = sqlite3.connect('a'); c.execute('pragma journal_mode=wal'); c.execute('create table t(x)')",
        "c.execute('insert into t values(2)'); c.commit()",
        "c.execute('insert into t values(3)'); c.commit(); c.execute('select x from t').fetchall()",
        "[(3,)]",
    ),
}
CANNOT = {
    "landlock": {
        "removed",
        "replaced",
        "lock",
        "shared value",
        "socket",
    },  # There is no /proc and no /dev/shm.
    "none": {"shared memory"},  # It is not backed by a file.
}


@pytest.fixture(scope="module")
def executor(launcher: Any) -> Iterator[SandboxExecutor]:
    with open_executor(launcher, Limits(seconds=3, memory="256M", disk="16M")) as executor:
        yield executor


@pytest.fixture
def session(executor: SandboxExecutor) -> Iterator[Session]:
    with executor.session() as session:
        yield session


def result(session: Session, code: str) -> str:
    execution = session.run(code)
    return str(execution.result) if execution.ok else execution.summary


@pytest.mark.rows(18)
@pytest.mark.parametrize("name", RUNS)
def test_a_failed_run_leaves_no_trace(session: Session, launcher: str, name: str) -> None:
    if name in CANNOT.get(launcher, ()):
        pytest.skip("see SECURITY.md")
    before, failing, after, expected = RUNS[name]
    result(session, f"{before}; None")
    for failure in (FAIL, "import os; os._exit(1)"):
        assert not session.run(f"{failing}\n{failure}").ok
    assert result(session, after) == expected


@pytest.mark.rows(4)
@pytest.mark.parametrize("name", ["text", "unbuffered", "shared value", "pipe"])
def test_a_checkpoint_holds_what_is_open(session: Session, launcher: str, name: str) -> None:
    if name in CANNOT.get(launcher, ()):
        pytest.skip("see SECURITY.md")
    before, later, after, expected = RUNS[name]
    result(session, f"{before}; None")
    session.checkpoint()
    for _ in range(2):
        result(session, later)
        session.restore()
    assert result(session, after) == expected


@pytest.mark.rows(4)
@pytest.mark.parametrize("name", ["text", "unnamed", "mapped file", "connection"])
def test_a_rollback_covers_what_is_open(session: Session, name: str) -> None:
    before, later, after, expected = RUNS[name]
    result(session, f"{before}; None")
    assert session.run(later).ok
    session.rollback()
    assert result(session, after) == expected


def test_a_failed_run_says_what_it_could_not_leave_unchanged(session: Session, launcher: str) -> None:
    if "socket" in CANNOT.get(launcher, ()):
        pytest.skip("see SECURITY.md")
    session.run("import socket; a = socket.socket(socket.AF_UNIX)")
    assert "Not rolled back" in session.run(FAIL).stderr


COUNT = "len(os.listdir('/proc/self/task')) > 1"
START = """
import ctypes
libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
libc.pthread_create(ctypes.byref(thread), None, ctypes.cast(libc.sleep, ctypes.c_void_p), ctypes.c_void_p(60))
"""


@pytest.fixture
def threaded(session: Session, launcher: str) -> Session:
    """A session whose state has a thread that Python does not know."""
    if launcher == "landlock":
        pytest.skip("there is no /proc")
    session.run(START)
    return session


def test_threads_of_libraries_go_on_in_later_runs(threaded: Session) -> None:
    for number in range(3):
        assert threaded.run(f"import os; x = {number}; {COUNT}").result == "True"
    assert threaded.run("x").result == "2"


def test_a_failed_run_loses_threads_of_libraries_but_no_variable(threaded: Session) -> None:
    threaded.run("x = 5")
    threaded.run("x = 6; 1 / 0")
    assert (threaded.has_lost_threads, threaded.run(f"import os; (x, {COUNT})").result) == (
        True,
        "(5, False)",
    )


@pytest.mark.slow
def test_a_timeout_without_the_threads_of_libraries_says_so(threaded: Session) -> None:
    threaded.run("1 / 0")
    execution = threaded.run("while True: pass")
    assert execution.error is not None
    assert "threads of its own" in execution.error.message


def test_a_run_that_is_discarded_keeps_threads_and_state(threaded: Session) -> None:
    threaded.run("x = 5")
    assert threaded.run("x = 6; x", check=discard).result == "6"
    assert (threaded.has_lost_threads, threaded.run(f"import os; (x, {COUNT})").result) == (
        False,
        "(5, True)",
    )


def test_threads_of_libraries_can_be_rolled_back(threaded: Session) -> None:
    threaded.run("x = 5")
    threaded.checkpoint()
    threaded.run("x = 6")
    threaded.rollback()
    assert threaded.run("x").result == "5"
    threaded.restore()
    assert threaded.run("x").result == "5"
