"""The state: the dict that travels through the chains, and its conversion to JSON.

It also exports the records.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, get_type_hints

from pydantic import JsonValue, TypeAdapter

from code_chains.records import (
    PROBED,
    Artifact,
    Attempt,
    CodeFailedError,
    DisplayData,
    ErrorReport,
    Execution,
    Isolation,
    Level,
    Problem,
    Record,
    Source,
    Status,
    StopReason,
    Turn,
    Usage,
    Verdict,
)

__all__ = [
    "PROBED",
    "Artifact",
    "Attempt",
    "CodeFailedError",
    "CodeState",
    "DisplayData",
    "ErrorReport",
    "Execution",
    "Isolation",
    "Level",
    "Problem",
    "Record",
    "Source",
    "Status",
    "StopReason",
    "Turn",
    "Usage",
    "Verdict",
    "as_json",
    "from_json",
]


class CodeState(TypedDict, total=False):
    """The dict that travels through the chains. Each chain reads some of these keys and adds others.

    Keys:
        query: The question, in any language.
        files: `{name in the working directory: path on this machine}`; the program gets read-only copies.
        variables: `{name: JSON value}` that exist when the program starts.
        tests: Python source, usually `assert` statements, that a program must pass and cannot reach.
        examples: Pairs of arguments and the result that a function of the program must return.
        expectations: Tests and examples, validated; internal, set by `CodeChain`.
        session_id: Name of a conversation: its turns are stored, and their programs share a session.
        session: An open session of the executor, in which programs run; failed ones leave no trace.
        schema_only: Whether models see schemas alone: names, sizes, columns and types, but no rows, values or output.
        profiles: Texts for the models about `files`, how each is read and what is in it, and about tables among `variables`.
        session_variables: What earlier programs left in the session: names of variables with their types.
        language: ISO 639-1 code of the language that answers come in.
        translation: The question in English; empty if it is in English or was not translated.
        context: Text that may help to write the program; untrusted.
        sources: The origins of the examples in the context.
        history: Earlier turns of the conversation, as text.
        previous_steps: Programs and outputs of the completed steps of a plan.
        feedback: What was wrong with the program in `failed_code`.
        failed_code: The program that `feedback` is about.
        sample_index: Number of the sample; from 1 on, the model is called at a higher temperature.
        code: The program.
        finish_reason: Why the model stopped: `stop`, `length` or `missing` (the reply was truncated).
        reply: What the model replied, if that held no program; else empty.
        problems: Findings of the checks.
        programs: All programs, in the order in which they were written.
        stdout: What these programs printed to standard output, at most 20,000 characters of each.
        execution: The record of the run.
        output: What a person would have seen: the output and the last value.
        verdict: Whether the outcome is right.
        steps: The steps of the task.
        generated_tests: Tests that a model wrote; passing them makes an outcome plausible at most.
        autofixes: What was fixed in the program without a model.
        attempts: All attempts, in order.
        stop_reason: Why work on the question ended.
        answer: The answer in words.
        answer_complete: Whether the model completed the answer.
        cached: Whether the answer is a cache hit.
        learned: Id of the snippet that was made of the program; None if none was.
        usage: What was spent on models.
    """

    query: str
    files: Mapping[str, Any]
    variables: Mapping[str, JsonValue]
    tests: str
    examples: Sequence[Any]
    expectations: Any
    session_id: str
    session: Any
    schema_only: bool
    profiles: Mapping[str, Mapping[str, str]]
    session_variables: str
    language: str
    translation: str
    context: str
    sources: tuple[Source, ...]
    history: str
    previous_steps: str
    feedback: str
    failed_code: str
    sample_index: int
    code: str
    finish_reason: str
    reply: str
    problems: list[Problem]
    programs: list[str]
    stdout: str
    execution: Execution
    output: str
    verdict: Verdict
    steps: list[str]
    generated_tests: str
    autofixes: tuple[str, ...]
    attempts: list[Attempt]
    stop_reason: StopReason
    answer: str
    answer_complete: bool
    cached: bool
    learned: str | None
    usage: Usage


def as_json(state: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a whole result to JSON values: records become dicts, paths and the like become text."""
    return {key: _plain(value) for key, value in state.items()}


def from_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """Rebuild the result that `as_json` converted; unknown keys stay as they are.

    Raises:
        ValueError: A known key holds something else than it should.
    """
    return {key: _state_adapter(key).validate_json(json.dumps(value)) for key, value in data.items()}


@functools.cache
def _state_adapter(key: str) -> TypeAdapter[Any]:
    kind = get_type_hints(CodeState).get(key, Any)
    return TypeAdapter(kind)


def _plain(value: object) -> object:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
