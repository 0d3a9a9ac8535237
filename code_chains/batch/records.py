"""Answers as lines of a results file, and as JSON that is sent to other machines."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from code_chains.assembly.code_chain import CodeChain
from code_chains.batch.questions import Question
from code_chains.callbacks.budget import Budget
from code_chains.callbacks.provider_errors import is_broken_reply, is_out_of_credit, retry_after, status_of
from code_chains.callbacks.redaction import describe_error
from code_chains.errors import BudgetError, CodeChainsError, ConfigurationError, IsolationError
from code_chains.state import BUDGET_STOPS, StopReason, Usage, as_json, from_json

Failure = Literal["", "passing", "hopeless", "question"]
"""What failed: something that passes, such as a rate limit; what fails for every question, such as a wrong key; or this
question alone."""
_PASSING_STATUS = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_HOPELESS_STATUS = {401, 402, 403, 404}


@dataclass(frozen=True)
class Answer:
    """The outcome of a question.

    Attributes:
        question: The question.
        result: The result of the chain; empty if it raised.
        error: Why there is no answer; empty if there is one.
        is_lost: Whether the question was abandoned because its workers died.
        seconds: How long it took, on the machine that ran it.
        limit: The limit of a budget that prevented an answer.
        failure: What failed; empty if there is an answer.
        retry_after: In how many seconds the provider wants to be asked again; 0 if it did not say.
    """

    question: Question
    result: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    is_lost: bool = False
    seconds: float = 0.0
    limit: StopReason | None = None
    failure: Failure = ""
    retry_after: float = 0.0

    @property
    def id(self) -> str:
        """The id of the question."""
        return self.question.id

    @property
    def ok(self) -> bool:
        """Whether there is an answer."""
        return not self.error and bool(self.result["verdict"].ok)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values: what its user brought in `given`, what was computed in `computed`."""
        question = self.question
        given = {"query": question.query, "own": as_json(question.own), "digest": question.digest}
        return {"id": self.id, "given": given, "computed": self.computed()}

    def computed(self) -> dict[str, Any]:
        """Return what was computed as JSON values."""
        seconds = round(self.seconds, 3)
        if self.error:
            usage = self.result.get("usage", Usage()).to_dict()
            details = {"is_lost": self.is_lost, "limit": self.limit, "failure": self.failure}
            return {
                "error": self.error,
                **details,
                "retry_after": self.retry_after,
                "usage": usage,
                "seconds": seconds,
            }
        added = {key: value for key, value in self.result.items() if key not in self.question.inputs}
        return {**as_json(added), "seconds": seconds}

    @classmethod
    def from_computed(cls, question: Question, computed: Mapping[str, Any]) -> Answer:
        """Create the answer to a question from what was computed."""
        if "error" in computed:
            usage = {"usage": Usage.from_dict(computed["usage"])}
            names = ("error", "is_lost", "seconds", "limit", "failure", "retry_after")
            return cls(question, usage, **{name: computed[name] for name in names})
        added = {key: value for key, value in computed.items() if key != "seconds"}
        return cls(question, {**question.inputs, **from_json(added)}, seconds=computed["seconds"])


def answer_question(chain: CodeChain, question: Question, config: Any = None) -> Answer:
    """Answer a question. An exception becomes part of the answer, so that it does not affect other questions."""
    start = time.monotonic()
    try:
        result = chain.invoke(dict(question.inputs), config)
    except Exception as error:
        return failed(question, error, time.monotonic() - start)
    reason, seconds = result["stop_reason"], time.monotonic() - start
    if reason in BUDGET_STOPS and not result["verdict"].ok:  # Retried once the budget allows it.
        said = f"The budget is spent: {reason}."
        return Answer(question, result, said, seconds=seconds, limit=reason, failure="question")
    return Answer(question, result, seconds=seconds)


def failed(question: Question, error: Exception, seconds: float = 0.0) -> Answer:
    """Return the answer to a question for which a chain raised."""
    limit = error.limit if isinstance(error, BudgetError) else None
    return Answer(
        question,
        error=describe_error(error),
        seconds=seconds,
        limit=limit,
        failure=_failure_of(error),
        retry_after=retry_after(error),
    )


def _failure_of(error: Exception) -> Failure:
    if isinstance(error, ConfigurationError | IsolationError):
        return "hopeless"
    if isinstance(error, CodeChainsError):
        return "passing" if error.is_retryable and not isinstance(error, BudgetError) else "question"
    status = status_of(error)
    if status in _HOPELESS_STATUS or is_out_of_credit(error):
        return "hopeless"
    return "passing" if status in _PASSING_STATUS or is_broken_reply(error) else "question"


class BudgetTracker:
    """The spending on all questions together.

    Args:
        budget: The limits of dollars, tokens, calls and seconds; None for no limits.
    """

    def __init__(self, budget: Budget | None) -> None:
        self._budget = budget
        self._spent: dict[StopReason, float] = {"usd": 0.0, "tokens": 0.0, "model_calls": 0.0}
        self._was_limit_hit = False

    def add(self, answer: Answer) -> None:
        """Add the cost of an answer. An answer that the budget prevented marks the budget as exhausted."""
        self._was_limit_hit |= self._budget is not None and answer.limit in self._budget.limits
        usage: Usage = answer.result.get("usage") or Usage()
        self._spent["usd"] += usage.usd or 0.0
        self._spent["tokens"] += usage.input_tokens + usage.output_tokens
        self._spent["model_calls"] += usage.model_calls

    @property
    def is_exhausted(self) -> bool:
        """Whether a limit is reached, so that no further question may start."""
        if self._budget is None:
            return False
        seconds_left, limits = self._budget.seconds_left, self._budget.limits
        if self._was_limit_hit or (seconds_left is not None and seconds_left <= 0):
            return True
        return any(spent >= limits.get(name, float("inf")) for name, spent in self._spent.items())
