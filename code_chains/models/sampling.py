"""Model settings for further samples, which must differ from the first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableParallel,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase

MIN_TEMPERATURE = 0.8
"""Minimum temperature of further samples: that with which agreement was measured (`docs/benchmarks.md`)."""


def inner_model(model: object) -> BaseChatModel | None:
    """Return the chat model inside bindings, retries, fallbacks, options or a prompt before it."""
    while not isinstance(model, BaseChatModel):
        inner = next(
            (
                getattr(model, name)
                for name in ("bound", "runnable", "default", "last")
                if hasattr(model, name)
            ),
            None,
        )
        if inner is None:
            return None
        model = inner
    return model


def for_words(model: Runnable[LanguageModelInput, Any]) -> Runnable[LanguageModelInput, Any]:
    """Return the chat model inside one with structured output, which replies in no words; any other model as it is."""
    return next(_structured(model), model)


def _structured(model: Any) -> Iterator[Runnable[LanguageModelInput, Any]]:
    """Yield the chat models that are bound to a schema, as `with_structured_output` does it."""
    if isinstance(model, RunnableSequence):
        yield from _structured(model.first)
    elif isinstance(model, RunnableParallel):
        for each in model.steps__.values():
            yield from _structured(each)
    elif isinstance(model, RunnableBinding) and "ls_structured_output_format" in model.kwargs:
        yield model.bound


def is_openai(model: object) -> bool:
    """Return whether a model speaks the protocol of OpenAI: it sends finish reasons, and takes JSON schemas."""
    return getattr(inner_model(model), "_llm_type", "") in ("openai-chat", "azure-openai-chat")


def can_be_sampled(model: Runnable[LanguageModelInput, Any]) -> bool:
    """Return whether a model gives another reply if it is asked again for another sample, as far as is known."""
    inner = inner_model(model)
    return hasattr(inner, "temperature") and (_takes_settings(model) or not _is_cool(inner))


def for_sample(
    model: Runnable[LanguageModelInput, Any], sample_index: int
) -> Runnable[LanguageModelInput, Any]:
    """Return the model with the settings for another sample.

    A low temperature is raised, and a fixed seed is changed for each sample. Without a seed, which tells samples apart, none
    may be taken from a cache. A model with a prompt of its own is returned unchanged.

    Args:
        model: Any chat model, or a Runnable around one.
        sample_index: Index of the sample; 0 returns the model unchanged.
    """
    inner = inner_model(model)
    if not sample_index or inner is None or not _takes_settings(model):
        return model
    options: dict[str, Any] = {"temperature": MIN_TEMPERATURE} if _is_cool(inner) else {}
    seed = getattr(inner, "seed", None)
    if isinstance(seed, int):
        options["seed"] = seed + sample_index
    elif inner.cache or get_llm_cache():
        model = _without_cache(model)
    return model.bind(**options) if options else model


def _is_cool(inner: object) -> bool:
    temperature = getattr(inner, "temperature", None)
    return isinstance(temperature, int | float) and temperature < MIN_TEMPERATURE


def _takes_settings(model: Runnable[LanguageModelInput, Any]) -> bool:
    """Return whether what is bound to a model reaches it; a chain with a prompt gives it to the prompt."""
    while isinstance(model, RunnableBindingBase):
        model = model.bound
    if isinstance(model, RunnableWithFallbacks):
        return all(map(_takes_settings, model.runnables))
    return isinstance(model, BaseChatModel)


def _without_cache(model: Runnable[LanguageModelInput, Any]) -> Runnable[LanguageModelInput, Any]:
    if isinstance(model, BaseChatModel):
        return model.model_copy(update={"cache": False})
    if isinstance(model, RunnableBindingBase):
        return model.model_copy(update={"bound": _without_cache(model.bound)})
    if isinstance(model, RunnableWithFallbacks):
        fallbacks = [_without_cache(each) for each in model.fallbacks]
        return model.model_copy(update={"runnable": _without_cache(model.runnable), "fallbacks": fallbacks})
    return model
