"""Export runs as OpenTelemetry spans, one for each stage and model call, with code and verdict as attributes.

LangSmith does not need this: `LANGSMITH_TRACING=true` shows the runs as those of every Runnable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.tracers import BaseTracer, Run

from code_chains.callbacks.redaction import without_secrets
from code_chains.errors import needs
from code_chains.records import Execution, Verdict

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

__all__ = ["OpenTelemetryTracer"]

LONGEST = 20_000
"""Longest text of an attribute, in characters; what is longer is cut."""
_TEXTS = ("query", "code", "output", "answer", "language", "stop_reason", "cached", "finish_reason")


class OpenTelemetryTracer(BaseTracer):
    """A callback handler that exports spans: `chain.invoke(question, {"callbacks": [OpenTelemetryTracer()]})`.

    A span has the name of its stage (`generate`, `validate`, `execute` …), that of a model call is `chat
    MODEL`. Attributes are `code_chains.query`, `.code`, `.output`, `.answer`, `.problems`, `.attempts`,
    `.stop_reason`, `.execution.status`, `.execution.duration` (seconds), `.execution.peak_memory` (bytes),
    `.isolation.level`, `.verdict.status`, `.verdict.by`, `.verdict.reason`, and for models those of
    OpenTelemetry's conventions for generative AI: `gen_ai.request.model`, `gen_ai.usage.input_tokens` and
    `.output_tokens`. The status is `ERROR` if a run raises, and if its outcome is a failed verdict or
    program. The span that is current where a chain is called is their parent.

    One object serves any number of calls, threads and tasks. Needs the extra `otel`; configure the export
    with OpenTelemetry's SDK.

    Args:
        provider: The tracer provider; None for the global one.
        content: Whether questions, programs, outputs and answers are exported.
        redact: Applied to texts first.
    """

    run_inline = True  # In the task that starts the run, so that the current span is its parent.

    def __init__(
        self,
        provider: TracerProvider | None = None,
        *,
        content: bool = True,
        redact: Callable[[str], str] = without_secrets,
    ) -> None:
        super().__init__()
        with needs("otel", "callbacks", "OpenTelemetryTracer"):
            from opentelemetry import trace
        self._trace = trace
        self._tracer = trace.get_tracer("code_chains", tracer_provider=provider)
        self._content, self._redact = content, redact
        self._traces: dict[UUID, dict[UUID, Span]] = {}
        self._changing = threading.Lock()

    def _persist_run(self, run: Run) -> None:
        """Do nothing: nothing is stored."""

    def _on_run_create(self, run: Run) -> None:
        with self._changing:
            spans = self._traces.setdefault(run.trace_id or run.id, {})
            parent = spans.get(run.parent_run_id) if run.parent_run_id else None
            context = self._trace.set_span_in_context(parent) if parent is not None else None
            spans[run.id] = self._tracer.start_span(_name(run), context)

    def _on_run_update(self, run: Run) -> None:
        with self._changing:
            trace = run.trace_id or run.id
            spans = self._traces.get(trace, {})
            span = spans.pop(run.id, None)
            left = list(spans.items()) if run.id == trace or not run.parent_run_id else []
            if left or not spans:
                self._traces.pop(trace, None)
        # A stream that was left half-read ends without a word from what it called.
        for run_id, open_one in reversed(left):
            self.run_map.pop(str(run_id), None)
            open_one.end()
        if span is not None:
            self._end(span, run)

    def _end(self, span: Span, run: Run) -> None:
        for name, value in _attributes(run, content=self._content):
            span.set_attribute(name, self._attribute(value) if isinstance(value, str) else value)
        if run.error:
            message = run.error.partition("Traceback (most recent call last)")[0]
            self._set_error(span, message if self._content else message.partition("(")[0])
        elif failure := _failure(run):
            self._set_error(span, failure if self._content else "failed")
        span.end()

    def _set_error(self, span: Span, message: str) -> None:
        span.set_status(self._trace.StatusCode.ERROR, self._attribute(message))

    def _attribute(self, text: str) -> str:
        return self._redact(text[: 2 * LONGEST])[:LONGEST]


def _failure(run: Run) -> str:
    """Return why the outcome of a run is a failure: its verdict, or without one its program; empty if it is none."""
    outputs = _mapping(run.outputs)
    verdict, execution = outputs.get("verdict"), outputs.get("execution")
    if isinstance(verdict, Verdict):
        return "" if verdict.ok else verdict.reason
    return execution.summary if isinstance(execution, Execution) and not execution.ok else ""


def _name(run: Run) -> str:
    return f"chat {_model(run)}".strip() if run.run_type in ("llm", "chat_model") else run.name


def _model(run: Run) -> str:
    return str((run.extra or {}).get("metadata", {}).get("ls_model_name") or "")


def _attributes(run: Run, *, content: bool) -> Iterator[tuple[str, str | int | float | bool]]:
    if run.run_type in ("llm", "chat_model"):
        yield from _of_model(run)
        return
    yield "code_chains.run_type", run.run_type
    values = {**_mapping(run.inputs), **_mapping(run.outputs)}
    if isinstance(values.get("execution"), Execution):
        yield from _of_execution(values["execution"])
    if isinstance(values.get("verdict"), Verdict):
        yield from _of_verdict(values["verdict"], content=content)
    if values.get("attempts"):
        yield "code_chains.attempts", len(values["attempts"])
    if content:
        for key in _TEXTS:
            if isinstance(values.get(key), str | bool) and values[key] != "":
                yield f"code_chains.{key}", values[key]
        if values.get("problems"):
            yield "code_chains.problems", "\n".join(map(str, values["problems"]))


def _of_execution(execution: Execution) -> Iterator[tuple[str, str | int | float]]:
    yield "code_chains.execution.status", execution.status
    yield "code_chains.execution.duration", execution.duration
    yield "code_chains.execution.peak_memory", execution.peak_memory
    if execution.isolation:
        yield "code_chains.isolation.level", execution.isolation.level


def _of_verdict(verdict: Verdict, *, content: bool) -> Iterator[tuple[str, str]]:
    yield "code_chains.verdict.status", verdict.status
    yield "code_chains.verdict.by", verdict.by
    if content:
        yield "code_chains.verdict.reason", verdict.reason


def _of_model(run: Run) -> Iterator[tuple[str, str | int]]:
    yield "gen_ai.operation.name", "chat"
    if model := _model(run):
        yield "gen_ai.request.model", model
    for generations in _mapping(run.outputs).get("generations") or ():
        for generation in generations:
            kwargs = _mapping(_mapping(generation.get("message")).get("kwargs"))
            usage = _mapping(kwargs.get("usage_metadata"))
            if usage:
                yield "gen_ai.usage.input_tokens", int(usage["input_tokens"])
                yield "gen_ai.usage.output_tokens", int(usage["output_tokens"])


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
