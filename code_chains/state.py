"""The nouns: what travels between pieces, as frozen records that survive JSON both ways."""

from __future__ import annotations

import functools
import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypedDict, get_type_hints

from pydantic import ConfigDict, JsonValue, TypeAdapter

from code_chains.errors import CodeFailedError

__all__ = [
    "PROBED",
    "Artifact",
    "Attempt",
    "CodeState",
    "ErrorReport",
    "Execution",
    "Isolation",
    "Level",
    "Problem",
    "Source",
    "Status",
    "StopReason",
    "Turn",
    "Usage",
    "Verdict",
]

Status = Literal[
    "ok",
    "error",
    "timeout",
    "memory",
    "output_limit",
    "process_limit",
    "disk_limit",
    "file_limit",
    "killed",
    "refused",
]
Level = Literal["kernel", "landlock", "container", "interpreter", "none"]
StopReason = Literal["answered", "attempts", "same_failure", "usd", "tokens", "model_calls", "seconds"]
"""Why work on a question ended: with an answer, after all attempts, because the same failure came again and again, or at a
limit of the budget."""


PROBED = ("filesystem", "network", "processes", "environment", "signals", "ptrace")
"""What a probe inside a box tries to reach."""

_adapters: dict[type, TypeAdapter[Any]] = {}


def _adapter(record: type[Record]) -> TypeAdapter[Any]:
    if record not in _adapters:
        _adapters[record] = TypeAdapter(record)
    return _adapters[record]


class Record:
    """A frozen dataclass that is JSON both ways: `from_json(record.to_json()) == record`."""

    __pydantic_config__ = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    def to_dict(self) -> dict[str, Any]:
        """The record as a dict of JSON values; bytes become base64 text."""
        data: dict[str, Any] = _adapter(type(self)).dump_python(self, mode="json")
        return data

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return _adapter(type(self)).dump_json(self).decode()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a record from what `to_dict` gave; raises `ValueError` for anything else."""
        return cls.from_json(json.dumps(dict(data)))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a record from what `to_json` gave; raises `ValueError` for anything else."""
        record: Self = _adapter(cls).validate_json(text)
        return record


@dataclass(frozen=True)
class Problem(Record):
    """Something a check found in a program before it ran.

    Attributes:
        check: Name of the check, e.g. `parses`.
        message: What is wrong and what to do instead, as one sentence.
        line: Line in the program, from 1; None where it concerns the whole.
        severity: An `error` keeps the program from running; `advice` is shown to whoever approves or repairs it.
    """

    check: str
    message: str
    line: int | None = None
    severity: Literal["error", "advice"] = "error"

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.message} ({self.check})"


@dataclass(frozen=True)
class Isolation(Record):
    """What a probe inside the box found closed before the program started; not what was configured.

    Attributes:
        level: `kernel` (own namespaces and a system-call filter), `landlock` (Landlock and a system-call filter, in the
            host's namespaces), `container`, `interpreter` or `none`.
        launcher: What built the box, e.g. `bubblewrap`, `namespaces` or `none`.
        filesystem: A file of the host could neither be read nor made.
        network: A server on the host's loopback interface could not be reached.
        processes: The host's processes could not be seen or signalled.
        environment: No environment variable of the host was inherited.
        signals: No process of the host could be sent a signal.
        ptrace: No process of the host could be looked into.
        layers: Kernel mechanisms that are in force, e.g. `("namespaces", "seccomp", "landlock", "rlimits")`.
    """

    level: Level
    launcher: str
    filesystem: bool = False
    network: bool = False
    processes: bool = False
    environment: bool = False
    signals: bool = False
    ptrace: bool = False
    layers: tuple[str, ...] = ()

    @property
    def open(self) -> tuple[str, ...]:
        """Names of what the probe found open."""
        return tuple(name for name in PROBED if not getattr(self, name))


@dataclass(frozen=True)
class ErrorReport(Record):
    """Why a program ended badly.

    Attributes:
        type: Name of the exception, e.g. `ZeroDivisionError`, or of the ending, e.g. `Timeout`.
        message: Its text.
        line: Line of the program that failed, from 1; None where there is none.
        traceback: Frames of the program alone, as Python prints them.
        locals: Names in the failing frame with short reprs.
        hint: What is there instead of what was missing: close names, columns, modules or files.
    """

    type: str
    message: str
    line: int | None = None
    traceback: str = ""
    locals: dict[str, str] = field(default_factory=dict)
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True)
class Artifact(Record):
    """A file or figure that a program made.

    Attributes:
        name: Path relative to the working directory of the program.
        media_type: E.g. `image/png`.
        data: The bytes.
    """

    name: str
    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Execution(Record):
    """The record of one run. What the program wrote into it is data from a stranger.

    Attributes:
        status: How the run ended: `ok`, `error` (an exception), a limit it ran into (`timeout`, `memory`,
            `output_limit`, `process_limit`, `disk_limit`, `file_limit` for open files), `killed`, or `refused`, which
            means that nothing ran.
        stdout: What was printed, cut at the limit.
        stderr: What was printed to standard error, cut at the limit.
        result: `repr` of the last expression's value, or of the variable `result`, as a notebook shows it.
        error: Why it ended badly; None when `status` is `ok`.
        artifacts: Files the program made.
        duration: Wall-clock seconds of the program itself.
        peak_memory: Largest resident memory of one process, in bytes.
        truncated: Whether some output was cut.
        isolation: What was enforced; None when nothing ran.
    """

    status: Status
    stdout: str = ""
    stderr: str = ""
    result: str | None = None
    error: ErrorReport | None = None
    artifacts: tuple[Artifact, ...] = ()
    duration: float = field(default=0.0, compare=False)
    peak_memory: int = field(default=0, compare=False)
    truncated: bool = False
    isolation: Isolation | None = None

    @property
    def ok(self) -> bool:
        """Whether the program ran to its end without an error."""
        return self.status == "ok"

    @property
    def output(self) -> str:
        """What a person would have seen: what was printed, then the last value as a notebook shows it."""
        lines = self.stdout.rstrip().split("\n") if self.stdout.strip() else []
        if self.result is not None and (not lines or lines[-1] != self.result):
            lines.append(self.result)
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """One line that says how the run ended."""
        if self.ok:
            return "The program ran to its end."
        return str(self.error) if self.error else f"The program ended with status {self.status}."

    def raise_for_failure(self) -> None:
        """Raise `CodeFailedError` unless the run was ok."""
        if not self.ok:
            raise CodeFailedError(self)


@dataclass(frozen=True)
class Verdict(Record):
    """Whether an outcome is an answer, and who says so.

    Attributes:
        status: `verified` (tests that were given passed), `plausible` (a judge, a vote or tests that a model wrote agree),
            `unverified` (ran, nothing checked it) or `failed`.
        by: Who decided.
        reason: Why, as one sentence.
    """

    status: Literal["verified", "plausible", "unverified", "failed"]
    by: Literal["tests", "judge", "vote", "none"]
    reason: str

    @property
    def ok(self) -> bool:
        """Whether the outcome may be told as an answer."""
        return self.status != "failed"

    @property
    def rank(self) -> int:
        """How far it carries, from 0 for `failed` to 3 for `verified`."""
        return ("failed", "unverified", "plausible", "verified").index(self.status)


@dataclass(frozen=True)
class Attempt(Record):
    """One round of generate, validate, execute and evaluate.

    Attributes:
        number: From 1.
        code: The program of this round; empty if the reply held none.
        problems: What the checks found.
        status: How its run ended.
        summary: One line about that end.
        verdict: What was decided about it.
        tack: How the program came about: the `first` one, a `repair` of the one before, or a `fresh` start after the same
            failure had come twice.
        mends: What was mended in it without asking a model.
        step: The step of a plan that it belongs to, from 1; None without a plan.
    """

    number: int
    code: str
    problems: tuple[Problem, ...]
    status: Status
    summary: str
    verdict: Verdict
    tack: Literal["first", "repair", "fresh"] = "first"
    mends: tuple[str, ...] = ()
    step: int | None = None


@dataclass(frozen=True)
class Source(Record):
    """An example that was shown to the model.

    Attributes:
        name: Where it is from: a file, or the name of a snippet.
        about: What it shows.
    """

    name: str
    about: str = ""


@dataclass(frozen=True)
class Usage(Record):
    """What was spent on models.

    Attributes:
        model_calls: Number of calls that were answered.
        input_tokens: Tokens read, over all models that report them.
        output_tokens: Tokens written, over all models that report them.
        by_model: `{model name: {"input_tokens": …, "output_tokens": …}}`.
        by_stage: `{stage: {"model_calls": …, "input_tokens": …, "output_tokens": …}}`, e.g. for `generate`.
        usd: What that costs; None where a price is not known.
    """

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    by_model: dict[str, dict[str, int]] = field(default_factory=dict)
    by_stage: dict[str, dict[str, int]] = field(default_factory=dict)
    usd: float | None = None


@dataclass(frozen=True)
class Turn(Record):
    """A question of a conversation and what came of it.

    Attributes:
        id: Names it within its session; later turns have greater ones.
        query: The question.
        answer: What was told.
        code: The program that was kept.
        output: What it showed.
        status: The verdict's status.
        files: The files that were given, `{name: path on this machine}`.
        variables: The variables that were given, as far as they are JSON.
        artifacts: Files and figures that it made.
        runs: How many runs changed the state of the session.
    """

    id: str
    query: str
    answer: str = ""
    code: str = ""
    output: str = ""
    status: str = "unverified"
    files: dict[str, str] = field(default_factory=dict)
    variables: dict[str, JsonValue] = field(default_factory=dict)
    artifacts: tuple[Artifact, ...] = ()
    runs: int = 0


class CodeState(TypedDict, total=False):
    """The dict that travels. Every piece reads some of these keys and adds others.

    Keys:
        query: The question, in any language.
        files: `{name in the working directory: path on this machine}`; read-only copies go into the box.
        variables: `{name: JSON value}` that exist when the program starts.
        tests: Python source, usually `assert` statements, that a program must pass; it cannot reach them.
        examples: Pairs of arguments and result that a function of the program must give.
        session_id: Names a conversation: its turns are remembered, and their programs share a state.
        session: An open session of the executor, in which programs run; those that fail leave no trace in it.
        kept: What earlier programs left in the session: names of variables with their types.
        language: ISO 639-1 code of the language that answers come in.
        translation: The question in English; empty where it is in English, or was not translated.
        context: Text that may help to write the program; untrusted.
        sources: Where examples in the context are from.
        history: Earlier turns of the conversation, as text.
        earlier: Programs and outputs of the steps of a plan that are done.
        feedback: What was wrong with the program in `failed_code`.
        failed_code: The program that `feedback` is about.
        variation: Number of a fresh try; from 1 on, the model is asked at a higher temperature.
        code: The program.
        finish_reason: Why the model stopped writing: `stop`, `length` or `missing` (the reply was cut).
        problems: What the checks found; empty is good.
        execution: The record of the run.
        output: What a person would have seen.
        verdict: Whether this is an answer.
        steps: The steps that a task was split into.
        generated_tests: Tests that a model wrote; passing them makes an outcome plausible at most.
        mends: What was mended in the program without asking a model.
        attempts: The story of all attempts.
        stop_reason: Why work on the question ended.
        answer: The answer in words.
        complete: Whether a model told the answer to its end.
        cached: Whether the answer was there already.
        learned: Id of the snippet that the program became; None if it did not.
        usage: What was spent on models.
    """

    query: str
    files: Mapping[str, Any]
    variables: Mapping[str, JsonValue]
    tests: str
    examples: Sequence[Any]
    session_id: str
    session: Any
    kept: str
    language: str
    translation: str
    context: str
    sources: tuple[Source, ...]
    history: str
    earlier: str
    feedback: str
    failed_code: str
    variation: int
    code: str
    finish_reason: str
    problems: list[Problem]
    execution: Execution
    output: str
    verdict: Verdict
    steps: list[str]
    generated_tests: str
    mends: tuple[str, ...]
    attempts: list[Attempt]
    stop_reason: StopReason
    answer: str
    complete: bool
    cached: bool
    learned: str | None
    usage: Usage


def signal_name(number: int) -> str:
    """The name of a signal, e.g. `SIGKILL` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def as_json(state: Mapping[str, Any]) -> dict[str, Any]:
    """A whole result as JSON values: records become dicts, paths and the like become text."""
    return {key: _plain(value) for key, value in state.items()}


def from_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """The result that `as_json` made JSON of; keys that are not known stay as they are.

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
