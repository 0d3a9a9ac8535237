"""The chain in other people's apps: a web service over real HTTP, pipes, stock chains, callbacks."""

from __future__ import annotations

import importlib.util
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from langchain_classic.chains import SequentialChain, TransformChain
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnablePassthrough

from code_chains import CodeChain, SandboxExecutor, create_code_chain
from code_chains.progress import DOING
from code_chains.testing import ScriptedModel, asks_for_code

from .conftest import QUESTION, ROOT, SUM_ANSWER, at_rest, descendants, soon


def script(messages: list[BaseMessage]) -> str:
    if not asks_for_code(messages):
        return SUM_ANSWER
    return "import time\nwhile True: time.sleep(0.1)" if "endless" in messages[-1].text else "print('Sum:', 15)"


@pytest.fixture
def chain(sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    with create_code_chain(ScriptedModel(script), executor=sandbox, max_attempts=1) as chain:
        yield chain


# -- a web service: examples/web_service.py ------------------------------------------------------------------------------


@pytest.fixture
def address(chain: CodeChain) -> Iterator[str]:
    spec = importlib.util.spec_from_file_location("web_service", ROOT / "examples" / "web_service.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield from served(module.create_app(chain))


def served(app: FastAPI) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    assert soon(lambda: server.started, 20)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_a_service_streams_events(address: str) -> None:
    told: dict[str, Any] = {}
    with httpx.stream("GET", f"{address}/answer", params={"query": QUESTION}, timeout=30) as response:
        lines = [line for line in response.iter_lines() if line]
    for kind, data in zip(lines[::2], lines[1::2], strict=True):
        value = json.loads(data.removeprefix("data: "))
        key = kind.removeprefix("event: ")
        told[key] = told[key] + value if isinstance(value, str) and key in told else value
    assert (told["output"], told["answer"], told["verdict"]["status"]) == ("Sum: 15", SUM_ANSWER, "unverified")


def test_a_reader_who_leaves_ends_the_program(address: str, sandbox: SandboxExecutor) -> None:
    sandbox.run("1")
    idle, began = at_rest(), time.monotonic()
    with httpx.stream("GET", f"{address}/answer", params={"query": "endless"}, timeout=30):
        assert soon(lambda: len(descendants()) > idle)
    assert soon(lambda: len(descendants()) <= idle)
    assert time.monotonic() - began < sandbox.limits.seconds


def test_a_question_that_is_none_is_a_status(address: str) -> None:
    response = httpx.get(f"{address}/answer", params={"query": " "})
    assert (response.status_code, "empty" in response.text) == (422, True)


# -- pipes and stock chains ----------------------------------------------------------------------------------------------


def test_it_stands_in_a_pipe_between_a_prompt_and_a_parser(chain: CodeChain) -> None:
    asking = ChatPromptTemplate.from_template("Say briefly: {answer}")
    shout = ScriptedModel(lambda messages: str(messages[-1].text).upper())
    pipe: Runnable[Any, str] = RunnablePassthrough() | chain | asking | shout | StrOutputParser()
    assert pipe.invoke(QUESTION) == f"SAY BRIEFLY: {SUM_ANSWER.upper()}"


def test_it_is_a_value_of_assign(chain: CodeChain) -> None:
    worked = RunnablePassthrough.assign(sum=chain | (lambda result: result["output"])).invoke({"query": QUESTION})
    assert worked == {"query": QUESTION, "sum": "Sum: 15"}


async def test_it_stands_in_a_stock_sequence_with_transforms(chain: CodeChain) -> None:
    ask = TransformChain(
        input_variables=["topic"],
        output_variables=["query"],
        transform=lambda said: {"query": f"Sum of {said['topic']}?"},
    )
    shout = TransformChain(
        input_variables=["answer"], output_variables=["loud"], transform=lambda said: {"loud": said["answer"].upper()}
    )
    stock = SequentialChain(chains=[ask, chain, shout], input_variables=["topic"], output_variables=["loud", "code"])
    assert (await stock.ainvoke({"topic": "1 to 5"}))["loud"] == SUM_ANSWER.upper()


# -- callbacks for progress ----------------------------------------------------------------------------------------------


class Names(BaseCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_chain_start(self, serialized: dict[str, Any], inputs: dict[str, Any], **kwargs: Any) -> None:
        self.seen.append(str(kwargs.get("name")))


@pytest.mark.parametrize("way", ["invoke", "stream", "batch"])
def test_stages_begin_under_their_names(chain: CodeChain, way: str) -> None:
    names = Names()
    if way == "stream":
        list(chain.stream(QUESTION, {"callbacks": [names]}))
    elif way == "batch":
        chain.batch([{"query": QUESTION}], {"callbacks": [names]})
    else:
        chain.invoke(QUESTION, {"callbacks": [names]})
    expected = ["generate", "validate", "execute", "evaluate", "interpret"]
    assert [name for name in names.seen if name in DOING] == expected
