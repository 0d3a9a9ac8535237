"""Runs as OpenTelemetry spans: one for each stage and model call, with code and verdict as attributes, without secrets.

LangSmith needs nothing of this: `LANGSMITH_TRACING=true` shows the same runs, as it does those of every Runnable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.tracers import BaseTracer, Run

from code_chains.errors import ConfigurationError
from code_chains.state import Execution, Verdict

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

__all__ = ["OpenTelemetryTracer", "without_secrets"]

LONGEST = 20_000
"""Longest text of an attribute, in characters; what is longer is cut."""
_TEXTS = ("query", "code", "output", "answer", "language", "stop_reason", "cached", "finish_reason")
_LOOKS_SECRET = re.compile(
    r"\b(?:sk|pk|rk|ls|lsv2|ghp|gho|ghs|github_pat|glpat|hf|xox[abprs]|AIza|AKIA|ASIA)[-_]?[A-Za-z0-9_-]{12,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|(?i:(?<=bearer ))[A-Za-z0-9._~+/-]{8,}=*",
    re.DOTALL,
)
_NAMED_SECRET = re.compile(
    r"""(?ix)(\b[\w-]*(?:api[_-]?key|secret|token|passw(?:or)?d|credential)[\w-]*["']?\s*[:=]\s*)("[^"\n]+"|'[^'\n]+')"""
)
_SECRET_NAMES = re.compile(r"(?i)key|secret|token|passw|credential")


def without_secrets(text: str) -> str:
    """Text with `[secret]` in the place of whatever looks like one.

    These are: keys of well-known services, JSON web tokens, private keys, passwords in addresses, values that a program
    gives to a name such as `api_key`, and what this process has in environment variables with names such as
    `…_KEY`, `…_TOKEN`, `…_SECRET` or `…_PASSWORD`.

    Example:
        >>> without_secrets("client = Client(api_key='abc')")
        "client = Client(api_key='[secret]')"
    """
    for name, value in os.environ.items():
        if _SECRET_NAMES.search(name) and len(value) >= 8:
            text = text.replace(value, "[secret]")
    text = _NAMED_SECRET.sub(lambda found: f"{found[1]}{found[2][0]}[secret]{found[2][0]}", text)
    return _LOOKS_SECRET.sub("[secret]", text)


class OpenTelemetryTracer(BaseTracer):
    """A callback handler that makes spans of runs: `chain.invoke(question, {"callbacks": [OpenTelemetryTracer()]})`.

    A span is called like its stage (`generate`, `validate`, `execute` …), a model's `chat MODEL`. Attributes are
    `code_chains.query`, `.code`, `.output`, `.answer`, `.problems`, `.attempts`, `.stop_reason`, `.execution.status`,
    `.execution.duration` (seconds), `.execution.peak_memory` (bytes), `.isolation.level`, `.verdict.status`, `.verdict.by`,
    `.verdict.reason`, and for models those of OpenTelemetry's conventions for generative AI: `gen_ai.request.model`,
    `gen_ai.usage.input_tokens` and `.output_tokens`. The span that is current where a chain is called is their parent.

    It is one object for any number of calls, threads and tasks. Needs the extra `otel`; where spans go is set up as always,
    with OpenTelemetry's SDK.

    Args:
        provider: Whose tracer is used; None for the global one.
        content: Whether texts are attributes: questions, programs, outputs and answers.
        redact: What texts go through first.
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
        try:
            from opentelemetry import trace
        except ImportError as error:
            raise ConfigurationError(
                "callbacks", "OpenTelemetryTracer", "it after installing its package: pip install 'code-chains[otel]'"
            ) from error
        self._trace = trace
        self._tracer = trace.get_tracer("code_chains", tracer_provider=provider)
        self._content, self._redact = content, redact
        self._spans: dict[UUID, Span] = {}

    def _persist_run(self, run: Run) -> None:
        """Nothing is kept."""

    def _on_run_create(self, run: Run) -> None:
        parent = self._spans.get(run.parent_run_id) if run.parent_run_id else None
        context = self._trace.set_span_in_context(parent) if parent is not None else None
        self._spans[run.id] = self._tracer.start_span(_name(run), context)

    def _on_run_update(self, run: Run) -> None:
        span = self._spans.pop(run.id, None)
        if span is None:
            return
        for name, value in _attributes(run, content=self._content):
            span.set_attribute(name, self._redact(value)[:LONGEST] if isinstance(value, str) else value)
        if run.error:
            span.set_status(self._trace.StatusCode.ERROR, self._redact(run.error.partition("\n")[0])[:LONGEST])
        span.end()


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
