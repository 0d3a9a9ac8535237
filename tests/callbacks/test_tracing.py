"""What OpenTelemetry and LangSmith see of a run, and what they must not see."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
from langchain_core.tracers.langchain import wait_for_all_tracers
from langsmith import Client
from langsmith.run_helpers import tracing_context
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from code_chains import CodeChain, Repair, SandboxExecutor, create_code_chain
from code_chains.callbacks.tracing import OpenTelemetryTracer
from code_chains.models import resolve_model
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import QUESTION, SUM_ANSWER, OpenAI

AGENT = "invoke_agent code_chain"
STAGES = ["generate", "validate", "execute", "evaluate", "interpret"]


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


@pytest.fixture
def chain(model: ScriptedModel, sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    with create_code_chain(model, executor=sandbox) as made:
        yield made


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def attributes(exporter: InMemorySpanExporter, name: str) -> dict[str, Any]:
    return dict(by_name(exporter)[name].attributes or {})


def test_every_stage_is_a_span(
    chain: CodeChain, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    chain.invoke(QUESTION, {"callbacks": [OpenTelemetryTracer(provider)]})
    assert set(STAGES) <= set(by_name(exporter))


def test_code_and_verdict_are_attributes(
    chain: CodeChain, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    chain.invoke(QUESTION, {"callbacks": [OpenTelemetryTracer(provider)]})
    whole = attributes(exporter, AGENT)
    assert whole["code_chains.code"].startswith("print('Sum:'")
    assert whole["code_chains.verdict.status"] == "unverified"
    assert whole["code_chains.isolation.level"] == "kernel"


@pytest.mark.parametrize("content", [True, False])
def test_spans_of_a_failed_question_are_errors(
    sandbox: SandboxExecutor, provider: TracerProvider, exporter: InMemorySpanExporter, content: bool
) -> None:
    failing = ScriptedModel(lambda messages: "1 / 0")
    with create_code_chain(failing, executor=sandbox, solve=Repair(1)) as chain:
        chain.invoke(QUESTION, {"callbacks": [OpenTelemetryTracer(provider, content=content)]})
    spans = by_name(exporter)
    assert {name for name in spans if not spans[name].status.is_ok} >= {AGENT, "repair", "execute"}
    description = spans[AGENT].status.description or ""
    assert ("ZeroDivisionError" in description) == content
    assert spans["generate"].status.is_ok


def test_spans_of_an_answered_question_are_no_errors(
    chain: CodeChain, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    chain.invoke(QUESTION, {"callbacks": [OpenTelemetryTracer(provider)]})
    assert all(span.status.is_ok for span in exporter.get_finished_spans())


def test_a_model_call_has_its_tokens(
    chain: CodeChain, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    chain.invoke(QUESTION, {"callbacks": [OpenTelemetryTracer(provider)]})
    (chat, *_) = [span for span in exporter.get_finished_spans() if span.name.startswith("chat")]
    assert "gen_ai.usage.output_tokens" in (chat.attributes or {})


def test_stages_lie_below_the_span_of_the_app(
    chain: CodeChain, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    with provider.get_tracer("app").start_as_current_span("request") as request:
        chain.invoke(QUESTION, {"callbacks": [OpenTelemetryTracer(provider)]})
    whole = by_name(exporter)[AGENT]
    assert whole.parent
    assert whole.parent.span_id == request.get_span_context().span_id
    assert {span.context.trace_id for span in exporter.get_finished_spans() if span.context} == {
        request.get_span_context().trace_id
    }


async def test_streaming_in_tasks_gives_the_same_spans(
    chain: CodeChain, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    async for _ in chain.astream(QUESTION, {"callbacks": [OpenTelemetryTracer(provider)]}):
        pass
    assert set(STAGES) <= set(by_name(exporter))
    assert attributes(exporter, AGENT)["code_chains.answer"] == SUM_ANSWER


def test_texts_can_be_left_out(
    chain: CodeChain, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    chain.invoke(QUESTION, {"callbacks": [OpenTelemetryTracer(provider, content=False)]})
    assert QUESTION not in str([dict(span.attributes or {}) for span in exporter.get_finished_spans()])
    assert attributes(exporter, AGENT)["code_chains.execution.status"] == "ok"


def test_an_error_is_the_status_of_its_span(
    sandbox: SandboxExecutor, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    def script(_: Any) -> str:
        raise RuntimeError("no connection with key sk-abcdefghijklmnop")

    with create_code_chain(ScriptedModel(script), executor=sandbox) as chain, pytest.raises(RuntimeError):
        chain.invoke(QUESTION, {"callbacks": [OpenTelemetryTracer(provider)]})
    assert by_name(exporter)["generate"].status.status_code is trace.StatusCode.ERROR
    assert "sk-abc" not in str(by_name(exporter)["generate"].status.description)


def test_without_texts_an_error_is_its_kind(
    sandbox: SandboxExecutor, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    def script(_: Any) -> str:
        raise RuntimeError("cannot answer 'my question'")

    with create_code_chain(ScriptedModel(script), executor=sandbox) as chain, pytest.raises(RuntimeError):
        chain.invoke("my question", {"callbacks": [OpenTelemetryTracer(provider, content=False)]})
    assert by_name(exporter)["generate"].status.description == "RuntimeError"


async def test_a_stream_that_is_left_leaves_no_span_open(
    chain: CodeChain, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    tracer = OpenTelemetryTracer(provider)
    for stage in STAGES:
        stream: Any = chain.astream_events(QUESTION, {"callbacks": [tracer]}, version="v2")
        async with aclosing(stream) as events:
            async for event in events:
                if event["event"] == "on_chain_start" and event["name"] == stage:
                    break
    await asyncio.sleep(0.1)
    assert tracer._traces == {}
    assert len(by_name(exporter)) > len(STAGES)


@pytest.mark.slow
async def test_a_call_that_is_cancelled_leaves_no_span_open(
    sandbox: SandboxExecutor, provider: TracerProvider
) -> None:
    tracer = OpenTelemetryTracer(provider)
    with create_code_chain(ScriptedModel(lambda messages: "1", delay=1.0), executor=sandbox) as chain:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(chain.ainvoke(QUESTION, {"callbacks": [tracer]}), 0.3)
        await asyncio.sleep(1)
    assert tracer._traces == {}


def test_secrets_do_not_leave(
    sandbox: SandboxExecutor,
    provider: TracerProvider,
    exporter: InMemorySpanExporter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BANK_PASSWORD", "correct horse")
    code = "password = 'correct horse'\nprint('sk-proj-1234567890abcdef')"
    told = ScriptedModel(lambda messages: code if asks_for_code(messages) else "Done.")
    with create_code_chain(told, executor=sandbox) as chain:
        chain.invoke("log in with correct horse", {"callbacks": [OpenTelemetryTracer(provider)]})
    seen = str([dict(span.attributes or {}) for span in exporter.get_finished_spans()])
    assert "correct horse" not in seen
    assert "1234567890abcdef" not in seen


def test_langsmith_sees_every_stage_and_no_key(
    openai_server: OpenAI, sandbox: SandboxExecutor, httpserver: HTTPServer
) -> None:
    posted: list[bytes] = []

    def take(request: Request) -> Response:
        posted.append(request.get_data())
        return Response("{}", 202, content_type="application/json")

    httpserver.expect_request("/runs/multipart").respond_with_handler(take)
    httpserver.expect_request("/info").respond_with_json({})
    client = Client(api_url=httpserver.url_for("/"), api_key="a-key", auto_batch_tracing=True)
    with (
        create_code_chain(
            resolve_model("openai:test", base_url=openai_server.base_url), executor=sandbox
        ) as chain,
        tracing_context(enabled=True, client=client, project_name="tests"),
    ):
        chain.invoke(QUESTION)
    wait_for_all_tracers()
    client.flush()
    seen = b"".join(posted)
    assert [stage for stage in STAGES if f'"name":"{stage}"'.encode() not in seen] == []
    assert json.dumps("a-key").encode() not in seen
