"""The chain in other apps: a web service over HTTP, pipes, LangChain's chains, callbacks."""

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
from code_chains.apps.progress import STAGE_LABELS
from code_chains.testing import ScriptedModel, asks_for_code

from .conftest import QUESTION, ROOT, SUM_ANSWER, at_rest, descendants, soon


def script(messages: list[BaseMessage]) -> str:
    if not asks_for_code(messages):
        return SUM_ANSWER
    return (
        "import time\nwhile True: time.sleep(0.1)" if "endless" in messages[-1].text else "print('Sum:', 15)"
    )


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
    yield from run_server(module.create_app(chain))


def run_server(app: FastAPI) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    assert soon(lambda: server.started, 20)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_a_service_streams_events(address: str) -> None:
    events: dict[str, Any] = {}
    with httpx.stream("GET", f"{address}/answer", params={"query": QUESTION}, timeout=30) as response:
        lines = [line for line in response.iter_lines() if line]
    for kind, data in zip(lines[::2], lines[1::2], strict=True):
        value = json.loads(data.removeprefix("data: "))
        key = kind.removeprefix("event: ")
        events[key] = events[key] + value if isinstance(value, str) and key in events else value
    assert (events["output"], events["answer"], events["verdict"]["status"]) == (
        "Sum: 15",
        SUM_ANSWER,
        "unverified",
    )


def test_a_disconnecting_client_ends_the_program(address: str, sandbox: SandboxExecutor) -> None:
    sandbox.run("1")
    idle, start = at_rest(), time.monotonic()
    with httpx.stream("GET", f"{address}/answer", params={"query": "endless"}, timeout=30):
        assert soon(lambda: len(descendants()) > idle)
    assert soon(lambda: len(descendants()) <= idle)
    assert time.monotonic() - start < sandbox.limits.seconds


def test_an_invalid_question_is_status_422(address: str) -> None:
    response = httpx.get(f"{address}/answer", params={"query": " "})
    assert (response.status_code, "empty" in response.text) == (422, True)


# -- pipes and LangChain's chains --------------------------------------------------------------------------------------


def test_a_chain_works_in_a_pipe_between_prompt_and_parser(chain: CodeChain) -> None:
    prompt = ChatPromptTemplate.from_template("Say briefly: {answer}")
    shout = ScriptedModel(lambda messages: str(messages[-1].text).upper())
    pipe: Runnable[Any, str] = RunnablePassthrough() | chain | prompt | shout | StrOutputParser()
    assert pipe.invoke(QUESTION) == f"SAY BRIEFLY: {SUM_ANSWER.upper()}"


def test_a_chain_works_in_assign(chain: CodeChain) -> None:
    result = RunnablePassthrough.assign(sum=chain | (lambda result: result["output"])).invoke(
        {"query": QUESTION}
    )
    assert result == {"query": QUESTION, "sum": "Sum: 15"}


async def test_a_chain_works_in_a_sequential_chain(chain: CodeChain) -> None:
    ask = TransformChain(
        input_variables=["topic"],
        output_variables=["query"],
        transform=lambda inputs: {"query": f"Sum of {inputs['topic']}?"},
    )
    shout = TransformChain(
        input_variables=["answer"],
        output_variables=["loud"],
        transform=lambda inputs: {"loud": inputs["answer"].upper()},
    )
    sequence = SequentialChain(
        chains=[ask, chain, shout], input_variables=["topic"], output_variables=["loud", "code"]
    )
    assert (await sequence.ainvoke({"topic": "1 to 5"}))["loud"] == SUM_ANSWER.upper()


# -- callbacks for progress ----------------------------------------------------------------------------------------------


class NameRecorder(BaseCallbackHandler):
    def __init__(self) -> None:
        self.names: list[str] = []

    def on_chain_start(self, serialized: dict[str, Any], inputs: dict[str, Any], **kwargs: Any) -> None:
        self.names.append(str(kwargs.get("name")))


@pytest.mark.parametrize("method", ["invoke", "stream", "batch"])
def test_callbacks_receive_the_names_of_stages(chain: CodeChain, method: str) -> None:
    recorder = NameRecorder()
    if method == "stream":
        list(chain.stream(QUESTION, {"callbacks": [recorder]}))
    elif method == "batch":
        chain.batch([{"query": QUESTION}], {"callbacks": [recorder]})
    else:
        chain.invoke(QUESTION, {"callbacks": [recorder]})
    expected = ["generate", "validate", "execute", "evaluate", "interpret"]
    assert [name for name in recorder.names if name in STAGE_LABELS] == expected
