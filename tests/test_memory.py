"""What was said before."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_classic.memory import ConversationBufferMemory
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.stores import ByteStore, InMemoryByteStore

from code_chains import ConversationMemory, SandboxExecutor, SqliteStore, create_code_chain
from code_chains.errors import ConfigurationError, InputError
from code_chains.memory import ChatHistory, new_turn_id
from code_chains.state import Artifact, Execution, Turn, Verdict
from code_chains.testing import ScriptedModel, asks_for_code

OK = Verdict("unverified", "none", "It ran.")


class Listed(BaseChatMessageHistory):
    """A chat history of LangChain's kind."""

    def __init__(self) -> None:
        self.messages: list[BaseMessage] = []

    def add_message(self, message: BaseMessage) -> None:
        self.messages.append(message)

    def clear(self) -> None:
        self.messages = []


def over_history() -> ConversationMemory:
    kept: dict[str, ChatHistory] = {}
    return ConversationMemory(history=lambda session_id: kept.setdefault(session_id, Listed()))


@pytest.fixture(params=["memory", "sqlite", "history"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> ConversationMemory:
    if request.param == "history":
        return over_history()
    return ConversationMemory(SqliteStore(tmp_path / "turns.sqlite") if request.param == "sqlite" else None)


def say(memory: ConversationMemory, query: str, session_id: str | None = "ann", code: str = "print(1)") -> None:
    outputs = {"answer": f"About {query}.", "code": code, "output": "1", "verdict": OK}
    memory.save_context({"query": query, "session_id": session_id}, outputs)


def told(memory: ConversationMemory, session_id: str = "ann") -> list[BaseMessage]:
    history: list[BaseMessage] = memory.load_memory_variables({"session_id": session_id})["history"]
    return history


# -- turns ---------------------------------------------------------------------------------------------------------------


def test_turns_come_back_in_their_order(memory: ConversationMemory) -> None:
    for number in range(12):
        say(memory, f"q{number}")
    assert [turn.query for turn in memory.turns("ann")] == [f"q{number}" for number in range(12)]


def test_a_turn_is_told_with_its_program_and_output(memory: ConversationMemory) -> None:
    say(memory, "one?", code="print(6 * 7)")
    human, ai = told(memory)
    assert (human.text, "print(6 * 7)" in ai.text, ai.text.endswith("About one?.")) == ("one?", True, True)


def test_sessions_know_nothing_of_each_other(memory: ConversationMemory) -> None:
    say(memory, "secret")
    assert told(memory, "bob") == []


def test_without_a_session_nothing_is_remembered(memory: ConversationMemory) -> None:
    say(memory, "secret", session_id=None)
    assert memory.load_memory_variables({}) == {}
    assert memory.sessions() == []


def test_the_last_turn_can_be_taken_back(memory: ConversationMemory) -> None:
    say(memory, "one")
    say(memory, "two")
    undone = memory.undo("ann")
    assert undone is not None
    assert (undone.query, [turn.query for turn in memory.turns("ann")]) == ("two", ["one"])


def test_nothing_is_taken_back_where_there_is_nothing(memory: ConversationMemory) -> None:
    assert memory.undo("ann") is None


def test_one_session_can_be_forgotten(memory: ConversationMemory) -> None:
    say(memory, "one")
    say(memory, "two", "bob")
    memory.clear("ann")
    assert (told(memory), len(told(memory, "bob"))) == ([], 2)


def test_a_store_knows_its_sessions(tmp_path: Path) -> None:
    memory = ConversationMemory(SqliteStore(tmp_path / "turns.sqlite"))
    say(memory, "one", "zoë/../\N{SNOWMAN}")
    say(memory, "one", "ann")
    assert memory.sessions() == ["ann", "zoë/../\N{SNOWMAN}"]


def test_figures_and_variables_survive_the_file(tmp_path: Path) -> None:
    memory = ConversationMemory(SqliteStore(tmp_path / "turns.sqlite"))
    figure = Artifact("a.png", "image/png", b"\x89PNG\0")
    outputs = {"answer": "", "execution": Execution("ok", artifacts=(figure,)), "verdict": OK}
    memory.save_context({"query": "plot", "session_id": "ann", "variables": {"n": [1, None]}}, outputs)
    (turn,) = memory.turns("ann", artifacts=True)
    assert (turn.artifacts, turn.variables, turn.runs) == ((figure,), {"n": [1, None]}, 1)


@given(st.text(max_size=50), st.text(max_size=50))
def test_any_text_is_remembered(query: str, answer: str) -> None:
    memory = ConversationMemory()
    memory.add("ann", Turn(new_turn_id(), query, answer))
    assert [(turn.query, turn.answer) for turn in memory.turns("ann")] == [(query, answer)]


@pytest.mark.parametrize("session_id", ["", "  ", 7, "x" * 501])
def test_a_session_has_a_name(memory: ConversationMemory, session_id: object) -> None:
    with pytest.raises(InputError, match="session_id"):
        say(memory, "one", session_id)  # type: ignore[arg-type]


def test_a_damaged_turn_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    store = InMemoryByteStore()
    memory = ConversationMemory(store)
    say(memory, "one")
    say(memory, "two")
    store.mset([(min(store.yield_keys()), b"{")])
    assert [turn.query for turn in memory.turns("ann")] == ["two"]
    assert "cannot be read" in caplog.text


def test_store_and_history_are_one_or_the_other() -> None:
    with pytest.raises(ConfigurationError, match="both"):
        ConversationMemory(InMemoryByteStore(), history=lambda _: Listed())


def test_the_oldest_turns_in_memory_make_room() -> None:
    from code_chains.memory import _Recent

    store = _Recent(most=100)
    for number in range(10):
        store.mset([(f"k{number}", b"x" * 30)])
    assert sorted(store.yield_keys()) == ["k7", "k8", "k9"]


def test_nobodys_talk_pushes_out_that_of_another() -> None:
    memory = ConversationMemory()
    memory.store._most = 10_000
    say(memory, "quiet", "ann")
    for _ in range(30):
        memory.add("bob", Turn(f"{_:020d}-x", "loud", output="x" * 1000))
    assert [turn.query for turn in memory.turns("ann")] == ["quiet"]
    assert 0 < len(memory.turns("bob")) < 12


def test_what_is_deleted_makes_room_again() -> None:
    memory = ConversationMemory()
    memory.store._most = 2000
    for name in ("ann", "bob", "eve"):
        memory.add(name, Turn(f"{0:020d}-x", "q", output="x" * 1000))
        memory.clear(name)
    memory.add("ann", Turn(f"{1:020d}-x", "q", output="x" * 1000))
    assert memory.sessions() == ["ann"]


def test_of_a_flood_only_beginning_and_end_are_kept(sandbox: SandboxExecutor) -> None:
    with create_code_chain(
        ScriptedModel(lambda messages: "print('a' + 'x' * 900_000 + 'z')"), executor=sandbox
    ) as chain:
        chain.invoke({"query": "flood", "session_id": "ann"})
        (turn,) = chain.turns("ann")
    assert len(turn.output) < 101_000
    assert (turn.output[0], turn.output[-1]) == ("a", "z")


def test_a_redis_server_will_do(redis_store: ByteStore) -> None:
    memory = ConversationMemory(redis_store)
    say(memory, "one")
    say(memory, "two", "bob")
    assert (memory.sessions(), len(told(memory))) == (["ann", "bob"], 2)
    memory.clear()
    assert memory.sessions() == []


def test_turns_keep_their_order_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ConversationMemory()
    say(memory, "first")
    monkeypatch.setattr("code_chains.memory.time.time_ns", lambda: 1)
    say(memory, "second")
    assert [turn.query for turn in memory.turns("ann")] == ["first", "second"]


def test_figures_make_room_before_words_do() -> None:
    memory = ConversationMemory()
    memory.store._most = 3000
    for number in range(4):
        large = Artifact("a.png", "image/png", b"x" * 1500)
        memory.add("ann", Turn(f"{number:020d}-x", f"q{number}", artifacts=(large,)))
    assert [turn.query for turn in memory.turns("ann")] == ["q0", "q1", "q2", "q3"]


def test_what_others_wrote_behind_the_last_turn_goes_with_it() -> None:
    history = Listed()
    memory = ConversationMemory(history=lambda _: history)
    say(memory, "one")
    say(memory, "two")
    history.add_messages([HumanMessage("unanswered")])
    memory.undo("ann")
    assert [turn.query for turn in memory.turns("ann")] == ["one"]


# -- as much as fits -----------------------------------------------------------------------------------------------------


def test_what_is_told_is_cut_to_whole_turns_that_fit() -> None:
    memory = ConversationMemory(max_tokens=200)
    for number in range(30):
        say(memory, f"question {number} " + "word " * 20)
    history = told(memory)
    assert isinstance(history[0], HumanMessage)
    assert 2 <= len(history) < 20
    assert "question 29" in history[-2].text


def test_the_last_turn_is_told_however_long_it_is() -> None:
    memory = ConversationMemory(max_tokens=50)
    say(memory, "long " * 3000)
    (asked, _) = told(memory)
    assert asked.text.startswith("long long")
    assert len(asked.text) < 4000


def test_older_turns_are_summed_up_when_asked_to() -> None:
    model = ScriptedModel(lambda messages: "They counted.")
    memory = ConversationMemory(max_tokens=200, summarize=model)
    for number in range(12):
        say(memory, f"question {number} " + "word " * 20)
    first, *others = told(memory)
    assert (type(first), first.text) == (SystemMessage, "Before that: They counted.")
    assert others
    assert "question 11" in others[-2].text


def test_a_summary_goes_with_the_turns_it_is_of() -> None:
    memory = ConversationMemory(max_tokens=50, summarize=ScriptedModel(lambda messages: "Summed up."))
    for number in range(3):
        say(memory, f"question {number} " + "word " * 40)
    for _ in range(3):
        memory.undo("ann")
    assert told(memory) == []


def test_a_model_that_cannot_sum_up_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def failing(messages: list[BaseMessage]) -> str:
        raise ConnectionError("away")

    memory = ConversationMemory(max_tokens=50, summarize=ScriptedModel(failing))
    for number in range(3):
        say(memory, f"question {number} " + "word " * 40)
    assert len(memory.turns("ann")) == 3
    assert "away" in caplog.text


# -- many at once --------------------------------------------------------------------------------------------------------


def test_threads_lose_nothing(tmp_path: Path) -> None:
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
        say(memory, f"{start}-{number}")


def test_processes_lose_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "turns.sqlite")
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=write_turns, args=(path, start)) for start in range(4)]
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
        return "print(1)" if asks_for_code(messages) else "It is 1."

    memory = ConversationBufferMemory(input_key="query", output_key="answer")
    with create_code_chain(ScriptedModel(model), executor="none", memory=memory) as chain:
        chain.invoke("First?")
        chain.invoke("Second?")
    assert "Human: First?\nAI: It is 1." in seen[2]


@pytest.mark.parametrize("kind", ["path", "store", "memory"])
def test_a_chain_takes_memory_as_path_store_or_object(tmp_path: Path, kind: str) -> None:
    store = SqliteStore(tmp_path / "turns.sqlite")
    given: Any = {"path": tmp_path / "turns.sqlite", "store": store, "memory": ConversationMemory(store)}[kind]
    with create_code_chain(ScriptedModel(lambda messages: "print(1)"), executor="none", memory=given) as chain:
        chain.invoke({"query": "One?", "session_id": "ann"})
    assert [turn.query for turn in ConversationMemory(store).turns("ann")] == ["One?"]


@pytest.mark.filterwarnings("ignore:The class `.*` was deprecated")
def test_a_classic_memory_needs_no_keys_of_ours() -> None:
    with create_code_chain(
        ScriptedModel(lambda messages: "print(1)"), executor="none", memory=ConversationBufferMemory()
    ) as chain:
        chain.invoke({"query": "First?", "variables": {"n": 1}})
        assert "Human: First?" in chain.invoke("Second?")["history"]


def test_a_turn_that_cannot_be_saved_is_still_answered(caplog: pytest.LogCaptureFixture) -> None:
    class Full(InMemoryByteStore):
        def mset(self, key_value_pairs: object) -> None:
            raise OSError("the disk is full")

    with create_code_chain(ScriptedModel(lambda messages: "print(1)"), executor="none", memory=Full()) as chain:
        assert chain.invoke({"query": "One?", "session_id": "ann"})["output"] == "1"
    assert "the disk is full" in caplog.text


def test_what_is_no_memory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="memory"):
        create_code_chain(ScriptedModel(lambda messages: ""), memory=7)  # type: ignore[arg-type]


def test_an_ai_message_of_others_is_a_turn_without_a_program() -> None:
    history = Listed()
    history.add_messages([HumanMessage("Hi?"), AIMessage("Hello.")])
    (turn,) = ConversationMemory(history=lambda _: history).turns("ann")
    assert (turn.query, turn.answer, turn.runs) == ("Hi?", "Hello.", 0)
