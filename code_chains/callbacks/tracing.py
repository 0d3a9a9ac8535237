"""Export runs as OpenTelemetry spans, one for each question, stage, model call and tool call, with code and verdict.

LangSmith does not need this: `LANGSMITH_TRACING=true` shows the runs as those of every Runnable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.tracers import BaseTracer, Run

from code_chains.callbacks.genai import (
    OWN_PROVIDER,
    AttributeValue,
    attributes_at_end,
    attributes_at_start,
    is_agent,
    is_model,
    is_operation,
    provider,
    span_name,
)
from code_chains.errors import needs
from code_chains.records import Execution, Verdict
from code_chains.records.printable import without_secrets

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

LONGEST = 20_000
"""Longest text of an attribute, in characters; what is longer is cut."""
_TEXTS = (
    "query",
    "code",
    "output",
    "answer",
    "answer_language",
    "language",
    "stop_reason",
    "cached",
    "finish_reason",
)
_PROVIDER = "gen_ai.provider.name"
_SESSION = "gen_ai.conversation.id"
"""Keys in `Run.extra` of runs: the provider of their first model call, and the session of what is below them."""


class OpenTelemetryTracer(BaseTracer):
    """A callback handler that exports spans: `chain.invoke(question, {"callbacks": [OpenTelemetryTracer()]})`.

    Spans follow OpenTelemetry's conventions for generative AI: a question is `invoke_agent NAME`, a model call
    `chat MODEL`, of the kind `CLIENT`, and a tool call `execute_tool TOOL`, with attributes such as
    `gen_ai.request.model`, `.response.finish_reasons`, `.usage.input_tokens`, and for the session of a
    conversation `gen_ai.conversation.id`. The span of a stage has its name (`generate`, `validate`, `execute` …).

    Further attributes are `code_chains.query`, `.code`, `.output`, `.answer`, `.problems`, `.attempts`,
    `.stop_reason`, `.execution.status`, `.execution.duration` (seconds), `.execution.peak_memory` (bytes),
    `.isolation.level`, `.verdict.status`, `.verdict.by` and `.verdict.reason`. The status is `ERROR` if a run
    raises, and if its outcome is a failed verdict or program; `error.type` is the exception's, the status of the
    program, or `failed`. The span that is current where a chain is called is their parent.

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
        kind = self._trace.SpanKind.CLIENT if is_model(run) else self._trace.SpanKind.INTERNAL
        attributes = dict(self._shown(attributes_at_start(run)))
        with self._changing:
            spans = self._traces.setdefault(run.trace_id or run.id, {})
            parent = spans.get(run.parent_run_id) if run.parent_run_id else None
            context = self._trace.set_span_in_context(parent) if parent is not None else None
            spans[run.id] = self._tracer.start_span(span_name(run), context, kind, attributes)
        self._tell_ancestors(run)

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
        for name, value in self._shown(self._attributes(run)):
            span.set_attribute(name, value)
        if run.error:
            message = run.error.partition("Traceback (most recent call last)")[0]
            kind = message.partition("(")[0].strip()
            self._set_error(span, kind, message if self._content else kind)
        elif failure := _failure(run):
            kind, message = failure
            self._set_error(span, kind, message if self._content else "failed")
        span.end()

    def _attributes(self, run: Run) -> Iterator[tuple[str, AttributeValue]]:
        yield from attributes_at_end(run)
        if is_operation(run) and (session := self._session(run)):
            yield _SESSION, session
        if is_agent(run):
            yield _PROVIDER, run.extra.get(_PROVIDER) or OWN_PROVIDER
        if not is_model(run):
            yield from _own_attributes(run, content=self._content)

    def _tell_ancestors(self, run: Run) -> None:
        """Let the runs that a run is part of know its provider and session: while they stream, inputs are unknown."""
        session = _mapping(run.inputs).get("session_id")
        for ancestor in self._ancestors(run):
            if is_model(run):
                ancestor.extra.setdefault(_PROVIDER, provider(run))
            if session is not None:
                ancestor.extra.setdefault(_SESSION, str(session))

    def _session(self, run: Run) -> str:
        """Return the name of the session that a run belongs to; empty if there is none."""
        names = (
            _mapping(known.inputs).get("session_id") or known.extra.get(_SESSION)
            for known in (run, *self._ancestors(run))
        )
        return next((str(name) for name in names if name), "")

    def _ancestors(self, run: Run) -> Iterator[Run]:
        """Yield the runs that a run is part of, the innermost first."""
        parent = self.run_map.get(str(run.parent_run_id))
        while parent is not None:
            yield parent
            parent = self.run_map.get(str(parent.parent_run_id))

    def _set_error(self, span: Span, kind: str, message: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(self._trace.StatusCode.ERROR, self._attribute(message))

    def _shown(
        self, attributes: Iterable[tuple[str, AttributeValue]]
    ) -> Iterator[tuple[str, AttributeValue]]:
        """Yield attributes whose texts are redacted and cut."""
        for name, value in attributes:
            if isinstance(value, list):
                yield name, [self._attribute(text) for text in value]
            else:
                yield name, self._attribute(value) if isinstance(value, str) else value

    def _attribute(self, text: str) -> str:
        return self._redact(text[: 2 * LONGEST])[:LONGEST]


def _failure(run: Run) -> tuple[str, str] | None:
    """Return the kind of a failed outcome and why it failed: by its verdict, or without one by its program."""
    outputs = _mapping(run.outputs)
    verdict, execution = outputs.get("verdict"), outputs.get("execution")
    failed = execution if isinstance(execution, Execution) and not execution.ok else None
    if isinstance(verdict, Verdict):
        return None if verdict.ok else (failed.status if failed else "failed", verdict.reason)
    return (failed.status, failed.summary) if failed else None


def _own_attributes(run: Run, *, content: bool) -> Iterator[tuple[str, AttributeValue]]:
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


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
