"""Counting what is spent on models."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from code_chains.prices import Prices
from code_chains.runs import RunKeeper
from code_chains.state import Usage

__all__ = ["Asked", "UsageMeter"]

STAGES = ("retrieve", "plan", "generate", "judge", "write_tests", "interpret")
"""Names of runs that calls are counted under; elsewhere it is the innermost named run."""


@dataclass(frozen=True)
class Asked:
    """A call of a model that was begun.

    Attributes:
        model: Its name, as far as it says one.
        provider: Whose it is, e.g. `openai`.
        most: The longest reply it was asked for, in tokens, if it was told.
        alone: Whether it is the only one of its call.
    """

    model: str
    provider: str
    most: int | None
    alone: bool = True

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Asked:
        """From what callbacks are told when a model is called."""
        metadata, given = options.get("metadata") or {}, options.get("invocation_params") or {}
        name = (
            metadata.get("ls_model_name") or given.get("model") or given.get("model_name") or given.get("_type") or ""
        )
        limits = [given.get(key) for key in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
        most = next((limit for limit in [*limits, metadata.get("ls_max_tokens")] if isinstance(limit, int)), None)
        return cls(str(name), str(metadata.get("ls_provider") or ""), most, int(options.get("batch_size") or 1) < 2)


class UsageMeter(BaseCallbackHandler, RunKeeper):
    """A callback handler that adds up calls, tokens and costs of every model below the run it is attached to.

    It works on any LangChain chain: `chain.invoke(…, {"callbacks": [meter]})`, then `meter.usage`. Models that report no
    tokens are counted as calls alone.

    Args:
        prices: What tokens cost, for models that are not in the public list.
    """

    listens = False
    run_inline = True  # It only counts; a thread for each event would cost more than all of it.

    def __init__(self, prices: Mapping[str, tuple[float, float]] | None = None) -> None:
        super().__init__()
        self.prices = Prices(prices)
        self._lock = threading.RLock()
        self._calls = 0
        self._usd: float | None = 0.0
        self._models: dict[str, dict[str, int]] = {}
        self._stages: dict[str, dict[str, int]] = {}
        self._names: dict[UUID, tuple[str, UUID | None]] = {}
        self._asked: dict[UUID, tuple[Asked, str]] = {}

    @property
    def usage(self) -> Usage:
        """What was spent so far."""
        with self._lock:
            models = {name: dict(tokens) for name, tokens in self._models.items()}
            stages = {name: dict(counts) for name, counts in self._stages.items()}
            read = sum(tokens["input_tokens"] for tokens in models.values())
            written = sum(tokens["output_tokens"] for tokens in models.values())
            return Usage(
                self._calls, read, written, models, stages, self._usd if self._usd is None else round(self._usd, 9)
            )

    # -- what callbacks are told ------------------------------------------------------------------------------------------

    def run_begins(self, run_id: UUID, parent_run_id: UUID | None, name: str) -> None:
        """Know the stage that calls below belong to."""
        self._names[run_id] = (name, parent_run_id)

    def run_ends(self, run_id: UUID) -> None:
        """Forget it."""
        self._names.pop(run_id, None)

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A run of somebody else's chain begins."""
        self.run_begins(run_id, parent_run_id, str(kwargs.get("name") or ""))

    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **kwargs: Any) -> None:
        """It has ended."""
        self.run_ends(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It has failed."""
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
        """A chat model is called."""
        self._begin(run_id, parent_run_id, Asked.read(kwargs), messages[0] if messages else [])

    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A model that completes text is called."""
        self._begin(run_id, parent_run_id, Asked.read(kwargs), prompts)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count one answered call."""
        generation = next(iter(next(iter(response.generations), [])), None)
        message = generation.message if isinstance(generation, ChatGeneration) else None
        with self._lock:
            if run_id not in self._asked:  # It was told twice: attached in two places.
                return
            asked, stage = self._asked.pop(run_id)
            self._calls += 1
            counts = (
                self._stages.setdefault(stage, {"model_calls": 0, "input_tokens": 0, "output_tokens": 0})
                if stage
                else {}
            )
            if counts:
                counts["model_calls"] += 1
            replied = message if isinstance(message, AIMessage) else AIMessage(generation.text if generation else "")
            self._settle(run_id, asked, replied, counts)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A call came to nothing."""
        self._asked.pop(run_id, None)

    # -- accounts ---------------------------------------------------------------------------------------------------------

    def _begin(self, run_id: UUID, parent: UUID | None, asked: Asked, messages: Sequence[BaseMessage | str]) -> None:
        self._asked[run_id] = (asked, self._stage(parent))

    def _above(self, run_id: UUID | None) -> Iterator[tuple[UUID, str]]:
        """A run and those that it is part of, each with its name, innermost first."""
        while run_id in self._names:
            name, parent = self._names[run_id]
            yield run_id, name
            run_id = parent

    def _stage(self, run_id: UUID | None) -> str:
        """The stage that a run belongs to."""
        names = [name for _, name in self._above(run_id) if name]
        return next((name for name in names if name in STAGES), names[0] if names else "")

    def _settle(self, run_id: UUID, asked: Asked, message: AIMessage, counts: dict[str, int]) -> None:
        usage = message.usage_metadata
        if not usage:
            self._usd = None if self._usd is None or not self.prices.free(asked.model, asked.provider) else self._usd
            return
        name = str(message.response_metadata.get("model_name") or asked.model or "unknown")
        for account in (self._models.setdefault(name, {"input_tokens": 0, "output_tokens": 0}), counts):
            if account:
                account["input_tokens"] += usage["input_tokens"]
                account["output_tokens"] += usage["output_tokens"]
        cost = self.prices.cost(asked.model or name, asked.provider, usage["input_tokens"], usage["output_tokens"])
        self._usd = None if self._usd is None or cost is None else self._usd + cost
