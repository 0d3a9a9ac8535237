"""More concurrent runs than slots: some wait in FIFO order, the rest are refused, and nothing is lost."""

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

from code_chains import Budget, Language, Plan, Repair, create_code_chain
from code_chains.errors import ConfigurationError, ExecutorError, OverloadedError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.executors.limiter import ConcurrencyLimiter
from code_chains.executors.waiting import drive
from code_chains.records import Execution
from code_chains.testing import ScriptedModel
from tests.conftest import soon

BUSY = "import time; time.sleep(0.8); 1"
ENDLESS = "import time; time.sleep(60)"


@pytest.fixture
def narrow() -> Iterator[SandboxExecutor]:
    """Provide an executor with one slot and a queue of one."""
    with SandboxExecutor(limits=Limits(seconds=5), preload=(), concurrency=1, max_queued=1) as executor:
        executor.run("1")
        yield executor


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def is_full(executor: SandboxExecutor) -> bool:
    return len(executor.limiter._queue) == executor.limiter.max_queued


def fill(executor: SandboxExecutor, threads: ThreadPoolExecutor) -> list[Future[Execution]]:
    """Occupy the slot and the whole queue."""
    running = [threads.submit(executor.run, BUSY) for _ in range(2)]
    assert soon(lambda: is_full(executor))
    return running


@pytest.mark.slow
def test_runs_are_refused_at_once_when_the_queue_is_full(
    narrow: SandboxExecutor, threads: ThreadPoolExecutor
) -> None:
    accepted = fill(narrow, threads)
    with pytest.raises(
        OverloadedError,
        match=r"the slot is in use, and the queue of 1 is full\. Retry later, or raise concurrency=",
    ) as refused:
        narrow.run("1")
    assert refused.value.is_retryable
    assert not any(one.done() for one in accepted)
    assert [one.result().status for one in accepted] == ["ok", "ok"]


@pytest.mark.slow
async def test_a_task_is_refused_like_a_thread(narrow: SandboxExecutor) -> None:
    accepted = [asyncio.create_task(narrow.arun(BUSY)) for _ in range(2)]
    await asyncio.sleep(0.05)
    with pytest.raises(OverloadedError):
        await narrow.arun("1")
    assert [(await one).status for one in accepted] == ["ok", "ok"]


@pytest.mark.slow
@pytest.mark.parametrize("asynchronous", [False, True])
def test_nobody_waits_longer_than_the_queue_timeout(asynchronous: bool) -> None:
    with (
        SandboxExecutor(preload=(), concurrency=1, queue_timeout=0.2) as executor,
        ThreadPoolExecutor(1) as pool,
    ):
        running = pool.submit(executor.run, "import time; time.sleep(1); 1")
        assert soon(lambda: executor.limiter._running == 1)
        with pytest.raises(OverloadedError, match=r"timed out after 0\.2 s"):
            asyncio.run(executor.arun("1")) if asynchronous else executor.run("1")
        assert running.result().ok


@pytest.mark.slow
def test_a_refused_run_can_be_retried(narrow: SandboxExecutor, threads: ThreadPoolExecutor) -> None:
    for one in fill(narrow, threads):
        one.result()
    assert narrow.run("6 * 7").output == "42"


@pytest.mark.slow
def test_the_queue_is_fifo(threads: ThreadPoolExecutor) -> None:
    with SandboxExecutor(preload=(), concurrency=1) as executor:
        running, ended = [threads.submit(executor.run, BUSY)], list[int]()
        for number in range(5):
            assert soon(lambda: executor.limiter._running + len(executor.limiter._queue) == len(running))
            running.append(threads.submit(executor.run, "1"))
            running[-1].add_done_callback(lambda _, number=number: ended.append(number))  # type: ignore[misc]
        assert all(one.result().ok for one in running)
    assert ended == [0, 1, 2, 3, 4]


async def test_a_cancelled_task_leaves_the_queue(narrow: SandboxExecutor) -> None:
    running, waiting = (asyncio.create_task(narrow.arun(BUSY)) for _ in range(2))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    after = asyncio.create_task(narrow.arun("2"))  # There is room for it.
    assert ((await running).status, (await after).output) == ("ok", "2")


async def test_a_slot_granted_to_a_cancelled_task_passes_to_the_next() -> None:
    limiter = ConcurrencyLimiter(1, 9, 5.0)
    with SandboxExecutor(preload=()) as executor:
        executor.limiter = limiter
        for pause in (0.0, 0.001, 0.003, 0.01, 0.02):
            runs = [asyncio.create_task(executor.arun("1")) for _ in range(4)]
            await asyncio.sleep(pause)
            for run in runs[:3]:
                run.cancel()
            await asyncio.gather(*runs[:3], return_exceptions=True)
            assert (await runs[3]).ok
    assert (limiter._running, len(limiter._queue)) == (0, 0)


def test_no_more_programs_run_at_once_than_configured(threads: ThreadPoolExecutor) -> None:
    clock = "import time; began = time.time(); time.sleep(0.1); print(began, time.time())"
    with SandboxExecutor(preload=(), concurrency=2) as executor:
        spans = [tuple(map(float, done.output.split())) for done in threads.map(executor.run, [clock] * 6)]
    assert max(sum(begin <= moment < end for begin, end in spans) for moment, _ in spans) <= 2


def test_test_runs_do_not_wait_for_each_other(threads: ThreadPoolExecutor) -> None:
    with SandboxExecutor(preload=(), concurrency=1) as executor:
        examined = [
            threads.submit(executor.run_tests, "def f(x): return 2 * x", "assert f(2) == 4") for _ in range(3)
        ]
        assert all(ran.ok and tested.ok for ran, tested in (one.result() for one in examined))


async def test_asynchronous_test_runs_do_not_wait_for_each_other_either() -> None:
    with SandboxExecutor(preload=(), concurrency=1) as executor:
        examined = await asyncio.gather(
            *[executor.arun_tests("def f(x): return x", "assert f(2) == 2") for _ in range(3)]
        )
    assert all(ran.ok and tested.ok for ran, tested in examined)


@pytest.mark.slow
def test_a_session_that_is_refused_keeps_its_state(
    narrow: SandboxExecutor, threads: ThreadPoolExecutor
) -> None:
    with narrow.session() as session:
        session.run("x = 41")
        accepted = fill(narrow, threads)
        with pytest.raises(OverloadedError):
            session.run("x = 0")
        for one in accepted:
            one.result()
        assert session.run("x + 1").result == "42"


async def test_a_session_whose_run_is_cancelled_in_the_queue_keeps_its_state(narrow: SandboxExecutor) -> None:
    with narrow.session() as session:
        await session.arun("x = 41")
        running = asyncio.create_task(narrow.arun(BUSY))
        await asyncio.sleep(0.05)
        waiting = asyncio.create_task(session.arun("x = 0"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.gather(waiting, running, return_exceptions=True)
        assert (await session.arun("x + 1")).result == "42"


def test_one_session_too_many_can_be_retried() -> None:
    with (
        SandboxExecutor(preload=(), max_sessions=1) as executor,
        executor.session(),
        pytest.raises(OverloadedError),
    ):
        executor.session()


def test_a_forked_process_has_all_slots() -> None:
    limiter = ConcurrencyLimiter(1, 0, 1.0)
    assert list(limiter.acquire()) == []
    child = os.fork()
    if not child:
        os._exit(limiter._running)
    assert os.waitpid(child, 0)[1] == 0


def test_a_garbage_collected_stream_releases_its_slot_wherever_that_happens() -> None:
    limiter = ConcurrencyLimiter(1, 1, 1.0)
    assert list(limiter.acquire()) == []
    with limiter._released:  # As if it happened inside.
        limiter.release()
    assert list(limiter.acquire()) == []


# -- questions -----------------------------------------------------------------------------------------------------------


class Paid:
    """Return a model that counts its calls."""

    fingerprint = "paid"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, _: object) -> str:
        self.calls += 1
        return "print(15)"


@contextmanager
def full(executor: SandboxExecutor) -> Iterator[None]:
    """Occupy the slot, with a queue that admits nobody."""
    executor.limiter.max_queued = 0
    drive(executor.limiter.acquire())
    yield
    executor.limiter.release()


@pytest.mark.rows(2)
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"solve": Plan()}, {"solve": Repair(samples=2)}, {"language": Language("de", translate=True)}],
)
def test_a_question_is_refused_before_any_model_call_when_the_queue_is_full(
    narrow: SandboxExecutor, caplog: pytest.LogCaptureFixture, asynchronous: bool, options: dict[str, Any]
) -> None:
    model = Paid()
    chain = create_code_chain(ScriptedModel(model), executor=narrow, **options)
    with full(narrow), pytest.raises(OverloadedError, match="queue of 0 is full"):
        asyncio.run(chain.ainvoke("What is 15?")) if asynchronous else chain.invoke("What is 15?")
    assert (model.calls, caplog.messages) == (0, [])


def test_a_turn_that_is_refused_leaves_its_conversation_as_it_was(narrow: SandboxExecutor) -> None:
    with create_code_chain(ScriptedModel(Paid()), executor=narrow, interpret=False) as chain:
        chain.execute("x = 15", "ann")
        with full(narrow), pytest.raises(OverloadedError):
            chain.invoke({"query": "What is 15?", "session_id": "ann"})
        assert (len(chain.turns("ann")), chain.execute("print(x)", "ann")["output"]) == (1, "15")


@pytest.mark.slow
def test_a_cached_answer_is_returned_when_the_queue_is_full(narrow: SandboxExecutor) -> None:
    with create_code_chain(ScriptedModel(Paid()), executor=narrow, cache=InMemoryByteStore()) as chain:
        chain.invoke("What is 15?")
        with full(narrow):
            assert chain.invoke("What is 15?")["cached"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_refused_question_costs_no_budget(narrow: SandboxExecutor, asynchronous: bool) -> None:
    budget = Budget(model_calls=1)
    with create_code_chain(ScriptedModel(Paid()), executor=narrow, budget=budget, interpret=False) as chain:
        with full(narrow), pytest.raises(OverloadedError):
            asyncio.run(chain.ainvoke("What is 15?")) if asynchronous else chain.invoke("What is 15?")
        assert chain.invoke("What is 15?")["output"] == "15"


# -- draining ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_draining_waits_for_accepted_runs(narrow: SandboxExecutor, threads: ThreadPoolExecutor) -> None:
    accepted = fill(narrow, threads)
    assert narrow.drain(10)
    assert [one.result(0.1).status for one in accepted] == ["ok", "ok"]


@pytest.mark.slow
def test_draining_refuses_new_runs(narrow: SandboxExecutor, threads: ThreadPoolExecutor) -> None:
    accepted, draining = fill(narrow, threads), threads.submit(narrow.drain, 10)
    assert soon(lambda: narrow.limiter._is_shut_down)
    with pytest.raises(ExecutorError, match="closed"):
        narrow.run("1")
    assert draining.result()
    assert all(one.result().ok for one in accepted)


def test_draining_kills_what_takes_too_long(narrow: SandboxExecutor, threads: ThreadPoolExecutor) -> None:
    endless, began = threads.submit(narrow.run, ENDLESS), time.monotonic()
    assert soon(lambda: narrow.limiter._running == 1)
    assert not narrow.drain(0.3)
    with pytest.raises(ExecutorError):
        endless.result(5)
    assert time.monotonic() - began < 4


# -- wrong use -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"concurrency": 1.5},
        {"max_queued": -1},
        {"queue_timeout": -1},
        {"queue_timeout": "x"},
    ],
)
def test_invalid_bounds_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        SandboxExecutor(preload=(), **wrong)
