"""Asking a model again without getting the same again."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.runnables import Runnable, RunnableBinding, RunnableWithFallbacks

__all__ = ["chat_model", "varied"]

TEMPERATURE = 0.7
"""Where a model's own is lower, fresh tries use this one."""


def chat_model(model: object) -> BaseChatModel | None:
    """The chat model inside whatever is wrapped around it: bindings, retries, fallbacks, options, a prompt before it."""
    while not isinstance(model, BaseChatModel):
        inner = next(
            (getattr(model, name) for name in ("bound", "runnable", "default", "last") if hasattr(model, name)), None
        )
        if inner is None:
            return None
        model = inner
    return model


def varied(model: Runnable[LanguageModelInput, Any], variation: int) -> Runnable[LanguageModelInput, Any]:
    """The model as it is asked for a fresh try.

    A model that was told to be cool is asked at a higher temperature, and one with a fixed seed with another seed for each
    try. A model without such settings, or behind a prompt of its own, is asked as it is.

    Args:
        model: Any chat model, or a Runnable around one.
        variation: Number of the try; 0 is the model as it is.
    """
    inner = chat_model(model)
    if not variation or inner is None or not isinstance(model, BaseChatModel | RunnableBinding | RunnableWithFallbacks):
        return model
    options: dict[str, Any] = {}
    temperature, seed = getattr(inner, "temperature", None), getattr(inner, "seed", None)
    if isinstance(temperature, int | float) and temperature < TEMPERATURE:
        options["temperature"] = TEMPERATURE
    if isinstance(seed, int):
        options["seed"] = seed + variation
    return model.bind(**options) if options else model
