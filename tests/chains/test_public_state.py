"""What callbacks, servers and checkpoints see of a chain is JSON, and chains go on from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson
import pandas as pd
import pytest
from langchain_classic.chains import SequentialChain, TransformChain
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from code_chains import Agreement, Iterate, Plan, Repair, SandboxExecutor, create_code_chain
from code_chains.chains import EvaluateChain, ExecuteChain, GenerateChain, InterpretChain, ValidateChain
from code_chains.chains.base import Chain
from code_chains.errors import InputError
from code_chains.state import CodeState, as_json
from code_chains.testing import ScriptedModel, asks_for_code
from code_chains.verification.expectations import expect
from tests.conftest import QUESTION, SUM_ANSWER, SUM_CODE

STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)
"""What LangGraph's checkpoints are written and read with where `LANGGRAPH_STRICT_MSGPACK` is set."""


def as_served(value: Any) -> bytes:
    """Return what LangServe sends."""

    def default(item: Any) -> Any:
        if isinstance(item, BaseModel):
            return item.model_dump()
        raise TypeError(type(item))

    return orjson.dumps(value, default=default)


def writing(program: str) -> ScriptedModel:
    return ScriptedModel(lambda messages: program if asks_for_code(messages) else SUM_ANSWER)


class Reader(BaseCallbackHandler):
    """Serializes all that it is told."""

    raise_error = True

    def __init__(self) -> None:
        self.characters = 0
        self.keys: set[str] = set()

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.read(inputs)

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        self.read(outputs)

    def read(self, told: Any) -> None:
        values = told if isinstance(told, dict) else {"": told}
        self.keys |= values.keys()
        self.characters += len(json.dumps(as_json(values)))
        as_served(values)
        STRICT.dumps_typed(values)


def double(number: int) -> int:
    """Return twice a number."""
    return 2 * number


FEATURES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a question": ({}, {}),
    "tests": ({}, {"tests": "assert f(1) == 2"}),
    "examples": ({}, {"examples": [((1,), 2), ("a", "aa")]}),
    "files": ({}, {"files": {"a.csv": b"a,b\n1,2\n"}}),
    "a frame": ({}, {"variables": {"df": pd.DataFrame({"a": [1]}), "text": "\ud800"}}),
    "data in the question": ({}, {"query": "Sum a:\n```csv\na,b\n1,2\n3,4\n5,6\n```"}),
    "messages": (
        {},
        {"query": None, "messages": [HumanMessage("Hi"), AIMessage("Hi"), HumanMessage(QUESTION)]},
    ),
    "a type": ({"answer_type": int}, {}),
    "samples": ({"solve": Repair(1, samples=2)}, {}),
    "agreement": ({"verify": [Agreement()]}, {}),
    "a plan": ({"solve": Plan()}, {}),
    "cells": ({"solve": Iterate()}, {}),
    "tools": ({"tools": [double]}, {}),
    "snippets": ({"snippets": True}, {}),
}
PROGRAM = "def f(x): return x + x\nresult = sum(range(1, 6))"


@pytest.mark.parametrize("session", [None, "s"], ids=["alone", "in a session"])
@pytest.mark.parametrize("feature", FEATURES)
def test_what_callbacks_are_told_is_json(sandbox: SandboxExecutor, feature: str, session: str | None) -> None:
    options, more = FEATURES[feature]
    if session and feature in ("tests", "examples"):
        pytest.skip("tests need no session")
    inputs = {key: value for key, value in {"query": QUESTION, **more}.items() if value is not None}
    reader = Reader()
    config: Any = {"callbacks": [reader], "configurable": {"session_id": session} if session else {}}
    with create_code_chain(writing(PROGRAM), executor=sandbox, **options) as chain:
        chain.invoke(inputs, config)
        list(chain.stream(inputs, config))
    assert not reader.keys & {"answer_type", "session_state", "expectations"}


def test_the_events_of_a_question_are_few_characters(sandbox: SandboxExecutor) -> None:
    reader = Reader()
    with create_code_chain(writing(SUM_CODE), executor=sandbox) as chain:
        chain.invoke(QUESTION, {"callbacks": [reader]})
    assert reader.characters < 12_000


def test_figures_pass_through_servers(sandbox: SandboxExecutor) -> None:
    code = "open('a.png', 'wb').write(b'\\x89PNG')\nprint('done')"
    with create_code_chain(writing(code), executor=sandbox) as chain:
        result = chain.invoke("Draw it.")
    assert b"a.png" in as_served(result)
    assert result["execution"].artifacts[0].data == b"\x89PNG"


# -- chains go on from JSON ----------------------------------------------------------------------------------------------


def through_json(state: Any) -> Any:
    return json.loads(json.dumps(as_json(state)))


def through_a_server(state: Any) -> Any:
    return orjson.loads(as_served(state))


def through_a_checkpoint(state: Any) -> Any:
    return STRICT.loads_typed(STRICT.dumps_typed(dict(state)))


@pytest.fixture
def pieces(sandbox: SandboxExecutor) -> list[Chain]:
    model = writing(PROGRAM)
    return [
        GenerateChain(model=model),
        ValidateChain(),
        ExecuteChain(sandbox),
        EvaluateChain(executor=sandbox),
        InterpretChain(model=model),
    ]


@pytest.mark.parametrize("through", [dict, through_json, through_a_server, through_a_checkpoint])
@pytest.mark.parametrize("more", [{}, {"tests": "assert f(1) == 2"}, {"examples": [[1, 2]]}])
def test_each_piece_goes_on_from_what_is_left_of_the_state(
    pieces: list[Chain], through: Callable[[Any], Any], more: dict[str, Any]
) -> None:
    state: Any = {"query": QUESTION, **more}
    for piece in pieces:
        state = through(piece.invoke(state))
    expected = "verified" if more else "unverified"
    status = state["verdict"]["status"] if isinstance(state["verdict"], dict) else state["verdict"].status
    assert (state["output"], status, state["answer"]) == ("15", expected, SUM_ANSWER)


def test_examples_mean_the_same_as_json(sandbox: SandboxExecutor) -> None:
    code = "def f(x, y=0):\n    if x < 0: raise ValueError(x)\n    return x + y"
    examples = [((2, 3), 5), (4, 4), (-1, ValueError), {"args": [1], "kwargs": {"y": 1}, "expected": 2}]
    state = {"query": "Write f", "code": code, "examples": examples, "execution": sandbox.run(code)}
    assert EvaluateChain(executor=sandbox).invoke(through_json(state))["verdict"].status == "verified"


@pytest.mark.parametrize("name", ["NoError", "x y", "print", ""])
def test_an_exception_is_named_as_python_names_it(name: str) -> None:
    with pytest.raises(InputError, match="raises must be the name of a built-in exception"):
        expect(None, [{"args": [1], "raises": name}])


def test_pieces_stand_beside_stock_chains(pieces: list[Chain]) -> None:
    shout = TransformChain(
        input_variables=["answer"],
        output_variables=["loud"],
        transform=lambda values: {"loud": values["answer"].upper()},
    )
    stock = SequentialChain(chains=[*pieces, shout], input_variables=["query"], output_variables=["loud"])
    assert stock.invoke({"query": QUESTION})["loud"] == SUM_ANSWER.upper()


def test_a_graph_goes_on_from_its_checkpoint(pieces: list[Chain], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", "true")
    graph: Any = StateGraph(CodeState)
    names = ["write", "validate", "execute", "wait", "evaluate", "phrase"]
    for name, piece in zip([*names[:3], *names[4:]], pieces, strict=True):
        graph.add_node(name, piece)
    graph.add_node("wait", lambda state: {"context": interrupt("Go on?")})
    for first, second in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(first, second)
    saver = InMemorySaver(serde=STRICT)
    config: Any = {"configurable": {"thread_id": "a"}}
    graph.compile(checkpointer=saver).invoke({"query": QUESTION}, config)
    again = graph.compile(checkpointer=saver)
    assert again.invoke(Command(resume="yes"), config)["answer"] == SUM_ANSWER


@pytest.mark.parametrize("wrong", [{"status": 7}, {"status": "ok", "artifacts": 3}, {"other": 1}])
def test_what_is_no_record_is_refused_by_its_key(pieces: list[Chain], wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="execution is no record"):
        pieces[3].invoke({"query": QUESTION, "code": "1", "execution": wrong})
