"""With `schema_only` no model sees rows of files, values of variables, or what a program printed."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from langchain_classic.memory import ConversationBufferMemory
from langchain_core.messages import BaseMessage

from code_chains import ConfigurationError, Data, InputError, Judge, Plan, Repair, create_code_chain
from code_chains.conversations.memory import ConversationMemory
from code_chains.executors import SandboxExecutor
from code_chains.testing import ScriptedModel

SECRET = "xyzzy"
"""A value in all data, which no message may hold."""
FAILS: dict[str, str] = {
    "a message": "raise ValueError(secret)",
    "a key": "{}[secret]",
    "a local value": "found = secret\n1 / 0",
    "output": "print(secret)\n1 / 0",
    "a kind of error": "raise type(secret, (Exception,), {})()",
    "an assertion": "assert not secret, secret",
    "a missing file": "open(secret)",
    "a close name": "{'xyzzz': 1, secret: 2}['xyzzx']",
    "nothing": "secret",
}


class Recorder:
    """A model that writes the given programs and records what it was sent."""

    def __init__(self, *programs: str) -> None:
        self.sent: list[list[BaseMessage]] = []
        self._programs = programs
        self.model = ScriptedModel(self._reply)

    def _reply(self, messages: list[BaseMessage]) -> str:
        self.sent.append(messages)
        if "split a task" in str(messages[0].text):
            return "1. Read it.\n2. Print it."
        return f"```python\n{self._programs[min(len(self.sent), len(self._programs)) - 1]}\n```"

    @property
    def leaks(self) -> list[str]:
        return [
            str(message.text) for messages in self.sent for message in messages if SECRET in str(message.text)
        ]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    contents = {
        "people.csv": f"name,city\nAnn,{SECRET}\n",
        "bare.csv": f"{SECRET},1\nb,2\n",
        "notes.txt": f"{SECRET}\n",
        "data.json": f'{{"{SECRET}": 1}}',
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    return {name: tmp_path / name for name in contents}


VARIABLES: dict[str, Any] = {
    "text": SECRET,
    "items": [SECRET],
    "mapping": {SECRET: 1},
    "frame": pd.DataFrame({"city": [SECRET]}),
}


@pytest.mark.slow
def test_inputs_are_described_by_their_schema(sandbox: SandboxExecutor, files: dict[str, Path]) -> None:
    recorder = Recorder("print(open('notes.txt').read(), text)")
    with create_code_chain(recorder.model, executor=sandbox, data=Data(schema_only=True)) as chain:
        result = chain.invoke({"query": "What is there?", "files": files, "variables": VARIABLES})
    assert (recorder.leaks, len(recorder.sent)) == ([], 1)
    assert SECRET in result["answer"]
    sent = str(recorder.sent[0][-1].text)
    for part in (
        "columns: `name` (text), `city` (text)",
        "2 columns",
        "notes.txt",
        "`items`: list, 1 items",
        "columns: `city` (text)",
    ):
        assert part in sent


@pytest.mark.rows(6)
@pytest.mark.parametrize("code", FAILS.values(), ids=FAILS)
@pytest.mark.parametrize("session", [None, "ann"])
def test_a_failure_is_described_by_its_kind_and_line(
    sandbox: SandboxExecutor, code: str, session: str | None
) -> None:
    recorder = Recorder(f"import base64\n{code}", "print(1)")
    with create_code_chain(recorder.model, executor=sandbox, data=Data(schema_only=True)) as chain:
        asked = {"query": "?", "variables": {"secret": SECRET}, "session_id": session}
        result = chain.invoke(asked)
    assert (recorder.leaks, result["execution"].ok) == ([], True)


def test_a_kind_and_a_line_are_what_a_repair_needs(sandbox: SandboxExecutor) -> None:
    recorder = Recorder("n = 0\nprint(1 / n)", "print(1)")
    with create_code_chain(recorder.model, executor=sandbox, data=Data(schema_only=True)) as chain:
        chain.invoke("?")
    sent = str(recorder.sent[1][-1].text)
    assert "The program failed with ZeroDivisionError in line 2" in sent
    assert ">   2 | print(1 / n)" in sent


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_later_turns_send_neither_answers_nor_state(sandbox: SandboxExecutor, way: str) -> None:
    recorder = Recorder("kept = [text]\nprint(text)", "print(kept)")
    with create_code_chain(recorder.model, executor=sandbox, data=Data(schema_only=True)) as chain:
        ask: Callable[[Any], Any] = chain.invoke
        if way == "stream":
            ask = lambda asked: functools.reduce(operator.add, chain.stream(asked))  # noqa: E731
        ask({"query": "Keep it.", "session_id": "ann", "variables": {"text": SECRET}})
        result = ask({"query": "Show it.", "session_id": "ann"})
    sent = str(recorder.sent[-1][-1].text)
    assert (recorder.leaks, SECRET in result["answer"]) == ([], True)
    assert ("Keep it." in sent, "`kept`: list" in sent) == (True, True)


def test_steps_send_programs_without_their_output(sandbox: SandboxExecutor) -> None:
    recorder = Recorder("", "kept = text\nprint(text)", "1 / 0", "", "print(kept)", "print(kept)")
    with create_code_chain(
        recorder.model, executor=sandbox, solve=Plan(Repair(1)), data=Data(schema_only=True)
    ) as chain:
        chain.invoke({"query": "Read it, then print it.", "variables": {"text": SECRET}})
    assert (recorder.leaks, len(recorder.sent) > 3) == ([], True)


@pytest.mark.parametrize("history", [f"Human: hi\nAI: {SECRET}", [("human", "hi"), ("ai", SECRET)]])
def test_a_history_sends_what_the_user_said_alone(sandbox: SandboxExecutor, history: Any) -> None:
    recorder = Recorder("print(1)")
    with create_code_chain(recorder.model, executor=sandbox, data=Data(schema_only=True)) as chain:
        chain.invoke({"query": "?", "history": history})
    assert recorder.leaks == []


def test_models_that_read_the_output_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="schema_only"):
        create_code_chain(Recorder("1").model, verify=[Judge()], data=Data(schema_only=True))
    memory = ConversationMemory(summarize=Recorder("1").model)
    with pytest.raises(ConfigurationError, match="schema_only"):
        create_code_chain(Recorder("1").model, memory=memory, data=Data(schema_only=True))


@pytest.mark.slow
def test_without_it_first_rows_and_output_are_sent(sandbox: SandboxExecutor, files: dict[str, Path]) -> None:
    recorder = Recorder("print(text)", "It is there.")
    with create_code_chain(recorder.model, executor=sandbox) as chain:
        chain.invoke({"query": "?", "files": files, "variables": VARIABLES})
    assert len(recorder.leaks) == 2


STATES: dict[str, str] = {
    "a file named by a value": "open(text + '.txt', 'w').write('1')",
    "columns named by values": "p = frame.assign(n=1).pivot_table(columns='city', values='n')\nprint(p)",
    "a variable named by a value": "globals()[text] = 1",
    "a class named by a value": "kind = type(text, (), {})()",
    "a class of a value itself": "kind = type(text, (), {})",
    "a dtype with categories": "kind = frame.city.astype('category').dtype",
    "a nested key": "kind = {text: {text: 1}}",
}


@pytest.mark.rows(3)
@pytest.mark.parametrize("code", STATES.values(), ids=STATES)
def test_names_that_come_from_values_are_not_sent(sandbox: SandboxExecutor, code: str) -> None:
    recorder = Recorder(f"{code}\nprint(1)", "print(2)")
    with create_code_chain(
        recorder.model, executor=sandbox, solve=Repair(1), data=Data(schema_only=True)
    ) as chain:
        asked = {"query": "Keep it.", "session_id": "ann", "variables": VARIABLES}
        assert chain.invoke(asked)["execution"].ok
        chain.invoke({"query": "Go on.", "session_id": "ann"})
    assert (recorder.leaks, len(recorder.sent)) == ([], 2)
    assert "variable `items`: list" in str(recorder.sent[-1][-1].text)


def test_a_dtype_that_lists_its_categories_is_not_sent(sandbox: SandboxExecutor) -> None:
    recorder = Recorder("print(1)")
    series = pl.Series("x", [SECRET], dtype=pl.Enum([SECRET, "b"]))
    with create_code_chain(recorder.model, executor=sandbox, data=Data(schema_only=True)) as chain:
        chain.invoke({"query": "?", "variables": {"series": series}})
    assert (recorder.leaks, len(recorder.sent)) == ([], 1)


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
def test_memories_that_may_ask_a_model_are_refused() -> None:
    memory = ConversationBufferMemory(input_key="query", output_key="answer")
    with pytest.raises(ConfigurationError, match="schema_only"):
        create_code_chain(Recorder("1").model, memory=memory, data=Data(schema_only=True))


def test_it_cannot_be_asked_for_by_a_question_alone(sandbox: SandboxExecutor) -> None:
    with (
        create_code_chain(Recorder("1").model, executor=sandbox, verify=[Judge()]) as chain,
        pytest.raises(InputError, match=r"create_code_chain\(data=Data\(schema_only=True\)\)"),
    ):
        chain.invoke({"query": "?", "schema_only": True})
