"""Count what is spent on models."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, LLMResult

from code_chains.callbacks.pricing import Prices
from code_chains.callbacks.runs import RunObserver
from code_chains.records import Usage

STAGES = ("retrieve", "plan", "generate", "answerability", "judge", "write_tests", "interpret")
"""Names of runs that calls are counted under; elsewhere it is the innermost named run."""

_MAX_TOKENS = 10**9
"""Of one call: what has more is no account of it."""


@dataclass(frozen=True)
class ModelCall:
    """A model call in flight.

    Attributes:
        model: Its name; empty if it is unknown.
        provider: The provider, e.g. `openai`.
        max_tokens: Maximum length of the reply, in tokens; None if it is not limited.
        is_single: Whether it is not part of a batch.
    """

    model: str
    provider: str
    max_tokens: int | None
    is_single: bool = True

    @classmethod
    def from_event(cls, options: Mapping[str, Any]) -> ModelCall:
        """Read the model from what callbacks receive when a model is called."""
        metadata, parameters = options.get("metadata") or {}, options.get("invocation_params") or {}
        name = (
            metadata.get("ls_model_name")
            or parameters.get("model")
            or parameters.get("model_name")
            or parameters.get("_type")
            or ""
        )
        limits = [parameters.get(key) for key in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
        max_tokens = next(
            (limit for limit in [*limits, metadata.get("ls_max_tokens")] if isinstance(limit, int)), None
        )
        return cls(
            str(name),
            str(metadata.get("ls_provider") or ""),
            max_tokens,
            int(options.get("batch_size") or 1) < 2,
        )


@dataclass(frozen=True)
class _InFlight:
    """What is known of a call that has begun.

    Attributes:
        call: The call.
        stage: The stage that it is counted under.
        messages: What the model reads.
        above: The runs that it is part of.
    """

    call: ModelCall
    stage: str
    messages: Sequence[BaseMessage | str]
    above: frozenset[UUID]


class UsageMeter(BaseCallbackHandler, RunObserver):
    """A callback handler that adds up calls, tokens and costs of every model below the run it is attached to.

    It works on any LangChain chain: `chain.invoke(…, {"callbacks": [meter]})`, then `meter.usage`. Tokens that nobody
    reports are estimated, and `estimated_calls` says for how many calls.

    Args:
        prices: Prices of models that are not in the public list.
    """

    listens = False
    run_inline = True  # It only counts; a thread for each event would cost more than all of it.

    def __init__(self, prices: Mapping[str, tuple[float, float]] | None = None) -> None:
        super().__init__()
        self.prices: Prices = Prices(prices)
        self._lock = threading.RLock()
        self._calls = self._estimated_calls = 0
        self._usd: float | None = 0.0
        self._models: dict[str, dict[str, int]] = {}
        self._stages: dict[str, dict[str, int]] = {}
        self._names: dict[UUID, tuple[str, UUID | None]] = {}
        self._calls_in_flight: dict[UUID, _InFlight] = {}

    @property
    def usage(self) -> Usage:
        """What was spent so far."""
        with self._lock:
            models = {name: dict(tokens) for name, tokens in self._models.items()}
            stages = {name: dict(counts) for name, counts in self._stages.items()}
            input_tokens = sum(tokens["input_tokens"] for tokens in models.values())
            output_tokens = sum(tokens["output_tokens"] for tokens in models.values())
            return Usage(
                self._calls,
                input_tokens,
                output_tokens,
                models,
                stages,
                self._usd if self._usd is None else round(self._usd, 9),
                self._estimated_calls,
            )

    # -- events ------------------------------------------------------------------------------------------

    def run_begins(self, run_id: UUID, parent_run_id: UUID | None, name: str) -> None:
        """Register a stage for the calls within it."""
        self._names[run_id] = (name, parent_run_id)

    def run_ends(self, run_id: UUID) -> None:
        """Remove it. A call within it whose end nobody reported was given up, and may have been charged."""
        self._names.pop(run_id, None)
        with self._lock:
            for call in [call for call, flight in self._calls_in_flight.items() if run_id in flight.above]:
                self._settle(call, AIMessage(""), is_answered=False)

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Register a run of another chain."""
        self.run_begins(run_id, parent_run_id, str(kwargs.get("name") or ""))

    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **kwargs: Any) -> None:
        """Handle its end."""
        self.run_ends(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Handle its failure."""
        self.run_ends(run_id)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Handle the call of a chat model."""
        self._begin(run_id, parent_run_id, ModelCall.from_event(kwargs), messages[0] if messages else [])

    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Handle the call of a completion model."""
        self._begin(run_id, parent_run_id, ModelCall.from_event(kwargs), prompts)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count one answered call."""
        generation = next(iter(next(iter(response.generations), [])), None)
        message = generation.message if isinstance(generation, ChatGeneration) else None
        with self._lock:
            if run_id not in self._calls_in_flight:  # Reported twice: attached in two places.
                return
            if _is_cached(message):
                self._take_back(run_id)
                return
            self._calls += 1
            replied = (
                message
                if isinstance(message, AIMessage)
                else AIMessage(generation.text if generation else "")
            )
            self._settle(run_id, replied, is_answered=True)

    def _take_back(self, run_id: UUID) -> None:
        """Forget a call that was not made."""
        self._end(run_id)

    def _end(self, run_id: UUID) -> _InFlight:
        """Return what is known of a call that is no longer in flight."""
        return self._calls_in_flight.pop(run_id)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Handle a failed call. One that broke off without a word of its provider counts as far as it went."""
        with self._lock:
            if run_id not in self._calls_in_flight:
                return
            partial = getattr(kwargs.get("response"), "generations", None)
            if isinstance(getattr(error, "status_code", None), int) and not partial:
                self._end(run_id)  # Providers do not charge for what they refuse.
                return
            generation = next(iter(next(iter(partial or []), [])), None)
            self._settle(run_id, AIMessage(generation.text if generation else ""), is_answered=False)

    # -- totals ----------------------------------------------------------------------------------------------

    def _begin(
        self, run_id: UUID, parent: UUID | None, call: ModelCall, messages: Sequence[BaseMessage | str]
    ) -> None:
        above = frozenset(run for run, _ in self._above(parent))
        self._calls_in_flight[run_id] = _InFlight(call, self._stage(parent), messages, above)

    def _above(self, run_id: UUID | None) -> Iterator[tuple[UUID, str]]:
        """Yield a run and the runs around it, each with its name, innermost first."""
        while run_id in self._names:
            name, parent = self._names[run_id]
            yield run_id, name
            run_id = parent

    def _stage(self, run_id: UUID | None) -> str:
        """Return the stage that a run belongs to."""
        names = [name for _, name in self._above(run_id) if name]
        return next((name for name in names if name in STAGES), names[0] if names else "")

    def _settle(self, run_id: UUID, message: AIMessage, *, is_answered: bool) -> None:
        """Count a call that has ended. Tokens that nobody reports are estimated from the texts."""
        flight, usage = self._end(run_id), _told(message)
        if usage is None:
            self._estimated_calls += 1
        spent = {
            "input_tokens": usage["input_tokens"] if usage else estimate_tokens(flight.messages),
            "output_tokens": usage["output_tokens"] if usage else estimate_tokens([message]),
        }
        call, stage = flight.call, flight.stage
        name = without_folder(str(message.response_metadata.get("model_name") or call.model or "unknown"))
        accounts = [self._models.setdefault(name, {"input_tokens": 0, "output_tokens": 0})]
        if stage:
            nothing = {"model_calls": 0, "input_tokens": 0, "output_tokens": 0}
            accounts.append(self._stages.setdefault(stage, nothing))
            accounts[1]["model_calls"] += is_answered
        for account, (key, tokens) in itertools.product(accounts, spent.items()):
            account[key] += tokens
        cost = self.prices.cost(call.model or name, call.provider, **spent)
        self._usd = None if self._usd is None or cost is None else self._usd + cost


def _told(message: AIMessage) -> UsageMetadata | None:
    """Return the tokens that a provider tells, unless they cannot be: none at all, fewer, or more than there are."""
    usage = message.usage_metadata
    if usage is None or min(usage["input_tokens"], usage["output_tokens"]) < 0:
        return None
    return usage if 0 < usage["input_tokens"] + usage["output_tokens"] <= _MAX_TOKENS else None


def estimate_tokens(messages: Sequence[BaseMessage | str]) -> int:
    """Estimate how many tokens texts have."""
    return count_tokens_approximately(
        [message if isinstance(message, BaseMessage) else ("user", message) for message in messages]
    )


def _is_cached(message: object) -> bool:
    """Return whether LangChain's cache answered, which it marks by the cost."""
    usage: Mapping[str, Any] = getattr(message, "usage_metadata", None) or {}
    return usage.get("total_cost") == 0


def without_folder(model: str) -> str:
    """Return the name of a model; a server of llama.cpp reports the path of its file."""
    is_path = model.endswith(".gguf") or model.startswith(("/", "~", "gguf:"))
    # OWNER/REPO:FILE is not a path of a machine.
    is_on_hub = re.match(r"[\w.-]+/[\w.-]+:[^\\]+$", model)
    return re.split(r"[/\\]", model)[-1] if is_path and not is_on_hub else model
