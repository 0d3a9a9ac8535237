"""Answers as lines of a results file, and as JSON that is sent to other machines."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from langchain_core.runnables.config import ensure_config

from code_chains.assembly.code_chain import CodeChain
from code_chains.assembly.question import add_handlers, own_prices
from code_chains.batch.questions import Question
from code_chains.callbacks.budget import INTEGER_LIMITS, Budget
from code_chains.callbacks.provider_errors import is_broken_reply, is_out_of_credit, retry_after, status_of
from code_chains.callbacks.redaction import describe_error
from code_chains.callbacks.usage import UsageMeter
from code_chains.errors import BudgetError, CodeChainsError, ConfigurationError, IsolationError
from code_chains.inputs import shortened
from code_chains.state import BUDGET_STOPS, Attempt, StopReason, Usage, as_json, from_json

Failure = Literal["", "passing", "hopeless", "question"]
"""What failed: something that passes, such as a rate limit; what fails for every question, such as a wrong key; or this
question alone."""
_PASSING_STATUS = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_MAX_CUT_CHARS = 15_000
"""Characters that are kept of output that was cut already."""
_HOPELESS_STATUS = {401, 402, 403, 404}


@dataclass(frozen=True)
class Answer:
    """The outcome of a question.

    Attributes:
        question: The question.
        result: The result of the chain; only its `usage` if it raised.
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
    def usage(self) -> Usage:
        """What was spent on it, also in tries that failed."""
        return self.result.get("usage") or Usage()

    def with_earlier(self, earlier: Usage) -> Answer:
        """Return the answer with what earlier tries have cost."""
        return replace(self, result={**self.result, "usage": earlier + self.usage})

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
            details = {"is_lost": self.is_lost, "limit": self.limit, "failure": self.failure}
            return {
                "error": self.error,
                **details,
                "retry_after": self.retry_after,
                "usage": self.usage.to_dict(),
                "seconds": seconds,
            }
        added = {key: value for key, value in self.result.items() if key not in self.question.inputs}
        return {**_without_bulk(as_json(added)), "seconds": seconds}

    @classmethod
    def from_computed(cls, question: Question, computed: Mapping[str, Any]) -> Answer:
        """Create the answer to a question from what was computed."""
        if "error" in computed:
            usage = {"usage": Usage.from_dict(computed["usage"])}
            names = ("error", "is_lost", "seconds", "limit", "failure", "retry_after")
            return cls(question, usage, **{name: computed[name] for name in names})
        added = {key: value for key, value in computed.items() if key != "seconds"}
        return cls(question, {**question.inputs, **from_json(added)}, seconds=computed["seconds"])


def _without_bulk(computed: dict[str, Any]) -> dict[str, Any]:
    """Return what was computed; of output that a limit has cut, which may be endless, the beginning and the end."""
    execution = computed.get("execution") or {}
    if not execution.get("truncated"):
        return computed
    streams = {name: shortened(execution[name], _MAX_CUT_CHARS) for name in ("stdout", "stderr")}
    output = shortened(computed["output"], _MAX_CUT_CHARS)
    return {**computed, "output": output, "execution": {**execution, **streams}}


def answer_question(chain: CodeChain, question: Question, config: Any = None) -> Answer:
    """Answer a question. An exception becomes part of the answer, so that it does not affect other questions."""
    start, config = time.monotonic(), ensure_config(config)
    meter = UsageMeter(own_prices(chain.budget, config))
    config["callbacks"] = add_handlers(config.get("callbacks"), [meter])
    try:
        result = chain.invoke(dict(question.inputs), config)
    except Exception as error:  # What it has spent until then is not in a result.
        return failed(question, error, time.monotonic() - start).with_earlier(meter.usage)
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
    if isinstance(error, TimeoutError):  # A model did not answer in time.
        return "passing"
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
        self._budget, self._spent = budget, Usage()
        self._attempts = self._tool_calls = 0
        self._was_limit_hit = False

    def add(self, answer: Answer) -> None:
        """Add the cost of an answer. An answer that the budget prevented marks the budget as exhausted."""
        self._was_limit_hit |= self._budget is not None and answer.limit in self._budget.limits
        self._spent += answer.usage
        attempts: Sequence[Attempt] = answer.result.get("attempts") or ()
        self._attempts += len(attempts)
        self._tool_calls += sum(len(attempt.tool_calls) for attempt in attempts)

    @property
    def is_exhausted(self) -> bool:
        """Whether a limit is reached, so that no further question may start."""
        return self._was_limit_hit or any(left <= 0 for left in self.left.values())

    @property
    def left(self) -> dict[str, float]:
        """What is left of each limit."""
        if self._budget is None:
            return {}
        spent: dict[str, float] = {
            "usd": self._spent.usd or 0.0,  # Where a budget limits dollars each price is known.
            "tokens": self._spent.tokens,
            "model_calls": self._spent.model_calls,
            "attempts": self._attempts,
            "tool_calls": self._tool_calls,
            "seconds": self._budget.limits.get("seconds", 0.0) - (self._budget.seconds_left or 0.0),
        }
        return {name: limit - spent.get(name, 0.0) for name, limit in self._budget.limits.items()}

    def request(self) -> dict[str, Any] | None:
        """Return what is left as JSON, for a worker that keeps to it; None without a budget."""
        if self._budget is None:
            return None
        left = {name: int(left) if name in INTEGER_LIMITS else left for name, left in self.left.items()}
        return {**left, "prices": self._budget.prices.own, "reply_tokens": self._budget.reply_tokens}
