"""Conversations whose state was lost: their turns run again, with the same inputs, random numbers and moments."""

from __future__ import annotations

import collections
import datetime
import decimal
import io
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from langchain_core.stores import InMemoryByteStore

from code_chains import ConversationMemory, Limits, Repair, SandboxExecutor, SqliteStore, create_code_chain
from code_chains.assembly.code_chain import CodeChain
from code_chains.conversations import replay
from code_chains.errors import ExecutorError, InputError, SessionError, StoreError
from code_chains.testing import ScriptedModel, asks_for_code

CSV = b"x,y\n1,2\n3,4\n"
INPUTS: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "bytes": (lambda: {"files": {"a.csv": CSV}}, "open('a.csv').read()"),
    "open file": (lambda: {"files": {"a.csv": io.BytesIO(CSV)}}, "open('a.csv').read()"),
    "frame": (
        lambda: {"variables": {"v": pd.DataFrame({"a": [1, 2], "b": ["x", None]})}},
        "v.to_csv(), str(v.dtypes)",
    ),
    "series": (
        lambda: {"variables": {"v": pd.Series([1.5, 2], name="s", index=["p", "q"])}},
        "v.to_csv(), v.name",
    ),
    "array": (lambda: {"variables": {"v": np.arange(6, dtype="int16").reshape(2, 3)}}, "v.tolist(), v.dtype"),
    "date": (lambda: {"variables": {"v": datetime.date(2020, 1, 2)}}, "repr(v)"),
    "moment": (lambda: {"variables": {"v": datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)}}, "repr(v)"),
    "set": (lambda: {"variables": {"v": {1, 2}}}, "repr(v)"),
    "blob": (lambda: {"variables": {"v": b"\0\1"}}, "repr(v)"),
    "decimals": (lambda: {"variables": {"v": {"k": [decimal.Decimal("1.10")]}}}, "repr(v)"),
    "counter": (lambda: {"variables": {"v": [collections.Counter("aab")]}}, "repr(v)"),
    "long number": (lambda: {"variables": {"v": 10**5000}}, "v % 7, v.bit_length()"),
    "broken text": (lambda: {"variables": {"v": {"\ud800": "a"}}}, "ascii(v)"),
    "both": (lambda: {"files": {"a.csv": CSV}, "variables": {"v": {1}}}, "(open('a.csv').read(), v)"),
}
MADE = {
    "random": "import random; v = random.random(); r = random.Random()",
    "numpy": "import numpy; v = numpy.random.rand(2).tolist(); r = numpy.random.default_rng()",
    "secrets": "import random, secrets, uuid; v = (secrets.token_hex(), str(uuid.uuid4())); r = random.SystemRandom()",
    "clock": "import datetime, random, time; v = [time.time_ns(), datetime.datetime.now()]; r = random",
    "order": "import random; v = list({'a', 'b', 'c', 'd', 'e'}); r = random",
    "tuple": "import random, time; v = (time.time_ns(), 'a'); r = random",
    "closure": "import random\ndef v(x=random.random()): return x\nr = random",
    "frame": "import numpy, pandas, random; v = pandas.DataFrame({'a': numpy.random.rand(3)}).to_csv(); r = random",
}
WAYS = ["closed", "evicted", "second undo", "restart"]
PAIRS = [(name, way) for way in WAYS for name in INPUTS] + [(name, way) for way in WAYS for name in MADE]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(max_sessions=4) as sandbox:
        yield sandbox


class Talk:
    """Return conversations in a store, in which questions are programs."""

    def __init__(self, sandbox: SandboxExecutor, store: Any) -> None:
        self.sandbox, self.calls = sandbox, 0
        self.chain: CodeChain = create_code_chain(
            ScriptedModel(self._script),
            executor=sandbox,
            memory=store,
            interpret=False,
            solve=Repair(1),
        )

    def _script(self, messages: list[Any]) -> str:
        self.calls += 1
        code = str(messages[-1].text).rpartition("RUN<")[2].rpartition(">RUN")[0]
        return f"```python\n{code}\n```" if asks_for_code(messages) else "Done."

    def ask(self, code: str, name: str = "ann", **inputs: Any) -> str:
        return str(self.result(code, name, **inputs)["output"])

    def result(self, code: str, name: str = "ann", **inputs: Any) -> Any:
        return self.chain.invoke({"query": f"RUN<{code}>RUN", "session_id": name, **inputs})

    def lose(self, way: str) -> None:
        if way == "second undo":
            self.ask("1")
            self.ask("2")
            self.chain.undo("ann")
            self.chain.undo("ann")
        elif way == "evicted":
            for number in range(4):
                self.ask("1", f"other {number}")
        else:
            for session in list(self.sandbox._sessions):
                session.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "turns.sqlite"


@pytest.fixture
def talk(sandbox: SandboxExecutor, store: Path) -> Iterator[Talk]:
    talk = Talk(sandbox, store)
    with talk.chain:
        yield talk


@pytest.mark.slow
@pytest.mark.parametrize(("name", "way"), PAIRS)
def test_a_rebuilt_conversation_is_what_it_was(talk: Talk, store: Path, name: str, way: str) -> None:
    if name in INPUTS:
        make, show = INPUTS[name]
        talk.ask(show, **make())
    else:
        show = "(v() if callable(v) else v, r.random())"
        talk.ask(f"{MADE[name]}\nprint(1)")
    before = talk.result(show)
    assert before["verdict"].ok
    talk.chain.undo("ann")
    talk.lose(way)
    with (Talk(talk.sandbox, store) if way == "restart" else talk).chain as again:
        after = again.invoke({"query": f"RUN<{show}>RUN", "session_id": "ann"})
    assert (after["output"], after["notes"]) == (before["output"], [])


@pytest.mark.slow
def test_an_upload_outlives_its_session(talk: Talk) -> None:
    talk.ask("t = open('a.csv').read()", files={"a.csv": CSV})
    talk.lose("closed")
    assert talk.ask("t == open('a.csv').read() and len(t)") == str(len(CSV))


def test_another_name_of_a_value_is_one_of_it_again(talk: Talk) -> None:
    talk.ask("import time; a = [time.time()]; b = a")
    talk.lose("closed")
    assert talk.ask("a.append(1); (len(b), a is b)") == "(2, True)"


def test_what_holds_a_value_that_was_kept_is_said(talk: Talk) -> None:
    talk.ask("import time; a = [time.time()]; c = {'a': a}; print(1)")
    talk.lose("closed")
    assert "What holds a, of the answer" in talk.result("print(2)")["notes"][0]


OBJECTS = {
    "object": "class C: pass\nc = C()\nc.x = time.time()",
    "closure": "def c(x=time.time()): return x",
    "large list": "c = [time.time()] * 20_000",
}


@pytest.mark.parametrize("code", OBJECTS.values(), ids=OBJECTS)
def test_an_object_that_differs_is_said(talk: Talk, code: str) -> None:
    talk.ask(f"import time\n{code}\nprint(1)")
    talk.lose("closed")
    assert "c was computed anew, and may differ" in talk.result("print(2)")["notes"][0]


def test_a_file_that_would_differ_is_what_it_was(talk: Talk) -> None:
    before = talk.ask("import time; open('t.txt', 'w').write(str(time.time())); print(open('t.txt').read())")
    talk.lose("closed")
    result = talk.result("open('t.txt', 'a').write('!'); print(open('t.txt').read())")
    assert (result["output"], result["notes"]) == (f"{before}!", [])


def test_moments_of_pandas_are_kept(talk: Talk) -> None:
    before = talk.ask("import pandas; t = pandas.Timestamp.now(); t")
    talk.lose("closed")
    assert talk.ask("t") == before


def test_what_a_program_read_from_its_standard_input_is_read_again(talk: Talk) -> None:
    talk.ask("name = input()", stdin="Ann\n")
    talk.lose("closed")
    assert talk.ask("name") == "'Ann'"


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_text("another")])
def test_a_path_is_kept_by_its_content(talk: Talk, sales: Path, change: Any) -> None:
    before = talk.ask("t = open('sales.csv').read(); t", files={"sales.csv": sales})
    change(sales)
    talk.lose("closed")
    assert talk.ask("open('sales.csv').read()") == before


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MAX_TURN_BYTES", 5)


def test_what_was_not_kept_is_asked_for_before_a_model_is_paid(talk: Talk, small: None) -> None:
    talk.ask("t = open('a.csv').read()", files={"a.csv": CSV})
    talk.lose("closed")
    paid = talk.calls
    with pytest.raises(InputError, match=r"'a\.csv'.*Pass it again"):
        talk.ask("t")
    assert (talk.calls, talk.ask("t", files={"a.csv": CSV})) == (paid, repr(CSV.decode()))


def test_who_asks_again_goes_on_without(talk: Talk, small: None) -> None:
    talk.ask("t = open('a.csv').read()", files={"a.csv": CSV})
    talk.lose("closed")
    with pytest.raises(InputError):
        talk.ask("t")
    assert "is not there any more" in talk.result("print(1)")["notes"][0]


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_large_file_is_read_again_only_unchanged(
    talk: Talk, small: None, sales: Path, is_changed: bool
) -> None:
    before = talk.ask("t = open('sales.csv').read(); t", files={"sales.csv": sales})
    talk.lose("closed")
    if is_changed:
        sales.write_text("another")
        with pytest.raises(InputError, match=r"'sales\.csv'"):
            talk.ask("t")
    else:
        assert talk.ask("t") == before


def test_equal_uploads_are_kept_once_until_no_turn_has_them(talk: Talk, store: Path) -> None:
    for _ in range(2):
        talk.ask("1", files={"a.csv": CSV})
    kept = SqliteStore(store)
    counts = [len(list(kept.yield_keys(prefix="contents/")))]
    for _ in range(2):
        talk.chain.undo("ann")
        counts.append(len(list(kept.yield_keys(prefix="contents/"))))
    assert counts == [1, 1, 0]


def test_a_table_that_was_pasted_is_kept(talk: Talk) -> None:
    values = {"query": "RUN<len(scores)>RUN", "session_id": "ann", "variables": {"scores": [[1, 2]]}}
    talk.chain.invoke(values)
    talk.lose("closed")
    assert talk.ask("scores") == "[[1, 2]]"


@pytest.mark.slow
def test_turns_of_two_chains_wait_for_each_other(talk: Talk, store: Path) -> None:
    other = Talk(talk.sandbox, store)
    talk.ask("x = 13")
    code = "import time; time.sleep(0.3); x += 1; print(x)"
    with other.chain, ThreadPoolExecutor() as pool:
        outputs = list(pool.map(lambda chain: chain.ask(code), [talk, other]))
    assert (sorted(outputs), talk.ask("x")) == (["14", "15"], "15")


def test_a_turn_is_only_stored_onto_its_history() -> None:
    memory = ConversationMemory()
    first = memory.remember({"query": "1", "session_id": "ann"}, {}, after="")
    memory.remember({"query": "2", "session_id": "ann"}, {}, after=first.id)
    with pytest.raises(SessionError, match="Ask it again"):
        memory.remember({"query": "3", "session_id": "ann"}, {}, after=first.id)
    assert [turn.query for turn in memory.turns("ann")] == ["1", "2"]


class RivalStore(InMemoryByteStore):
    """Others store a turn at the same moment."""

    def mset(self, key_value_pairs: Any) -> None:
        super().mset(key_value_pairs)
        key = key_value_pairs[-1][0]
        super().mset([(f"{key[:-1]}{chr(ord(key[-1]) ^ 1)}", key_value_pairs[-1][1])])


def test_of_turns_that_are_stored_at_once_none_is_the_second_of_a_history() -> None:
    memory = ConversationMemory(RivalStore())
    with pytest.raises(SessionError, match="Ask it again"):
        memory.remember({"query": "1", "session_id": "ann"}, {}, after="")
    assert len(memory.turns("ann")) == 1


class History(list[Any]):
    """The messages of a conversation."""

    add_messages = list.extend

    @property
    def messages(self) -> list[Any]:
        return list(self)


HISTORY: Any = History()
MEMORIES: dict[str, Callable[[], ConversationMemory]] = {
    "store": partial(ConversationMemory, InMemoryByteStore()),
    "history": partial(ConversationMemory, history=lambda _: HISTORY),
}


@pytest.mark.parametrize("kind", MEMORIES)
def test_turns_of_two_chains_of_a_process_wait_for_each_other(sandbox: SandboxExecutor, kind: str) -> None:
    talks = [Talk(sandbox, MEMORIES[kind]()) for _ in range(2)]
    talks[0].ask("x = 13")
    code = "import time; time.sleep(0.2); x += 1; print(x)"
    with talks[0].chain, talks[1].chain, ThreadPoolExecutor() as pool:
        outputs = list(pool.map(lambda talk: talk.ask(code), talks))
    assert sorted(outputs) == ["14", "15"]


def test_a_lock_that_others_hold_ends_in_an_error(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.sqlite")
    with store.lock("ann", 1), store.lock("bob", 1):
        started = time.monotonic()
        with pytest.raises(Exception, match="locked"), store.lock("ann", 0.1):
            pass
    assert time.monotonic() - started < 5
    assert not list(tmp_path.glob("*.lock"))


@pytest.mark.slow
def test_only_one_holds_a_lock_at_a_time(tmp_path: Path) -> None:
    store, inside, most = SqliteStore(tmp_path / "a.sqlite"), [], [0]

    def enter(_: int) -> None:
        with store.lock("ann", 20):
            inside.append(threading.get_ident())
            most[0] = max(most[0], len(inside))
            time.sleep(0.002)
            inside.pop()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(100)))
    assert most == [1]


def test_a_turn_that_cannot_be_saved_leaves_the_conversation_as_it_was(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.ask("x = 1")

    def full(*_: object) -> None:
        raise StoreError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "mset", full)
        result = talk.result("x = 2; print(x)", files={"a.csv": CSV})
    assert (talk.ask("x"), len(talk.chain.turns("ann"))) == ("1", 2)
    assert "not saved" in result["notes"][0]


def test_a_path_in_a_store_alone_is_not_read_as_others_may_have_written_it(
    talk: Talk, store: Path, sales: Path
) -> None:
    talk.ask("t = len(open('sales.csv').read()) * n", files={"sales.csv": sales}, variables={"n": 2})
    kept = SqliteStore(store)
    kept.mdelete([key for key in kept.yield_keys() if key.startswith(("inputs/", "contents/"))])
    talk.lose("closed")
    with pytest.raises(InputError, match=r"'sales\.csv' would be needed"):
        talk.ask("t")


@pytest.mark.parametrize("kind", ["inputs", "contents"])
@pytest.mark.parametrize("damage", [b"{", b"\xff", b"[1]", b'{"files": 3}', b'{"files": {"a.csv": {}}}'])
def test_what_is_damaged_is_asked_for(talk: Talk, store: Path, kind: str, damage: bytes) -> None:
    talk.ask("t = open('a.csv').read()", files={"a.csv": CSV})
    kept = SqliteStore(store)
    kept.mset([(key, damage) for key in kept.yield_keys(prefix=f"{kind}/")])
    talk.lose("closed")
    with pytest.raises(InputError, match=r"'a\.csv'"):
        talk.ask("t")
    assert talk.chain.undo("ann")


def test_a_damaged_turn_is_said(talk: Talk, store: Path) -> None:
    talk.ask("x = 1")
    kept = SqliteStore(store)
    kept.mset([(key, b"{") for key in kept.yield_keys(prefix="turns/")])
    talk.lose("closed")
    assert talk.result("print(1)")["notes"] == ["What 1 damaged turns had made is not there."]


def test_files_that_a_session_cannot_hold_are_refused_before_a_model_is_paid(
    talk: Talk, tmp_path: Path
) -> None:
    talk.ask("x = 1")
    large, paid = tmp_path / "large.bin", talk.calls
    with large.open("wb") as file:
        file.truncate(2 << 30)
    with pytest.raises(InputError, match="2,048 MB"):
        talk.ask("x", files={"large.bin": large})
    assert (talk.calls, talk.ask("x")) == (paid, "1")


def test_a_machine_that_is_slower_now_gives_no_other_answer() -> None:
    memory = ConversationMemory(InMemoryByteStore())

    def ask(code: str, seconds: float) -> str:
        model = ScriptedModel(lambda messages: code)
        with (
            SandboxExecutor(limits=Limits(seconds=seconds)) as executor,
            create_code_chain(model, executor=executor, memory=memory, interpret=False) as chain,
        ):
            return str(chain.invoke({"query": "Go on?", "session_id": "a"})["output"])

    ask("n = 1", 10)
    ask("import time; time.sleep(1.5); n = 2", 10)
    with pytest.raises(ExecutorError, match="could not be made again in time") as raised:
        ask("print(n)", 1)
    assert raised.value.is_retryable
    assert ask("print(n)", 10) == "2"


def test_turns_that_a_store_has_lost_are_told(sandbox: SandboxExecutor) -> None:
    store = InMemoryByteStore()
    talk = Talk(sandbox, ConversationMemory(store))
    with talk.chain:
        talk.ask("n = 1")
        talk.ask("n = 2; print(n)")
        store.mdelete(list(store.yield_keys()))
        assert "not in its store any more" in talk.result("print('n' in globals())")["notes"][0]
        assert not talk.chain.undo("nobody")


def test_an_undone_turn_is_not_told_as_lost(talk: Talk) -> None:
    talk.ask("n = 1")
    talk.ask("n = 2")
    talk.chain.undo("ann")
    result = talk.result("print(n)")
    assert (result["output"], result["notes"]) == ("1", [])
