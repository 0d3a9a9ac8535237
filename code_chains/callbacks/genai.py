"""What OpenTelemetry's conventions for generative AI say of a run: its span's name and its attributes `gen_ai.…`.

Calls of models are `chat MODEL`, calls of tools `execute_tool TOOL`, and a `CodeChain` is an agent: `invoke_agent NAME`.
No contents are among the attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.tracers import Run

from code_chains.callbacks.runs import AGENT_NAME
from code_chains.callbacks.usage import without_folder
from code_chains.records import Usage

AttributeValue = str | bool | int | float | list[str]

OWN_PROVIDER = "code_chains"
"""The provider of an agent that called no model."""
_PROVIDERS = {
    "amazon_bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "google_genai": "gcp.gen_ai",
    "google_vertexai": "gcp.vertex_ai",
    "ibm": "ibm.watsonx.ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "vertexai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""Names in OpenTelemetry's conventions, by LangChain's where they differ."""
_NUMBERS = {
    "frequency_penalty": float,
    "max_tokens": int,
    "presence_penalty": float,
    "seed": int,
    "temperature": float,
    "top_k": float,
    "top_p": float,
}
"""Settings of a request, with their types."""
_OTHER_NAMES = {"max_tokens": ("max_completion_tokens", "max_output_tokens")}
_TOKEN_DETAILS = {
    ("input_token_details", "cache_read"): "cache_read.input_tokens",
    ("input_token_details", "cache_creation"): "cache_creation.input_tokens",
    ("output_token_details", "reasoning"): "reasoning.output_tokens",
}


def is_model(run: Run) -> bool:
    """Return whether a run is the call of a model."""
    return run.run_type in ("llm", "chat_model")


def is_agent(run: Run) -> bool:
    """Return whether a run answers a question."""
    return bool(_agent(run))


def is_operation(run: Run) -> bool:
    """Return whether a run is something that the conventions describe, not a stage."""
    return bool(_operation(run))


def provider(run: Run) -> str:
    """Return the provider of a model, as OpenTelemetry names it; empty if it is unknown."""
    name = str(_metadata(run).get("ls_provider") or "")
    return _PROVIDERS.get(name, name)


def span_name(run: Run) -> str:
    """Return the name of a span: that of the operation with what it is applied to, or of the stage."""
    if is_model(run):
        return f"{_operation(run)} {_model(run)}".strip()
    return f"{_operation(run)} {_agent(run) or run.name}" if _operation(run) else run.name


def attributes_at_start(run: Run) -> Iterator[tuple[str, AttributeValue]]:
    """Yield what is known of a run when it starts, on which samplers may decide."""
    if operation := _operation(run):
        yield "gen_ai.operation.name", operation
    if is_model(run):
        yield from _of_request(run)
    elif run.run_type == "tool":
        yield "gen_ai.tool.name", run.name
        yield "gen_ai.tool.type", "function"
        if call_id := (run.extra or {}).get("tool_call_id"):
            yield "gen_ai.tool.call.id", str(call_id)
    elif agent := _agent(run):
        yield "gen_ai.agent.name", agent


def attributes_at_end(run: Run) -> Iterator[tuple[str, AttributeValue]]:
    """Yield what is known of a run when it has ended."""
    if is_model(run):
        yield from _of_response(run)
    elif _agent(run):
        usage = (run.outputs or {}).get("usage")
        if isinstance(usage, Usage):
            yield "gen_ai.usage.input_tokens", usage.input_tokens
            yield "gen_ai.usage.output_tokens", usage.output_tokens


def _operation(run: Run) -> str:
    """Return the name of the operation that a run is; empty for a stage."""
    if is_model(run):
        return "text_completion" if _metadata(run).get("ls_model_type") == "llm" else "chat"
    if run.run_type == "tool":
        return "execute_tool"
    return "invoke_agent" if _agent(run) else ""


def _agent(run: Run) -> str:
    return str(_metadata(run).get(AGENT_NAME) or "")


def _model(run: Run) -> str:
    return str(_metadata(run).get("ls_model_name") or "")


def _of_request(run: Run) -> Iterator[tuple[str, AttributeValue]]:
    if name := provider(run):
        yield "gen_ai.provider.name", name
    if model := _model(run):
        yield "gen_ai.request.model", model
    settings = _settings(run)
    for name, kind in _NUMBERS.items():
        values = (settings.get(key) for key in (name, *_OTHER_NAMES.get(name, ())))
        value = next((value for value in values if _is_number(value)), None)
        if value is not None:
            yield f"gen_ai.request.{name}", kind(value)
    if stop := settings.get("stop"):
        yield (
            "gen_ai.request.stop_sequences",
            [stop] if isinstance(stop, str) else [str(text) for text in stop],
        )
    if isinstance(settings.get("stream"), bool):
        yield "gen_ai.request.stream", settings["stream"]
    if isinstance(count := settings.get("n"), int) and count != 1:
        yield "gen_ai.request.choice.count", count


def _settings(run: Run) -> dict[str, Any]:
    """Return the settings of a request: those that were sent, and where it is unknown, those of the model."""
    metadata = _metadata(run)
    known = {name: metadata.get(f"ls_{name}") for name in ("temperature", "max_tokens", "stop")}
    sent = _mapping((run.extra or {}).get("invocation_params"))
    return {**known, **{name: value for name, value in sent.items() if value is not None}}


def _of_response(run: Run) -> Iterator[tuple[str, AttributeValue]]:
    replies = [
        reply for generations in _mapping(run.outputs).get("generations") or () for reply in generations
    ]
    messages = [_mapping(_mapping(reply.get("message")).get("kwargs")) for reply in replies]
    details = [
        {**_mapping(reply.get("generation_info")), **_mapping(message.get("response_metadata"))}
        for reply, message in zip(replies, messages, strict=True)
    ]
    if model := _first(details, "model_name", "model"):
        yield "gen_ai.response.model", without_folder(model)
    if response_id := _first(details, "id", "response_id"):
        yield "gen_ai.response.id", response_id
    if reasons := [_first([detail], "finish_reason", "stop_reason") for detail in details]:
        yield from [("gen_ai.response.finish_reasons", reasons)] if all(reasons) else []
    for usage in [
        _mapping(message.get("usage_metadata")) for message in messages if message.get("usage_metadata")
    ][:1]:
        yield from _of_usage(usage)


def _of_usage(usage: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    yield "gen_ai.usage.input_tokens", int(usage["input_tokens"])
    yield "gen_ai.usage.output_tokens", int(usage["output_tokens"])
    for (group, name), attribute in _TOKEN_DETAILS.items():
        if isinstance(tokens := _mapping(usage.get(group)).get(name), int):
            yield f"gen_ai.usage.{attribute}", tokens


def _first(mappings: list[dict[str, Any]], *names: str) -> str:
    return next(
        (str(mapping[name]) for mapping in mappings for name in names if mapping.get(name)),
        "",
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _metadata(run: Run) -> Mapping[str, Any]:
    return _mapping((run.extra or {}).get("metadata"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
