"""Conversation memory."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_classic.memory import ConversationBufferMemory
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.stores import ByteStore, InMemoryByteStore

from code_chains import ConversationMemory, SandboxExecutor, SqliteStore, create_code_chain
from code_chains.conversations.memory import ChatHistory
from code_chains.conversations.turns import new_turn_id
from code_chains.errors import ConfigurationError, InputError, StoreError
from code_chains.state import Artifact, Execution, Turn, Verdict
from code_chains.testing import ScriptedModel, asks_for_code

OK = Verdict("unverified", "none", "It ran.")


class ListHistory(BaseChatMessageHistory):
    """A LangChain chat history in a list."""

    def __init__(self) -> None:
        self.messages: list[BaseMessage] = []

    def add_message(self, message: BaseMessage) -> None:
        self.messages.append(message)

    def clear(self) -> None:
        self.messages = []


def memory_over_history() -> ConversationMemory:
    histories: dict[str, ChatHistory] = {}
    return ConversationMemory(history=lambda session_id: histories.setdefault(session_id, ListHistory()))


@pytest.fixture(params=["memory", "sqlite", "history"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> ConversationMemory:
    if request.param == "history":
        return memory_over_history()
    return ConversationMemory(SqliteStore(tmp_path / "turns.sqlite") if request.param == "sqlite" else None)


def save_turn(
    memory: ConversationMemory, query: str, session_id: str | None = "ann", code: str = "print(1)"
) -> None:
    outputs = {"answer": f"About {query}.", "code": code, "output": "1", "verdict": OK}
    memory.save_context({"query": query, "session_id": session_id}, outputs)


def history_of(memory: ConversationMemory, session_id: str = "ann") -> list[BaseMessage]:
    history: list[BaseMessage] = memory.load_memory_variables({"session_id": session_id})["history"]
    return history


# -- turns ---------------------------------------------------------------------------------------------------------------


def test_turns_are_loaded_in_order(memory: ConversationMemory) -> None:
    for number in range(12):
        save_turn(memory, f"q{number}")
    assert [turn.query for turn in memory.turns("ann")] == [f"q{number}" for number in range(12)]


def test_the_history_contains_programs_and_outputs(memory: ConversationMemory) -> None:
    save_turn(memory, "one?", code="print(6 * 7)")
    human, ai = history_of(memory)
    assert (human.text, "print(6 * 7)" in ai.text, ai.text.endswith("About one?.")) == ("one?", True, True)


def test_sessions_are_isolated(memory: ConversationMemory) -> None:
    save_turn(memory, "secret")
    assert history_of(memory, "bob") == []


def test_without_a_session_nothing_is_stored(memory: ConversationMemory) -> None:
    save_turn(memory, "secret", session_id=None)
    assert memory.load_memory_variables({}) == {}
    assert memory.sessions() == []


def test_the_last_turn_can_be_undone(memory: ConversationMemory) -> None:
    save_turn(memory, "one")
    save_turn(memory, "two")
    undone = memory.undo("ann")
    assert undone is not None
    assert (undone.query, [turn.query for turn in memory.turns("ann")]) == ("two", ["one"])


def test_undo_of_an_empty_session_returns_none(memory: ConversationMemory) -> None:
    assert memory.undo("ann") is None


def test_a_session_can_be_deleted(memory: ConversationMemory) -> None:
    save_turn(memory, "one")
    save_turn(memory, "two", "bob")
    memory.clear("ann")
    assert (history_of(memory), len(history_of(memory, "bob"))) == ([], 2)


def test_a_store_lists_its_sessions(tmp_path: Path) -> None:
    memory = ConversationMemory(SqliteStore(tmp_path / "turns.sqlite"))
    save_turn(memory, "one", "zoë/../\N{SNOWMAN}")
    save_turn(memory, "one", "ann")
    assert memory.sessions() == ["zoë/../\N{SNOWMAN}", "ann"]


def test_figures_and_variables_are_persisted(tmp_path: Path) -> None:
    memory = ConversationMemory(SqliteStore(tmp_path / "turns.sqlite"))
    figure = Artifact.of("a.png", "image/png", b"\x89PNG\0")
    outputs = {"answer": "", "execution": Execution("ok", artifacts=(figure,)), "verdict": OK}
    memory.save_context({"query": "plot", "session_id": "ann", "variables": {"n": [1, None]}}, outputs)
    (turn,) = memory.turns("ann", artifacts=True)
    assert (turn.artifacts, turn.variables, turn.runs) == ((figure,), {"n": [1, None]}, 1)


@given(st.text(max_size=50), st.text(max_size=50))
def test_any_text_is_stored(query: str, answer: str) -> None:
    memory = ConversationMemory()
    memory.add("ann", Turn(new_turn_id(), query, answer))
    assert [(turn.query, turn.answer) for turn in memory.turns("ann")] == [(query, answer)]


@pytest.mark.parametrize("session_id", ["", "  ", 7, "x" * 501])
def test_an_invalid_session_id_is_refused(memory: ConversationMemory, session_id: object) -> None:
    with pytest.raises(InputError, match="session_id"):
        save_turn(memory, "one", session_id)  # type: ignore[arg-type]


def test_a_damaged_turn_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    store = InMemoryByteStore()
    memory = ConversationMemory(store)
    save_turn(memory, "one")
    save_turn(memory, "two")
    store.mset([(min(store.yield_keys()), b"{")])
    assert [turn.query for turn in memory.turns("ann")] == ["two"]
    assert "is invalid and is skipped" in caplog.text


def test_store_and_history_are_mutually_exclusive() -> None:
    with pytest.raises(ConfigurationError, match="both"):
        ConversationMemory(InMemoryByteStore(), history=lambda _: ListHistory())


def test_the_oldest_turns_are_evicted() -> None:
    from code_chains.conversations.recent_store import RecentStore

    store = RecentStore(max_bytes=100)
    for number in range(10):
        store.mset([(f"k{number}", b"x" * 30)])
    assert sorted(store.yield_keys()) == ["k7", "k8", "k9"]


def test_a_session_does_not_evict_another() -> None:
    memory = ConversationMemory()
    memory.store._max_bytes = 10_000
    save_turn(memory, "quiet", "ann")
    for _ in range(30):
        memory.add("bob", Turn(f"{_:020d}-x", "loud", output="x" * 1000))
    assert [turn.query for turn in memory.turns("ann")] == ["quiet"]
    assert 0 < len(memory.turns("bob")) < 12


def test_deleting_frees_space() -> None:
    memory = ConversationMemory()
    memory.store._max_bytes = 2000
    for name in ("ann", "bob", "eve"):
        memory.add(name, Turn(f"{0:020d}-x", "q", output="x" * 1000))
        memory.clear(name)
    memory.add("ann", Turn(f"{1:020d}-x", "q", output="x" * 1000))
    assert memory.sessions() == ["ann"]


def test_long_output_is_shortened_to_its_beginning_and_end(sandbox: SandboxExecutor) -> None:
    with create_code_chain(
        ScriptedModel(lambda messages: "print('a' + 'x' * 900_000 + 'z')"), executor=sandbox
    ) as chain:
        chain.invoke({"query": "flood", "session_id": "ann"})
        (turn,) = chain.turns("ann")
    assert len(turn.output) < 101_000
    assert (turn.output[0], turn.output[-1]) == ("a", "z")


def test_a_redis_store_works(redis_store: ByteStore) -> None:
    memory = ConversationMemory(redis_store)
    save_turn(memory, "one")
    save_turn(memory, "two", "bob")
    assert (memory.sessions(), len(history_of(memory))) == (["ann", "bob"], 2)
    memory.clear()
    assert memory.sessions() == []


def test_turns_stay_in_order_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ConversationMemory()
    save_turn(memory, "first")
    monkeypatch.setattr("code_chains.conversations.turns.time.time_ns", lambda: 1)
    save_turn(memory, "second")
    assert [turn.query for turn in memory.turns("ann")] == ["first", "second"]


def test_artifacts_are_evicted_before_turns() -> None:
    memory = ConversationMemory()
    memory.store._max_bytes = 3000
    for number in range(4):
        large = Artifact.of("a.png", "image/png", b"x" * 1500)
        memory.add("ann", Turn(f"{number:020d}-x", f"q{number}", artifacts=(large,)))
    assert [turn.query for turn in memory.turns("ann")] == ["q0", "q1", "q2", "q3"]


def test_undo_removes_foreign_messages_after_the_last_turn() -> None:
    history = ListHistory()
    memory = ConversationMemory(history=lambda _: history)
    save_turn(memory, "one")
    save_turn(memory, "two")
    history.add_messages([HumanMessage("unanswered")])
    memory.undo("ann")
    assert [turn.query for turn in memory.turns("ann")] == ["one"]


# -- token limit -------------------------------------------------------------------------------------------------------


def test_the_history_is_trimmed_to_whole_turns() -> None:
    memory = ConversationMemory(max_tokens=200)
    for number in range(30):
        save_turn(memory, f"question {number} " + "word " * 20)
    history = history_of(memory)
    assert isinstance(history[0], HumanMessage)
    assert 2 <= len(history) < 20
    assert "question 29" in history[-2].text


def test_the_history_always_contains_the_last_turn() -> None:
    memory = ConversationMemory(max_tokens=50)
    save_turn(memory, "long " * 3000)
    (question, _) = history_of(memory)
    assert question.text.startswith("long long")
    assert len(question.text) < 4000


def test_older_turns_are_summarized() -> None:
    model = ScriptedModel(lambda messages: "They counted.")
    memory = ConversationMemory(max_tokens=200, summarize=model)
    for number in range(12):
        save_turn(memory, f"question {number} " + "word " * 20)
    first, *others = history_of(memory)
    assert (type(first), first.text) == (SystemMessage, "Before that: They counted.")
    assert others
    assert "question 11" in others[-2].text


def test_undo_removes_the_summary_of_its_turns() -> None:
    memory = ConversationMemory(max_tokens=50, summarize=ScriptedModel(lambda messages: "Summed up."))
    for number in range(3):
        save_turn(memory, f"question {number} " + "word " * 40)
    for _ in range(3):
        memory.undo("ann")
    assert history_of(memory) == []


def test_a_failing_summary_loses_no_turns(caplog: pytest.LogCaptureFixture) -> None:
    def failing(messages: list[BaseMessage]) -> str:
        raise ConnectionError("away")

    memory = ConversationMemory(max_tokens=50, summarize=ScriptedModel(failing))
    for number in range(3):
        save_turn(memory, f"question {number} " + "word " * 40)
    assert len(memory.turns("ann")) == 3
    assert "away" in caplog.text


# -- concurrency ---------------------------------------------------------------------------------------------------------


def test_concurrent_threads_lose_no_turns(tmp_path: Path) -> None:
    path = str(tmp_path / "turns.sqlite")
    threads = [threading.Thread(target=write_turns, args=(path, start)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({turn.query for turn in ConversationMemory(SqliteStore(path)).turns("ann")}) == 200


def write_turns(path: str, start: int) -> None:
    memory = ConversationMemory(SqliteStore(path))
    for number in range(25):
        save_turn(memory, f"{start}-{number}")


@pytest.mark.slow
def test_concurrent_processes_lose_no_turns(tmp_path: Path) -> None:
    path = str(tmp_path / "turns.sqlite")
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([__name__])
    processes = [server.Process(target=write_turns, args=(path, start)) for start in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert len(ConversationMemory(SqliteStore(path)).turns("ann")) == 100


async def test_saving_and_loading_never_block_the_event_loop() -> None:
    class Slow(InMemoryByteStore):
        def mset(self, key_value_pairs: object) -> None:
            time.sleep(0.2)

        def yield_keys(self, prefix: str | None = None) -> Iterator[str]:
            time.sleep(0.2)
            return iter(())

    memory = ConversationMemory(Slow())

    async def work() -> None:
        await memory.asave_context({"query": "a", "session_id": "s"}, {"answer": "b"})
        await memory.aload_memory_variables({"session_id": "s"})

    task, ticks = asyncio.create_task(work()), 0
    while not task.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 10


# -- in chains -----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The class `.*` was deprecated")
def test_a_classic_memory_still_works() -> None:
    seen: list[str] = []

    def model(messages: list[BaseMessage]) -> str:
        seen.append(str(messages[-1].text))
        return "print(0 + 1)" if asks_for_code(messages) else "It is 1."

    memory = ConversationBufferMemory(input_key="query", output_key="answer")
    with create_code_chain(ScriptedModel(model), executor="none", memory=memory) as chain:
        chain.invoke("First?")
        chain.invoke("Second?")
    assert "Human: First?\nAI: It is 1." in seen[2]


@pytest.mark.parametrize("kind", ["path", "store", "memory"])
def test_a_chain_takes_memory_as_path_store_or_object(tmp_path: Path, kind: str) -> None:
    store = SqliteStore(tmp_path / "turns.sqlite")
    argument: Any = {"path": tmp_path / "turns.sqlite", "store": store, "memory": ConversationMemory(store)}[
        kind
    ]
    with create_code_chain(
        ScriptedModel(lambda messages: "print(1)"), executor="none", memory=argument
    ) as chain:
        chain.invoke({"query": "One?", "session_id": "ann"})
    assert [turn.query for turn in ConversationMemory(store).turns("ann")] == ["One?"]


@pytest.mark.filterwarnings("ignore:The class `.*` was deprecated")
def test_a_classic_memory_needs_no_keys_of_code_chains() -> None:
    with create_code_chain(
        ScriptedModel(lambda messages: "print(1)"), executor="none", memory=ConversationBufferMemory()
    ) as chain:
        chain.invoke({"query": "First?", "variables": {"n": 1}})
        assert "Human: First?" in chain.invoke("Second?")["history"]


def test_a_turn_that_cannot_be_saved_is_still_answered(caplog: pytest.LogCaptureFixture) -> None:
    class Full(InMemoryByteStore):
        def mset(self, key_value_pairs: object) -> None:
            raise OSError("the disk is full")

    with create_code_chain(
        ScriptedModel(lambda messages: "print(1)"), executor="none", memory=Full()
    ) as chain:
        assert chain.invoke({"query": "One?", "session_id": "ann"})["output"] == "1"
    assert "the disk is full" in caplog.text


@pytest.mark.parametrize(
    "use",
    [
        lambda memory: memory.sessions(),
        lambda memory: memory.remember({"query": "1?", "session_id": "ann"}, {"answer": "1"}),
        lambda memory: memory.load_memory_variables({"session_id": "ann"}),
    ],
)
def test_a_store_that_cannot_be_reached_is_a_store_error(use: Callable[[ConversationMemory], object]) -> None:
    class Unreachable(InMemoryByteStore):
        def mget(self, keys: object) -> NoReturn:
            raise ConnectionError("no route")

        def yield_keys(self, *, prefix: str | None = None) -> NoReturn:
            raise ConnectionError("no route")

    with pytest.raises(StoreError, match="no route"):
        use(ConversationMemory(Unreachable(), summarize=ScriptedModel(lambda messages: "")))


def test_an_invalid_memory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="memory"):
        create_code_chain(ScriptedModel(lambda messages: ""), memory=7)  # type: ignore[arg-type]


def test_a_foreign_ai_message_is_a_turn_without_a_program() -> None:
    history = ListHistory()
    history.add_messages([HumanMessage("Hi?"), AIMessage("Hello.")])
    (turn,) = ConversationMemory(history=lambda _: history).turns("ann")
    assert (turn.query, turn.answer, turn.runs) == ("Hi?", "Hello.", 0)


@pytest.mark.parametrize(
    "data", [b"{", b"[" * 100_000, b"\xff", b"5", b'{"turn": 5}', b'{"session": "x", "turn": {"id": "y"}}']
)
def test_an_entry_that_others_wrote_costs_itself_alone(data: bytes) -> None:
    memory = ConversationMemory(InMemoryByteStore())
    for name in ("ann", "bob"):
        save_turn(memory, "one", name)
    memory.store.mset([(min(memory.store.yield_keys(prefix="turns/")), data)])
    assert len(memory.turns("ann")) + len(memory.turns("bob")) == 1
    assert {"ann", "bob"} & {*memory.sessions()}
