"""Models by name, and ChatOpenAI over real HTTP with everything that can go wrong there."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from langchain_core.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI

from code_chains import create_code_chain
from code_chains.callbacks.redaction import describe_error
from code_chains.errors import ConfigurationError
from code_chains.executors import SandboxExecutor
from code_chains.models import default_model, resolve_model
from tests.conftest import QUESTION, SUM_ANSWER, SUM_CODE, OpenAI


def chat(server: OpenAI, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="test", base_url=server.base_url, api_key="none", **{"max_retries": 0, **options})


# -- names ---------------------------------------------------------------------------------------------------------------


def test_a_chat_model_is_returned_unchanged() -> None:
    model = FakeListChatModel(responses=["x"])
    assert resolve_model(model) is model


def test_a_name_with_a_provider_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    model = resolve_model("openai:gpt-5-mini")
    assert isinstance(model, ChatOpenAI)
    assert model.model_name == "gpt-5-mini"


def test_a_local_server_needs_no_key_and_reports_usage() -> None:
    model = resolve_model("qwen2.5-coder", base_url="http://127.0.0.1:11434/v1")
    assert isinstance(model, ChatOpenAI)
    assert (model.model_name, model.stream_usage) == ("qwen2.5-coder", True)


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        ("openai:gpt-5-mini", "OPENAI_API_KEY"),
        ("", "openai:gpt-5-mini"),
        (None, "chat model object"),
        ("no-such-model", "no-such-model"),
        ("mistralai:mistral-x", "whose package is installed"),
        ("ollama:llama3", "langchain-ollama"),
        ("local:7b", "local:0.5b"),
        ("gguf:/nowhere.gguf", "path of a file that exists"),
    ],
)
def test_the_error_for_an_unknown_model_names_the_remedy(model: Any, remedy: str) -> None:
    with pytest.raises(ConfigurationError, match=remedy):
        resolve_model(model)


def test_a_file_of_another_format_is_refused(tmp_path: Any) -> None:
    (tmp_path / "x.gguf").write_text("not a model")
    with pytest.raises(ConfigurationError, match="GGUF"):
        resolve_model(f"gguf:{tmp_path / 'x.gguf'}")


def test_an_invalid_base_url_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="base_url"):
        resolve_model("x", base_url="localhost:11434")


def test_a_key_is_never_displayed() -> None:
    assert "sk-secret" not in repr(resolve_model("x", base_url="http://127.0.0.1:1/v1", api_key="sk-secret"))


def test_the_default_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [default_model()]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    names.append(default_model())
    monkeypatch.setenv("CODE_CHAINS_MODEL", "gguf:mine")
    assert [*names, default_model()] == ["local", "openai:gpt-5-mini", "gguf:mine"]


# -- over HTTP -----------------------------------------------------------------------------------------------------------


async def test_a_question_is_answered_over_http(openai_server: OpenAI, sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(resolve_model("test", base_url=openai_server.base_url), executor=sandbox)
    result = chain.invoke({"query": QUESTION})
    assert (result["code"].strip(), result["output"], result["answer"]) == (SUM_CODE, "Sum: 15", SUM_ANSWER)
    assert await chain.ainvoke({"query": QUESTION}) == result


async def test_streaming_gives_what_invoke_gives_with_usage(
    openai_server: OpenAI, sandbox: SandboxExecutor
) -> None:
    chain = create_code_chain(chat(openai_server, stream_usage=True), executor=sandbox)
    streamed: Any = None
    async for chunk in chain.astream({"query": QUESTION}):
        streamed = chunk if streamed is None else streamed + chunk
    assert streamed == chain.invoke({"query": QUESTION})
    assert (
        streamed["usage"].model_calls,
        streamed["usage"].input_tokens,
        streamed["usage"].output_tokens,
    ) == (
        2,
        22,
        14,
    )


def test_rate_limited_requests_are_retried(openai_server: OpenAI, sandbox: SandboxExecutor) -> None:
    openai_server.faults += ["429", "500"]
    chain = create_code_chain(chat(openai_server, max_retries=2), executor=sandbox)
    assert chain.invoke({"query": QUESTION})["answer"] == SUM_ANSWER
    assert len(openai_server.requests) == 4


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    ("fault", "error"), [("429", ModelRateLimitError), ("500", ModelAPIError), ("hang", ModelTimeoutError)]
)
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_a_broken_server_is_an_exception_in_time(
    openai_server: OpenAI, sandbox: SandboxExecutor, fault: str, error: type[Exception], way: str
) -> None:
    openai_server.faults.append(fault)
    chain, began = create_code_chain(chat(openai_server, timeout=0.5), executor=sandbox), time.monotonic()
    with pytest.raises(error):
        chain.invoke({"query": QUESTION}) if way == "invoke" else await chain.ainvoke({"query": QUESTION})
    assert time.monotonic() - began < 3.8


def test_a_dead_server_is_an_exception(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(resolve_model("test", base_url="http://127.0.0.1:9/v1"), executor=sandbox)
    with pytest.raises(ModelConnectionError):
        chain.invoke({"query": QUESTION})


def test_an_invalid_response_is_an_exception(openai_server: OpenAI, sandbox: SandboxExecutor) -> None:
    openai_server.faults.append("json")
    with pytest.raises(Exception, match=r"(?i)json|expecting"):
        create_code_chain(chat(openai_server), executor=sandbox).invoke({"query": QUESTION})


@pytest.mark.parametrize("fault", ["cut", "length"])
@pytest.mark.parametrize("streaming", [True, False])
def test_a_truncated_reply_is_a_failed_attempt(
    openai_server: OpenAI, sandbox: SandboxExecutor, fault: str, streaming: bool
) -> None:
    openai_server.faults.append(fault)
    result = create_code_chain(chat(openai_server, streaming=streaming), executor=sandbox).invoke(
        {"query": QUESTION}
    )
    first, second = result["attempts"]
    assert ("cut off" in str(first.problems[0]), second.status, result["answer"]) == (True, "ok", SUM_ANSWER)


async def test_cancelling_stops_the_call(openai_server: OpenAI, sandbox: SandboxExecutor) -> None:
    openai_server.faults.append("hang")
    chain = create_code_chain(chat(openai_server), executor=sandbox)
    task = asyncio.create_task(chain.ainvoke({"query": QUESTION}))
    await asyncio.sleep(0.3)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 3


async def test_concurrent_questions_do_not_wait_for_each_other(
    openai_server: OpenAI, sandbox: SandboxExecutor
) -> None:
    chain = create_code_chain(chat(openai_server), executor=sandbox)
    results = await chain.abatch([{"query": f"{QUESTION} ({number})"} for number in range(6)])
    assert [result["answer"] for result in results] == [SUM_ANSWER] * 6


def test_an_error_names_options_without_their_values() -> None:
    with pytest.raises(ConfigurationError) as raised:
        resolve_model(FakeListChatModel(responses=["x"]), api_key="sk-secret")
    assert ("api_key" in str(raised.value), "sk-secret" in str(raised.value)) == (True, False)


def test_a_base_url_is_displayed_without_its_password() -> None:
    with pytest.raises(ConfigurationError) as raised:
        resolve_model("x", base_url="user:sk-secret@host/v1")
    assert "sk-secret" not in str(raised.value) + repr(raised.value.value)


# -- proxies -------------------------------------------------------------------------------------------------

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.usefixtures("without_proxies")
@pytest.mark.parametrize("name", ["openai:gpt-5-mini", "fake"])
@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:9", "pip install socksio"),
        ("HTTP_PROXY", "ftp://x:1", "Unknown scheme"),
        ("https_proxy", "http://ann:secret@[::bad", "Invalid port"),
        ("HTTPS_PROXY", ":::", "Invalid port"),
    ],
)
def test_a_proxy_that_no_client_takes_is_named_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, reason: str, name: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"Invalid {variable}=") as failure:
        resolve_model(name, base_url="http://127.0.0.1:9/v1" if name == "fake" else None)
    assert reason in str(failure.value)
    assert "NO_PROXY" in str(failure.value)
    assert "secret" not in str(failure.value)


@pytest.mark.rows(2)
@pytest.mark.usefixtures("without_proxies")
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "no-such-host.invalid"])
def test_a_proxy_in_the_way_of_a_server_that_runs_is_named(
    openai_server: OpenAI, monkeypatch: pytest.MonkeyPatch, variable: str, proxy: str
) -> None:
    monkeypatch.setenv(variable, proxy)
    model = resolve_model("fake", base_url=openai_server.base_url, max_retries=0)
    with pytest.raises(Exception, match="onnection") as failure:
        model.invoke("Hello")
    message = describe_error(failure.value)
    assert f"through the proxy in {variable}" in message
    assert "to NO_PROXY" in message


@pytest.mark.usefixtures("without_proxies")
def test_a_server_in_no_proxy_is_reached_without_one(
    openai_server: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    assert resolve_model("fake", base_url=openai_server.base_url).invoke("Hello").text


@pytest.mark.parametrize(
    ("address", "remedy"),
    [("http://localhost:1/v1", "Start it"), ("https://api.invalid/v1", "Check the network")],
)
@pytest.mark.usefixtures("without_proxies")
def test_only_a_server_of_the_user_is_to_be_started(address: str, remedy: str) -> None:
    model = resolve_model("fake", base_url=address, max_retries=0)
    with pytest.raises(Exception, match="onnection") as failure:
        model.invoke("Hello")
    assert remedy in describe_error(failure.value)
