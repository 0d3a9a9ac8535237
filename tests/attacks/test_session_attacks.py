"""A session's process is the program's own and lives on: what it may not do between runs, nor to whoever copies its files.

A hostile program replaces what its process does once a run has ended. It says that all went well, goes on with code of its
own, and answers what it is asked as an honest one does. Whether that reaches anything is seen from outside: by files of the
test's own, by processes and their time.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from code_chains.errors import SessionError
from code_chains.executors import Limits, SandboxExecutor, Session
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.request import Request
from code_chains.records import Execution
from tests.conftest import descendants, soon
from tests.support.other_user import for_landlock

pytestmark = pytest.mark.attack
LIMITS = Limits(seconds=1, memory="128M", processes=8, disk="16M", files=2000)
PLACES = ["bubblewrap", "namespaces", "landlock"]

TAKE_OVER = """
import ctypes, os, resource, signal, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
frame = sys._getframe()
while 'report_outcome' not in frame.f_globals:
    frame = frame.f_back
inside = frame.f_globals
tell = inside['wire'].send

def report_outcome(line, *, ok, **more):
    prepare()
    threading.Thread(target=loop, daemon=True).start()
    tell(line, {'ok': True, 'pid': os.getpid()})

def loop():
    while True:
        act()

def prepare():
    pass

inside['report_outcome'] = report_outcome
"""


@contextmanager
def place_of(launcher: Any) -> Iterator[SandboxExecutor]:
    if launcher == "bubblewrap" and not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    require: Any = "landlock" if launcher == "landlock" else "kernel"
    python = for_landlock() if launcher == "landlock" else None
    with SandboxExecutor(
        limits=LIMITS, preload=(), launcher=launcher, min_isolation=require, python=python
    ) as executor:
        yield executor


@pytest.fixture(scope="module", params=PLACES)
def shared(request: pytest.FixtureRequest) -> Iterator[SandboxExecutor]:
    with place_of(request.param) as executor:
        yield executor


@pytest.fixture(params=PLACES)
def executor(request: pytest.FixtureRequest) -> Iterator[SandboxExecutor]:
    """One that a test may close."""
    with place_of(request.param) as executor:
        yield executor


@pytest.fixture
def session(shared: SandboxExecutor) -> Iterator[Session]:
    with shared.session() as session:
        yield session


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Path]:
    """Files of this user's that only this user may see."""
    folder = tmp_path / "private"
    folder.mkdir(0o700)
    for number in range(200):
        (folder / f"f{number}").write_text("secret")
        (folder / f"f{number}").chmod(0o600)
    yield folder
    folder.chmod(0o700)


def attempt(session: Session, program: str, **variables: Any) -> Execution | None:
    """Run a program; that the session has ended is an answer as well."""
    try:
        return session.run(program, variables=variables)
    except SessionError:
        return None


def read_all(name: str) -> Iterator[str]:
    """Read a file below `/proc` of all processes below this one, without those that end meanwhile."""
    for pid in descendants():
        with suppress(OSError):
            yield Path(f"/proc/{pid}/{name}").read_text()


def time_used() -> int:
    """Ticks of a hundredth of a second that all processes below this one have computed for."""
    ticks = 0
    for text in read_all("stat"):
        fields = text.rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks


def memory_used() -> int:
    """Bytes that all processes below this one hold; a page that several share counts once."""
    lines = "".join(read_all("smaps_rollup")).splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Pss_Anon", "Pss_Shmem")))


def test_the_take_over_of_these_attacks_works(session: Session) -> None:
    marked = "def prepare(): open('taken', 'w').close()\ndef act(): time.sleep(1)"
    done = attempt(session, TAKE_OVER + marked)
    assert done is None or done.error is None
    assert session.run("import os; os.path.exists('taken')").result == "True"


GO_ON = {
    "a loop": "def act(): pass",
    "a loop in a thread": "threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()\ndef act(): time.sleep(1)",
    "a timer that lets it go on": """
class Event(ctypes.Structure):
    _fields_ = [('value', ctypes.c_long), ('signo', ctypes.c_int), ('kind', ctypes.c_int), ('pad', ctypes.c_char * 48)]
def prepare():
    timer = ctypes.c_void_p()
    libc.timer_create(1, ctypes.byref(Event(0, signal.SIGCONT, 0)), ctypes.byref(timer))
    libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 10_000_000, 0, 10_000_000), None)
def act(): pass
""",
    "timers by their number": """
def prepare():
    event = (ctypes.c_int * 16)(0, 0, signal.SIGCONT, 0)
    number = ctypes.c_int()
    libc.syscall(222, 1, event, ctypes.byref(number))
    libc.syscall(223, number.value, 0, (ctypes.c_long * 4)(0, 10_000_000, 0, 10_000_000), None)
def act(): pass
""",
    "the usual timers": """
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGCONT))
def prepare(): signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
def act(): pass
""",
    "a child that lets it go on": """
def prepare():
    me = os.getpid()
    if not os.fork():
        os.setsid()
        while True: os.kill(me, signal.SIGCONT)
def act(): pass
""",
    "many children that let each other go on": """
def prepare():
    group = os.getpgrp()
    for _ in range(6):
        if not os.fork():
            while True: os.killpg(group, signal.SIGCONT)
def act(): pass
""",
    "the end of its parent": """
def prepare(): libc.prctl(1, signal.SIGCONT, 0, 0, 0)
def act(): pass
""",
    "the end of a child": """
def prepare():
    for _ in range(4):
        if not libc.syscall(56, signal.SIGCONT, 0, 0, 0, 0):
            time.sleep(60)
def act(): pass
""",
    "a pipe that says when": """
import fcntl
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def prepare():
    read, write = os.pipe()
    fcntl.fcntl(read, 10, signal.SIGCONT); fcntl.fcntl(read, 8, os.getpid())
    fcntl.fcntl(read, fcntl.F_SETFL, fcntl.fcntl(read, fcntl.F_GETFL) | os.O_ASYNC)
    if not os.fork():
        while True: os.write(write, b'x')
def act(): pass
""",
    "a group that the end of an outdated state leaves alone, without a fork in advance": """
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def prepare(): os.setpgid(0, 0)
def act(): pass
fork = inside['branch']
def branch(channel, descriptors, limits):
    if sys._getframe(1).f_locals['message']['number']:
        return fork(channel, descriptors, limits)
    for descriptor in descriptors: os.close(descriptor)
    tell(channel, {'pid': 0})
inside['branch'] = branch
""",
    "a group without a head": """
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def prepare():
    me = os.getpid()
    os.setpgid(0, 0)
    if not os.fork(): time.sleep(60)
def act(): pass
""",
}


@pytest.mark.rows(1)
@pytest.mark.parametrize("way", GO_ON.values(), ids=GO_ON.keys())
def test_nothing_of_a_session_computes_between_its_runs(session: Session, way: str) -> None:
    attempt(session, "x = 1")
    attempt(session, TAKE_OVER + way)
    attempt(session, "y = 2")
    time.sleep(0.5)  # The supervisor forks the next program in advance, and looks that nothing else runs.
    before = time_used()
    time.sleep(1)
    # Of 100; what is forked in advance on a busy machine may still be starting.
    assert time_used() - before <= 8


GROW = {
    "memory": "blocks = []\ndef act(): blocks.append(bytearray(1 << 22)) if len(blocks) < 200 else time.sleep(1)",
    "processes": "def act(): (os.fork() or time.sleep(60)) if len(os.listdir('/proc/self/task')) else 0",
    "processes and memory": """
def act():
    if not os.fork():
        block = bytearray(100 << 20); time.sleep(60)
""",
    "memory just before": "def prepare(): globals().update(block=bytearray(120 << 20))\ndef act(): os.fork()",
}


@pytest.mark.rows(1)
@pytest.mark.parametrize("way", GROW.values(), ids=GROW.keys())
def test_the_limits_of_a_session_hold_between_its_runs(session: Session, way: str) -> None:
    attempt(session, "x = 1")
    rested, processes = memory_used(), len(descendants())
    attempt(session, TAKE_OVER + way)
    time.sleep(1.5)
    assert memory_used() - rested < 200 << 20
    assert len(descendants()) - processes < 6


SWAP = """
def exchange(): libc.syscall(316, -100, b'd', -100, b'l', 2)
for one in range(200):
    os.makedirs('d', exist_ok=True)
    open(f'd/f{one}', 'w').write('PWNED')
os.path.lexists('l') or os.symlink(paths[0], 'l')
"""
MEDDLE = {
    "a folder becomes a link": "act = exchange",
    "a folder becomes a link, from another process": """
def prepare():
    if not os.fork():
        while True: exchange()
def act(): pass
""",
    "a folder becomes a link, from a thread": """
def prepare(): threading.Thread(target=lambda: [exchange() for _ in iter(int, 1)]).start()
def act(): exchange()
""",
}


@pytest.mark.rows(1)
@pytest.mark.parametrize("way", MEDDLE.values(), ids=MEDDLE.keys())
def test_whoever_copies_the_files_of_a_session_is_not_led_out(
    session: Session, private: Path, way: str
) -> None:
    for _ in range(3):
        attempt(session, TAKE_OVER + SWAP + way, paths=[str(private)])
        attempt(session, "1 / 0")
        done = attempt(session, "import glob\nprint([open(p).read() for p in glob.glob('d/*')])")
        assert "secret" not in str(done)
    assert sorted(path.read_text() for path in private.iterdir()) == ["secret"] * 200


PIPES = """
names = [f'p{number}' for number in range(300)]
for one in names: open(one, 'w').write('x' * 2000)
os.path.exists('pipe') or os.mkfifo('pipe')
def swap(one): libc.syscall(316, -100, one.encode(), -100, b'pipe', 2)
def act():
    for one in names: swap(one)
"""
BLOCKS = {
    "a thread": "",
    "another process": """
def prepare():
    if not os.fork():
        while True: act()
""",
}


@pytest.mark.rows(1)
@pytest.mark.parametrize("way", BLOCKS.values(), ids=BLOCKS.keys())
def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(executor: SandboxExecutor, way: str) -> None:
    rested = descendants()
    session, began = executor.session(), time.monotonic()
    for _ in range(3):
        attempt(session, TAKE_OVER + PIPES + way)
        attempt(session, "1 / 0")
    assert time.monotonic() - began < 30
    session.close()
    executor.close()
    assert soon(lambda: descendants() <= rested)


@pytest.mark.rows(1)
def test_a_watcher_that_does_not_answer_is_ended(executor: SandboxExecutor) -> None:
    before, session = descendants(), executor.session()
    session.run("x = 1")
    attributes: Any = session
    pid = _watcher(attributes)
    os.kill(pid, 19)  # As if it were stuck in a call that never returns.
    session.close()
    executor.close()
    assert soon(lambda: descendants() <= before, 12)


def _watcher(session: Any) -> int:
    with open(f"/proc/self/fdinfo/{session._fork.supervisor.pidfd}") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pid:"))


def test_a_session_survives_a_program_that_makes_a_group_of_its_own(session: Session) -> None:
    for number in range(5):
        assert session.run(f"import os; os.setpgrp(); x = {number}").ok
    assert session.run("x").result == "4"


@pytest.mark.kernel_sandbox
def test_a_request_cannot_be_filled_by_whoever_is_given_it() -> None:
    with Request(Program("1", variables={"table": [1]}), Limits()) as request:
        for how in (os.O_RDWR, os.O_WRONLY):
            descriptor = os.open(f"/proc/self/fd/{request._body}", how)
            with pytest.raises(PermissionError):
                os.pwrite(descriptor, b"x" * 99, 0)
            with pytest.raises(PermissionError):
                os.ftruncate(descriptor, 1 << 20)
            os.close(descriptor)


@pytest.mark.rows(1)
def test_deep_and_wide_folders_hold_nobody_up(session: Session) -> None:
    attempt(
        session,
        "import os\nfor n in range(90): os.mkdir('d'); os.chdir('d')\nfor n in range(1500): os.mkdir(f'{n}')",
    )
    began = time.monotonic()
    attempt(session, "1 / 0")
    attempt(session, "2")
    assert time.monotonic() - began < 30  # Minutes without the bound; seconds with it, on a busy machine.


def test_folders_that_are_too_deep_end_the_session_in_time(session: Session) -> None:
    done = attempt(session, "import os\nfor n in range(400): os.mkdir('d'); os.chdir('d')")
    if done is not None and done.ok:
        with pytest.raises(SessionError, match="nested"):
            session.run("1")
