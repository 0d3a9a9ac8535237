"""State between runs: success commits, anything else leaves it unchanged."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from code_chains.errors import ConfigurationError, ExecutorError, InputError, SessionError
from code_chains.executors import Limits, SandboxExecutor, Session
from code_chains.executors.sandbox.request import Request
from code_chains.records import Execution, Problem
from code_chains.testing import ScriptedExecutor, SessionContract
from tests.conftest import KERNEL_LAUNCHERS, at_rest, available, descendants, soon
from tests.support.other_user import for_landlock

LIMITS = Limits(seconds=2, memory="256M", output="64K", processes=24, disk="4M", files=200)


@pytest.fixture(scope="module", params=[*KERNEL_LAUNCHERS, "landlock", "none"])
def launcher(request: pytest.FixtureRequest) -> str:
    return available(request.param)


def open_executor(launcher: Any, limits: Limits) -> SandboxExecutor:
    level: Any = "kernel" if launcher in KERNEL_LAUNCHERS else launcher
    python = for_landlock() if launcher == "landlock" else None
    return SandboxExecutor(
        limits=limits, preload=(), launcher=launcher, min_isolation=level, max_sessions=3, python=python
    )


@pytest.fixture(scope="module")
def executor(launcher: str) -> Iterator[SandboxExecutor]:
    with open_executor(launcher, LIMITS) as executor:
        yield executor


@pytest.fixture
def session(executor: SandboxExecutor) -> Iterator[Session]:
    with executor.session() as session:
        yield session


@pytest.mark.rows(1)
class TestEveryLauncher(SessionContract):
    """The contract of sessions, for each launcher."""


FAILURES = {
    "an exception": "1 / 0",
    "a syntax error": "x = (",
    "an exit": "import sys; sys.exit(3)",
    "a silent exit": "import os; os._exit(0)",
    "a crash": "import ctypes; ctypes.string_at(0)",
    "a kill": "import os; os.kill(os.getpid(), 9)",
    "an endless loop": "while True: pass",
    "an endless loop that ignores signals": "import signal\nsignal.signal(15, signal.SIG_IGN)\nwhile True: pass",
    "a flood": "while True: print('x' * 999)",
    "too much memory": "y = [bytearray(1 << 20) for _ in range(9999)]",
    "too many processes": "import os, time\nfor _ in range(99):\n  if not os.fork(): time.sleep(60)\ntime.sleep(60)",
    "too much on the disk": "import time\nfor n in range(99): open(f'b{n}', 'wb').write(b'x' * (1 << 20)); time.sleep(.05)",
    "a daemon and an exception": "import os, time\nif not os.fork():\n  os.setsid(); time.sleep(60)\n1 / 0",
}
BEFORE = (
    "x, names = 1, ['a']; import os\nopen('kept', 'w').write('old')\n"
    "os.makedirs('folder/deep'); os.symlink('kept', 'link')"
)
CHANGE = (
    "x = 2; names.append('b'); z = 3; del os\nimport os as system, shutil\nopen('kept', 'a').write('new')\n"
    "open('made', 'w').write('m'); shutil.rmtree('folder')\n"
    "system.unlink('link'); system.mkdir('link'); system.chdir('/tmp')\n"
)
LOOK = "x, names, 'z' in globals(), os.getcwd()[-3:], open('kept').read(), sorted(os.listdir()), os.readlink('link')"


@pytest.mark.slow
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
def test_after_any_failure_the_state_is_exactly_as_it_was(session: Session, failure: str) -> None:
    session.run(BEFORE)
    before = session.run(LOOK).result
    assert not session.run(CHANGE + failure).ok
    assert session.run(LOOK).result == before


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=6))
def test_a_session_is_the_sum_of_its_successes(
    executor: SandboxExecutor, steps: list[tuple[int, bool]]
) -> None:
    with executor.session() as session:
        session.run("total = 0")
        for number, fails in steps:
            session.run(f"total += {number}\nopen('log', 'a').write('{number}')\n{'1 / 0' if fails else ''}")
        kept = [number for number, fails in steps if not fails]
        log = "".join(map(str, kept))
        told = session.run("import os; total, open('log').read() if os.path.exists('log') else ''").result
    assert told == repr((sum(kept), log))


def test_sessions_never_see_each_other(executor: SandboxExecutor) -> None:
    with executor.session() as one, executor.session() as other:
        one.run("secret = 'mine'; open('secret', 'w').write('mine')")
        assert other.run(
            "import os; 'secret' in globals(), os.listdir(), os.path.exists('/tmp/secret')"
        ).result == ("(False, [], False)")


@pytest.mark.rows(1)
def test_threads_and_processes_of_a_run_do_not_live_on(session: Session) -> None:
    session.run(
        "import threading, time, subprocess, sys\nhits = []\ndef hit():\n  while True: hits.append(1); time.sleep(0.01)"
    )
    session.run("threading.Thread(target=hit, daemon=True).start(); time.sleep(0.1)")
    assert session.run("threading.active_count()").result == "1"
    count = session.run("len(hits)").result
    time.sleep(0.2)
    assert session.run("len(hits)").result == count


def test_random_numbers_go_on_where_the_last_success_left_them(session: Session) -> None:
    session.run("import random; random.seed(1)")
    generator = random.Random(1)
    assert session.run("random.random()").result == repr(generator.random())
    assert not session.run("random.random(); 1 / 0").ok
    assert session.run("random.random()").result == repr(generator.random())


def test_sessions_have_random_numbers_of_their_own(executor: SandboxExecutor) -> None:
    with executor.session() as one, executor.session() as other:
        numbers = {session.run("import random; random.random()").result for session in (one, other)}
    assert len(numbers) == 2


def test_a_program_that_replaces_random_does_not_break_its_session(session: Session) -> None:
    session.run("import random; random.getstate = random.setstate = random.Random.getstate = None; x = 1")
    session.run("del random._inst.gauss_next")
    assert session.run("x").result == "1"


def test_an_event_loop_or_generator_that_was_left_open_harms_nothing(session: Session) -> None:
    session.run(
        "import asyncio\nasync def numbers():\n  for n in range(9):\n    yield n\ng = numbers()\nawait anext(g)"
    )
    assert session.run("x = 5").ok
    assert session.run("x").result == "5"


@pytest.mark.slow
def test_a_figure_is_shown_by_the_run_that_drew_it_and_by_no_later_one() -> None:
    with SandboxExecutor(preload=("matplotlib",)) as limited, limited.session() as session:
        drawn = session.run("import matplotlib.pyplot as plt; _ = plt.plot([1, 2])").artifacts
        later = session.run("print(1)").artifacts
    assert ([one.name for one in drawn], later) == (["figure-1.png"], ())


def test_an_outcome_that_a_check_rejects_is_rolled_back(session: Session) -> None:
    session.run("x = 1")
    refused = session.run("x = 2; x", check=lambda done: done.result == "3")
    assert (refused.status, refused.error and refused.error.type) == ("error", "CheckFailed")
    assert session.run("x").result == "1"


@pytest.mark.parametrize(
    "said", [(False, "no"), "no", [Problem("rule", "no")], Problem("rule", "no"), ["no"]]
)
def test_a_check_may_say_why_it_refuses(session: Session, said: Any) -> None:
    session.run("x = 1")
    refused = session.run("x = 2", check=lambda done: said)
    assert "(no)" in str(refused.error)
    assert session.run("x").result == "1"


@pytest.mark.parametrize("said", [True, (True, ""), [], [Problem("rule", "no", severity="advice")], 5])
def test_a_check_that_finds_nothing_accepts(session: Session, said: Any) -> None:
    assert session.run("x = 2", check=lambda done: said).ok
    assert session.run("x").result == "2"


@pytest.mark.parametrize("check", [lambda done: 1 / 0, lambda done: (0, 1, "no"), lambda done: nothing()])
def test_a_check_that_fails_changes_nothing(session: Session, check: Any) -> None:
    session.run("x = 1")
    with pytest.raises((ZeroDivisionError, ConfigurationError)):
        session.run("x = 2", check=check)
    assert session.run("x").result == "1"


async def nothing() -> None:
    """Decide nothing."""


@pytest.mark.rows(1)
def test_many_checkpoints_are_refused(session: Session) -> None:
    session.run("x = 1")
    for number in range(8):
        session.checkpoint(str(number))
    with pytest.raises(SessionError, match="at most 8"):
        session.checkpoint("one more")


def test_more_sessions_than_allowed_are_refused(executor: SandboxExecutor) -> None:
    open_ones = [executor.session() for _ in range(3)]
    with pytest.raises(ExecutorError, match="3 sessions are open already"):
        executor.session()
    for session in open_ones:
        session.close()


@pytest.mark.slow
def test_memory_of_a_session_is_bounded_over_all_of_its_runs(launcher: str) -> None:
    patient = replace(LIMITS, seconds=15)  # Time enough on a busy machine.
    with open_executor(launcher, patient) as executor, executor.session() as session:
        statuses = [session.run(f"keep{n} = bytes([{n} + 1]) * (90 << 20)").status for n in range(4)]
        assert statuses[0] == "ok"
        assert "memory" in statuses
        assert session.run("len(keep0)").result == str(90 << 20)


@pytest.mark.slow
def test_an_idle_session_ends_and_reports_why() -> None:
    with SandboxExecutor(preload=(), session_timeout=0.3) as limited:
        session = limited.session()
        session.run("x = 1")
        assert soon(lambda: not session.alive)
        with pytest.raises(SessionError, match=r"idle for 0\.3 seconds"):
            session.run("x")


@pytest.mark.rows(1)
def test_a_session_whose_sandbox_was_killed_is_reported(executor: SandboxExecutor) -> None:
    session = executor.session()
    session.run("x = 1")
    executor.restart()
    with pytest.raises(SessionError, match="its state is gone"):
        session.run("x")
    assert executor.run("1").ok


def test_wrong_input_leaves_a_session_alive(session: Session) -> None:
    session.run("x = 1")
    with pytest.raises(InputError):
        session.run("x", files={"../a": "b"})
    assert session.run("x").result == "1"


@pytest.mark.rows(1)
def test_a_cancelled_run_ends_its_session(executor: SandboxExecutor) -> None:
    async def cancelled() -> None:
        with executor.session() as session:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(session.arun("import time; time.sleep(60)"), 0.3)
            with pytest.raises(SessionError, match="interrupted"):
                session.run("1")

    executor.run("1")
    before = at_rest()
    asyncio.run(cancelled())
    assert soon(lambda: len(descendants()) <= before)


def test_a_busy_session_is_reported(session: Session) -> None:
    async def twice() -> list[Execution | BaseException]:
        return [*await asyncio.gather(session.arun("1"), session.arun("2"), return_exceptions=True)]

    first, second = asyncio.run(twice())
    assert isinstance(first, Execution)
    assert isinstance(second, SessionError)


@pytest.mark.rows(1)
def test_a_closed_session_leaves_nothing(executor: SandboxExecutor) -> None:
    executor.run("1")
    before = at_rest()
    with executor.session() as session:
        session.run("x = 1")
        session.checkpoint()
    assert soon(lambda: len(descendants()) <= before)


@pytest.mark.rows(1)
def test_in_a_forked_process_a_session_refuses_and_the_executor_works(executor: SandboxExecutor) -> None:
    session = executor.session()
    session.run("x = 1")
    child = os.fork()
    if child == 0:
        try:
            refused = False
            try:
                session.run("x")
            except SessionError:
                refused = True
            with executor:
                os._exit(0 if refused and executor.run("6 * 7").result == "42" else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert session.run("x").result == "1"
    session.close()


def test_an_executor_without_sessions_is_reported() -> None:
    with pytest.raises(ConfigurationError, match="keeps state"):
        ScriptedExecutor(lambda code: "").session()


def test_a_rollback_after_a_failure_undoes_the_last_success(session: Session) -> None:
    session.run("x = 1; open('f', 'w').write('1')")
    session.run("1 / 0")
    session.rollback()
    assert session.run("import os; 'x' in globals(), os.path.exists('f')").result == "(False, False)"


def test_inputs_of_a_failed_run_are_removed(session: Session, sales: Path) -> None:
    session.run("open('a', 'w').write('mine')")
    session.run("1 / 0", files={"a": sales, "b": sales})
    assert session.run("import os; open('a').read(), os.listdir()").result == "('mine', ['a'])"


def test_each_run_of_a_session_can_have_files(session: Session, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(3 << 20))
    session.run("open('own', 'wb').write(bytes(3 << 20))", files={"big": tmp_path / "big"})
    assert session.run("len(open('big', 'rb').read())", files={"big": tmp_path / "big"}).result == str(
        3 << 20
    )


def test_a_file_in_place_of_a_folder_is_refused_and_the_session_survives(
    session: Session, sales: Path
) -> None:
    session.run("import os; os.mkdir('data'); x = 1")
    with pytest.raises(InputError, match="data"):
        session.run("x = 2", files={"data": sales})
    assert session.run("x").result == "1"


@pytest.mark.slow
def test_a_checkpoint_can_be_overwritten_indefinitely(session: Session) -> None:
    session.run("open('f', 'wb').write(bytes(2 << 20)); x = 0")
    for _ in range(12):
        session.run("x += 1")
        session.checkpoint("same")
    session.run("x = -1")
    session.restore("same")
    assert session.run("x").result == "12"


def test_a_working_directory_that_was_removed_is_back_after_the_failure(session: Session) -> None:
    session.run("import os, shutil; os.mkdir('sub'); os.chdir('sub')")
    session.run("shutil.rmtree(os.getcwd()); 1 / 0")
    assert session.run("os.path.basename(os.getcwd())").result == "'sub'"


def test_restored_files_are_no_new_artifacts(session: Session) -> None:
    session.run("open('a', 'w').write('one')")
    failed = session.run("open('a', 'w').write('two'); 1 / 0")
    session.run("open('a', 'w').write('three')")
    session.rollback()
    assert (failed.artifacts, session.run("5").artifacts) == ((), ())


def test_timers_do_not_go_on_between_runs(session: Session) -> None:
    session.run(
        "import signal; ticks = []; signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)"
    )
    time.sleep(0.3)
    assert session.run("len(ticks) < 2").result == "True"


@pytest.mark.rows(1)
def test_a_run_that_exceeds_the_output_limit_has_no_effect(executor: SandboxExecutor) -> None:
    with SandboxExecutor(limits=Limits(output=1000), preload=()) as limited, limited.session() as session:
        for number in range(20):
            session.run(f"y{number} = 1; print('a' * 1500)")
        assert session.run("[name for name in globals() if name.startswith('y')]").result == "[]"


IDLE_S = 0.06
"""Long enough for the process of the next program to be forked in advance."""
STEPS = ["run", "fail", "rollback", "checkpoint", "restore", "files"]


@pytest.mark.slow
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.booleans()), min_size=3, max_size=8))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pauses_change_nothing(executor: SandboxExecutor, steps: list[tuple[str, bool]]) -> None:
    with executor.session() as hasty, executor.session() as slow:
        for session in (hasty, slow):
            session.run("x = 0; open('x.txt', 'w').write('0')")
            session.checkpoint("saved")
        for number, (step, has_pause) in enumerate(steps, start=1):
            outcomes = [take(session, step, number) for session in (hasty, slow)]
            assert outcomes[0] == outcomes[1]
            time.sleep(IDLE_S if has_pause else 0)
        states = [session.run("x, open('x.txt').read()").result for session in (hasty, slow)]
        assert states[0] == states[1]


def take(session: Session, step: str, number: int) -> object:
    """Take one step in a session; return what it shows."""
    change = f"x += {number}; open('x.txt', 'w').write(str(x)); print(x)"
    try:
        match step:
            case "run":
                return session.run(change).stdout
            case "fail":
                return session.run(f"{change}; 1 / 0").stdout
            case "files":
                return session.run("print(open('in').read())", files={"in": str(number).encode()}).stdout
            case "rollback":
                return session.rollback()
            case "checkpoint":
                return session.checkpoint("saved")
        return session.restore("saved")
    except SessionError as error:
        return str(error)


HOOKS = {
    "wait in a fork": "import time\nos.register_at_fork(after_in_child=lambda: time.sleep(60))",
    "wait in the process that forks": "import time\nos.register_at_fork(before=lambda: time.sleep(60))",
    "exit in a fork": "os.register_at_fork(after_in_child=lambda: os._exit(0))",
    "start others": "os.register_at_fork(after_in_parent=lambda: os.system('sleep 60 &'))",
}


@pytest.mark.slow
@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
def test_what_a_program_does_at_a_fork_in_advance_neither_blocks_nor_stays(launcher: str, hook: str) -> None:
    rested, started, outcome = descendants(), time.monotonic(), ""
    with open_executor(launcher, LIMITS) as executor, executor.session() as session:
        session.run("import os; x = 1")
        session.run(hook)
        time.sleep(IDLE_S)
        try:
            outcome = session.run("print(x)").status
        except SessionError as error:
            outcome = str(error)
    assert outcome in ("ok", "timeout", "killed") or "has ended" in outcome
    assert time.monotonic() - started < 15
    assert soon(lambda: descendants() <= rested)


def test_closing_as_a_run_begins_is_an_error_that_says_so(
    executor: SandboxExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, send = executor.session(), Request.send

    def close_and_send(request: Request, *arguments: Any) -> None:
        session.close()
        send(request, *arguments)

    session.run("1")
    monkeypatch.setattr(Request, "send", close_and_send)
    with pytest.raises(SessionError, match="it was closed"):
        session.run("2")


def test_closing_during_a_run_is_an_error_of_ours(executor: SandboxExecutor) -> None:
    for wait in (0.0, 0.05, 0.3):
        session = executor.session()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(session.run, "import time; time.sleep(1.5)")
            time.sleep(wait)
            session.close()
            assert isinstance(running.exception(), SessionError)
