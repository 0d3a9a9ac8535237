"""What a chain promises, whatever class it stands on: langchain-classic's `Chain`, or a hundred lines in its place."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_classic.base_memory import BaseMemory
from langchain_classic.chains.base import Chain
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableLambda
from pydantic import Field

from code_chains import CodeChain, Repair, create_code_chain
from code_chains.chains.base import StreamingSequentialChain, StreamingTransformChain
from code_chains.errors import InputError
from code_chains.records import ErrorReport, Execution
from code_chains.testing import ScriptedExecutor, ScriptedModel
from tests.conftest import ROOT

QUESTION = {"query": "What is 6 times 7?"}


def reply(messages: list[BaseMessage]) -> str:
    """Return a program, of which the first fails, and then its result in words."""
    text = "\n".join(str(message.text) for message in messages)
    if "Output of the program" in text:
        return "It is 42."
    return "print(6 * 7)" if "NameError" in text else "print(6 * n)"


def run(code: str) -> Execution | str:
    error = ErrorReport("NameError", "name 'n' is not defined", 1)
    return Execution("error", error=error) if "n)" in code else "42"


@pytest.fixture
def chain() -> Iterator[CodeChain]:
    with create_code_chain(
        ScriptedModel(reply), executor=ScriptedExecutor(run), checks="none", solve=Repair(2)
    ) as chain:
        yield chain


def shown(result: Any) -> dict[str, Any]:
    """Return what does not differ between runs."""
    return {key: result[key] for key in ("query", "output", "answer", "stop_reason", "programs")}


def test_the_chunks_of_a_stream_add_up_to_what_invoke_returns(chain: CodeChain) -> None:
    assert isinstance(chain, Chain)
    whole = chain.invoke(QUESTION)
    assert whole["answer"] == "It is 42."
    assert shown(reduce(add, chain.stream(QUESTION))) == shown(whole)


def test_async_equals_sync(chain: CodeChain) -> None:
    async def chunks() -> Any:
        return reduce(add, [chunk async for chunk in chain.astream(QUESTION)])

    whole = shown(chain.invoke(QUESTION))
    assert shown(asyncio.run(chain.ainvoke(QUESTION))) == whole
    assert shown(asyncio.run(chunks())) == whole


def test_a_batch_is_answered_in_order(chain: CodeChain) -> None:
    results = chain.batch([QUESTION, {"query": "And 7 times 6?"}])
    assert [result["query"] for result in results] == ["What is 6 times 7?", "And 7 times 6?"]


def test_a_missing_input_is_named_before_anything_runs(chain: CodeChain) -> None:
    with pytest.raises(InputError, match="query"):
        chain.invoke({})


def test_runs_are_traced_as_a_tree(chain: CodeChain) -> None:
    class Names(BaseCallbackHandler):
        def __init__(self) -> None:
            self.names: list[str] = []

        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            self.names.append(kwargs["name"])

    names = Names()
    chain.invoke(QUESTION, {"callbacks": [names]})
    assert names.names[0] == "code_chain"
    assert {"repair", "attempt", "generate", "execute", "interpret"} <= set(names.names)


def test_chains_compose_in_sequences_and_pipelines(chain: CodeChain) -> None:
    shout = StreamingTransformChain(
        input_variables=["answer"],
        output_variables=["loud"],
        transform=lambda state: {"loud": state["answer"].upper()},
    )
    sequence = StreamingSequentialChain(chains=[chain, shout], input_variables=["query"])
    assert sequence.invoke(QUESTION)["loud"] == "IT IS 42."
    assert (chain | RunnableLambda(lambda state: state["answer"])).invoke(QUESTION) == "It is 42."
    assert chain.with_keys(answer="text").invoke(QUESTION)["text"] == "It is 42."


def test_a_chain_is_a_tool(chain: CodeChain) -> None:
    assert "It is 42." in chain.as_tool().invoke({"query": "What is 6 times 7?"})


def test_a_memory_adds_what_it_holds_and_is_told_the_outcome() -> None:
    class Memory(BaseMemory):
        saved: list[Any] = Field(default_factory=list)

        @property
        def memory_variables(self) -> list[str]:
            return ["given"]

        def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
            return {"given": "n"}

        def save_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
            self.saved.append(outputs)

        def clear(self) -> None:
            self.saved.clear()

    memory = Memory()
    double = StreamingTransformChain(
        input_variables=["word"],
        output_variables=["both"],
        transform=lambda state: {"both": state["word"] + state["given"]},
        memory=memory,
    )
    assert double.invoke({"word": "o"})["both"] == "on"
    assert memory.saved == [{"both": "on"}]


@pytest.mark.slow
@pytest.mark.skipif("CODE_CHAINS_CONTRACT" in os.environ, reason="it is this run")
def test_all_this_holds_without_langchain_classic() -> None:
    start = (
        "from tests.support.without_classic import install; install(); "
        "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
    )
    rewriting = "ignore::pytest.PytestAssertRewriteWarning"
    options = ["-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider", "-W", rewriting, "-m", ""]
    command = [sys.executable, "-c", start, *options, __file__]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "CODE_CHAINS_CONTRACT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "8 passed" in done.stdout
