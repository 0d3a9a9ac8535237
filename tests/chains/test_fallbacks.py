"""A chain falls back to another one in each way of calling it, as nothing is shown before a model has replied."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableLambda

from code_chains import Data, GeneratedTests, Iterate, Language, Plan, SandboxExecutor, create_code_chain
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import QUESTION, SUM_ANSWER, SUM_CODE

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "snippets": {"snippets": True},
    "a plan": {"solve": Plan()},
    "cells": {"solve": Iterate()},
    "tests": {"verify": [GeneratedTests()]},
    "translated": {"language": Language(translate=True)},
    "without data": {"data": Data(profile=False, paste=False)},
}


def down(messages: list[Any]) -> str:
    raise ConnectionError("The provider is down.")


def up() -> BaseChatModel:
    return ScriptedModel(lambda messages: SUM_CODE if asks_for_code(messages) else SUM_ANSWER)


def falling_back(sandbox: SandboxExecutor, **options: Any) -> Runnable[Any, Any]:
    first = create_code_chain(ScriptedModel(down), executor=sandbox, **options)
    return first.with_fallbacks([create_code_chain(up(), executor=sandbox, **options)])


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
async def test_streams_fall_back(sandbox: SandboxExecutor, options: dict[str, Any]) -> None:
    chain = falling_back(sandbox, **options)
    inputs = {"query": QUESTION, "files": {"a.csv": b"a\n1\n"}}
    expected = chain.invoke(inputs)["output"]
    assert reduce(add, chain.stream(inputs))["output"] == expected
    assert reduce(add, [chunk async for chunk in chain.astream(inputs)])["output"] == expected


async def test_events_and_pipelines_fall_back(sandbox: SandboxExecutor) -> None:
    chain = falling_back(sandbox)
    events = [event async for event in chain.astream_events(QUESTION, version="v2")]
    assert events[-1]["data"]["output"]["answer"] == SUM_ANSWER
    piped = RunnableLambda(str.strip) | chain | (lambda result: result["answer"])
    assert "".join(piped.stream(QUESTION)) == SUM_ANSWER


def test_the_first_chunk_of_a_question_comes_with_its_program(sandbox: SandboxExecutor) -> None:
    asked = list[str]()

    def reply(messages: list[Any]) -> str:
        asked.append("asked")
        return SUM_CODE if asks_for_code(messages) else SUM_ANSWER

    chunks = create_code_chain(ScriptedModel(reply), executor=sandbox).stream(QUESTION)
    assert next(chunks) == {"query": QUESTION}
    assert asked == ["asked"]
