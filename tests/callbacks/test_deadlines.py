"""Requests of which each piece comes in time, and the whole never."""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from code_chains import create_code_chain
from code_chains.callbacks.provider_errors import retry_after
from code_chains.testing import ScriptedExecutor, ScriptedModel


def slowly(messages: list[BaseMessage]) -> str:
    time.sleep(0.4)
    return "print(2 + 2)"


class Dripping(ScriptedModel):
    """A model that sends a blank now and then, and never ends."""

    def _stream(self, *_: Any, **__: Any) -> Iterator[Any]:
        from langchain_core.messages import AIMessageChunk
        from langchain_core.outputs import ChatGenerationChunk

        while True:
            time.sleep(0.02)
            yield ChatGenerationChunk(message=AIMessageChunk(content=" "))


@pytest.mark.parametrize("model", [ScriptedModel(slowly), Dripping(script=slowly)])
@pytest.mark.parametrize("ways", ["invoke", "stream"])
def test_a_request_has_a_limit_whatever_comes_meanwhile(model: ScriptedModel, ways: str) -> None:
    chain = create_code_chain(model, executor=ScriptedExecutor(lambda code: "4"))
    chain.request_timeout = 0.1
    began = time.monotonic()
    with chain, pytest.raises(TimeoutError, match=r"within 0\.1 seconds"):
        list(chain.stream("What is 2 + 2?")) if ways == "stream" else chain.invoke("What is 2 + 2?")
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("model", [ScriptedModel(slowly), Dripping(script=slowly)])
async def test_so_it_has_on_an_event_loop(model: ScriptedModel) -> None:
    chain = create_code_chain(model, executor=ScriptedExecutor(lambda code: "4"))
    chain.request_timeout = 0.1
    with chain, pytest.raises(TimeoutError, match=r"within 0\.1 seconds"):
        async for _ in chain.astream("What is 2 + 2?"):
            pass


class RefusedError(Exception):
    def __init__(self, told: str) -> None:
        self.response = SimpleNamespace(headers={"retry-after": told})


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("90", 90),
        ("1.5", 1.5),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("-5", 0),
        ("nan", 0),
        ("1e400", 0),
        ("soon", 0),
    ],
)
def test_how_long_a_provider_wants_to_be_left_alone(told: str, seconds: float) -> None:
    assert retry_after(RefusedError(told)) == seconds


def test_a_moment_until_which_a_provider_wants_to_be_left_alone() -> None:
    assert 50 < retry_after(RefusedError(formatdate(time.time() + 60, usegmt=True))) <= 60
