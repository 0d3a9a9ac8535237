"""Answers and chain specifications as JSON, which can be sent to other machines."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from code_chains.batch.questions import Question
from code_chains.callbacks.budget import Budget
from code_chains.callbacks.redaction import describe_error
from code_chains.code_chain import CodeChain
from code_chains.errors import BudgetError
from code_chains.state import BUDGET_STOPS, StopReason, Usage, as_json, from_json


@dataclass(frozen=True)
class Answer:
    """The outcome of a question.

    Attributes:
        question: The question.
        result: The result of the chain; empty if it raised.
        error: Why there is no answer; empty if there is one.
        is_lost: Whether the question was abandoned because too many of its workers died.
        seconds: How long it took, on the machine that ran it.
        limit: The limit of a budget that prevented an answer.
    """

    question: Question
    result: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    is_lost: bool = False
    seconds: float = 0.0
    limit: StopReason | None = None

    @property
    def id(self) -> str:
        """The id of the question."""
        return self.question.id

    @property
    def ok(self) -> bool:
        """Whether there is an answer."""
        return not self.error and bool(self.result["verdict"].ok)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values for a line of a results file; of the inputs, only the question."""
        record = {"id": self.id, "query": self.question.query, "seconds": round(self.seconds, 3)}
        if self.error:
            usage = self.result.get("usage", Usage()).to_dict()
            return {
                **record,
                "error": self.error,
                "is_lost": self.is_lost,
                "limit": self.limit,
                "usage": usage,
            }
        added = {key: value for key, value in self.result.items() if key not in self.question.inputs}
        return {**record, **as_json(added)}

    @classmethod
    def from_dict(cls, question: Question, record: Mapping[str, Any]) -> Answer:
        """Create the answer to a question from the output of `to_dict`."""
        if "error" in record:
            usage = {"usage": Usage.from_dict(record["usage"])}
            details = {name: record[name] for name in ("error", "is_lost", "seconds", "limit")}
            return cls(question, usage, **details)
        added = {key: value for key, value in record.items() if key not in ("id", "query", "seconds")}
        return cls(question, {**question.inputs, **from_json(added)}, seconds=record["seconds"])


def answer_question(chain: CodeChain, question: Question, config: Any = None) -> Answer:
    """Answer a question. An exception becomes part of the answer, so that it does not affect other questions."""
    start = time.monotonic()
    try:
        result = chain.invoke(dict(question.inputs), config)
    except Exception as error:
        limit = error.limit if isinstance(error, BudgetError) else None
        return Answer(question, error=describe_error(error), seconds=time.monotonic() - start, limit=limit)
    reason = result["stop_reason"]
    if reason in BUDGET_STOPS and not result["verdict"].ok:  # Retried once the budget allows it.
        return Answer(
            question,
            result,
            f"The budget is spent: {reason}.",
            seconds=time.monotonic() - start,
            limit=reason,
        )
    return Answer(question, result, seconds=time.monotonic() - start)


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
