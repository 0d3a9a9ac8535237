"""What comes of many questions, and the chain that is asked, as JSON that other machines understand."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from code_chains.budget import Budget
from code_chains.code_chain import CodeChain
from code_chains.errors import BudgetError, ConfigurationError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.factory import create_code_chain
from code_chains.progress import explained
from code_chains.questions import Question
from code_chains.state import StopReason, Usage, as_json, from_json

__all__ = ["Answer", "ChainSpec", "Tally", "answered", "describe", "make_chain"]

ChainSpec = Mapping[str, Any] | str
"""A chain as JSON: arguments of `create_code_chain`, where `executor`, `limits` and `budget` may be arguments of
`SandboxExecutor`, `Limits` and `Budget`; or the name of a function of yours that makes one (`"app.chains:make"`)."""

_LIMITS: tuple[StopReason, ...] = ("usd", "tokens", "model_calls", "seconds")


@dataclass(frozen=True)
class Answer:
    """What came of a question.

    Attributes:
        question: Which.
        result: What the chain gave; empty where it could not be asked or broke.
        error: Why there is no answer; empty where there is one.
        is_lost: Whether its workers died so often that it was set aside.
        seconds: How long it took, where it was done.
        limit: The limit of a budget that kept it from being answered.
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
        """The answer as JSON values, as a line of a ledger holds it; of what was given, the question alone."""
        record = {"id": self.id, "query": self.question.query, "seconds": round(self.seconds, 3)}
        if self.error:
            usage = self.result.get("usage", Usage()).to_dict()
            return {**record, "error": self.error, "is_lost": self.is_lost, "limit": self.limit, "usage": usage}
        added = {key: value for key, value in self.result.items() if key not in self.question.inputs}
        return {**record, **as_json(added)}

    @classmethod
    def from_dict(cls, question: Question, record: Mapping[str, Any]) -> Answer:
        """Rebuild the answer to a question from what `to_dict` gave."""
        if "error" in record:
            usage = {"usage": Usage.from_dict(record["usage"])}
            told = {name: record[name] for name in ("error", "is_lost", "seconds", "limit")}
            return cls(question, usage, **told)
        added = {key: value for key, value in record.items() if key not in ("id", "query", "seconds")}
        return cls(question, {**question.inputs, **from_json(added)}, seconds=record["seconds"])


def answered(chain: CodeChain, question: Question, config: Any = None) -> Answer:
    """Ask a chain. One question that cannot be asked is no reason to give up the others."""
    began = time.monotonic()
    try:
        result = chain.invoke(dict(question.inputs), config)
    except Exception as error:
        limit = error.limit if isinstance(error, BudgetError) else None
        return Answer(question, error=explained(error), seconds=time.monotonic() - began, limit=limit)
    if result["stop_reason"] in _LIMITS and not result["verdict"].ok:  # To be asked again when there is more to spend.
        limit = result["stop_reason"]
        return Answer(question, result, f"The budget ended: {limit}.", seconds=time.monotonic() - began, limit=limit)
    return Answer(question, result, seconds=time.monotonic() - began)


def describe(chain: ChainSpec) -> str:
    """A chain as one text.

    Raises:
        ConfigurationError: It holds something that is no JSON.
    """
    try:
        return json.dumps(chain if isinstance(chain, str) else dict(chain), sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ConfigurationError("chain", chain, f"JSON values only ({error})") from error


def make_chain(description: str) -> CodeChain:
    """Build the chain that a text describes.

    Raises:
        ConfigurationError: There is no such function, or an argument is wrong.
    """
    spec = json.loads(description)
    if isinstance(spec, str):
        return _called(spec)
    kinds = {"executor": SandboxExecutor, "limits": Limits, "budget": Budget}
    built = {
        name: kinds[name](**value) if name in kinds and isinstance(value, dict) else value
        for name, value in spec.items()
    }
    return create_code_chain(**built)


def _called(name: str) -> CodeChain:
    module, _, function = name.partition(":")
    try:
        make = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError("chain", name, f'"module:function" with a function that is there ({error})') from error
    chain = make()
    if not isinstance(chain, CodeChain):
        raise ConfigurationError("chain", name, "a function that returns a CodeChain")
    return chain


class Tally:
    """What was spent on all questions together.

    Args:
        budget: Its limits of dollars, tokens, calls and seconds; None for none.
    """

    def __init__(self, budget: Budget | None) -> None:
        self._budget = budget
        self._spent: dict[StopReason, float] = {"usd": 0.0, "tokens": 0.0, "model_calls": 0.0}
        self._ended = False

    def add(self, answer: Answer) -> None:
        """Count what an answer has cost. One that the budget kept from being answered says that nothing more will be."""
        self._ended |= self._budget is not None and answer.limit in self._budget.limits
        usage: Usage = answer.result.get("usage") or Usage()
        self._spent["usd"] += usage.usd or 0.0
        self._spent["tokens"] += usage.input_tokens + usage.output_tokens
        self._spent["model_calls"] += usage.model_calls

    @property
    def is_full(self) -> bool:
        """Whether a limit is reached, so that no further question is begun."""
        if self._budget is None:
            return False
        left, limits = self._budget.seconds_left, self._budget.limits
        return (
            self._ended
            or (left is not None and left <= 0)
            or any(spent >= limits.get(name, float("inf")) for name, spent in self._spent.items())
        )
