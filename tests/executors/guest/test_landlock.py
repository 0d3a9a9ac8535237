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

PR_CAPBSET_DROP, CAP_SYS_PTRACE = 24, 19


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


WITHOUT_INSPECTION = """
import sys
from code_chains.errors import IsolationError
from code_chains.executors import SandboxExecutor

try:
    with SandboxExecutor(preload=(), min_isolation="landlock", launcher="landlock", python=sys.argv[1]) as executor:
        print(executor.run("import time; open('made.txt', 'w').write('made'); time.sleep(0.5)").status)
except IsolationError as error:
    print(error)
"""


@pytest.mark.slow
def test_root_without_the_right_to_inspect_other_users_is_told_what_to_do() -> None:
    """Docker's default: files that programs hold open could not be counted."""
    python = for_landlock()
    if python is None:
        pytest.skip("only root runs programs as another user")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_INSPECTION, python],
        preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--cap-add SYS_PTRACE" in done.stdout
    assert "ordinary user" in done.stdout
