"""More is asked for at once than a place can do: some wait in turn, the rest are refused, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.stores import InMemoryByteStore

from code_chains import Budget, create_code_chain
from code_chains.errors import ConfigurationError, ExecutorError, OverloadedError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.executors.admission import Admission
from code_chains.executors.drive import drive
from code_chains.state import Execution
from code_chains.testing import ScriptedModel

from .conftest import soon

BUSY = "import time; time.sleep(0.4); 1"
ENDLESS = "import time; time.sleep(60)"


@pytest.fixture
def narrow() -> Iterator[SandboxExecutor]:
    """A place for one program, and for one more to wait."""
    with SandboxExecutor(limits=Limits(seconds=5), preload=(), concurrency=1, queue=1) as box:
        box.run("1")
        yield box


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def is_full(box: SandboxExecutor) -> bool:
    return len(box.admission._line) == box.admission.queue


def fill(box: SandboxExecutor, threads: ThreadPoolExecutor) -> list[Future[Execution]]:
    """Take the place and the whole line."""
    running = [threads.submit(box.run, BUSY) for _ in range(2)]
    assert soon(lambda: is_full(box))
    return running


def test_who_comes_when_the_line_is_full_is_refused_at_once(
    narrow: SandboxExecutor, threads: ThreadPoolExecutor
) -> None:
    accepted, began = fill(narrow, threads), time.monotonic()
    with pytest.raises(OverloadedError, match="1 programs run already, and 1 wait") as refused:
        narrow.run("1")
    assert refused.value.is_retryable
    assert time.monotonic() - began < 0.3
    assert [one.result().status for one in accepted] == ["ok", "ok"]


async def test_a_task_is_refused_like_a_thread(narrow: SandboxExecutor) -> None:
    accepted = [asyncio.create_task(narrow.arun(BUSY)) for _ in range(2)]
    await asyncio.sleep(0.05)
    with pytest.raises(OverloadedError):
        await narrow.arun("1")
    assert [(await one).status for one in accepted] == ["ok", "ok"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_nobody_waits_for_longer_than_was_said(asynchronous: bool) -> None:
    with (
        SandboxExecutor(preload=(), concurrency=1, wait=0.2) as box,
        ThreadPoolExecutor(1) as pool,
    ):
        running = pool.submit(box.run, "import time; time.sleep(1); 1")
        assert soon(lambda: box.admission._taken == 1)
        with pytest.raises(OverloadedError, match=r"0\.2 seconds"):
            asyncio.run(box.arun("1")) if asynchronous else box.run("1")
        assert running.result().ok


def test_a_refused_run_can_be_asked_again(narrow: SandboxExecutor, threads: ThreadPoolExecutor) -> None:
    for one in fill(narrow, threads):
        one.result()
    assert narrow.run("6 * 7").output == "42"


def test_whoever_comes_first_is_next(threads: ThreadPoolExecutor) -> None:
    with SandboxExecutor(preload=(), concurrency=1) as box:
        running, ended = [threads.submit(box.run, BUSY)], list[int]()
        for number in range(5):
            assert soon(lambda: box.admission._taken + len(box.admission._line) == len(running))
            running.append(threads.submit(box.run, "1"))
            running[-1].add_done_callback(lambda _, number=number: ended.append(number))  # type: ignore[misc]
        assert all(one.result().ok for one in running)
    assert ended == [0, 1, 2, 3, 4]


async def test_a_cancelled_task_leaves_the_line(narrow: SandboxExecutor) -> None:
    running, waiting = (asyncio.create_task(narrow.arun(BUSY)) for _ in range(2))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    after = asyncio.create_task(narrow.arun("2"))  # There is room for it.
    assert ((await running).status, (await after).output) == ("ok", "2")


async def test_a_place_that_comes_as_its_task_is_cancelled_goes_to_the_next() -> None:
    admission = Admission(1, 9, 5.0)
    with SandboxExecutor(preload=()) as box:
        box.admission = admission
        for pause in (0.0, 0.001, 0.003, 0.01, 0.02):
            runs = [asyncio.create_task(box.arun("1")) for _ in range(4)]
            await asyncio.sleep(pause)
            for run in runs[:3]:
                run.cancel()
            await asyncio.gather(*runs[:3], return_exceptions=True)
            assert (await runs[3]).ok
    assert (admission._taken, len(admission._line)) == (0, 0)


def test_no_more_programs_run_at_once_than_was_said(threads: ThreadPoolExecutor) -> None:
    clock = "import time; began = time.time(); time.sleep(0.1); print(began, time.time())"
    with SandboxExecutor(preload=(), concurrency=2) as box:
        spans = [tuple(map(float, done.output.split())) for done in threads.map(box.run, [clock] * 6)]
    assert max(sum(begin <= moment < end for begin, end in spans) for moment, _ in spans) <= 2


def test_examinations_do_not_wait_for_each_other(threads: ThreadPoolExecutor) -> None:
    with SandboxExecutor(preload=(), concurrency=1) as box:
        examined = [threads.submit(box.examine, "def f(x): return 2 * x", "assert f(2) == 4") for _ in range(3)]
        assert all(ran.ok and tested.ok for ran, tested in (one.result() for one in examined))


async def test_asynchronous_examinations_do_not_either() -> None:
    with SandboxExecutor(preload=(), concurrency=1) as box:
        examined = await asyncio.gather(*[box.aexamine("def f(x): return x", "assert f(2) == 2") for _ in range(3)])
    assert all(ran.ok and tested.ok for ran, tested in examined)


def test_a_session_that_is_refused_keeps_its_state(narrow: SandboxExecutor, threads: ThreadPoolExecutor) -> None:
    with narrow.session() as session:
        session.run("x = 41")
        accepted = fill(narrow, threads)
        with pytest.raises(OverloadedError):
            session.run("x = 0")
        for one in accepted:
            one.result()
        assert session.run("x + 1").result == "42"


async def test_a_session_whose_run_is_cancelled_in_the_line_keeps_its_state(narrow: SandboxExecutor) -> None:
    with narrow.session() as session:
        await session.arun("x = 41")
        running = asyncio.create_task(narrow.arun(BUSY))
        await asyncio.sleep(0.05)
        waiting = asyncio.create_task(session.arun("x = 0"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.gather(waiting, running, return_exceptions=True)
        assert (await session.arun("x + 1")).result == "42"


def test_one_session_too_many_may_be_asked_for_again() -> None:
    with SandboxExecutor(preload=(), sessions=0) as box, pytest.raises(OverloadedError):
        box.session()


def test_a_forked_process_has_all_places() -> None:
    admission = Admission(1, 0, 1.0)
    assert list(admission.enter()) == []
    child = os.fork()
    if not child:
        os._exit(admission._taken)
    assert os.waitpid(child, 0)[1] == 0


def test_whoever_is_collected_as_garbage_leaves_wherever_that_happens() -> None:
    admission = Admission(1, 1, 1.0)
    assert list(admission.enter()) == []
    with admission._left:  # As if it happened inside.
        admission.leave()
    assert list(admission.enter()) == []


# -- questions -----------------------------------------------------------------------------------------------------------


class Paid:
    """A model that counts its calls."""

    fingerprint = "paid"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, _: object) -> str:
        self.calls += 1
        return "print(15)"


@contextmanager
def full(box: SandboxExecutor) -> Iterator[None]:
    """The place is taken, and nobody else may wait for it."""
    box.admission.queue = 0
    drive(box.admission.enter())
    yield
    box.admission.leave()


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("options", [{}, {"plan": True}, {"samples": 2}, {"translate": True, "language": "de"}])
def test_a_question_is_refused_before_a_model_is_paid_when_the_line_is_full(
    narrow: SandboxExecutor, caplog: pytest.LogCaptureFixture, asynchronous: bool, options: dict[str, Any]
) -> None:
    model = Paid()
    chain = create_code_chain(ScriptedModel(model), executor=narrow, **options)
    with full(narrow), pytest.raises(OverloadedError, match="0 wait"):
        asyncio.run(chain.ainvoke("What is 15?")) if asynchronous else chain.invoke("What is 15?")
    assert (model.calls, caplog.messages) == (0, [])


def test_a_turn_that_is_refused_leaves_its_conversation_as_it_was(narrow: SandboxExecutor) -> None:
    with create_code_chain(ScriptedModel(Paid()), executor=narrow, interpret=False) as chain:
        chain.execute("x = 15", "ann")
        with full(narrow), pytest.raises(OverloadedError):
            chain.invoke({"query": "What is 15?", "session_id": "ann"})
        assert (len(chain.turns("ann")), chain.execute("print(x)", "ann")["output"]) == (1, "15")


def test_a_kept_answer_is_given_when_the_line_is_full(narrow: SandboxExecutor) -> None:
    with create_code_chain(ScriptedModel(Paid()), executor=narrow, cache=InMemoryByteStore()) as chain:
        chain.invoke("What is 15?")
        with full(narrow):
            assert chain.invoke("What is 15?")["cached"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_refused_question_takes_nothing_of_its_budget(narrow: SandboxExecutor, asynchronous: bool) -> None:
    budget = Budget(model_calls=1)
    with create_code_chain(ScriptedModel(Paid()), executor=narrow, budget=budget, interpret=False) as chain:
        with full(narrow), pytest.raises(OverloadedError):
            asyncio.run(chain.ainvoke("What is 15?")) if asynchronous else chain.invoke("What is 15?")
        assert chain.invoke("What is 15?")["output"] == "15"


# -- draining ------------------------------------------------------------------------------------------------------------


def test_draining_lets_accepted_runs_end(narrow: SandboxExecutor, threads: ThreadPoolExecutor) -> None:
    accepted = fill(narrow, threads)
    assert narrow.drain(10)
    assert [one.result(0.1).status for one in accepted] == ["ok", "ok"]


def test_draining_refuses_new_runs(narrow: SandboxExecutor, threads: ThreadPoolExecutor) -> None:
    accepted, draining = fill(narrow, threads), threads.submit(narrow.drain, 10)
    assert soon(lambda: narrow.admission._shut)
    with pytest.raises(ExecutorError, match="closed"):
        narrow.run("1")
    assert draining.result()
    assert all(one.result().ok for one in accepted)


def test_draining_ends_what_takes_too_long(narrow: SandboxExecutor, threads: ThreadPoolExecutor) -> None:
    endless, began = threads.submit(narrow.run, ENDLESS), time.monotonic()
    assert soon(lambda: narrow.admission._taken == 1)
    assert not narrow.drain(0.3)
    with pytest.raises(ExecutorError):
        endless.result(5)
    assert time.monotonic() - began < 4


# -- wrong use -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"concurrency": 1.5}, {"queue": -1}, {"wait": -1}, {"wait": "x"}]
)
def test_what_is_no_bound_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        SandboxExecutor(preload=(), **wrong)
