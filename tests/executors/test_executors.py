"""The promise of an executor, kept by each place where code runs."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from code_chains.errors import ConfigurationError, ExecutorError, InputError, IsolationError
from code_chains.executors import Executor, Limits, ProcessExecutor, SandboxExecutor
from code_chains.executors.sandbox import provider
from code_chains.executors.sandbox.launchers import LAUNCHERS
from code_chains.temporary import process_folder
from code_chains.testing import ExecutorContract
from tests.conftest import KERNEL_LAUNCHERS, ROOT, at_rest, available, descendants, soon

LIMITS = Limits(seconds=3, memory="128M", output="64K")


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
class TestBubblewrap(ExecutorContract):
    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        with SandboxExecutor(limits=LIMITS, preload=(), launcher="bubblewrap") as executor:
            yield executor


class TestNamespaces(ExecutorContract):
    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        with SandboxExecutor(limits=LIMITS, preload=(), launcher="namespaces") as executor:
            yield executor


@pytest.mark.slow
class TestProcess(ExecutorContract):
    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        with ProcessExecutor(limits=LIMITS, preload=()) as executor:
            yield executor


@pytest.fixture(scope="module", params=KERNEL_LAUNCHERS)
def launcher(request: pytest.FixtureRequest) -> str:
    """As everywhere, for boxes that the tests here share."""
    return available(request.param)


@pytest.fixture(scope="module")
def executor(launcher: Any) -> Iterator[SandboxExecutor]:
    limits = Limits(seconds=3, processes=24, files=500, disk="8M")
    with SandboxExecutor(limits=limits, preload=(), launcher=launcher) as executor:
        executor.run("1")
        yield executor


TIGHT = Limits(seconds=1.5, memory="512M", processes=24, files=500, disk="8M")
"""As small as programs need that run into a limit."""


@pytest.fixture(scope="module")
def tight(launcher: Any) -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=TIGHT, preload=(), launcher=launcher) as executor:
        executor.run("1")
        yield executor


@pytest.fixture(scope="module")
def patient(launcher: Any) -> Iterator[SandboxExecutor]:
    """With time enough to run into another limit on a busy machine."""
    with SandboxExecutor(limits=replace(TIGHT, seconds=15), preload=(), launcher=launcher) as executor:
        executor.run("1")
        yield executor


# -- what a run gives ----------------------------------------------------------------------------------------------------


def test_a_probe_inside_finds_everything_closed(executor: SandboxExecutor) -> None:
    isolation = executor.run("1").isolation
    assert isolation is not None
    assert (isolation.level, isolation.open) == ("kernel", ())
    assert {"namespaces", "seccomp", "rlimits"} <= set(isolation.layers)


def test_no_protection_is_reported_as_such() -> None:
    with ProcessExecutor(preload=()) as executor:
        isolation = executor.run("1").isolation
    assert isolation is not None
    assert isolation.level == "none"
    assert {"filesystem", "network"} <= set(isolation.open)


def test_a_box_that_is_open_runs_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    open_box: Any = "none"
    with (
        SandboxExecutor(launcher=open_box, preload=()) as executor,
        pytest.raises(IsolationError, match="filesystem"),
    ):
        executor.run(f"open({str(trace)!r}, 'w')")
    assert not trace.exists()


@pytest.mark.parametrize("is_refused", [True, False])
def test_only_a_system_that_refuses_namespaces_is_asked_to_allow_them(
    monkeypatch: pytest.MonkeyPatch, is_refused: bool
) -> None:
    monkeypatch.setitem(LAUNCHERS, "namespaces", lambda spec: ["sh", "-c", "echo the cause >&2"])
    monkeypatch.setattr(provider, "may_make_namespaces", lambda: not is_refused)
    with (
        SandboxExecutor(preload=(), launcher="namespaces") as executor,
        pytest.raises(IsolationError, match="the cause") as failure,
    ):
        executor.run("1")
    for advice in ("sysctl", "seccomp=unconfined", "apt install bubblewrap", "executor='none'"):
        assert (advice in str(failure.value)) == is_refused


@pytest.mark.slow
@pytest.mark.parametrize("way", ["sleep 60", "kill -9 $$", "echo Cannot allocate memory >&2"])
def test_a_launcher_that_fails_for_the_moment_gives_way_to_no_weaker_one(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(provider, "START_TIMEOUT_S", 0.5)
    monkeypatch.setattr(provider, "candidates", lambda level: ["namespaces", "landlock"])
    monkeypatch.setitem(LAUNCHERS, "namespaces", lambda spec: ["sh", "-c", way])
    with SandboxExecutor(preload=(), min_isolation="landlock") as executor:
        with pytest.raises(ExecutorError) as failure:
            executor.run("1")
        assert (failure.value.is_retryable, type(failure.value)) == (True, ExecutorError)
        assert executor.launcher == "namespaces"


@pytest.mark.parametrize("launcher", [None, *LAUNCHERS])
def test_elsewhere_than_on_linux_every_launcher_is_refused(
    monkeypatch: pytest.MonkeyPatch, launcher: Any
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(IsolationError, match="needs Linux"):
        SandboxExecutor(launcher=launcher, min_isolation="none")


def test_files_are_read_only_copies(executor: SandboxExecutor, sales: Path) -> None:
    done = executor.run(
        "print(open('data/s.csv').read()); open('data/s.csv', 'a')", files={"data/s.csv": sales}
    )
    assert "south,32" in done.stdout
    assert done.error is not None
    assert done.error.type == "PermissionError"


def test_a_private_file_can_be_given(executor: SandboxExecutor, sales: Path) -> None:
    sales.chmod(0o600)
    assert executor.run("len(open('s.csv').read())", files={"s.csv": sales}).result == "32"


def test_a_big_file_is_not_counted_against_the_disk(executor: SandboxExecutor, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * (20 << 20))
    done = executor.run(
        "open('out', 'wb').write(b'y' * (4 << 20)), len(open('big').read())", files={"big": tmp_path / "big"}
    )
    assert done.result == f"({4 << 20}, {20 << 20})"


def test_the_environment_is_clean(executor: SandboxExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    assert executor.run("import os; 'hunter2' in str(os.environ)").result == "False"


def test_it_runs_as_main_from_a_private_directory(executor: SandboxExecutor) -> None:
    assert executor.run("import os; __name__, os.getcwd(), os.listdir()").result == "('__main__', '/box', [])"


def test_top_level_await_works(executor: SandboxExecutor) -> None:
    assert executor.run("import asyncio\nawait asyncio.sleep(0.01, 5)").result == "5"


def test_numpy_and_pandas_work(executor: SandboxExecutor) -> None:
    done = executor.run("import numpy, pandas\npandas.DataFrame({'a': [1, 2]}).a.sum()")
    assert done.result == "np.int64(3)"


def test_processes_and_threads_of_a_program_work(executor: SandboxExecutor) -> None:
    code = "from multiprocessing import Pool\nwith Pool(2) as pool: print(pool.map(abs, [-1, -2]))"
    assert executor.run(code).stdout == "[1, 2]\n"
    code = (
        "import multiprocessing as mp\nfrom concurrent.futures import ProcessPoolExecutor\n"
        "mp.set_start_method('fork')\ndef double(n): return 2 * n\n"
        "with ProcessPoolExecutor(2) as pool: print(list(pool.map(double, [1, 2])))"
    )
    assert executor.run(code).stdout == "[2, 4]\n"
    code = "import threading\nthreading.Thread(target=lambda: print('late')).start()"
    assert executor.run(code).stdout == "late\n"


def test_a_program_can_start_python(executor: SandboxExecutor) -> None:
    code = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(7)'], capture_output=True).stdout"
    assert executor.run(code).result == "b'7\\n'"


def test_a_traceback_shows_the_programs_lines_alone(executor: SandboxExecutor) -> None:
    error = executor.run("def f(n):\n    return 1 / n\nf(0)").error
    assert error is not None
    assert "return 1 / n" in error.traceback
    assert "worker.py" not in error.traceback
    assert (error.line, error.locals) == (2, {"n": "0"})


def test_input_is_at_its_end(executor: SandboxExecutor) -> None:
    error = executor.run("input('name?')").error
    assert error is not None
    assert error.type == "EOFError"


# -- how a run ends ------------------------------------------------------------------------------------------------------

ENDINGS = {
    "sys.exit": ("import sys; print(1); sys.exit()", "ok"),
    "sys.exit with a code": ("import sys; sys.exit(3)", "error"),
    "os._exit": ("import os; os._exit(0)", "killed"),
    "kills itself": ("import os; os.kill(os.getpid(), 9)", "killed"),
    "kills the watcher": (
        "import os, time\nfor pid in (1, -1, os.getppid() or 1):\n  for n in (9, 15, 19, 2):\n    try: os.kill(pid, n)\n"
        "    except OSError: pass\ntime.sleep(0.2); print(1)",
        "ok",
    ),
    "segfault": ("import ctypes; ctypes.string_at(0)", "killed"),
    "endless": ("while True: pass", "timeout"),
    "endless in C": ("9 ** 9 ** 9", "timeout"),
    "endless atexit": ("import atexit, time; atexit.register(time.sleep, 60)", "timeout"),
    "ignores signals": (
        "import signal\nfor n in range(1, 64):\n  try: signal.signal(n, signal.SIG_IGN)\n  except Exception: pass\n"
        "while True: pass",
        "timeout",
    ),
    "sleeping thread": ("import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()", "timeout"),
    "flood": ("while True: print('x' * 10000)", "output_limit"),
    "flood of errors": ("import sys\nwhile True: sys.stderr.write('x' * 10000)", "output_limit"),
    "flood of a child": ("import os\nos.fork()\nwhile True: print('x' * 10000)", "output_limit"),
    "forks": ("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", "process_limit"),
    "memory": ("x = bytearray(1 << 34)", "memory"),
    "memory in pieces": ("x = [b'x' * (1 << 20) + bytes([n % 256]) for n in range(10**6)]", "memory"),
    "memory of children": (
        "import os, time\nfor _ in range(8):\n  if not os.fork():\n    x = b'x' * (200 << 20); time.sleep(60)\n"
        "time.sleep(60)",
        "memory",
    ),
    "shared memory": (
        "import mmap\nkeep = [mmap.mmap(-1, 1 << 28) for _ in range(9)]\n[m.write(b'x' * (1 << 28)) for m in keep]",
        "disk_limit",
    ),
    "memory that is forgotten": (
        "import mmap, time\nkeep = [mmap.mmap(-1, 1 << 28) for _ in range(6)]\nfor m in keep:\n"
        "  m.write(b'x' * (1 << 28)); m.madvise(mmap.MADV_DONTNEED)\ntime.sleep(60)",
        "disk_limit",
    ),
    "memory of threads without their first": (
        "import ctypes, os, threading, time\ndef grow():\n  time.sleep(0.2)\n  x = b'x' * (400 << 20); time.sleep(60)\n"
        "for _ in range(3):\n  if not os.fork():\n    threading.Thread(target=grow).start()\n"
        "    ctypes.CDLL(None).syscall(60, 0)\n"
        "time.sleep(60)",
        "memory",
    ),
    "disk": ("open('x', 'wb').write(b'x' * (1 << 28))", "disk_limit"),
    "disk in pieces": ("for n in range(99): open(f'f{n}', 'wb').write(b'x' * (1 << 20))", "disk_limit"),
    "open files": ("keep = [open('/dev/null') for _ in range(9999)]", "file_limit"),
    "threads": (
        "import threading, time\nfor _ in range(999): threading.Thread(target=time.sleep, args=(60,)).start()",
        "process_limit",
    ),
    "many files": ("import os\nfor n in range(10**9): open(f'f{n}', 'w').close()", "disk_limit"),
    "recursion": ("def f(): f()\nf()", "error"),
    "deep result": ("x = []\nfor _ in range(100000): x = [x]\nresult = x", "error"),
    "endless repr": ("class X:\n  def __repr__(self):\n    while True: pass\nX()", "timeout"),
    "raises BaseException": ("raise BaseException('x')", "error"),
    "broken exception": ("class E(Exception):\n  def __str__(self): raise self\nraise E", "error"),
    "stdout closed": ("import sys, os; sys.stdout.close(); os.close(2)\n5", "ok"),
    "stdout replaced": ("import sys; sys.stdout = None\n5", "ok"),
    "json poisoned": ("import json; json.dumps = None; json.JSONEncoder = None\n5", "ok"),
    "syntax": ("print(", "error"),
    "null byte": ("x = '\0'", "error"),
    "empty": ("", "ok"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("code", "status"), ENDINGS.values(), ids=ENDINGS.keys())
def test_every_ending_is_a_value_within_its_limit(
    tight: SandboxExecutor, patient: SandboxExecutor, code: str, status: str
) -> None:
    executor = tight if status == "timeout" else patient
    before, began = at_rest(), time.monotonic()
    done = executor.run(code)
    assert done.status == status, done
    assert done.duration < executor.limits.seconds * 1.25 + 1  # A busy machine takes a while to notice.
    assert time.monotonic() - began < executor.limits.seconds * 1.25 + 3
    assert soon(lambda: len(descendants()) <= before)


DAEMON = """
import os, time
if not os.fork():
    os.setsid()
    if not os.fork():
        time.sleep(60)
    os._exit(0)
print(1)
"""


def test_a_daemon_ends_with_its_run(executor: SandboxExecutor) -> None:
    before = at_rest()
    assert executor.run(DAEMON).ok
    assert soon(lambda: len(descendants()) <= before)


def test_a_daemon_of_a_plain_process_ends_with_its_run() -> None:
    before = at_rest()
    with ProcessExecutor(preload=()) as executor:
        assert executor.run(DAEMON).ok
    assert soon(lambda: len(descendants()) <= before)


def test_after_a_forged_result_nothing_runs_on(executor: SandboxExecutor) -> None:
    """A program can say that it ended with any value, as it could have computed any; but then it has ended."""
    before, began = at_rest(), time.monotonic()
    forge = (
        "import os, json, struct, time\n"
        "head = json.dumps({'status': 'ok', 'result': True, 'views': [], 'error': None, 'sizes': [2]}).encode()\n"
        "frame = struct.pack('!I', len(head)) + head + b'42'\n"
        "for fd in range(3, 400):\n  try: os.write(fd, frame)\n  except OSError: pass\ntime.sleep(60)"
    )
    assert executor.run(forge).result == "42"
    assert soon(lambda: len(descendants()) <= before)
    assert time.monotonic() - began < executor.limits.seconds


def test_junk_on_the_result_pipe_harms_no_one(executor: SandboxExecutor) -> None:
    junk = (
        "import os\nfor fd in range(3, 400):\n  for data in (b'[' * 100000 + b'\\n', b'\\xff\\n', b'{}\\n', b'5\\n'):\n"
        "    try: os.write(fd, data)\n    except OSError: pass\nprint('done')"
    )
    done = executor.run(junk)
    assert (done.status, done.error and done.error.type) == ("killed", "Garbled")
    assert executor.run("6 * 7").result == "42"


# -- leaving nothing behind ----------------------------------------------------------------------------------------------


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_runs_leave_no_descriptor_process_or_file(
    launcher: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder, rest = process_folder(), at_rest()
    before = open_descriptors(), rest
    with SandboxExecutor(preload=(), launcher=launcher) as executor:
        for _ in range(5):
            executor.run("open('x', 'w').write('y'); 1 / 0")
    rest = at_rest()
    assert (open_descriptors(), rest, os.listdir(folder)) == (*before, [])


async def test_many_runs_at_once_do_not_mix(sandbox: SandboxExecutor) -> None:
    results = await asyncio.gather(*(sandbox.arun(f"print({n}); {n} * 2") for n in range(12)))
    assert [(done.stdout, done.result) for done in results] == [(f"{n}\n", str(n * 2)) for n in range(12)]


@pytest.mark.slow
async def test_cancelling_kills_the_program(launcher: Any) -> None:
    with SandboxExecutor(limits=Limits(seconds=60), preload=(), launcher=launcher) as executor:
        executor.run("1")
        before = at_rest()
        task = asyncio.create_task(executor.arun("import time; time.sleep(60)"))
        await asyncio.sleep(0.5)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 20
        assert soon(lambda: len(descendants()) <= before, 20)


async def test_cancelling_while_it_starts_leaves_nothing(executor: SandboxExecutor) -> None:
    before = at_rest()
    for delay in (0, 0.001, 0.01, 0.05):
        task = asyncio.create_task(executor.arun("import time; time.sleep(60)"))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert soon(lambda: len(descendants()) <= before)


async def test_a_run_does_not_block_the_loop(sandbox: SandboxExecutor) -> None:
    task, gap = asyncio.create_task(sandbox.arun("import time; time.sleep(0.5)")), 0.0
    while not task.done():
        before = time.monotonic()
        await asyncio.sleep(0.005)
        gap = max(gap, time.monotonic() - before)
    assert gap < 0.3


@pytest.mark.slow
async def test_async_ends_like_sync(tight: SandboxExecutor) -> None:
    for code in ("1 + 1", "1 / 0", "while True: pass", "import os; os._exit(0)"):
        assert await tight.arun(code) == tight.run(code)


def test_a_closed_executor_refuses() -> None:
    executor = SandboxExecutor(preload=())
    executor.close()
    executor.close()
    with pytest.raises(ExecutorError, match="closed"):
        executor.run("1")


# -- wrong use -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({"seconds": 0}, "seconds"),
        ({"memory": "lots"}, "memory"),
        ({"output": -1}, "output"),
        ({"processes": "x"}, "proc"),
    ],
)
def test_a_limit_that_is_none_is_refused(limits: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"Limits\.{named}"):
        Limits(**limits)


@pytest.mark.parametrize(
    ("size", "count"), [("512M", 512 << 20), ("1g", 1 << 30), ("2 KiB", 2048), (77, 77), ("1.5K", 1536)]
)
def test_sizes_are_understood(size: int | str, count: int) -> None:
    assert Limits(disk=size).disk_bytes == count


@pytest.mark.parametrize(
    "arguments", [{"min_isolation": "trust"}, {"launcher": "rocket"}, {"limits": {"seconds": 3}}]
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(arguments))):
        SandboxExecutor(**arguments)


def test_a_missing_file_is_refused_before_anything_starts(executor: SandboxExecutor) -> None:
    before = at_rest()
    with pytest.raises(InputError, match="does not exist"):
        executor.run("1", files={"a.csv": Path("/nowhere/a.csv")})
    assert len(descendants()) == before


SYSTEM = "/usr/bin/python3"
"""The system's Python, where it is of the same version as this one and can use its packages."""


def same_version(python: str) -> bool:
    code = "import sys; print(sys.version_info[:2])"
    return (
        os.path.exists(python)
        and subprocess.check_output([python, "-c", code], text=True) == f"{sys.version_info[:2]}\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("python", [sys.executable, SYSTEM])
@pytest.mark.parametrize("where", ["/tmp", "/var/tmp"])
def test_it_works_from_wherever_python_lives(launcher: Any, where: str, python: str) -> None:
    """A virtual environment below /tmp, as continuous integration likes to make them, is not hidden by the box's own."""
    if not same_version(python):
        pytest.skip(f"{python} is not there in this version")
    home = Path(tempfile.mkdtemp(dir=where))
    try:
        subprocess.run([python, "-m", "venv", "--without-pip", str(home / "venv")], check=True)
        packages = [path for path in sys.path if path.endswith("site-packages")]
        code = (
            f"import sys; sys.path += {[*packages, str(ROOT)]!r}\nfrom code_chains.executors import SandboxExecutor\n"
            f"with SandboxExecutor(preload=(), launcher={launcher!r}) as box: print(box.run('6 * 7').output)"
        )
        done = subprocess.run(
            [home / "venv/bin/python", "-c", code], capture_output=True, text=True, check=False
        )
    finally:
        shutil.rmtree(home)
    assert done.stdout == "42\n", done.stderr


def test_half_characters_become_whole_ones(executor: SandboxExecutor) -> None:
    error = executor.run("raise ValueError('caf\\udce9')").error
    assert error is not None
    assert (error.type, error.message) == ("ValueError", "caf?")
    done = executor.run("class X:\n  def __repr__(self): return '\\ud800'\nX()")
    assert (done.status, done.result, done.to_json() != "") == ("ok", "?", True)


HANDS_OFF = {
    "what others read": "import fcntl; fcntl.fcntl(os.open(os.path.dirname(os.__file__), 0), fcntl.F_NOTIFY, 1)",
    "its limits": "resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))",
    "its scheduling": "os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))",
    "its priority": "os.setpriority(os.PRIO_PROCESS, 1, 19)",
    "its processors": "os.sched_setaffinity(1, {0})",
    "memory of nobody": "assert ctypes.CDLL(None).shmget(0, 4096, 0o1600) >= 0 or None, 'Operation not permitted'",
    "huge buffers": "socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 23)",
}


@pytest.mark.parametrize("code", HANDS_OFF.values(), ids=HANDS_OFF.keys())
def test_the_watcher_cannot_be_blinded(executor: SandboxExecutor, code: str) -> None:
    done = executor.run(f"import ctypes, os, resource, socket\n{code}")
    assert (done.status, "not permitted" in str(done.error)) == ("error", True)


def test_a_program_may_limit_itself(executor: SandboxExecutor) -> None:
    assert executor.run(
        "import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); os.nice(1)"
    ).ok


def test_an_executor_refuses_a_check_of_outcomes_which_sessions_take() -> None:
    with ProcessExecutor() as executor, pytest.raises(ConfigurationError, match="no state to keep"):
        executor.run("1", check=lambda done: True)
