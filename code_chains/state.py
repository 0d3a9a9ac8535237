"""The state: the dict that travels through the chains, and its conversion to JSON.

It also exports the records.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args, get_type_hints, overload

from pydantic import JsonValue, TypeAdapter

from code_chains.errors import InputError
from code_chains.records import (
    BUDGET_STOPS,
    FINAL_STOPS,
    PROBED,
    Artifact,
    Attempt,
    CodeFailedError,
    DisplayData,
    ErrorReport,
    Execution,
    Isolation,
    Level,
    PastedData,
    Problem,
    Record,
    Source,
    Status,
    StopReason,
    TestResult,
    ToolCall,
    Turn,
    Usage,
    Verdict,
)

__all__ = [
    "BUDGET_STOPS",
    "FINAL_STOPS",
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
    "PastedData",
    "Problem",
    "Record",
    "Source",
    "Status",
    "StopReason",
    "TestResult",
    "ToolCall",
    "Turn",
    "Usage",
    "Verdict",
    "as_json",
    "from_json",
    "numbers_rows",
    "with_index_as_column",
]


class PrivateState(TypedDict, total=False):
    """What `CodeChain` alone adds to the state, for its stages; callbacks are told nothing of it.

    Keys:
        answer_type: The type of the value, an `AnswerType`.
        refusal: What the provider said when it refused to translate, plan, condense or write tests.
        session_state: What the state of the session follows from, as a checksum.
    """

    answer_type: Any
    refusal: str
    session_state: str


class CodeState(PrivateState, total=False):
    """The dict that travels through the chains. Each chain reads some of these keys and adds others.

    Keys:
        query: The question, in any language.
        files: Paths, bytes or open binary files by their names in the working directory, or a list of paths and patterns;
            the program gets read-only copies.
        variables: Values by name that exist when the program starts: numbers, text, lists, dicts and, if the
            executor supports them, dates, bytes, sets, arrays and tables.
        stdin: What the program reads from its standard input.
        tests: Python source, usually `assert` statements, that a program must pass and cannot reach.
        examples: Pairs of arguments and the result that a function of the program must return.
        return_value: Whether a run returns its value with its type, for `executors.values.value_of`.
        session_id: Name of a conversation: its turns are stored, and their programs share a session.
        session: An open session of the executor, in which programs run; failed ones leave no trace.
        schema_only: Whether models see schemas alone: names, sizes, columns and types, but no rows, values or output.
        profiles: Texts for the models about `files`, how each is read and what is in it, and about tables among `variables`.
        session_variables: What earlier programs left in the session: names of variables with their types.
        language: ISO 639-1 code of the language that answers come in; `und` for one beyond those with messages of their own.
        standalone_question: The question as it is understood without the history; empty if it is.
        translation: The question in English; empty if it is in English or was not translated.
        context: Text that may help to write the program; untrusted.
        sources: The origins of the examples in the context.
        history: Earlier turns of the conversation, as text or LangChain messages.
        previous_steps: Programs and outputs of the completed steps of a plan.
        feedback: What was wrong with the program in `failed_code`.
        failed_code: The program that `feedback` is about.
        known_failures: Programs that failed and will fail again, so that none of them is run twice.
        cells: Messages with the cells of an iteration so far, and what they showed; they follow the question.
        sample_index: Number of the sample; from 1 on, the model is called at a higher temperature.
        code: The program.
        finish_reason: Why the model stopped: `stop`, `length` or `missing` (the reply was truncated).
        reply: What the model replied, if that held no program; else empty.
        words: What the model replied in place of a program when it was asked first.
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
        answer_language: The language of the answer: the one that was asked for, or that of the question.
        cached: Whether the answer is a cache hit.
        learned: Id of the snippet that was made of the program; None if none was.
        value: The value of the program, of the type that was asked for; None if the verdict is `failed`.
        notes: What reading the files leaves out or changes, and what about them is not certain: a sentence each.
        pasted: Data that was found in the text of the question; programs find it in files and variables.
        usage: What was spent on models.
        receipt: What the answer was computed from, as JSON; see `code_chains.receipts`.
    """

    query: str
    files: Mapping[str, Any]
    variables: Mapping[str, JsonValue]
    stdin: str
    tests: str | Sequence[str]
    examples: Sequence[Any]
    return_value: bool
    session_id: str
    session: Any
    schema_only: bool
    profiles: Mapping[str, Mapping[str, str]]
    session_variables: str
    language: str
    standalone_question: str
    translation: str
    context: str | Sequence[Any]
    sources: tuple[Source, ...]
    history: str | Sequence[Any]
    previous_steps: str
    feedback: str
    failed_code: str
    known_failures: Sequence[str]
    cells: Sequence[Any]
    sample_index: int
    code: str
    finish_reason: str
    reply: str
    words: str
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
    answer_language: str
    cached: bool
    learned: str | None
    value: Any
    notes: list[str]
    pasted: list[PastedData]
    usage: Usage
    receipt: dict[str, JsonValue]


BEFORE_MODELS = frozenset(
    (
        "answer_language context language notes pasted profiles session_variables sources standalone_question"
        " translation"
    ).split()
)
"""Keys that may be there before a model has replied, or was asked for a program."""

if TYPE_CHECKING:
    from langchain_core.runnables.utils import AddableDict

    class CodeResult(dict[str, Any]):
        """What a `CodeChain` returns, for type checkers and editors: a dict whose keys have the types of `CodeState`.

        A `TypedDict` is no `dict[str, Any]`, as which LangChain's signatures have it.
        """

        @overload
        def __getitem__(
            self, key: Literal["query", "code", "stdout", "output", "answer", "answer_language"]
        ) -> str: ...
        @overload
        def __getitem__(self, key: Literal["answer_complete", "cached"]) -> bool: ...
        @overload
        def __getitem__(self, key: Literal["attempts"]) -> list[Attempt]: ...
        @overload
        def __getitem__(self, key: Literal["execution"]) -> Execution: ...
        @overload
        def __getitem__(self, key: Literal["learned"]) -> str | None: ...
        @overload
        def __getitem__(self, key: Literal["pasted"]) -> list[PastedData]: ...
        @overload
        def __getitem__(self, key: Literal["problems"]) -> list[Problem]: ...
        @overload
        def __getitem__(self, key: Literal["notes", "programs", "steps"]) -> list[str]: ...
        @overload
        def __getitem__(self, key: Literal["sources"]) -> tuple[Source, ...]: ...
        @overload
        def __getitem__(self, key: Literal["stop_reason"]) -> StopReason: ...
        @overload
        def __getitem__(self, key: Literal["usage"]) -> Usage: ...
        @overload
        def __getitem__(self, key: Literal["receipt"]) -> dict[str, Any]: ...
        @overload
        def __getitem__(self, key: Literal["verdict"]) -> Verdict: ...
        @overload
        def __getitem__(self, key: str) -> Any: ...
        def __getitem__(self, key: str) -> Any: ...

    class CodeChunk(CodeResult, AddableDict):
        """What it streams: chunks with some of the keys, whose sum is the result."""

        def __add__(self, other: AddableDict) -> CodeChunk: ...


def as_json(state: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a whole result to JSON values: records become dicts, paths and the like become text.

    Examples become mappings, as JSON does not tell several arguments from a list, nor an exception from its name.
    """
    return {key: _plain(_examples(value) if key == "examples" else value) for key, value in state.items()}


def _examples(examples: object) -> object:
    """Return examples that are pairs as mappings that mean the same."""
    if not isinstance(examples, Sequence) or isinstance(examples, str):
        return examples
    return [_example(one) for one in examples]


def _example(example: object) -> object:
    if not isinstance(example, tuple | list) or len(example) != 2:
        return example
    args, expected = example
    given = {"args": list(args) if isinstance(args, tuple) else [args]}
    if isinstance(expected, type) and issubclass(expected, Exception):
        return {**given, "raises": expected.__name__}
    return {**given, "expected": expected}


def from_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """Rebuild the result that `as_json` converted; unknown keys stay as they are.

    Raises:
        ValueError: A known key holds something else than it should.
    """
    texts = {
        key: json.dumps(value, default=_plain) for key, value in data.items()
    }  # Some of it may be records already.
    return {key: _state_adapter(key).validate_json(text) for key, text in texts.items()}


def with_records(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state with records in place of what a checkpoint, a queue or a web client has made of them.

    Raises:
        InputError: A record's key holds something else.
    """
    data = {key: value for key, value in state.items() if key in _record_keys() and _is_data(value)}
    try:
        return {**state, **from_json(data)} if data else state
    except (ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{' or '.join(data)} is no record as `as_json` has it: {reason}.") from error


@functools.cache
def _record_keys() -> Set[str]:
    """Return the keys that hold a record, or several."""
    hints = get_type_hints(CodeState).items()
    return {key for key, hint in hints if any(_is_record(each) for each in (hint, *get_args(hint)))}


def _is_record(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Record)


def _is_data(value: object) -> bool:
    """Return whether a value is a dict, or a list of them."""
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value)
    )


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
    if isinstance(value, str | int | float | bool | None):
        return value
    try:
        return _state_adapter("value").dump_python(value, mode="json", fallback=_fallback)
    except ValueError:  # It holds bytes that are not text.
        return str(value)


def _fallback(value: Any) -> object:
    """Return a frame of pandas as its records, and anything else as text."""
    is_frame = type(value).__name__ == "DataFrame" and hasattr(value, "reset_index")
    return _records(value) if is_frame else str(value)


def _records(frame: Any) -> list[dict[str, object]]:
    table = with_index_as_column(frame)
    names: list[str] = []
    for column in map(str, table.columns):
        names.append(f"{column}.{len(names)}" if column in names else column)
    cells = table.astype(object).where(table.notna(), None).itertuples(index=False, name=None)
    return [dict(zip(names, map(_plain, row), strict=True)) for row in cells]


def with_index_as_column(frame: Any) -> Any:
    """Return a frame of pandas with its index as a column, unless it only numbers the rows."""
    return frame if numbers_rows(frame) else frame.reset_index(allow_duplicates=True)


def numbers_rows(table: Any) -> bool:
    """Return whether the index of a frame or series of pandas says nothing but the numbers of its rows."""
    index = table.index
    is_unnamed = index.inferred_type in ("integer", "empty") and list(index.names) == [None]
    return is_unnamed and list(index) == list(range(len(table)))
