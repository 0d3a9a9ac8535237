"""Conversations and the state of their programs."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import BaseMessage

from code_chains import Repair, SandboxExecutor, create_code_chain
from code_chains.assembly.code_chain import CodeChain
from code_chains.assembly.conversing import _NO_STATE
from code_chains.chains import StreamingSequentialChain, StreamingTransformChain
from code_chains.conversations.sessions import Conversation, Conversations
from code_chains.errors import ConfigurationError, InputError, OverloadedError, SessionError
from code_chains.executors import Session
from code_chains.executors.waiting import drive
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import soon


def last_line(messages: list[BaseMessage]) -> str:
    """A model whose program is the last line of the question."""
    return str(messages[-1].text).splitlines()[-1] if asks_for_code(messages) else "Done."


@pytest.fixture(scope="module")
def shared_sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor() as sandbox:
        yield sandbox


@pytest.fixture
def chain(shared_sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    with create_code_chain(
        ScriptedModel(last_line), executor=shared_sandbox, interpret=False, solve=Repair(1)
    ) as chain:
        yield chain


def run(chain: CodeChain, code: str, session_id: str | None = "ann", **more: Any) -> str:
    state = {"query": code, **({"session_id": session_id} if session_id else {}), **more}
    return str(chain.invoke(state)["output"])


@pytest.mark.slow
def test_a_program_continues_with_the_state_of_the_last_turn(chain: CodeChain) -> None:
    run(chain, "x = 20; print(x)")
    assert run(chain, "print(x + 1)") == "21"


def test_files_of_earlier_turns_are_available(chain: CodeChain, sales: Path) -> None:
    run(chain, "print(1)", files={"sales.csv": sales})
    assert "region" in run(chain, "print(open('sales.csv').readline())")


def test_conversations_have_separate_states(chain: CodeChain) -> None:
    run(chain, "x = 1; print(x)")
    assert run(chain, "print('x' in globals())", "bob") == "False"
    assert run(chain, "print('x' in globals())", None) == "False"


def test_a_tested_program_runs_alone_and_the_next_turn_has_what_it_defines(
    shared_sandbox: SandboxExecutor,
) -> None:
    def script(messages: list[BaseMessage]) -> str:
        is_tested = "it will be tried" in str(messages[-1].text)
        return "base = 2\ndef double(x): return base * x" if is_tested else last_line(messages)

    with create_code_chain(ScriptedModel(script), executor=shared_sandbox, interpret=False) as chain:
        run(chain, "base = 5; print(base)")
        question = {"query": "Write a function double(x).", "examples": [(2, 4)], "session_id": "ann"}
        assert chain.invoke(question)["verdict"].status == "verified"
        assert run(chain, "print(double(4), base)") == "8 2"
        chain.undo("ann")
        chain.undo("ann")
        assert run(chain, "print(base, 'double' in globals())") == "5 False"


def test_the_config_may_contain_the_session_id(chain: CodeChain) -> None:
    config = {"configurable": {"session_id": "ann"}}
    chain.invoke("x = 20; print(x)", config)  # type: ignore[arg-type]
    chunks = list(chain.stream("print(x + 1)", config))  # type: ignore[arg-type]
    assert next(chunk["output"] for chunk in chunks if "output" in chunk) == "21"


@pytest.mark.parametrize("asked", ["session_id", "thread_id"])
@pytest.mark.parametrize("named", ["session_id", "thread_id"])
def test_no_input_names_another_conversation_than_the_config(
    chain: CodeChain, named: str, asked: str
) -> None:
    config: Any = {"configurable": {named: "bob"}}
    with pytest.raises(InputError, match="names another session_id"):
        chain.invoke({"query": "print(1)", asked: "ann"}, config)
    assert chain.invoke({"query": "print(1)", asked: "bob"}, config)["output"] == "1"


@pytest.mark.parametrize(("before", "after"), [((1, 2), [1, 2]), ({1: "a"}, {"1": "a"}), (1, True), (1, 1.0)])
def test_a_variable_of_another_type_is_passed_again(chain: CodeChain, before: Any, after: Any) -> None:
    for value in (before, after):
        assert run(chain, "print(repr(x))", variables={"x": value}) == repr(value)


def test_the_config_reaches_a_chain_in_a_sequence(chain: CodeChain) -> None:
    after = StreamingTransformChain(
        input_variables=["output"], output_variables=["loud"], transform=lambda s: {"loud": s["output"] * 2}
    )
    both = StreamingSequentialChain(
        chains=[chain, after], input_variables=["query"], output_variables=["loud"]
    )
    config = {"configurable": {"session_id": "ann"}}
    both.invoke({"query": "x = 20; print(x)"}, config)  # type: ignore[arg-type]
    assert both.invoke({"query": "print(x + 1)"}, config)["loud"] == "2121"  # type: ignore[arg-type]


def test_a_failed_turn_leaves_the_state_unchanged(chain: CodeChain) -> None:
    run(chain, "x = 20; print(x)")
    run(chain, "x = 0; 1 / x")
    assert run(chain, "print(x)") == "20"


@pytest.mark.slow
def test_the_prompt_describes_the_state(shared_sandbox: SandboxExecutor, sales: Path) -> None:
    seen: list[str] = []

    def model(messages: list[BaseMessage]) -> str:
        seen.append(str(messages[-1].text))
        return last_line(messages)

    load = "import pandas as pd; df = pd.read_csv('sales.csv'); n = len(df); print(n)"
    with create_code_chain(ScriptedModel(model), executor=shared_sandbox, interpret=False) as chain:
        run(chain, load, files={"sales.csv": sales})
        run(chain, "print(n)")
    assert "variable `df`: DataFrame, 2 rows, columns `region`, `amount`" in seen[1]
    assert "file `sales.csv` in the working directory, begins with the line `region,amount`" in seen[1]
    assert load in seen[1]


@pytest.mark.slow
async def test_concurrent_tasks_run_one_at_a_time(chain: CodeChain) -> None:
    run(chain, "x = 0; print(x)")
    states = [{"query": "x += 1; print(x)", "session_id": "ann"}] * 12
    results = await asyncio.gather(*(chain.ainvoke(state) for state in states))
    assert sorted(int(result["output"]) for result in results) == list(range(1, 13))


@pytest.mark.slow
def test_concurrent_threads_run_one_at_a_time(chain: CodeChain) -> None:
    run(chain, "x = 0; print(x)")
    results = chain.batch([{"query": "x += 1; print(x)", "session_id": "ann"}] * 6)
    assert sorted(int(result["output"]) for result in results) == list(range(1, 7))


def test_a_lost_state_is_rebuilt(chain: CodeChain, shared_sandbox: SandboxExecutor) -> None:
    run(chain, "x = 20; print(x)")
    run(chain, "1 / 0")
    run(chain, "x += 1; print(x)")
    sessions = list(shared_sandbox._sessions)
    for session in sessions:
        session.close()
    assert run(chain, "print(x)") == "21"


def test_another_chain_continues_a_stored_conversation(
    shared_sandbox: SandboxExecutor, tmp_path: Path, sales: Path
) -> None:
    options: dict[str, Any] = {
        "executor": shared_sandbox,
        "interpret": False,
        "memory": tmp_path / "turns.sqlite",
    }
    with create_code_chain(ScriptedModel(last_line), **options) as first:
        run(
            first,
            "x = len(open('sales.csv').read()) * n; print(x)",
            files={"sales.csv": sales},
            variables={"n": 2},
        )
    with create_code_chain(ScriptedModel(last_line), **options) as second:
        assert run(second, "print(x)") == str(2 * len(sales.read_text()))


def test_undo_restores_the_state(chain: CodeChain) -> None:
    run(chain, "x = 20; print(x)")
    run(chain, "x = 0; print(x)")
    undone = chain.undo("ann")
    assert undone is not None
    assert (undone.query, run(chain, "print(x)")) == ("x = 0; print(x)", "20")


@pytest.mark.slow
def test_several_turns_can_be_undone(chain: CodeChain) -> None:
    for number in range(4):
        run(chain, f"x = {number}; print(x)")
    run(chain, "1 / 0")
    for _ in range(3):
        chain.undo("ann")
    assert run(chain, "print(x)") == "1"


@pytest.mark.slow
def test_two_chains_with_a_shared_store_see_each_others_turns(
    shared_sandbox: SandboxExecutor, tmp_path: Path
) -> None:
    options: dict[str, Any] = {
        "executor": shared_sandbox,
        "interpret": False,
        "memory": tmp_path / "turns.sqlite",
    }
    with (
        create_code_chain(ScriptedModel(last_line), **options) as first,
        create_code_chain(ScriptedModel(last_line), **options) as second,
    ):
        run(first, "x = 1; print(x)")
        run(second, "x += 1; print(x)")
        assert run(first, "print(x)") == "2"


@pytest.mark.slow
def test_a_waiting_turn_sees_the_turn_before(shared_sandbox: SandboxExecutor) -> None:
    seen: list[str] = []

    def model(messages: list[BaseMessage]) -> str:
        seen.append(str(messages[-1].text))
        time.sleep(0.5)
        return last_line(messages)

    with (
        create_code_chain(ScriptedModel(model), executor=shared_sandbox, interpret=False) as chain,
        ThreadPoolExecutor() as pool,
    ):
        first = pool.submit(run, chain, "b = 77; print(b)")
        time.sleep(0.2)
        assert pool.submit(run, chain, "print(b)").result() == "77"
        first.result()
    assert "b = 77" in seen[1]


@pytest.mark.slow
def test_undo_waits_for_the_running_turn(chain: CodeChain) -> None:
    run(chain, "x = 1; print(x)")
    run(chain, "x = 2; print(x)")
    with ThreadPoolExecutor() as pool:
        running = pool.submit(run, chain, "import time; time.sleep(1); x = 3; print(x)")
        time.sleep(0.3)
        undone = chain.undo("ann")
        running.result()
    assert undone is not None
    assert "x = 3" in undone.query
    assert run(chain, "print(x)") == "2"


def test_more_conversations_than_sessions_are_answered(shared_sandbox: SandboxExecutor) -> None:
    with (
        SandboxExecutor(max_sessions=1) as small,
        create_code_chain(ScriptedModel(last_line), executor=small, interpret=False) as chain,
    ):
        states = [{"query": f"print({n})", "session_id": f"session {n}"} for n in range(4)]
        assert [result["output"] for result in chain.batch(states)] == ["0", "1", "2", "3"]


def test_prompt_and_notes_name_state_that_could_not_be_rebuilt(shared_sandbox: SandboxExecutor) -> None:
    seen: list[str] = []

    def model(messages: list[BaseMessage]) -> str:
        seen.append(str(messages[-1].text))
        return last_line(messages)

    def six() -> object:
        """Return six."""
        return 6

    with create_code_chain(
        ScriptedModel(model), executor=shared_sandbox, interpret=False, tools=[six]
    ) as chain:
        run(chain, "f = lambda: 6; print(six())")
        for session in list(shared_sandbox._sessions):
            session.close()
        notes = chain.invoke({"query": "print(1)", "session_id": "ann"})["notes"]
    assert "had made" in seen[-1]
    assert "print(six())" in notes[0]


def test_a_deleted_conversation_starts_over(chain: CodeChain) -> None:
    run(chain, "x = 20; print(x)")
    chain.forget("ann")
    assert run(chain, "print('x' in globals())") == "False"


def test_nothing_remains_of_a_deleted_conversation(chain: CodeChain) -> None:
    run(chain, "print(1)")
    chain.forget("ann")
    assert chain.conversations is not None
    assert "ann" not in chain.conversations._all


def test_undo_without_a_turn_returns_none(chain: CodeChain) -> None:
    assert chain.undo("nobody") is None


@pytest.mark.slow
def test_state_of_evicted_conversations_is_rebuilt(chain: CodeChain) -> None:
    for number in range(10):
        run(chain, f"x = {number}; print(x)", f"session {number}")
    assert [run(chain, "print(x)", f"session {number}") for number in range(10)] == [
        str(n) for n in range(10)
    ]


def test_an_executor_without_sessions_still_has_a_history() -> None:
    from code_chains.executors.monty import MontyExecutor

    with create_code_chain(ScriptedModel(last_line), executor=MontyExecutor(), interpret=False) as chain:
        run(chain, "print(1)")
        assert [turn.query for turn in chain.memory.turns("ann")] == ["print(1)"]  # type: ignore[union-attr]


def test_a_model_is_told_that_no_state_remains() -> None:
    from code_chains.executors.monty import MontyExecutor

    seen: list[str] = []

    def model(messages: list[BaseMessage]) -> str:
        seen.append(str(messages[-1].text))
        return last_line(messages)

    with create_code_chain(ScriptedModel(model), executor=MontyExecutor(), interpret=False) as chain:
        run(chain, "x = 5; print(x)")
        run(chain, "print(1)")
    assert [_NO_STATE in text for text in seen] == [False, True]


def test_an_invalid_session_id_is_refused(chain: CodeChain) -> None:
    with pytest.raises(InputError, match="session_id"):
        run(chain, "print(1)", "   ")


def test_undo_without_a_conversation_memory_is_an_error(shared_sandbox: SandboxExecutor) -> None:
    with (
        create_code_chain(ScriptedModel(last_line), executor=shared_sandbox, memory=False) as chain,
        pytest.raises(ConfigurationError, match="ConversationMemory"),
    ):
        chain.undo("ann")


async def test_a_cancelled_turn_does_not_block_the_next_one(chain: CodeChain) -> None:
    for pause in (0.0, 0.001, 0.005, 0.02, 0.05):
        task = asyncio.create_task(
            chain.ainvoke({"query": "import time; time.sleep(3)", "session_id": "ann"})
        )
        await asyncio.sleep(pause)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    result = await asyncio.wait_for(chain.ainvoke({"query": "print(2)", "session_id": "ann"}), 20)
    assert result["output"] == "2"


@pytest.mark.parametrize("pause", [0.0, 0.1])
def test_a_turn_cancelled_as_its_event_loop_ends_does_not_block_the_next_one(
    shared_sandbox: SandboxExecutor, pause: float
) -> None:
    def slow() -> list[Any]:
        time.sleep(0.3)
        return []

    async def cancel() -> None:
        task = asyncio.create_task(conversations.abegin("ann", slow))
        await asyncio.sleep(pause)
        task.cancel()

    with Conversations(shared_sandbox.session, queue_timeout=2) as conversations:
        asyncio.run(cancel())
        conversations.hold("ann").end()


def test_a_closed_stream_does_not_block_the_next_turn(chain: CodeChain) -> None:
    stream = cast(
        "Generator[Any, None, None]", chain.stream({"query": "x = 1; print(x)", "session_id": "ann"})
    )
    next(stream)
    stream.close()
    with ThreadPoolExecutor() as pool:
        assert pool.submit(run, chain, "print(2)").result(timeout=30) == "2"


async def test_a_slot_is_released_if_no_thread_is_available() -> None:
    with Conversations(None, max_open=1, queue_timeout=0.1) as conversations:
        exhausted = ThreadPoolExecutor(1)
        exhausted.shutdown()
        asyncio.get_running_loop().set_default_executor(exhausted)
        with pytest.raises(RuntimeError):
            await conversations.abegin("ann", list)
        conversations.hold("bob").end()


def test_a_session_opened_during_close_is_closed_too(shared_sandbox: SandboxExecutor) -> None:
    opening, closed, opened = threading.Event(), threading.Event(), list[Session]()

    def slow() -> Session:
        opening.set()
        closed.wait(10)
        opened.append(shared_sandbox.session())
        return opened[0]

    with Conversations(slow) as conversations, ThreadPoolExecutor(1) as pool:
        turn = pool.submit(conversations.begin, "ann", list)
        opening.wait(10)
        conversations.close()
        closed.set()
        with pytest.raises(SessionError, match="closed while it was opened"):
            turn.result(10)
    assert not opened[0].alive


# -- queueing ------------------------------------------------------------------------------------------------------------


def are_queued(conversations: Conversations, count: int) -> Callable[[], bool]:
    """Return a condition: so many turns of the session wait."""
    return lambda: len(conversations._all["ann"].turn_limiter._queue) == count


def test_turns_of_threads_and_tasks_run_in_fifo_order() -> None:
    order = list[int]()

    def in_a_thread(number: int) -> None:
        conversation = conversations.begin("ann", list)
        order.append(number)
        conversation.end()

    async def in_a_task(number: int) -> None:
        conversation = await conversations.abegin("ann", list)
        order.append(number)
        conversation.end()

    with Conversations(None) as conversations, ThreadPoolExecutor(8) as pool:
        running = conversations.begin("ann", list)
        futures = list[Future[None]]()
        for number in range(8):
            begin = partial(in_a_thread, number) if number % 2 else partial(asyncio.run, in_a_task(number))
            futures.append(pool.submit(begin))
            assert soon(are_queued(conversations, number + 1))
        running.end()
        for future in futures:
            future.result(5)
    assert order == list(range(8))


def test_a_turn_is_refused_at_once_if_the_queue_is_full() -> None:
    with Conversations(None, max_queued=1) as conversations, ThreadPoolExecutor(1) as pool:
        running = conversations.begin("ann", list)
        second = pool.submit(conversations.begin, "ann", list)
        assert soon(are_queued(conversations, 1))
        start = time.monotonic()
        with pytest.raises(OverloadedError, match="'ann' is running, and the queue of 1 is full") as refused:
            conversations.begin("ann", list)
        assert refused.value.is_retryable
        assert time.monotonic() - start < 5
        running.end()
        second.result(5).end()


def test_conversations_that_have_no_state_do_not_wait_for_each_other() -> None:
    all_at_once = threading.Barrier(12, timeout=30)

    def script(messages: list[BaseMessage]) -> str:
        all_at_once.wait()
        return "1 + 1"

    with (
        create_code_chain(ScriptedModel(script), executor="monty", interpret=False) as chain,
        ThreadPoolExecutor(12) as pool,
    ):
        states = [{"query": "1 + 1?", "session_id": f"user {number}"} for number in range(12)]
        assert [result["output"] for result in pool.map(chain.invoke, states)] == ["2"] * 12


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", ["ann", "bob"])
def test_a_turn_waits_no_longer_than_its_timeout(name: str, is_async: bool) -> None:
    with Conversations(None, max_open=1, queue_timeout=0.2) as conversations:
        running, start = conversations.begin("ann", list), time.monotonic()
        with pytest.raises(OverloadedError, match=r"timed out after 0\.(?:2|1[5-9]\d?) s"):
            asyncio.run(conversations.abegin(name, list)) if is_async else conversations.begin(name, list)
        assert 0.15 < time.monotonic() - start < 5
        running.end()
        conversations.begin(name, list).end()


@pytest.mark.slow
def test_the_timeout_covers_both_queues() -> None:
    with Conversations(None, max_open=1, queue_timeout=2) as conversations, ThreadPoolExecutor(1) as pool:
        ann, other = conversations._get("ann"), conversations.begin("bob", list)
        drive(ann.turn_limiter.acquire())
        start, future = time.monotonic(), pool.submit(conversations.begin, "ann", list)
        time.sleep(1.5)
        ann.turn_limiter.release()
        with pytest.raises(OverloadedError, match="all 1 sessions for conversations are in use"):
            future.result(5)
        assert time.monotonic() - start < 3.2
        other.end()


async def two_waiting(
    conversations: Conversations,
) -> tuple[Conversation, asyncio.Task[Conversation], asyncio.Task[Conversation]]:
    """Begin a turn, and two that wait for it."""
    running = conversations.begin("ann", list)
    second, third = (asyncio.create_task(conversations.abegin("ann", list)) for _ in range(2))
    await asyncio.sleep(0.05)
    return running, second, third


async def test_a_cancelled_turn_leaves_the_queue() -> None:
    with Conversations(None) as conversations:
        running, second, third = await two_waiting(conversations)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        running.end()
        (await asyncio.wait_for(third, 5)).end()
        assert (conversations._session_limiter._running, conversations._all["ann"].turn_limiter._running) == (
            0,
            0,
        )


async def test_a_turn_cancelled_as_it_is_served_passes_on_its_slot() -> None:
    with Conversations(None) as conversations:
        running, second, third = await two_waiting(conversations)
        running.end()
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        (await asyncio.wait_for(third, 5)).end()


async def test_waiting_turns_do_not_block_the_event_loop() -> None:
    with Conversations(None, queue_timeout=3) as conversations:
        running, start = conversations.begin("ann", list), time.monotonic()
        turns = [asyncio.create_task(conversations.abegin("ann", list)) for _ in range(50)]
        for _ in range(10):
            await asyncio.sleep(0.01)
        assert time.monotonic() - start < 2.5
        running.end()
        for turn in turns:
            (await turn).end()


def test_the_session_of_a_waiting_conversation_is_evicted(shared_sandbox: SandboxExecutor) -> None:
    with Conversations(shared_sandbox.session, max_open=1) as conversations, ThreadPoolExecutor(1) as pool:
        conversations.begin("ann", list).end()
        busy = conversations.begin("bob", list)
        waiting = pool.submit(conversations.begin, "ann", list)
        assert soon(lambda: len(conversations._session_limiter._queue) == 1)
        assert [one.name for one in conversations._shared._by_id.values()] == ["bob"]
        busy.end()
        waiting.result(5).end()


def test_chains_share_the_sessions_of_their_executor() -> None:
    with SandboxExecutor(max_sessions=4) as sandbox:
        chains = [
            create_code_chain(ScriptedModel(last_line), executor=sandbox, interpret=False) for _ in range(3)
        ]
        for number, chain in enumerate(chains):
            for name in ("ann", "bob", "eve"):
                run(chain, f"x = '{name}', {number}; print(x)", name)
        assert run(chains[0], "print(x)") == "('ann', 0)"


def test_a_chain_that_asks_another_one_with_the_same_executor_does_not_wait_for_itself() -> None:
    with SandboxExecutor(max_sessions=2) as sandbox:
        inner = create_code_chain(ScriptedModel(last_line), executor=sandbox, interpret=False)

        def look_up(question: str) -> str:
            """Ask another chain."""
            return run(inner, question, "inner")

        outer = create_code_chain(
            ScriptedModel(last_line), executor=sandbox, interpret=False, tools=[look_up], solve=Repair(1)
        )
        assert run(outer, "print(look_up('print(6 * 7)'))") == "42"


def test_a_tested_turn_keeps_what_cannot_be_made_again(shared_sandbox: SandboxExecutor) -> None:
    def script(messages: list[BaseMessage]) -> str:
        is_tested = "assert twice" in str(messages[-1].text)
        return "def twice(x): return 2 * x" if is_tested else last_line(messages)

    with create_code_chain(ScriptedModel(script), executor=shared_sandbox, interpret=False) as chain:
        run(chain, "import time; began = time.time_ns(); print(began)")
        began = run(chain, "print(began)")
        tested = {"query": "Write twice(x).", "tests": "assert twice(2) == 4", "session_id": "ann"}
        assert chain.invoke(tested)["verdict"].status == "verified"
        assert run(chain, "print(began, twice(4))") == f"{began} 8"


def test_a_chain_that_is_gone_holds_no_session() -> None:
    with SandboxExecutor(max_sessions=2) as sandbox:
        for number in range(4):
            chain = create_code_chain(ScriptedModel(last_line), executor=sandbox, interpret=False)
            assert run(chain, f"print({number} + 1)") == str(number + 1)


def test_conversations_without_state_are_not_kept() -> None:
    with Conversations(None) as conversations:
        for number in range(100):
            conversations.begin(f"session {number}", list).end()
        assert not conversations._all


# -- user programs -----------------------------------------------------------------------------------------------------


def test_a_user_program_continues_with_the_state_of_the_last_turn(chain: CodeChain) -> None:
    run(chain, "x = 20; print(x)")
    assert chain.execute("print(x + 1)", "ann")["output"] == "21"


def test_the_next_question_builds_on_a_user_program(chain: CodeChain) -> None:
    chain.execute("x = 5", "ann")
    assert run(chain, "print(x + 1)") == "6"


def test_a_user_program_is_a_turn_that_can_be_undone(chain: CodeChain) -> None:
    run(chain, "x = 1; print(x)")
    chain.execute("x = 2; print(x)", "ann", query="With two.")
    assert [(turn.query, turn.code) for turn in chain.turns("ann")][1] == ("With two.", "x = 2; print(x)")
    chain.undo("ann")
    assert run(chain, "print(x)") == "1"


def test_a_failing_user_program_leaves_the_state_unchanged(chain: CodeChain) -> None:
    run(chain, "x = 1; print(x)")
    result = chain.execute("x = 2\n1 / 0", "ann")
    error = result["execution"].error
    assert (result["verdict"].status, error and error.line) == ("failed", 2)
    assert run(chain, "print(x)") == "1"


def test_a_user_program_calls_no_model(chain: CodeChain) -> None:
    assert chain.execute("print(1)", "ann")["usage"].model_calls == 0


def test_a_user_program_can_read_its_files(chain: CodeChain, sales: Path) -> None:
    assert (
        "region"
        in chain.execute("print(open('sales.csv').read())", "ann", files={"sales.csv": sales})["output"]
    )


async def test_a_user_program_waits_for_the_running_turn(chain: CodeChain) -> None:
    slow = chain.ainvoke({"query": "import time; time.sleep(0.3); x = 3; print(x)", "session_id": "ann"})
    turn = asyncio.create_task(slow)
    await asyncio.sleep(0.1)
    assert (await chain.aexecute("print(x + 1)", "ann"))["output"] == "4"
    await turn


@pytest.mark.parametrize("code", ["", "  \n", None])
def test_an_empty_program_is_refused(chain: CodeChain, code: Any) -> None:
    with pytest.raises(InputError, match="program is empty"):
        chain.execute(code, "ann")
