"""Landlock alone: its requirements, and how missing ones are reported."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from code_chains.errors import IsolationError
from code_chains.executors import SandboxExecutor
from code_chains.executors.sandbox import provider
from code_chains.executors.sandbox.launchers import LAUNCHERS
from tests.conftest import PatchInside
from tests.support.other_user import NOBODY, READABLE, OtherUser, for_landlock

PR_CAPBSET_DROP, CAP_KILL, CAP_SYS_PTRACE = 24, 5, 19


def pretend_version(patch_inside: PatchInside, version: int) -> None:
    """Pretend that the kernel is older."""
    patch_inside(
        "landlock", "return call(SYS_landlock_create_ruleset, None", f"return {version}\n    call(0, None"
    )


def landlock_executor(python: str | None = None) -> SandboxExecutor:
    return SandboxExecutor(
        preload=(), min_isolation="landlock", launcher="landlock", python=python or for_landlock()
    )


@pytest.mark.slow
def test_it_is_reached_where_no_launcher_with_namespaces_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "candidates", lambda level: ["bubblewrap", "namespaces", "landlock"])
    for name in ("bubblewrap", "namespaces"):
        monkeypatch.setitem(LAUNCHERS, name, lambda spec: ["sh", "-c", "exit 1"])
    with SandboxExecutor(preload=(), min_isolation="landlock", python=for_landlock()) as executor:
        done = executor.run("6 * 7")
    assert (done.output, done.isolation and done.isolation.level) == ("42", "landlock")


@pytest.mark.parametrize("version", [1, 2])
def test_a_kernel_whose_landlock_knows_no_truncation_is_refused(
    patch_inside: PatchInside, version: int
) -> None:
    pretend_version(patch_inside, version)
    with (
        landlock_executor() as executor,
        pytest.raises(IsolationError, match=r"landlock is not in force.*Linux 6\.2"),
    ):
        executor.run("1")


@pytest.mark.parametrize("version", [1, 2])
def test_the_probe_finds_that_truncation_is_open(patch_inside: PatchInside, version: int) -> None:
    pretend_version(patch_inside, version)
    patch_inside("landlock", "MIN_VERSION = 3", "MIN_VERSION = 1")
    with landlock_executor() as executor, pytest.raises(IsolationError, match="filesystem"):
        executor.run("1")


@pytest.mark.skipif(
    os.geteuid() != 0 or not Path(READABLE).exists(), reason="signals need another user before version 6"
)
def test_version_three_is_enough_where_programs_are_another_user(patch_inside: PatchInside) -> None:
    pretend_version(patch_inside, 3)
    with landlock_executor() as executor:
        assert executor.run("1").ok


SIGNALS = """
import os, signal

def reaches(pid, number=0):
    try:
        os.kill(pid, number)
    except PermissionError:
        return False
    return True

signal.signal(signal.SIGUSR1, lambda *_: None)
signal.raise_signal(signal.SIGUSR1)
pid = os.fork()
if not pid:
    signal.pause()
reaches(os.getpid()), reaches(0, signal.SIGUSR1), reaches(host), reaches(-1), reaches(os.getppid())
"""


@pytest.mark.kernel_sandbox
@pytest.mark.skipif(os.geteuid() != 0 or not Path(READABLE).exists(), reason="only root can be another user")
@pytest.mark.parametrize("version", [3, 4, 5])
def test_before_scopes_of_signals_the_filter_limits_them_for_an_ordinary_user(
    patch_inside: PatchInside, version: int
) -> None:
    pretend_version(patch_inside, version)
    with OtherUser({"launcher": "landlock", "min_isolation": "landlock", "preload": ()}) as executor:
        done = executor.run(SIGNALS, variables={"host": executor.targets["pid"]})
    assert done.output == "(True, True, False, False, False)"


POOLS = """
import multiprocessing, threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory

def double(number):
    return 2 * number

total, lock = multiprocessing.Value("i", 0), multiprocessing.RLock()
def add():
    for _ in range(200):
        with lock, lock:
            total.value += 1

adders = [multiprocessing.Process(target=add) for _ in range(3)]
for adder in adders: adder.start()
for adder in adders: adder.join()
with ProcessPoolExecutor(2) as pool:
    doubled = list(pool.map(double, range(4)))
memory = shared_memory.SharedMemory(create=True, size=3)
other = shared_memory.SharedMemory(memory.name)
memory.buf[:3] = b"abc"
seen = bytes(other.buf[:3]); other.close(); memory.close(); memory.unlink()
gate = multiprocessing.Semaphore(1)
waits = gate.acquire(), gate.acquire(timeout=0.05), gate.acquire(False)
doubled, total.value, seen, waits
"""


@pytest.mark.slow
@pytest.mark.kernel_sandbox
def test_processes_share_locks_and_memory_in_files_of_the_run() -> None:
    with landlock_executor() as executor:
        assert executor.run(POOLS).output == "([0, 2, 4, 6], 600, b'abc', (True, False, False))"


@pytest.mark.skipif(os.geteuid() != 0, reason="the caller is no root")
def test_programs_of_root_run_as_another_user() -> None:
    with landlock_executor() as executor:
        done = executor.run("import os; os.getuid()")
        assert done.isolation is not None
        assert (done.result != "0", "user" in done.isolation.layers) == (True, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="the caller is no root")
def test_programs_of_root_that_would_stay_root_are_refused(patch_inside: PatchInside) -> None:
    patch_inside(
        "filesystem", "    if not uid:\n", "    if uid:  # As if that user could not read the interpreter.\n"
    )
    with landlock_executor() as executor, pytest.raises(IsolationError, match="as another user"):
        executor.run("1")


@pytest.mark.slow
@pytest.mark.kernel_sandbox
@pytest.mark.skipif(
    os.geteuid() != 0 or not Path(READABLE).exists(), reason="only root can start another user's processes"
)
def test_what_else_a_user_runs_leaves_room_for_programs() -> None:
    others = [subprocess.Popen(["sleep", "60"], user=NOBODY) for _ in range(150)]
    try:
        options = {"launcher": "landlock", "min_isolation": "landlock", "preload": ()}
        with OtherUser(options) as executor, executor.session() as session:
            forks = "import os\nif not os.fork(): os._exit(0)\nos.wait()[1]"
            assert [executor.run(forks).output, session.run(forks).output] == ["0", "0"]
            bombed = executor.run("import os\nwhile True: os.fork()")
        assert (bombed.ok, bombed.duration < 10) == (False, True)
    finally:
        for other in others:
            other.kill()
            other.wait()


AS_ROOT_WITHOUT = """
import sys
from code_chains.errors import IsolationError
from code_chains.executors import Limits, SandboxExecutor

options = {"limits": Limits(disk="1M"), "min_isolation": "landlock", "launcher": "landlock", "python": sys.argv[1]}
try:
    with SandboxExecutor(preload=(), **options) as executor:
        print(executor.run(sys.argv[2]).status)
except IsolationError as error:
    print(error)
"""
HIDDEN_FILES = """
import os, time
files = [open(f"f{number}", "wb") for number in range(4)]
for number, file in enumerate(files):
    os.unlink(f"f{number}")
    file.write(bytes(500_000))
    file.flush()
time.sleep(2)
"""


def as_root_without(capability: int, program: str) -> str:
    """Return how a program ends if root lacks a capability."""
    python = for_landlock()
    if python is None:
        pytest.skip("only root runs programs as another user")
    return subprocess.run(
        [sys.executable, "-c", AS_ROOT_WITHOUT, python, program],
        preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0),
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "status"), [("open('f', 'w').write('x')", "ok"), (HIDDEN_FILES, "disk_limit")]
)
def test_root_without_the_right_to_inspect_other_users_counts_what_they_hold_open(
    program: str, status: str
) -> None:
    """Docker's default."""
    assert as_root_without(CAP_SYS_PTRACE, program).strip() == status


@pytest.mark.slow
def test_root_that_could_not_end_other_users_processes_starts_none() -> None:
    assert "may not rule processes of other users" in as_root_without(CAP_KILL, "1")
