"""A chain as a tool that a model may call: typed arguments in, text for the model and a record for the app out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from langchain_core.callbacks import Callbacks
from langchain_core.messages import ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.tools import StructuredTool, ToolException
from pydantic import BaseModel, Field, ValidationError
from pydantic.v1 import ValidationError as ValidationErrorV1

from code_chains.errors import InputError
from code_chains.executors import Executor
from code_chains.inputs import shortened
from code_chains.state import Execution, Problem, Verdict, as_json
from code_chains.toolbox import Toolbox, check_tool_name
from code_chains.toolbox.arguments import describe_wrong_arguments
from code_chains.verification.feedback import repair_feedback

MAX_CHARS = 20_000
"""Approximate maximum length of text for a model, in characters."""

FormatForModel = Callable[[Mapping[str, Any], Mapping[str, Any]], str]
"""Renders inputs and outcome of a chain as text for a model."""


class ChainTool(StructuredTool):
    """A tool whose message has the status `error` if its program failed, so that agents and traces can tell."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tool."""
        return _with_status(super().run(*args, **kwargs))

    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tool without blocking the event loop."""
        return _with_status(await super().arun(*args, **kwargs))


def _with_status(output: Any) -> Any:
    if isinstance(output, ToolMessage) and isinstance(output.artifact, dict) and has_failed(output.artifact):
        output.status = "error"
    return output


def has_failed(outcome: Mapping[str, Any]) -> bool:
    """Return whether an outcome, as JSON values, has a failed verdict, or without a verdict a failed run."""
    verdict, execution = outcome.get("verdict"), outcome.get("execution")
    if verdict is not None:
        return bool(verdict["status"] == "failed")
    return execution is not None and execution["status"] != "ok"


def chain_as_tool(
    chain: Runnable[Any, Any],
    *,
    name: str,
    description: str,
    arguments: type[BaseModel],
    format_for_model: FormatForModel,
) -> StructuredTool:
    """Make a tool whose messages hold text for the model and, as `artifact`, the whole outcome as JSON values.

    The chain's run is a child of the tool's run and sees its config, so a `session_id` in the app's
    `configurable` selects the conversation; a model cannot. Errors about arguments are returned to the model. The
    message of a failure has the status `error`.

    Args:
        chain: Takes a dict and returns a dict.
        name: The name that a model calls.
        description: When a model should call it.
        arguments: The argument schema.
        format_for_model: Renders inputs and outcome for the model.
    """
    first = next(iter(arguments.model_fields), "")

    def call(
        *text: str, config: RunnableConfig, callbacks: Callbacks = None, **inputs: Any
    ) -> tuple[str, dict[str, Any]]:
        inputs.update(zip((first,), text, strict=False))  # Text alone is its first argument.
        try:
            outcome = chain.invoke(inputs, _child_config(config, callbacks), return_only_outputs=True)
        except InputError as error:
            raise ToolException(str(error)) from error
        return format_for_model(inputs, outcome), as_json(outcome)

    async def acall(
        *text: str, config: RunnableConfig, callbacks: Callbacks = None, **inputs: Any
    ) -> tuple[str, dict[str, Any]]:
        inputs.update(zip((first,), text, strict=False))  # Text alone is its first argument.
        try:
            outcome = await chain.ainvoke(inputs, _child_config(config, callbacks), return_only_outputs=True)
        except InputError as error:
            raise ToolException(str(error)) from error
        return format_for_model(inputs, outcome), as_json(outcome)

    response: Literal["content_and_artifact"] = "content_and_artifact"
    return ChainTool.from_function(
        call,
        acall,
        name=check_tool_name(name),
        description=description,
        args_schema=arguments,
        response_format=response,
        handle_tool_error=True,
        handle_validation_error=_refuse_arguments,
    )


def format_as_json(outcome: Mapping[str, Any]) -> str:
    """Render a whole outcome as JSON, or as plain text if it is a single text; long values are shortened."""
    values = list(outcome.values())
    if len(values) == 1 and isinstance(values[0], str):
        return shortened(values[0], MAX_CHARS)
    return shortened(json.dumps(as_json(outcome), ensure_ascii=False), MAX_CHARS)


class Question(BaseModel):
    """The arguments of the chain as a tool."""

    query: str = Field(description="The question or task, complete in itself, in any language.", min_length=1)


class ProgramArguments(BaseModel):
    """The arguments of a tool that runs programs."""

    code: str = Field(
        description="The whole program. Print what you need to see; the value of a last expression is shown as well.",
        min_length=1,
    )


_PURPOSES = {
    "python": "Runs a Python program in a sandbox and returns what it prints, or why it failed.",
    "sql": "Runs a SQL query and returns its result, or why it failed.",
}
_STATEFUL = (
    "Variables, imports and files stay for your next program; a program that fails changes none of them."
)
_STATELESS = "Each program starts from nothing: write everything that it needs."


def describe_program_tool(
    executor: Executor,
    *,
    keeps_state: bool,
    files: Iterable[str] = (),
    variables: Iterable[str] = (),
    toolbox: Toolbox | None = None,
) -> str:
    """Describe a tool that runs programs to the model that calls it."""
    parts = [_PURPOSES[executor.language], executor.guidance, _STATEFUL if keeps_state else _STATELESS]
    if names := ", ".join(files):
        parts.append(f"Files in the working directory: {names}.")
    if names := ", ".join(variables):
        parts.append(f"Variables that exist: {names}.")
    description = " ".join(filter(None, parts))
    return f"{description}\n{toolbox.format_for_model()}" if toolbox else description


def format_execution(execution: Execution, code: str = "", problems: Sequence[Problem] = ()) -> str:
    """Render a run's output and the names of its artifacts, or why it failed; shortened, without bytes.

    Args:
        execution: The run.
        code: The program, of which the line that failed is shown.
        problems: What checks found.
    """
    parts = [shortened(execution.output, MAX_CHARS)]
    if not execution.ok:
        parts.append(describe_failure(execution, code, problems))
    if execution.artifacts:
        parts.append(f"Made: {', '.join(artifact.name for artifact in execution.artifacts)}")
    if execution.truncated:
        parts.append("(Output or files were larger than the limits, and are not complete.)")
    return "\n".join(part for part in parts if part.strip()) or "The program ran and printed nothing."


def describe_failure(execution: Execution, code: str, problems: Sequence[Problem]) -> str:
    """Describe a failure as a model that repairs its program is told about it; shortened."""
    if execution.status == "refused" and not problems:
        return execution.summary
    outcome = {
        "code": code,
        "problems": problems,
        "execution": replace(execution, stdout="", result=None),
        "verdict": Verdict("failed", "none", execution.summary),
    }
    return shortened(repair_feedback(outcome), MAX_CHARS // 2)


def _refuse_arguments(error: ValidationError | ValidationErrorV1) -> str:
    """Return what is wrong with each argument, for the model that chose them."""
    return f"Nothing was done, as the arguments are wrong. {describe_wrong_arguments(error)}."


def _child_config(config: RunnableConfig | None, callbacks: Callbacks) -> RunnableConfig:
    """Return the config of the chain's run, a child of the tool's run.

    A classic agent passes no config to its tools, but callbacks that inherit the metadata of its own run; the
    thread is taken from there.
    """
    config = ensure_config(config)
    metadata = getattr(callbacks, "inheritable_metadata", None) or {}
    threads = {name: metadata[name] for name in ("thread_id", "session_id") if name in metadata}
    config["configurable"] = {**threads, **config["configurable"]}
    return {**config, "callbacks": callbacks} if callbacks is not None else config
