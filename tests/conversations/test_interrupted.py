"""An interrupted turn of a conversation leaves nothing: neither in its history nor in the state."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from code_chains import Plan, Repair
from code_chains.assembly.code_chain import CodeChain
from code_chains.assembly.factory import create_code_chain
from code_chains.conversations.memory import ConversationMemory
from code_chains.executors import SandboxExecutor
from code_chains.testing import ScriptedModel, asks_for_code
from tests.chains.test_steps import PLAN, READ, TASK, planning
from tests.conftest import at_rest, soon

LOOK = "print((x, y))"


class Talk:
    """Return a conversation in which a question is the program, and the answer is the result of `answer`."""

    def __init__(self, executor: SandboxExecutor, **options: Any) -> None:
        self.answer: Callable[[], str] = lambda: "Done."
        self.chain: CodeChain = create_code_chain(
            ScriptedModel(self._script), executor=executor, solve=Repair(1), **options
        )

    def _script(self, messages: list[Any]) -> str:
        said = "\n".join(message.text for message in messages if message.type == "human")
        return (
            f"```python\n{said.rpartition('RUN<')[2].partition('>')[0]}\n```"
            if asks_for_code(messages)
            else self.answer()
        )

    def given(self, code: str) -> dict[str, Any]:
        return {"query": f"RUN<{code}>", "session_id": "ann"}

    def ask(self, code: str) -> str:
        return str(self.chain.invoke(self.given(code))["output"])

    @property
    def told(self) -> int:
        return len(self.chain.memory.turns("ann"))  # type: ignore[union-attr]


@pytest.fixture
def talk(sandbox: SandboxExecutor) -> Iterator[Talk]:
    talk = Talk(sandbox)
    with talk.chain:
        talk.ask("import random; x, y = 1, random.random(); x")
        yield talk


def fail() -> str:
    raise ValueError("The model is gone.")


def interrupt() -> str:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("answer", "error"), [(fail, ValueError), (interrupt, KeyboardInterrupt)])
def test_a_turn_that_is_interrupted_after_its_run(
    talk: Talk, answer: Any, error: type[BaseException]
) -> None:
    before = talk.ask(LOOK)
    talk.answer = answer
    with pytest.raises(error):
        talk.ask("x = 2; x")
    assert talk.told == 2
    talk.answer = lambda: "Done."
    assert talk.ask(LOOK) == before  # With the same random number: nothing had to run once more.


@pytest.mark.parametrize("key", ["answer", "usage"])
def test_a_stream_that_is_closed_early(talk: Talk, key: str) -> None:
    before = talk.ask(LOOK)
    stream = talk.chain.stream(talk.given("x = 2; x"))
    assert any(key in chunk for chunk in stream)
    stream.close()  # type: ignore[attr-defined]
    assert (talk.told, talk.ask(LOOK)) == (2, before)


async def test_an_asynchronous_stream_that_is_closed_early(talk: Talk) -> None:
    before = talk.ask(LOOK)
    stream = talk.chain.astream(talk.given("x = 2; x"))
    async for chunk in stream:
        if "answer" in chunk:
            break
    await stream.aclose()  # type: ignore[attr-defined]
    assert (talk.told, talk.ask(LOOK)) == (2, before)


def test_a_stream_that_is_closed_while_its_program_prints(talk: Talk) -> None:
    talk.ask("y = 5; y")
    stream = talk.chain.stream(talk.given("x = 2\nwhile True: print('again')"))
    assert any("stdout" in chunk for chunk in stream)
    stream.close()  # type: ignore[attr-defined]
    assert (talk.told, talk.ask(LOOK)) == (2, "(1, 5)")


def test_a_turn_that_is_interrupted_before_its_run(talk: Talk) -> None:
    before = talk.ask(LOOK)
    stream = talk.chain.stream(talk.given("x = 2; x"))
    assert any("answer_language" in chunk for chunk in stream)
    stream.close()  # type: ignore[attr-defined]
    assert talk.ask(LOOK) == before


@pytest.mark.slow
def test_an_interrupt_during_a_run_rebuilds_the_state(talk: Talk) -> None:
    talk.ask("y = 5; y")
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        talk.ask("x = 2\nwhile True: pass")
    assert talk.ask(LOOK) == "(1, 5)"


def test_undo_reverts_the_turn_and_not_what_was_interrupted_after_it(talk: Talk) -> None:
    talk.ask("x = 2; y = 3; x")
    talk.ask("x = 4; x")
    talk.answer = fail
    with pytest.raises(ValueError, match="gone"):
        talk.ask("x = 8; x")
    talk.answer = lambda: "Done."
    talk.chain.undo("ann")
    assert talk.ask(LOOK) == "(2, 3)"


@pytest.mark.slow
def test_an_interrupt_while_the_state_is_rebuilt_leaves_no_session_open(sandbox: SandboxExecutor) -> None:
    sandbox.run("1")  # Its worker starts before anything is counted.
    memory, before = ConversationMemory(), at_rest()
    talk = Talk(sandbox, memory=memory)
    with talk.chain:
        talk.ask("import time; time.sleep(1.5); 1")
        talk.chain.conversations.forget("ann")  # type: ignore[union-attr]
        threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            talk.ask("2")
        assert soon(lambda: at_rest() <= before)


def test_a_plan_that_fails_half_way(sandbox: SandboxExecutor) -> None:
    def solve(asked: str, messages: list[Any]) -> str:
        if "Is it there?" in asked:
            return "print('name' in globals())"
        return "1 / 0" if READ in asked.partition("(This is one step")[0] else ""

    with create_code_chain(
        planning(PLAN, solve), executor=sandbox, solve=Plan(Repair(1), when="auto")
    ) as chain:
        result = chain.invoke({"query": TASK, "session_id": "ann"})
        assert (result["attempts"][0].status, result["verdict"].status) == ("ok", "failed")
        assert chain.invoke({"query": "Is it there?", "session_id": "ann"})["output"] == "False"


def test_files_are_found_again_from_another_folder(
    sandbox: SandboxExecutor, sales: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(sandbox, memory=ConversationMemory())
    monkeypatch.chdir(sales.parent)
    with talk.chain:
        talk.chain.invoke(
            {**talk.given("n = len(open('sales.csv').read()); n"), "files": {"sales.csv": Path("sales.csv")}}
        )
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        talk.chain.conversations.forget("ann")  # type: ignore[union-attr]
        assert talk.ask("print(n)") == str(sales.stat().st_size)
