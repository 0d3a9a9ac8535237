"""Counting what is spent on models."""

from __future__ import annotations

import threading
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from code_chains.state import Usage

__all__ = ["UsageMeter"]


class UsageMeter(BaseCallbackHandler):
    """A callback handler that adds up the calls and tokens of every model below the run it is attached to.

    It works on any LangChain chain: `chain.invoke(…, {"callbacks": [meter]})`, then `meter.usage`. Models that report no
    tokens are counted as calls alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._calls = 0
        self._models: dict[str, dict[str, int]] = {}

    @property
    def usage(self) -> Usage:
        """What was spent so far."""
        with self._lock:
            models = {name: dict(tokens) for name, tokens in self._models.items()}
            read = sum(tokens["input_tokens"] for tokens in models.values())
            written = sum(tokens["output_tokens"] for tokens in models.values())
            return Usage(self._calls, read, written, models)

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Count one answered call."""
        generation = next(iter(next(iter(response.generations), [])), None)
        message = generation.message if isinstance(generation, ChatGeneration) else None
        usage = message.usage_metadata if isinstance(message, AIMessage) else None
        with self._lock:
            self._calls += 1
            if usage and message:
                name = str(message.response_metadata.get("model_name", "unknown"))
                tokens = self._models.setdefault(name, {"input_tokens": 0, "output_tokens": 0})
                tokens["input_tokens"] += usage["input_tokens"]
                tokens["output_tokens"] += usage["output_tokens"]
