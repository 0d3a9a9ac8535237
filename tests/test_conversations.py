"""A conversation and the state of its programs belong together."""

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

from code_chains import SandboxExecutor, Sequence, Transform, create_code_chain
from code_chains.code_chain import CodeChain
from code_chains.conversations import Conversation, Conversations
from code_chains.errors import ConfigurationError, InputError, OverloadedError, SessionError
from code_chains.executors import Session
from code_chains.executors.drive import drive
from code_chains.testing import ScriptedModel, asks_for_code

from .conftest import soon


def does_as_told(messages: list[BaseMessage]) -> str:
    """A model whose program is the last line of the question."""
    return str(messages[-1].text).splitlines()[-1] if asks_for_code(messages) else "Told."


@pytest.fixture(scope="module")
def box() -> Iterator[SandboxExecutor]:
    with SandboxExecutor() as box:
        yield box


@pytest.fixture
def chain(box: SandboxExecutor) -> Iterator[CodeChain]:
    with create_code_chain(ScriptedModel(does_as_told), executor=box, interpret=False, max_attempts=1) as chain:
        yield chain


def run(chain: CodeChain, code: str, session_id: str | None = "ann", **more: Any) -> str:
    state = {"query": code, **({"session_id": session_id} if session_id else {}), **more}
    return str(chain.invoke(state)["output"])


def test_a_program_finds_what_the_turn_before_left(chain: CodeChain) -> None:
    run(chain, "x = 20; print(x)")
    assert run(chain, "print(x + 1)") == "21"


def test_a_file_of_an_earlier_turn_is_still_there(chain: CodeChain, sales: Path) -> None:
    run(chain, "print(1)", files={"sales.csv": sales})
    assert "region" in run(chain, "print(open('sales.csv').readline())")


def test_conversations_have_states_of_their_own(chain: CodeChain) -> None:
    run(chain, "x = 1; print(x)")
    assert run(chain, "print('x' in globals())", "bob") == "False"
    assert run(chain, "print('x' in globals())", None) == "False"


def test_the_config_may_name_the_conversation(chain: CodeChain) -> None:
    config = {"configurable": {"session_id": "ann"}}
    chain.invoke("x = 20; print(x)", config)  # type: ignore[arg-type]
    chunks = list(chain.stream("print(x + 1)", config))  # type: ignore[arg-type]
    assert next(chunk["output"] for chunk in chunks if "output" in chunk) == "21"


def test_the_config_reaches_a_chain_among_others(chain: CodeChain) -> None:
    after = Transform(
        input_variables=["output"], output_variables=["loud"], transform=lambda s: {"loud": s["output"] * 2}
    )
    both = Sequence(chains=[chain, after], input_variables=["query"], output_variables=["loud"])
    config = {"configurable": {"session_id": "ann"}}
    both.invoke({"query": "x = 20; print(x)"}, config)  # type: ignore[arg-type]
    assert both.invoke({"query": "print(x + 1)"}, config)["loud"] == "2121"  # type: ignore[arg-type]


def test_a_failed_turn_leaves_the_state_as_it_was(chain: CodeChain) -> None:
    run(chain, "x = 20; print(x)")
    run(chain, "x = 0; 1 / x")
    assert run(chain, "print(x)") == "20"


def test_the_model_is_told_what_is_there(box: SandboxExecutor, sales: Path) -> None:
    seen: list[str] = []

    def model(messages: list[BaseMessage]) -> str:
        seen.append(str(messages[-1].text))
        return does_as_told(messages)

    load = "import pandas as pd; df = pd.read_csv('sales.csv'); n = len(df); print(n)"
    with create_code_chain(ScriptedModel(model), executor=box, interpret=False) as chain:
        run(chain, load, files={"sales.csv": sales})
        run(chain, "print(n)")
    assert "variable `df`: DataFrame, 2 rows, columns `region`, `amount`" in seen[1]
    assert "file `sales.csv` in the working directory, begins with the line `region,amount`" in seen[1]
    assert load in seen[1]


async def test_turns_at_once_wait_for_each_other(chain: CodeChain) -> None:
    run(chain, "x = 0; print(x)")
    states = [{"query": "x += 1; print(x)", "session_id": "ann"}] * 12
    results = await asyncio.gather(*(chain.ainvoke(state) for state in states))
    assert sorted(int(result["output"]) for result in results) == list(range(1, 13))


def test_threads_wait_for_each_other_too(chain: CodeChain) -> None:
    run(chain, "x = 0; print(x)")
    results = chain.batch([{"query": "x += 1; print(x)", "session_id": "ann"}] * 6)
    assert sorted(int(result["output"]) for result in results) == list(range(1, 7))


def test_a_state_that_was_lost_is_rebuilt(chain: CodeChain, box: SandboxExecutor) -> None:
    run(chain, "x = 20; print(x)")
    run(chain, "1 / 0")
    run(chain, "x += 1; print(x)")
    box_sessions = list(box._sessions)
    for session in box_sessions:
        session.close()
    assert run(chain, "print(x)") == "21"


def test_another_process_goes_on_where_one_left(box: SandboxExecutor, tmp_path: Path, sales: Path) -> None:
    options: dict[str, Any] = {"executor": box, "interpret": False, "memory": tmp_path / "turns.sqlite"}
    with create_code_chain(ScriptedModel(does_as_told), **options) as first:
        run(first, "x = len(open('sales.csv').read()) * n; print(x)", files={"sales.csv": sales}, variables={"n": 2})
    with create_code_chain(ScriptedModel(does_as_told), **options) as second:
        assert run(second, "print(x)") == str(2 * len(sales.read_text()))


def test_a_turn_is_taken_back_with_its_state(chain: CodeChain) -> None:
    run(chain, "x = 20; print(x)")
    run(chain, "x = 0; print(x)")
    undone = chain.undo("ann")
    assert undone is not None
    assert (undone.query, run(chain, "print(x)")) == ("x = 0; print(x)", "20")


def test_several_turns_are_taken_back_one_by_one(chain: CodeChain) -> None:
    for number in range(4):
        run(chain, f"x = {number}; print(x)")
    run(chain, "1 / 0")
    for _ in range(3):
        chain.undo("ann")
    assert run(chain, "print(x)") == "1"


def test_two_workers_with_one_store_see_what_the_other_did(box: SandboxExecutor, tmp_path: Path) -> None:
    options: dict[str, Any] = {"executor": box, "interpret": False, "memory": tmp_path / "turns.sqlite"}
    with (
        create_code_chain(ScriptedModel(does_as_told), **options) as one,
        create_code_chain(ScriptedModel(does_as_told), **options) as other,
    ):
        run(one, "x = 1; print(x)")
        run(other, "x += 1; print(x)")
        assert run(one, "print(x)") == "2"


def test_a_turn_that_waited_knows_of_the_one_before(box: SandboxExecutor) -> None:
    seen: list[str] = []

    def model(messages: list[BaseMessage]) -> str:
        seen.append(str(messages[-1].text))
        time.sleep(0.5)
        return does_as_told(messages)

    with create_code_chain(ScriptedModel(model), executor=box, interpret=False) as chain, ThreadPoolExecutor() as pool:
        first = pool.submit(run, chain, "b = 77; print(b)")
        time.sleep(0.2)
        assert pool.submit(run, chain, "print(b)").result() == "77"
        first.result()
    assert "b = 77" in seen[1]


def test_taking_back_waits_for_the_turn_that_runs(chain: CodeChain) -> None:
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


def test_more_may_ask_at_once_than_there_are_places(box: SandboxExecutor) -> None:
    with (
        SandboxExecutor(sessions=1) as small,
        create_code_chain(ScriptedModel(does_as_told), executor=small, interpret=False) as chain,
    ):
        states = [{"query": f"print({n})", "session_id": f"session {n}"} for n in range(4)]
        assert [one["output"] for one in chain.batch(states)] == ["0", "1", "2", "3"]


def test_what_could_not_be_rebuilt_is_told_to_the_model(box: SandboxExecutor, sales: Path) -> None:
    seen: list[str] = []

    def model(messages: list[BaseMessage]) -> str:
        seen.append(str(messages[-1].text))
        return does_as_told(messages)

    with create_code_chain(ScriptedModel(model), executor=box, interpret=False) as chain:
        run(chain, "text = open('sales.csv').read(); print(text)", files={"sales.csv": sales})
        sales.unlink()
        for session in list(box._sessions):
            session.close()
        run(chain, "print(1)")
    assert "is not there any more" in seen[-1]


def test_a_forgotten_conversation_begins_anew(chain: CodeChain) -> None:
    run(chain, "x = 20; print(x)")
    chain.forget("ann")
    assert run(chain, "print('x' in globals())") == "False"


def test_nothing_is_kept_of_a_forgotten_conversation(chain: CodeChain) -> None:
    run(chain, "print(1)")
    chain.forget("ann")
    assert chain.conversations is not None
    assert "ann" not in chain.conversations._all


def test_there_is_nothing_to_take_back_at_first(chain: CodeChain) -> None:
    assert chain.undo("nobody") is None


def test_more_conversations_than_places_are_all_kept(chain: CodeChain) -> None:
    for number in range(10):
        run(chain, f"x = {number}; print(x)", f"session {number}")
    assert [run(chain, "print(x)", f"session {number}") for number in range(10)] == [str(n) for n in range(10)]


def test_an_executor_without_sessions_still_remembers_what_was_said() -> None:
    from code_chains.executors.monty import MontyExecutor

    with create_code_chain(ScriptedModel(does_as_told), executor=MontyExecutor(), interpret=False) as chain:
        run(chain, "print(1)")
        assert [turn.query for turn in chain.memory.turns("ann")] == ["print(1)"]  # type: ignore[union-attr]


def test_a_bad_name_is_refused_before_anything_is_asked(chain: CodeChain) -> None:
    with pytest.raises(InputError, match="session_id"):
        run(chain, "print(1)", "   ")


def test_a_memory_that_cannot_take_back_says_so(box: SandboxExecutor) -> None:
    with (
        create_code_chain(ScriptedModel(does_as_told), executor=box, memory=False) as chain,
        pytest.raises(ConfigurationError, match="ConversationMemory"),
    ):
        chain.undo("ann")


async def test_a_turn_that_is_cancelled_lets_the_next_one_begin(chain: CodeChain) -> None:
    for pause in (0.0, 0.001, 0.005, 0.02, 0.05):
        asking = asyncio.create_task(chain.ainvoke({"query": "import time; time.sleep(3)", "session_id": "ann"}))
        await asyncio.sleep(pause)
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
    result = await asyncio.wait_for(chain.ainvoke({"query": "print(2)", "session_id": "ann"}), 20)
    assert result["output"] == "2"


@pytest.mark.parametrize("pause", [0.0, 0.1])
def test_a_turn_that_is_cancelled_as_its_event_loop_ends_lets_the_next_one_begin(
    box: SandboxExecutor, pause: float
) -> None:
    def slow() -> list[Any]:
        time.sleep(0.3)
        return []

    async def cancelled() -> None:
        beginning = asyncio.create_task(conversations.abegin("ann", slow))
        await asyncio.sleep(pause)
        beginning.cancel()

    with Conversations(box.session, wait=2) as conversations:
        asyncio.run(cancelled())
        conversations.hold("ann").end()


def test_a_turn_that_is_broken_off_lets_the_next_one_begin(chain: CodeChain) -> None:
    stream = cast("Generator[Any, None, None]", chain.stream({"query": "x = 1; print(x)", "session_id": "ann"}))
    next(stream)
    stream.close()
    with ThreadPoolExecutor() as pool:
        assert pool.submit(run, chain, "print(2)").result(timeout=30) == "2"


async def test_a_place_is_given_back_where_no_thread_can_be_had() -> None:
    with Conversations(None, most=1, wait=0.1) as conversations:
        exhausted = ThreadPoolExecutor(1)
        exhausted.shutdown()
        asyncio.get_running_loop().set_default_executor(exhausted)
        with pytest.raises(RuntimeError):
            await conversations.abegin("ann", list)
        conversations.hold("bob").end()


def test_a_session_that_is_opened_while_all_are_closed_is_closed_too(box: SandboxExecutor) -> None:
    opening, closed, opened = threading.Event(), threading.Event(), list[Session]()

    def slow() -> Session:
        opening.set()
        closed.wait(10)
        opened.append(box.session())
        return opened[0]

    with Conversations(slow) as conversations, ThreadPoolExecutor(1) as pool:
        turn = pool.submit(conversations.begin, "ann", list)
        opening.wait(10)
        conversations.close()
        closed.set()
        with pytest.raises(SessionError, match="closed while it was opened"):
            turn.result(10)
    assert not opened[0].alive


# -- waiting in line -----------------------------------------------------------------------------------------------------


def waiting(conversations: Conversations, count: int) -> Callable[[], bool]:
    """Whether so many turns of Ann's wait."""
    return lambda: len(conversations._all["ann"].line._line) == count


def test_turns_of_threads_and_tasks_come_in_the_order_in_which_they_were_asked() -> None:
    came = list[int]()

    def in_a_thread(number: int) -> None:
        conversation = conversations.begin("ann", list)
        came.append(number)
        conversation.end()

    async def in_a_task(number: int) -> None:
        conversation = await conversations.abegin("ann", list)
        came.append(number)
        conversation.end()

    with Conversations(None) as conversations, ThreadPoolExecutor(8) as pool:
        held = conversations.begin("ann", list)
        asked = list[Future[None]]()
        for number in range(8):
            ask = partial(in_a_thread, number) if number % 2 else partial(asyncio.run, in_a_task(number))
            asked.append(pool.submit(ask))
            assert soon(waiting(conversations, number + 1))
        held.end()
        for one in asked:
            one.result(5)
    assert came == list(range(8))


def test_a_turn_that_finds_a_full_line_is_refused_at_once() -> None:
    with Conversations(None, queue=1) as conversations, ThreadPoolExecutor(1) as pool:
        held = conversations.begin("ann", list)
        second = pool.submit(conversations.begin, "ann", list)
        assert soon(waiting(conversations, 1))
        began = time.monotonic()
        with pytest.raises(OverloadedError, match="'ann' is under way, and 1 wait") as refused:
            conversations.begin("ann", list)
        assert refused.value.is_retryable
        assert time.monotonic() - began < 0.3
        held.end()
        second.result(5).end()


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("name", ["ann", "bob"])
def test_no_turn_waits_for_longer_than_was_said(name: str, asynchronous: bool) -> None:
    with Conversations(None, most=1, wait=0.2) as conversations:
        held, began = conversations.begin("ann", list), time.monotonic()
        with pytest.raises(OverloadedError, match=r"0\.2 seconds"):
            asyncio.run(conversations.abegin(name, list)) if asynchronous else conversations.begin(name, list)
        assert 0.15 < time.monotonic() - began < 1
        held.end()
        conversations.begin(name, list).end()


def test_waiting_for_the_turn_before_and_for_a_place_is_bounded_as_a_whole() -> None:
    with Conversations(None, most=1, wait=1) as conversations, ThreadPoolExecutor(1) as pool:
        ann, other = conversations._named("ann"), conversations.begin("bob", list)
        drive(ann.line.enter())
        began, asked = time.monotonic(), pool.submit(conversations.begin, "ann", list)
        time.sleep(0.6)
        ann.line.leave()
        with pytest.raises(OverloadedError, match="1 other"):
            asked.result(5)
        assert time.monotonic() - began < 1.4
        other.end()


async def two_behind(
    conversations: Conversations,
) -> tuple[Conversation, asyncio.Task[Conversation], asyncio.Task[Conversation]]:
    """A turn that is held, and two that wait for it."""
    held = conversations.begin("ann", list)
    second, third = (asyncio.create_task(conversations.abegin("ann", list)) for _ in range(2))
    await asyncio.sleep(0.05)
    return held, second, third


async def test_a_cancelled_turn_leaves_the_line_and_the_next_goes_on() -> None:
    with Conversations(None) as conversations:
        held, second, third = await two_behind(conversations)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        held.end()
        (await asyncio.wait_for(third, 5)).end()
        assert (conversations._places._taken, conversations._all["ann"].line._taken) == (0, 0)


async def test_a_turn_that_is_cancelled_as_it_is_called_lets_the_next_go_on() -> None:
    with Conversations(None) as conversations:
        held, second, third = await two_behind(conversations)
        held.end()
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        (await asyncio.wait_for(third, 5)).end()


async def test_the_event_loop_goes_on_while_turns_wait() -> None:
    with Conversations(None, wait=3) as conversations:
        held, began = conversations.begin("ann", list), time.monotonic()
        turns = [asyncio.create_task(conversations.abegin("ann", list)) for _ in range(50)]
        for _ in range(10):
            await asyncio.sleep(0.01)
        assert time.monotonic() - began < 1
        held.end()
        for turn in turns:
            (await turn).end()


def test_a_conversation_that_waits_for_a_place_gives_its_session_away(box: SandboxExecutor) -> None:
    with Conversations(box.session, most=1) as conversations, ThreadPoolExecutor(1) as pool:
        conversations.begin("ann", list).end()
        busy = conversations.begin("bob", list)
        anew = pool.submit(conversations.begin, "ann", list)
        assert soon(lambda: len(conversations._places._line) == 1)
        assert list(conversations._kept) == ["bob"]
        busy.end()
        anew.result(5).end()


def test_nothing_is_kept_of_conversations_without_a_state() -> None:
    with Conversations(None) as conversations:
        for number in range(100):
            conversations.begin(f"session {number}", list).end()
        assert not conversations._all


# -- programs of one's own ---------------------------------------------------------------------------------------------


def test_a_program_of_ones_own_goes_on_where_the_last_turn_was(chain: CodeChain) -> None:
    run(chain, "x = 20; print(x)")
    assert chain.execute("print(x + 1)", "ann")["output"] == "21"


def test_the_next_question_builds_on_a_program_of_ones_own(chain: CodeChain) -> None:
    chain.execute("x = 5", "ann")
    assert run(chain, "print(x + 1)") == "6"


def test_a_program_of_ones_own_is_a_turn_that_can_be_taken_back(chain: CodeChain) -> None:
    run(chain, "x = 1; print(x)")
    chain.execute("x = 2; print(x)", "ann", query="With two.")
    assert [(turn.query, turn.code) for turn in chain.turns("ann")][1] == ("With two.", "x = 2; print(x)")
    chain.undo("ann")
    assert run(chain, "print(x)") == "1"


def test_a_program_of_ones_own_that_fails_leaves_the_state_as_it_was(chain: CodeChain) -> None:
    run(chain, "x = 1; print(x)")
    done = chain.execute("x = 2\n1 / 0", "ann")
    assert (done["verdict"].status, done["execution"].error.line) == ("failed", 2)
    assert run(chain, "print(x)") == "1"


def test_a_program_of_ones_own_asks_no_model(chain: CodeChain) -> None:
    assert chain.execute("print(1)", "ann")["usage"].model_calls == 0


def test_a_program_of_ones_own_finds_its_files(chain: CodeChain, sales: Path) -> None:
    assert "region" in chain.execute("print(open('sales.csv').read())", "ann", files={"sales.csv": sales})["output"]


async def test_a_program_of_ones_own_waits_for_the_turn_before(chain: CodeChain) -> None:
    slow = chain.ainvoke({"query": "import time; time.sleep(0.3); x = 3; print(x)", "session_id": "ann"})
    turn = asyncio.create_task(slow)
    await asyncio.sleep(0.1)
    assert (await chain.aexecute("print(x + 1)", "ann"))["output"] == "4"
    await turn


@pytest.mark.parametrize("code", ["", "  \n", None])
def test_an_empty_program_is_refused(chain: CodeChain, code: Any) -> None:
    with pytest.raises(InputError, match="no program"):
        chain.execute(code, "ann")
