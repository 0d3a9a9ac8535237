"""Whether somebody listens to chains or not, they do the same, and accounts know of each run."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tracers.context import collect_runs

from code_chains import create_code_chain
from code_chains.assembly.code_chain import CodeChain
from code_chains.callbacks.usage import UsageMeter
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code

QUESTION = {"query": "What is 6 times 7?"}


class Listener(BaseCallbackHandler):
    """Hears of everything."""


class ModelsOnly(BaseCallbackHandler):
    """Hears of models alone."""

    ignore_chain = True

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.heard.append(kwargs)


class Counting(UsageMeter):
    """An account that looks at events of its own."""

    ends = 0

    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **kwargs: Any) -> None:
        super().on_chain_end(outputs, run_id=run_id, **kwargs)
        self.ends += 1


class Router(BaseChatModel):
    """A model that asks another one, without handing down its config."""

    @property
    def _llm_type(self) -> str:
        return "router"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=MODEL.invoke(messages))])


MODEL = ScriptedModel(
    lambda messages: "```python\nprint(6 * 7)\n```" if asks_for_code(messages) else "It is 42."
)


def made(model: BaseChatModel) -> CodeChain:
    return create_code_chain(model, executor=ScriptedExecutor(lambda code: "42"))


@pytest.fixture
def chain() -> CodeChain:
    return made(MODEL)


def _without_times(chunks: list[Any]) -> list[Any]:
    return [chunk for chunk in chunks if "execution" not in chunk]


def test_a_stream_is_the_same_whether_it_is_heard_or_not(chain: CodeChain) -> None:
    heard = _without_times(list(chain.stream(QUESTION, {"callbacks": [Listener()]})))
    assert _without_times(list(chain.stream(QUESTION))) == heard
    assert len(heard) > 5


async def test_so_is_an_async_one(chain: CodeChain) -> None:
    heard = [chunk async for chunk in chain.astream(QUESTION, {"callbacks": [Listener()]})]
    assert _without_times([chunk async for chunk in chain.astream(QUESTION)]) == _without_times(heard)


def test_who_hears_of_models_alone_hears_of_their_tags_and_parents(chain: CodeChain) -> None:
    ears, run = ModelsOnly(), UUID(int=7)
    chain.invoke(
        QUESTION, {"callbacks": [ears], "tags": ["lesson"], "metadata": {"reader": "ann"}, "run_id": run}
    )
    heard = [(told["tags"], told["metadata"]["reader"]) for told in ears.heard]
    assert heard == [(["lesson", "generate"], "ann"), (["lesson", "interpret"], "ann")]
    assert run not in {told["parent_run_id"] for told in ears.heard}  # Each is part of a stage.


@pytest.mark.parametrize("listeners", [[], [Listener()]])
def test_accounts_know_the_stages(chain: CodeChain, listeners: list[Any]) -> None:
    usage = chain.invoke(QUESTION, {"callbacks": listeners})["usage"]
    assert {name: stage["model_calls"] for name, stage in usage.by_stage.items()} == {
        "generate": 1,
        "interpret": 1,
    }


def test_accounts_are_told_of_the_end_of_a_stream_that_is_left(chain: CodeChain) -> None:
    meter = UsageMeter()
    stream = chain.stream(QUESTION, {"callbacks": [meter]})
    next(chunk for chunk in stream if "answer" in chunk)
    stream.close()  # type: ignore[attr-defined]  # It is a generator.
    assert meter._names == {}


def test_accounts_with_events_of_their_own_are_told_by_events(chain: CodeChain) -> None:
    meter = Counting()
    chain.invoke(QUESTION, {"callbacks": [meter]})
    assert meter.ends == 9


def test_a_model_within_a_model_is_counted_in_a_stream() -> None:
    usage = next(chunk["usage"] for chunk in made(Router()).stream(QUESTION) if "usage" in chunk)
    assert usage.model_calls == 4


async def test_a_model_within_a_model_is_counted_in_an_async_stream() -> None:
    usage = [chunk["usage"] async for chunk in made(Router()).astream(QUESTION) if "usage" in chunk]
    assert usage[0].model_calls == 4


def test_a_stream_may_be_read_in_one_context_after_another(chain: CodeChain) -> None:
    stream = chain.stream(QUESTION)
    chunks = [chunk for _ in range(20) if (chunk := copy_context().run(next, stream, None))]
    assert "".join(chunk.get("answer", "") for chunk in chunks) == "It is 42."


def test_collected_runs_have_their_stages(chain: CodeChain) -> None:
    with collect_runs() as collected:
        list(chain.stream(QUESTION))
    whole = next(run for run in collected.traced_runs if run.name == "code_chain")
    assert [stage.name for stage in whole.child_runs] == ["language", "repair", "interpret"]
