"""The streaming base: each promise of a Runnable, and each pitfall of getting there."""

from __future__ import annotations

import asyncio
import functools
import operator
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_classic.base_memory import BaseMemory
from langchain_classic.chains import SequentialChain
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import ConfigurableField, RunnableGenerator, RunnableLambda, ensure_config
from langchain_core.runnables.utils import AddableDict

from code_chains.chains.base import (
    Config,
    Flow,
    Invoke,
    RunFunction,
    State,
    StreamingChain,
    StreamingSequentialChain,
    StreamingTransformChain,
)
from code_chains.errors import ConfigurationError, InputError
from code_chains.testing import ScriptedModel


class Tell(StreamingChain):
    """query -> answer, by a model."""

    input_keys: ClassVar[list[str]] = ["query"]
    output_keys: ClassVar[list[str]] = ["answer"]

    name: str | None = "tell"
    model: Any
    suffix: str = ""

    def _flow(self, values: State, config: Config) -> Flow:
        yield Invoke(self.model, values["query"], config, lambda chunk: {"answer": chunk.text})
        if self.suffix:
            yield {"answer": self.suffix}


def shout(state: State) -> State:
    return {"loud": state["answer"].upper()}


ECHO = ScriptedModel(lambda messages: f"you said {messages[-1].text}")


@pytest.fixture
def tell() -> Tell:
    return Tell(model=ECHO)


@pytest.fixture
def both(tell: Tell) -> StreamingSequentialChain:
    loud = StreamingTransformChain(
        input_variables=["answer"], output_variables=["loud"], transform=shout, name="shout"
    )
    return StreamingSequentialChain(
        chains=[tell, loud], input_variables=["query"], output_variables=["answer", "loud"]
    )


def total(chunks: Iterator[State]) -> State:
    return dict(functools.reduce(operator.add, chunks, AddableDict()))


async def atotal(chunks: AsyncIterator[State]) -> State:
    return total(iter([chunk async for chunk in chunks]))


class Recorder(BaseCallbackHandler):
    """Names, tags, metadata and outcomes of runs."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.ended: list[Any] = []
        self.errors: list[str] = []
        self.tags: list[list[str]] = []
        self.metadata: list[dict[str, Any]] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.started.append(kwargs["name"])
        self.tags.append(kwargs["tags"])
        self.metadata.append(kwargs["metadata"])

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.started.append("model")

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        self.ended.append(outputs)

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        self.errors.append(type(error).__name__)


@given(query=st.text(min_size=1), suffix=st.text())
def test_chunks_add_up_to_invoke(query: str, suffix: str) -> None:
    chain = Tell(model=ECHO, suffix=suffix)
    assert total(chain.stream({"query": query})) == chain.invoke({"query": query})


@given(query=st.text(min_size=1))
def test_async_equals_sync(query: str) -> None:
    async def check() -> None:
        chain = Tell(model=ECHO)
        expected = chain.invoke({"query": query})
        assert await chain.ainvoke({"query": query}) == expected
        assert await atotal(chain.astream({"query": query})) == expected

    asyncio.run(check())


def test_invoke_returns_inputs_and_outputs(both: StreamingSequentialChain) -> None:
    assert both.invoke({"query": "hi"}) == {"query": "hi", "answer": "you said hi", "loud": "YOU SAID HI"}


def test_only_the_outputs_on_request(both: StreamingSequentialChain) -> None:
    outputs = both.invoke({"query": "hi"}, return_only_outputs=True)
    assert outputs == total(both.stream({"query": "hi"}, return_only_outputs=True)) == {
        "answer": "you said hi",
        "loud": "YOU SAID HI",
    }  # fmt: skip


def test_a_lone_text_stands_for_the_single_input(tell: Tell) -> None:
    assert tell.invoke("hi")["answer"] == "you said hi"


def test_a_sequence_streams_what_each_of_its_chains_streams(both: StreamingSequentialChain) -> None:
    chunks = [dict(chunk) for chunk in both.stream({"query": "hi"})]
    assert chunks[:4] == [{"query": "hi"}, {"answer": "you "}, {"answer": "said "}, {"answer": "hi"}]
    assert chunks[-1] == {"loud": "YOU SAID HI"}


async def test_batches_keep_their_order(both: StreamingSequentialChain) -> None:
    queries = [{"query": str(number)} for number in range(20)]
    expected = [f"you said {number}" for number in range(20)]
    assert [result["answer"] for result in both.batch(queries)] == expected
    assert [result["answer"] for result in await both.abatch(queries)] == expected


async def test_every_stage_and_token_is_an_event_to_the_very_end(both: StreamingSequentialChain) -> None:
    events = [
        (event["event"], event["name"]) async for event in both.astream_events({"query": "hi"}, version="v2")
    ]
    assert {name for _, name in events} == {"StreamingSequentialChain", "tell", "ScriptedModel", "shout"}
    assert ("on_chat_model_stream", "ScriptedModel") in events
    assert events[-1] == ("on_chain_end", "StreamingSequentialChain")


async def test_a_run_name_is_the_roots_alone(both: StreamingSequentialChain) -> None:
    config: Config = {"run_name": "mine"}
    names = [
        event["name"]
        async for event in both.astream_events({"query": "hi"}, config, version="v2")
        if event["event"] == "on_chain_start"
    ]
    assert names == ["mine", "tell", "shout"]


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_callbacks_tags_and_metadata_reach_every_stage(
    both: StreamingSequentialChain, way: str
) -> None:
    recorder = Recorder()
    config: Config = {"callbacks": [recorder], "tags": ["t"], "metadata": {"m": 1}, "run_name": "root"}
    await run(both, way, {"query": "hi"}, config)
    assert recorder.started == ["root", "tell", "model", "shout"]
    assert all("t" in tags for tags in recorder.tags)
    assert all(metadata["m"] == 1 for metadata in recorder.metadata)


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_constructor_callbacks_see_their_own_chain_alone(way: str) -> None:
    recorder = Recorder()
    inner = Tell(model=ECHO)
    outer = StreamingSequentialChain(
        chains=[inner], input_variables=["query"], callbacks=[recorder], tags=["own"], name="outer"
    )
    await run(outer, way, {"query": "hi"}, {})
    assert (recorder.started, recorder.tags) == (["outer"], [["own"]])


async def run(chain: Any, way: str, value: Any, config: Config) -> Any:
    if way == "invoke":
        return chain.invoke(value, config)
    if way == "ainvoke":
        return await chain.ainvoke(value, config)
    if way == "stream":
        return total(chain.stream(value, config))
    return await atotal(chain.astream(value, config))


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_configurable_reaches_a_function_deep_inside(way: str) -> None:
    def who(state: State) -> State:
        return {"who": ensure_config()["configurable"].get("session_id")}

    deep = StreamingTransformChain(input_variables=["query"], output_variables=["who"], transform=who)
    chain = StreamingSequentialChain(chains=[deep], input_variables=["query"])
    result = await run(chain, way, {"query": "?"}, {"configurable": {"session_id": "ann"}})
    assert result["who"] == "ann"


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_a_model_inside_a_function_is_traced(way: str) -> None:
    recorder = Recorder()
    ask = StreamingTransformChain(
        input_variables=["query"],
        output_variables=["answer"],
        transform=lambda state: {"answer": ECHO.invoke(state["query"]).text},
    )
    await run(ask, way, {"query": "hi"}, {"callbacks": [recorder]})
    assert recorder.started == ["StreamingTransformChain", "model"]


@pytest.mark.parametrize("way", ["ainvoke", "astream"])
async def test_a_blocking_function_does_not_block_the_loop(way: str) -> None:
    def nap(state: State) -> State:
        time.sleep(0.5)
        return {"rested": True}

    longest = asyncio.create_task(longest_gap(0.45))
    await run(
        StreamingTransformChain(input_variables=["query"], output_variables=["rested"], transform=nap),
        way,
        {"query": ""},
        {},
    )
    assert await longest < 0.3


async def longest_gap(seconds: float) -> float:
    gap, began = 0.0, time.monotonic()
    while time.monotonic() - began < seconds:
        before = time.monotonic()
        await asyncio.sleep(0.005)
        gap = max(gap, time.monotonic() - before)
    return gap


def test_it_works_in_a_stock_sequential_chain(tell: Tell) -> None:
    loud = StreamingTransformChain(input_variables=["answer"], output_variables=["loud"], transform=shout)
    stock = SequentialChain(chains=[tell, loud], input_variables=["query"], output_variables=["loud"])
    assert stock.invoke({"query": "hi"})["loud"] == "YOU SAID HI"


def test_it_streams_through_a_pipe(tell: Tell) -> None:
    def capitals(chunks: Iterator[State]) -> Iterator[str]:
        for chunk in chunks:
            yield chunk.get("answer", "").upper()

    assert list((tell | RunnableGenerator(capitals)).stream({"query": "hi"}))[1:4] == ["YOU ", "SAID ", "HI"]


def test_a_function_behind_a_pipe_receives_the_whole_dict(tell: Tell) -> None:
    pipe = tell | RunnableLambda(lambda state: state["answer"] + "!")
    assert list(pipe.stream({"query": "hi"})) == ["you said hi!"]


class Notebook(BaseMemory):
    """Remembers answers."""

    saved: list[str] = []  # noqa: RUF012 - pydantic copies it

    @property
    def memory_variables(self) -> list[str]:
        return ["history"]

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"history": " ".join(self.saved)}

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, str]) -> None:
        self.saved.append(outputs["answer"])

    def clear(self) -> None:
        self.saved.clear()


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_memory_is_loaded_and_saved(way: str) -> None:
    chain = Tell(model=ECHO, memory=Notebook())
    await run(chain, way, {"query": "one"}, {})
    assert (await run(chain, way, {"query": "two"}, {}))["history"] == "you said one"


def test_memory_saves_nothing_of_an_abandoned_stream(tell: Tell) -> None:
    memory = Notebook()
    stream = Tell(model=ECHO, memory=memory).stream({"query": "hi"})
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert memory.saved == []


def test_with_retry_repeats_the_call() -> None:
    calls: list[int] = []

    def flaky(state: State) -> State:
        calls.append(1)
        if len(calls) < 3:
            raise OSError("not yet")
        return {"done": True}

    chain = StreamingTransformChain(input_variables=["query"], output_variables=["done"], transform=flaky)
    assert (
        chain.with_retry(stop_after_attempt=3, wait_exponential_jitter=False).invoke({"query": ""})["done"]
        is True
    )


def test_a_fallback_takes_over(tell: Tell) -> None:
    def broken(state: State) -> State:
        raise OSError("down")

    chain = StreamingTransformChain(input_variables=["query"], output_variables=["answer"], transform=broken)
    assert chain.with_fallbacks([tell]).invoke({"query": "hi"})["answer"] == "you said hi"


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_an_error_of_a_stage_is_raised_and_traced(way: str) -> None:
    def broken(state: State) -> State:
        raise OSError("down")

    recorder = Recorder()
    chain = StreamingSequentialChain(
        chains=[StreamingTransformChain(input_variables=["query"], output_variables=["x"], transform=broken)],
        input_variables=["query"],
    )
    with pytest.raises(OSError, match="down"):
        await run(chain, way, {"query": ""}, {"callbacks": [recorder]})
    assert recorder.errors == ["OSError", "OSError"]


def test_a_flow_may_catch_the_error_of_an_effect() -> None:
    class Careful(Tell):
        def _flow(self, values: State, config: Config) -> Flow:
            try:
                yield RunFunction(lambda value: 1 / value, 0, config)
            except ZeroDivisionError:
                yield {"answer": "caught"}

    assert Careful(model=ECHO).invoke("x")["answer"] == "caught"


def test_as_tool_has_typed_arguments(tell: Tell) -> None:
    tool = tell.as_tool(name="tell", description="tells")
    assert tool.args["query"]["type"] == "string"
    assert tool.invoke({"query": "hi"}) == "you said hi"


def test_schemas_have_real_types(both: StreamingSequentialChain) -> None:
    assert both.get_input_schema().model_json_schema()["properties"]["query"]["type"] == "string"
    assert both.get_output_schema().model_json_schema()["properties"]["answer"]["type"] == "string"


def test_the_graph_draws_the_stages(both: StreamingSequentialChain) -> None:
    assert "tell --> shout" in both.get_graph().draw_mermaid()


def test_a_field_can_be_made_configurable(tell: Tell) -> None:
    chain = tell.configurable_fields(suffix=ConfigurableField(id="suffix"))
    assert chain.with_config(configurable={"suffix": "!"}).invoke({"query": "hi"})["answer"] == "you said hi!"


@pytest.mark.parametrize("way", ["invoke", "stream"])
async def test_a_missing_key_is_named(both: StreamingSequentialChain, way: str) -> None:
    with pytest.raises(InputError, match="query"):
        await run(both, way, {"question": "hi"}, {})


async def test_cancelling_stops_what_it_is_waiting_for() -> None:
    ended: list[bool] = []

    async def wait(state: State) -> State:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)
        return {}

    chain = StreamingTransformChain(
        input_variables=["query"], output_variables=["x"], transform=shout, atransform=wait
    )
    task = asyncio.create_task(chain.ainvoke({"query": ""}))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


async def test_abandoning_a_stream_ends_its_runs(both: StreamingSequentialChain) -> None:
    recorder = Recorder()
    stream = both.astream({"query": "hi"}, {"callbacks": [recorder]})
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    assert len(recorder.ended) + len(recorder.errors) == len([n for n in recorder.started if n != "model"])


OVERLAPS = {
    "replaces its input": (["text"], lambda state: {"text": state["text"].upper()}),
    "gives back its inputs too": (["n"], lambda state: {**state, "n": 1}),
    "changes what it was given": (["n"], lambda state: state.update(n=3) or state),
}


@pytest.mark.parametrize(("outputs", "transform"), OVERLAPS.values(), ids=OVERLAPS.keys())
@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_keys_that_are_input_and_output_do_not_add_up(
    outputs: list[str], transform: Any, way: str
) -> None:
    chain = StreamingTransformChain(input_variables=["text"], output_variables=outputs, transform=transform)
    given = {"text": "abc", "n": 2}
    expected = chain.invoke(dict(given))
    assert await run(chain, way, given, {}) == expected
    assert given == {"text": "abc", "n": 2}


def test_a_function_that_returns_no_dict_is_named() -> None:
    def nothing(state: State) -> State:
        return None  # type: ignore[return-value]

    with pytest.raises(ConfigurationError, match="nothing"):
        StreamingTransformChain(input_variables=["query"], output_variables=["x"], transform=nothing).invoke(
            "?"
        )


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_a_missing_output_is_an_error_of_the_run(way: str) -> None:
    recorder = Recorder()
    chain = StreamingTransformChain(
        input_variables=["query"], output_variables=["x"], transform=lambda state: {}
    )
    with pytest.raises(ValueError, match="x"):
        await run(chain, way, {"query": "?"}, {"callbacks": [recorder]})
    assert recorder.errors == ["ValueError"]
