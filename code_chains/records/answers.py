"""Records of the work on a question: problems, verdicts, attempts, usage and turns."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from code_chains.records.record import Record, resolve_types
from code_chains.records.runs import Artifact, DisplayData, ErrorReport, Status, ToolCall

StopReason = Literal[
    "answered",
    "attempts",
    "same_failure",
    "effects",
    "refused",
    "usd",
    "tokens",
    "model_calls",
    "tool_calls",
    "seconds",
]
"""Why work on a question ended: with an answer, after all attempts, after the same failure again and again, because a
program that failed had called a tool with effects, because the model's provider refused, or at a limit of the budget."""
BUDGET_STOPS: tuple[StopReason, ...] = ("usd", "tokens", "model_calls", "tool_calls", "seconds")
"""Those of a budget that is spent."""
FINAL_STOPS: tuple[StopReason, ...] = (*BUDGET_STOPS, "effects", "refused")
"""Those after which no other model or strategy may go on."""


@dataclass(frozen=True)
class Problem(Record):
    """A finding of a check in a program before it runs.

    Attributes:
        check: Name of the check, e.g. `parses`.
        message: What is wrong and how to fix it, as one sentence.
        line: Line of the program, from 1; None if it concerns the whole.
        severity: An `error` keeps the program from running; `advice` is shown to approvers and in feedback.
    """

    check: str
    message: str
    line: int | None = None
    severity: Literal["error", "advice"] = "error"

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.message}"


@dataclass(frozen=True)
class TestResult(Record):
    """How one test or example ended; the keys are those of Exercism's test results, version 3.

    Attributes:
        name: What it is called, or its source.
        status: `pass`, `fail`, or `error` if it is broken: it fails whatever the program is.
        message: What it found; empty if it passed.
        output: What the program printed in it, at most 500 characters.
        test_code: Its source; empty for examples.
        line: Its line in the tests, or the number of the example, from 1.
        seconds: Wall-clock seconds that it took; None if it ended its run, or nothing told.
    """

    __test__ = False  # It is not itself a test of pytest.

    name: str
    status: Literal["pass", "fail", "error"]
    message: str = ""
    output: str = ""
    test_code: str = ""
    line: int = 0
    seconds: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Verdict(Record):
    """Whether an outcome is right, and who decided so.

    Attributes:
        status: `verified` (the given tests passed), `plausible` (a judge, a vote or tests that a model wrote
            agree), `unverified` (it ran, and nothing checked it) or `failed`.
        by: Who decided: the `tests`, the `judge`, a `vote` of programs, the `type` of the value, the `output` (it reports a
            failure, or what is missing), sanity `checks` (they raise a doubt), `provenance` (what is shown was made up),
            `reply` (there is no program, but the model's own words), or `none`: the run itself.
        reason: Why, as one sentence.
        needs: What was not given, as the program or the model names it: a question back instead of an answer.
        tests: How each test and example ended.
        worth: How often answers with such a verdict were right in an evaluation, in words; empty if that is not known.
        reply: What the model said instead of writing a program, in a conversation.
    """

    status: Literal["verified", "plausible", "unverified", "failed"]
    by: Literal["tests", "judge", "vote", "type", "output", "checks", "provenance", "reply", "none"]
    reason: str
    needs: tuple[str, ...] = ()
    tests: tuple[TestResult, ...] = ()
    worth: str = ""
    reply: str = ""

    @property
    def ok(self) -> bool:
        """Whether the outcome may be given as an answer."""
        return self.status != "failed"

    @property
    def is_open(self) -> bool:
        """Whether a verifier or a vote may still decide: what was not computed stays so, whoever agrees."""
        return self.status == "unverified" and self.by not in ("provenance", "reply")

    @property
    def is_doubt(self) -> bool:
        """Whether it doubts an outcome that may be right: worth another attempt, and an answer if there is no better one."""
        return self.by in ("checks", "provenance")

    @property
    def rank(self) -> int:
        """Its strength, from 0 for `failed` to 3 for `verified`."""
        return ("failed", "unverified", "plausible", "verified").index(self.status)


NOT_ANALYSED = Verdict(
    "unverified",
    "provenance",
    "Not analysed: the program is too large or too deep to be read, or makes code from text.",
)
"""What is said of a program for which the budget of work did not suffice; no vote, judge or cache makes more of it."""
Strategy = Literal["initial", "repair", "restart", "continue", "verify"]


@dataclass(frozen=True)
class Attempt(Record):
    """One round of generate, validate, execute and evaluate.

    Attributes:
        number: From 1.
        code: The program; empty if the reply held none.
        problems: What the checks found.
        status: How its run ended.
        summary: How it ended, in one line.
        verdict: Its verdict.
        strategy: How the program was requested: the `initial` request, a `repair` of the one before, a `restart` without
            the failed one in sight, to `continue` with another cell, or to `verify` the outcome of another program.
        autofixes: What was fixed in it without a model.
        step: The step of a plan, from 1; None without a plan.
        model: The name of the model that wrote the program, if there are several.
        tool_calls: The calls that it made to tools of the application.
        output: What it showed; at most about 20,000 characters.
        error: Why it failed; None if it did not.
    """

    number: int
    code: str
    problems: tuple[Problem, ...]
    status: Status
    summary: str
    verdict: Verdict
    strategy: Strategy = "initial"
    autofixes: tuple[str, ...] = ()
    step: int | None = None
    model: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    output: str = ""
    error: ErrorReport | None = None


@dataclass(frozen=True)
class PastedData(Record):
    """Data that was found in the text of a question.

    Attributes:
        name: The file or, for `numbers`, the variable that programs find it in.
        kind: What it is; tables in Markdown become CSV.
        start: Where it begins in the question.
        end: Where it ends.
        rows: Its lines, the header included, or its items.
    """

    name: str
    kind: Literal["csv", "tsv", "markdown", "json", "jsonl", "numbers"]
    start: int
    end: int
    rows: int


@dataclass(frozen=True)
class Source(Record):
    """An example that the model saw.

    Attributes:
        name: Its origin: a file, or the name of a snippet.
        about: What it shows.
        text: The passage, at most 3,000 characters of it, so that an app can show it.
        score: How near it is to the question, if the retriever says that; scores of two retrievers cannot be compared.
        metadata: What else is known of it: the plain values of the document's metadata.
    """

    name: str
    about: str = ""
    text: str = ""
    score: float | None = None
    metadata: dict[str, JsonValue] = field(default_factory=dict)


def _sums(*tables: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return the sums of counts of the same name in tables of counts."""
    sums = dict[str, Counter[str]]()
    for name, counts in itertools.chain.from_iterable(table.items() for table in tables):
        sums.setdefault(name, Counter()).update(counts)
    return {name: dict(counts) for name, counts in sums.items()}


@dataclass(frozen=True)
class Usage(Record):
    """What was spent on models.

    Attributes:
        model_calls: Number of calls that were answered.
        input_tokens: Input tokens of all models.
        output_tokens: Output tokens of all models.
        by_model: `{model name: {"input_tokens": …, "output_tokens": …}}`.
        by_stage: `{stage: {"model_calls": …, "input_tokens": …, "output_tokens": …}}`, e.g. for `generate`.
        usd: The cost in dollars; None if a price is unknown.
        estimated_calls: Calls of which no provider told the tokens, so that they are estimated from the texts: answered
            ones, and those that broke off, e.g. by a time-out.
    """

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    by_model: dict[str, dict[str, int]] = field(default_factory=dict)
    by_stage: dict[str, dict[str, int]] = field(default_factory=dict)
    usd: float | None = 0.0
    estimated_calls: int = 0

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens

    def describe(self, known_usd: float = 0.0, *, is_partial: bool = False) -> str:
        """Describe it in one line: what is estimated is "about", and "at least" what is known of something.

        Args:
            known_usd: Dollars of that part whose price is known, if not all is.
            is_partial: Whether more was spent, which nobody can tell.
        """
        bound = "at least " if is_partial else "about " if self.estimated_calls else ""
        usd = f"{bound}{self.usd or 0.0:.4f} dollars"
        if self.usd is None:
            usd = f"at least {known_usd:.4f} dollars" if known_usd else "unknown price"
        told = f" and {self.estimated_calls:,} that told no tokens" if self.estimated_calls else ""
        return f"{usd}, {bound}{self.tokens:,} tokens, {self.model_calls:,} model calls{told}"

    def __add__(self, other: Usage) -> Usage:
        """Return what was spent on both."""
        return Usage(
            self.model_calls + other.model_calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            _sums(self.by_model, other.by_model),
            _sums(self.by_stage, other.by_stage),
            None if self.usd is None or other.usd is None else round(self.usd + other.usd, 9),
            self.estimated_calls + other.estimated_calls,
        )


@dataclass(frozen=True)
class Turn(Record):
    """A question of a conversation with its answer.

    Attributes:
        id: Its name within the conversation; later turns have greater ids.
        query: The question.
        answer: The answer.
        code: The accepted program.
        output: Its output.
        status: The verdict's status.
        files: The input files, `{name: path on this machine}`.
        variables: The input variables, as far as they are JSON.
        artifacts: Its artifacts.
        display_data: How a notebook displays its last value.
        runs: Number of runs that changed the state of the session.
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
    display_data: tuple[DisplayData, ...] = ()
    runs: int = 0


resolve_types(__name__)
