"""The chain in other apps: a web service over HTTP, pipes, LangChain's chains, callbacks."""

from __future__ import annotations

import importlib.util
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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

from code_chains import CodeChain, Repair, SandboxExecutor, create_code_chain
from code_chains.apps.run_view import STAGE_LABELS
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import QUESTION, ROOT, SUM_ANSWER, at_rest, descendants, soon

PROGRAMS = {
    "endless": "import time\nwhile True: time.sleep(0.1)",
    "prints, endless": "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.1)",
    "list files": "import os\nprint(sorted(os.listdir()))",
}


def script(messages: list[BaseMessage]) -> str:
    question = str(messages[-1].text).rpartition("\n\n")[2]
    if question == "no key":
        raise RuntimeError("401: the key sk-1 is wrong")
    if not asks_for_code(messages):
        return SUM_ANSWER
    return PROGRAMS.get(question, "print('Sum:', 15)")


@pytest.fixture
def chain(sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    with create_code_chain(ScriptedModel(script), executor=sandbox, solve=Repair(1)) as chain:
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


def events_of(response: httpx.Response) -> list[tuple[str, Any]]:
    """Return kind and data of each event."""
    lines = [line for line in response.iter_lines() if line]
    return [
        (kind.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for kind, data in zip(lines[::2], lines[1::2], strict=True)
    ]


def ask(address: str, query: str = QUESTION, **options: Any) -> list[tuple[str, Any]]:
    method = "POST" if options else "GET"
    question = {"data": {"query": query}, **options} if options else {"params": {"query": query}}
    with httpx.stream(method, f"{address}/events", timeout=60, **question) as response:
        assert response.status_code == 200
        return events_of(response)


def joined(events: list[tuple[str, Any]], kind: str) -> str:
    return "".join(data for key, data in events if key == kind)


def test_a_service_streams_stages_program_output_verdict_and_answer(address: str) -> None:
    events = ask(address)
    kinds = [kind for kind, _ in events]
    assert kinds[:2] == ["stage", "programs"]
    assert kinds.index("programs") < kinds.index("stdout") < kinds.index("verdict") < kinds.index("answer")
    assert joined(events, "stdout") == "Sum: 15\n"
    assert joined(events, "answer") == SUM_ANSWER
    assert [data["status"] for kind, data in events if kind == "verdict"] == ["unverified"]


def test_no_event_is_empty(address: str) -> None:
    assert all(data for _, data in ask(address))


@pytest.mark.host
def test_what_a_program_prints_arrives_while_it_runs(address: str) -> None:
    with httpx.stream(
        "GET", f"{address}/events", params={"query": "prints, endless"}, timeout=30
    ) as response:
        for line in response.iter_lines():
            if line == 'data: "begun\\n"':
                return
    raise AssertionError("Nothing arrived before the end.")


def test_an_error_of_the_model_is_an_event_without_its_words(address: str) -> None:
    events = ask(address, "no key")
    assert events[-1] == ("error", "The model is not available. Try again later.")
    assert "401" not in str(events)


def test_an_error_of_the_model_is_status_502(address: str) -> None:
    response = httpx.post(f"{address}/answer", data={"query": "no key"}, timeout=30)
    assert (response.status_code, "401" in response.text) == (502, False)


FILES = [("files", ("a b.csv", b"n\n\xff")), ("files", ("é.txt", b"text"))]


def test_uploads_are_files_of_the_program(address: str) -> None:
    assert joined(ask(address, "list files", files=FILES), "stdout") == "['a b.csv', 'é.txt']\n"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 400),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"content-length": str(21 << 20)}, 413),
        ({"transfer-encoding": "chunked"}, 411),
    ],
)
def test_pages_of_other_sites_and_large_bodies_are_refused(
    address: str, headers: dict[str, str], status: int
) -> None:
    request = "".join(f"{name}: {value}\r\n" for name, value in {"host": address[7:], **headers}.items())
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=10) as place:
        place.sendall(f"GET /events?query=x HTTP/1.1\r\n{request}\r\n".encode())
        assert place.recv(100).startswith(f"HTTP/1.1 {status} ".encode())


def test_uploads_with_equal_names_are_status_422(address: str) -> None:
    response = httpx.post(f"{address}/answer", data={"query": "list files"}, files=[FILES[0], FILES[0]])
    assert response.status_code == 422


def test_an_answer_is_a_typed_response(address: str) -> None:
    answer = httpx.post(f"{address}/answer", data={"query": QUESTION}, timeout=30).json()
    assert (answer["answer"], answer["status"], answer["output"]) == (SUM_ANSWER, "unverified", "Sum: 15")
    schema = httpx.get(f"{address}/openapi.json").json()["components"]["schemas"]["Answer"]
    assert set(schema["properties"]) == {"answer", "status", "reason", "code", "output"}


def test_a_disconnecting_client_ends_the_program(address: str, sandbox: SandboxExecutor) -> None:
    sandbox.run("1")
    idle, start = at_rest(), time.monotonic()
    with httpx.stream("GET", f"{address}/events", params={"query": "endless"}, timeout=30):
        assert soon(lambda: len(descendants()) > idle)
    assert soon(lambda: len(descendants()) <= idle)
    assert time.monotonic() - start < sandbox.limits.seconds


@pytest.mark.host
def test_of_20_clients_five_disconnect_and_the_others_are_answered(
    address: str, sandbox: SandboxExecutor
) -> None:
    sandbox.run("1")
    idle = at_rest()

    def leave(_: int) -> str:
        with httpx.stream("GET", f"{address}/events", params={"query": "endless"}, timeout=60) as response:
            next(response.iter_lines())
        return "left"

    def stay(_: int) -> str:
        return joined(ask(address), "answer")

    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(lambda number: (leave if number % 4 == 0 else stay)(number), range(20)))
    assert [outcomes.count(outcome) for outcome in ("left", SUM_ANSWER)] == [5, 15]
    assert soon(lambda: len(descendants()) <= idle, 30)


def test_an_invalid_question_is_status_422(address: str) -> None:
    response = httpx.get(f"{address}/events", params={"query": " "})
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
