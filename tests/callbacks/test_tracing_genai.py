"""Spans follow OpenTelemetry's conventions for generative AI, as its own package of names has them."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import AIMessage
from langchain_core.stores import InMemoryByteStore
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import SpanKind

from code_chains import CodeChain, Limits, Repair, SandboxExecutor, create_code_chain
from code_chains.callbacks.genai import _PROVIDERS
from code_chains.callbacks.tracing import OpenTelemetryTracer
from code_chains.testing import ScriptedModel
from tests.conftest import QUESTION, SUM_ANSWER, SUM_CODE, OpenAI

AGENT = "invoke_agent code_chain"
TYPES: dict[str, type | tuple[type, ...]] = {
    "gen_ai.operation.name": str,
    "gen_ai.provider.name": str,
    "gen_ai.request.model": str,
    "gen_ai.request.temperature": float,
    "gen_ai.request.top_p": float,
    "gen_ai.request.top_k": float,
    "gen_ai.request.frequency_penalty": float,
    "gen_ai.request.presence_penalty": float,
    "gen_ai.request.max_tokens": int,
    "gen_ai.request.seed": int,
    "gen_ai.request.choice.count": int,
    "gen_ai.request.stream": bool,
    "gen_ai.request.stop_sequences": tuple,
    "gen_ai.response.model": str,
    "gen_ai.response.id": str,
    "gen_ai.response.finish_reasons": tuple,
    "gen_ai.usage.input_tokens": int,
    "gen_ai.usage.output_tokens": int,
    "gen_ai.usage.cache_read.input_tokens": int,
    "gen_ai.usage.cache_creation.input_tokens": int,
    "gen_ai.usage.reasoning.output_tokens": int,
    "gen_ai.tool.name": str,
    "gen_ai.tool.type": str,
    "gen_ai.tool.call.id": str,
    "gen_ai.agent.name": str,
    "gen_ai.conversation.id": str,
}
"""The type of each attribute that we export, as the conventions have it. The SDK turns lists into tuples."""


def current_names() -> set[str]:
    """Names that are in the conventions, and neither removed nor replaced."""
    source = inspect.getsource(names)
    defined = re.findall(r'^GEN_AI_\w+: Final = "(.*?)"\n"""\n(.*?)\n"""', source, re.DOTALL | re.MULTILINE)
    return {name for name, about in defined if not re.search(r"Replaced by|Removed", about)}


def values(enumeration: str) -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {member.value for member in getattr(names, enumeration)}


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter: InMemorySpanExporter) -> OpenTelemetryTracer:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return OpenTelemetryTracer(provider)


@pytest.fixture
def chain(openai_server: OpenAI, sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    model = ChatOpenAI(
        model="test",
        base_url=openai_server.base_url,
        api_key="of the tests",
        temperature=0,
        seed=7,
        max_tokens=500,
        top_p=1,
        stop=["</end>"],
    )
    with create_code_chain(model, executor=sandbox) as made:
        yield made


def spans(exporter: InMemorySpanExporter, prefix: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name.startswith(prefix)]


def attributes(exporter: InMemorySpanExporter, prefix: str) -> dict[str, Any]:
    return dict(spans(exporter, prefix)[0].attributes or {})


def gen_ai(exporter: InMemorySpanExporter) -> list[tuple[str, Any]]:
    everything = [dict(span.attributes or {}) for span in exporter.get_finished_spans()]
    return [item for found in everything for item in found.items() if item[0].startswith("gen_ai.")]


# -- names and types -----------------------------------------------------------------------------------------------------


@tool
def price(name: str) -> float:
    """Return the price of a thing."""
    return 4.0


def test_every_attribute_is_in_the_conventions_and_has_their_type(
    chain: CodeChain, sandbox: SandboxExecutor, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    usage = {
        "input_tokens": 3,
        "output_tokens": 2,
        "total_tokens": 5,
        "input_token_details": {"cache_read": 1, "cache_creation": 1},
        "output_token_details": {"reasoning": 1},
    }
    thorough = ScriptedModel(lambda _: AIMessage("print(price('tea'))", usage_metadata=usage))
    with create_code_chain(thorough, executor=sandbox, tools=[price], interpret=False) as with_tools:
        with_tools.invoke({"query": "tea?", "session_id": "ann"}, {"callbacks": [tracer]})
    list(chain.stream({"query": QUESTION, "session_id": "ann"}, {"callbacks": [tracer]}))
    call = {"type": "tool_call", "id": "call_1", "name": "answer_with_code", "args": {"query": QUESTION}}
    chain.as_tool().invoke(call, {"callbacks": [tracer]})
    found = gen_ai(exporter)
    assert {name for name, _ in found} - current_names() == set()
    assert [(name, value) for name, value in found if type(value) is not TYPES[name]] == []
    unseen = {"top_k", "frequency_penalty", "presence_penalty", "choice.count"}
    assert set(TYPES) - {name for name, _ in found} == {f"gen_ai.request.{name}" for name in unseen}


def test_what_we_know_of_types_is_in_the_conventions() -> None:
    assert set(TYPES) - current_names() == set()
    assert error_attributes.ERROR_TYPE == "error.type"


def test_operations_and_providers_have_the_names_of_the_conventions(
    chain: CodeChain, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    chain.as_tool().invoke({"query": QUESTION}, {"callbacks": [tracer]})
    operations = {value for name, value in gen_ai(exporter) if name == "gen_ai.operation.name"}
    assert operations == {"chat", "invoke_agent", "execute_tool"}
    assert operations | {"text_completion"} <= values("GenAiOperationNameValues")
    assert set(_PROVIDERS.values()) <= values("GenAiProviderNameValues")


# -- models --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_streaming", [False, True])
def test_a_model_call_has_its_request_and_its_response(
    chain: CodeChain, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter, is_streaming: bool
) -> None:
    if is_streaming:
        list(chain.stream(QUESTION, {"callbacks": [tracer]}))
    else:
        chain.invoke(QUESTION, {"callbacks": [tracer]})
    chat = attributes(exporter, "chat test")
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "test",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.seed": 7,
        "gen_ai.request.max_tokens": 500,
        "gen_ai.request.top_p": 1.0,
        "gen_ai.request.stop_sequences": ("</end>",),
        "gen_ai.response.model": "test",
        "gen_ai.response.id": "1",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
    }
    assert {name: chat.get(name) for name in expected} == expected


def test_only_model_calls_are_clients(
    chain: CodeChain, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    chain.as_tool().invoke({"query": QUESTION}, {"callbacks": [tracer]})
    kinds = {span.name: span.kind for span in exporter.get_finished_spans()}
    assert {name for name, kind in kinds.items() if kind is SpanKind.CLIENT} == {"chat test"}
    assert set(kinds.values()) == {SpanKind.CLIENT, SpanKind.INTERNAL}


def test_a_model_without_chat_completes_text(
    tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    FakeListLLM(responses=["4"]).invoke("2 + 2?", {"callbacks": [tracer]})
    (span,) = exporter.get_finished_spans()
    assert span.name == "text_completion"
    assert (span.attributes or {})["gen_ai.operation.name"] == "text_completion"


def test_the_folder_of_a_model_is_not_exported(
    sandbox: SandboxExecutor, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    reply = AIMessage("1", response_metadata={"model_name": "/home/ann/models/small.gguf"})
    with create_code_chain(ScriptedModel(lambda _: reply), executor=sandbox, interpret=False) as chain:
        chain.invoke("one?", {"callbacks": [tracer]})
    assert attributes(exporter, "chat")["gen_ai.response.model"] == "small.gguf"


# -- tools and agents ----------------------------------------------------------------------------------------------------


def test_a_tool_that_a_program_calls_is_executed_below_its_stage(
    sandbox: SandboxExecutor, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    model = ScriptedModel(lambda _: "print(price('tea'))")
    with create_code_chain(model, executor=sandbox, tools=[price], interpret=False) as chain:
        chain.invoke("tea?", {"callbacks": [tracer]})
    (called,), (execute,) = spans(exporter, "execute_tool price"), spans(exporter, "execute")[1:]
    assert called.parent is not None
    assert called.parent.span_id == execute.get_span_context().span_id  # type: ignore[union-attr]
    found = dict(called.attributes or {})
    assert (found["gen_ai.tool.name"], found["gen_ai.tool.type"]) == ("price", "function")
    assert "gen_ai.tool.call.id" not in found


def test_a_tool_call_of_an_agent_has_its_id(
    chain: CodeChain, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    call = {"type": "tool_call", "id": "call_1", "name": "answer_with_code", "args": {"query": QUESTION}}
    chain.as_tool().invoke(call, {"callbacks": [tracer]})
    assert attributes(exporter, "execute_tool answer_with_code")["gen_ai.tool.call.id"] == "call_1"
    (agent,) = spans(exporter, AGENT)
    (called,) = spans(exporter, "execute_tool")
    assert agent.parent is not None
    assert agent.parent.span_id == called.get_span_context().span_id  # type: ignore[union-attr]


def test_a_question_is_an_agent_with_the_tokens_of_its_model_calls(
    chain: CodeChain, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    chain.invoke(QUESTION, {"callbacks": [tracer]})
    agent = attributes(exporter, AGENT)
    assert (agent["gen_ai.agent.name"], agent["gen_ai.provider.name"]) == ("code_chain", "openai")
    assert (agent["gen_ai.usage.input_tokens"], agent["gen_ai.usage.output_tokens"]) == (22, 14)
    assert agent["code_chains.answer"] == SUM_ANSWER


def test_an_agent_has_the_name_of_its_chain(
    chain: CodeChain, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    named = CodeChain(
        name="sums",
        chains=chain.chains,
        input_variables=chain.input_variables,
        output_variables=chain.output_variables,
        executor=chain.executor,
        metadata={"team": "a"},
    )
    named.invoke(QUESTION, {"callbacks": [tracer]})
    assert attributes(exporter, "invoke_agent sums")["gen_ai.agent.name"] == "sums"
    assert (named.metadata or {})["team"] == "a"


def test_an_answer_of_the_cache_has_a_provider_too(
    sandbox: SandboxExecutor,
    model: ScriptedModel,
    tracer: OpenTelemetryTracer,
    exporter: InMemorySpanExporter,
) -> None:
    with create_code_chain(model, executor=sandbox, cache=InMemoryByteStore()) as chain:
        chain.invoke(QUESTION)
        chain.invoke(QUESTION, {"callbacks": [tracer]})
    assert spans(exporter, "chat") == []
    assert attributes(exporter, AGENT)["gen_ai.provider.name"] == "code_chains"


def test_a_program_of_a_user_is_no_agent(
    chain: CodeChain, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    chain.user_code_chain().invoke({"query": "?", "code": "print(1)"}, {"callbacks": [tracer]})
    assert spans(exporter, "execute_code")
    assert gen_ai(exporter) == []


# -- sessions ------------------------------------------------------------------------------------------------------------


async def test_every_operation_of_a_session_has_its_name(
    chain: CodeChain, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    async for _ in chain.astream({"query": QUESTION, "session_id": "ann"}, {"callbacks": [tracer]}):
        pass
    found = [span for span in exporter.get_finished_spans() if span.name.startswith(("chat", "invoke_agent"))]
    assert len(found) == 3
    assert {(span.attributes or {}).get("gen_ai.conversation.id") for span in found} == {"ann"}


def test_a_session_of_the_config_is_named_too(
    chain: CodeChain, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    chain.invoke(QUESTION, {"callbacks": [tracer], "configurable": {"session_id": "ben"}})
    assert attributes(exporter, AGENT)["gen_ai.conversation.id"] == "ben"


def test_without_a_session_there_is_no_conversation(
    chain: CodeChain, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    chain.invoke(QUESTION, {"callbacks": [tracer]})
    assert "gen_ai.conversation.id" not in dict(gen_ai(exporter))


# -- errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "kind"),
    [("1 / 0", "error"), ("while True: pass", "timeout"), ("print('Error: no data')", "failed")],
)
def test_a_failed_question_has_the_kind_of_its_failure(
    tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter, code: str, kind: str
) -> None:
    model = ScriptedModel(lambda _: code)
    with create_code_chain(model, limits=Limits(seconds=1), interpret=False, solve=Repair(1)) as chain:
        chain.invoke("?", {"callbacks": [tracer]})
    assert attributes(exporter, AGENT)["error.type"] == kind


def test_the_error_of_a_provider_has_its_kind(
    chain: CodeChain, openai_server: OpenAI, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    openai_server.faults = ["no such model"]
    with pytest.raises(Exception, match="no such model"):
        chain.invoke(QUESTION, {"callbacks": [tracer]})
    found = {name: attributes(exporter, name).get("error.type") for name in ("chat", "generate", AGENT)}
    assert set(found.values()) == {"OpenAIInvalidRequestError"}


def test_success_has_no_error(
    chain: CodeChain, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    chain.invoke(QUESTION, {"callbacks": [tracer]})
    assert [
        span.name for span in exporter.get_finished_spans() if "error.type" in (span.attributes or {})
    ] == []


# -- contents and samplers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [True, False])
def test_no_content_is_in_attributes_of_the_conventions(
    chain: CodeChain, exporter: InMemorySpanExporter, content: bool
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    chain.invoke(QUESTION, {"callbacks": [OpenTelemetryTracer(provider, content=content)]})
    assert [text for text in (QUESTION, SUM_ANSWER, SUM_CODE) if text in str(gen_ai(exporter))] == []


def test_a_secret_in_the_name_of_a_session_is_redacted(
    chain: CodeChain, tracer: OpenTelemetryTracer, exporter: InMemorySpanExporter
) -> None:
    chain.invoke({"query": QUESTION, "session_id": "sk-proj-1234567890abcdef"}, {"callbacks": [tracer]})
    assert "1234567890abcdef" not in str(
        [dict(span.attributes or {}) for span in exporter.get_finished_spans()]
    )


class ModelsOnly(Sampler):
    """Samples the calls of models."""

    def should_sample(self, *args: Any, attributes: Any = None, **kwargs: Any) -> SamplingResult:
        found = attributes if attributes is not None else args[4]
        is_model = bool(found) and "gen_ai.request.model" in found
        return SamplingResult(Decision.RECORD_AND_SAMPLE if is_model else Decision.DROP, found)

    def get_description(self) -> str:
        return "models only"


def test_a_sampler_sees_what_is_asked_for(chain: CodeChain, exporter: InMemorySpanExporter) -> None:
    provider = TracerProvider(sampler=ModelsOnly())
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    chain.invoke(QUESTION, {"callbacks": [OpenTelemetryTracer(provider)]})
    assert {span.name for span in exporter.get_finished_spans()} == {"chat test"}
