"""What the chains that ask a model have in common: how they get it, their prompt, and what traces are told."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import get_buffer_string
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable

from code_chains.chains.base import Config, Invoke, State, StreamingChain
from code_chains.errors import ConfigurationError, InputError
from code_chains.inputs import check_history
from code_chains.models.sampling import for_words

_VARIABLE = re.compile(r"\{(\w+)\}")
_SCHEMA_KEYS = ("query", "language", "translation")
"""Variables of prompts that hold no data."""


class AskingChain(StreamingChain):
    """A chain that asks a model.

    Args:
        model: Any chat model, or a Runnable around one; `llm=` is the same.
        prompt: The system message, or a template of LangChain for it. `{query}` and other keys of the state are replaced
            by what they hold.
    """

    asks_for_code: ClassVar[bool] = False
    """Whether a reply is a program, which a model with structured output writes as well."""

    model: Runnable[LanguageModelInput, Any]
    prompt: str
    template: Any = None

    def __init__(self, model: Runnable[LanguageModelInput, Any] | None = None, **kwargs: Any) -> None:
        model = kwargs.pop("llm", None) if model is None else model
        if model is not None:
            kwargs["model"] = model
        if not isinstance(kwargs.get("model"), Runnable):
            raise ConfigurationError("model", kwargs.get("model"), "a chat model, or a Runnable around one")
        if isinstance(kwargs.get("prompt"), BasePromptTemplate):
            kwargs["template"] = kwargs.pop("prompt")
        super().__init__(**kwargs)

    def rules(self, values: Mapping[str, Any], prompt: str | None = None) -> str:
        """Return the system message, with what the state holds in place of its variables.

        Raises:
            InputError: A variable of a template is missing.
        """
        if self.template is None:
            known = {*self.input_keys, *self.optional_keys}
            held = {key: values[key] for key in known if isinstance(values.get(key), str | list)}
            return _VARIABLE.sub(
                lambda name: _text(name[1], held, values) if name[1] in held else name[0],
                self.prompt if prompt is None else prompt,
            )
        if missing := [name for name in self.template.input_variables if name not in values]:
            raise InputError(f"The prompt needs {missing[0]!r}. Pass it in the dict of inputs.")
        texts = {name: _text(name, values, values) for name in self.template.input_variables}
        return str(self.template.format(**texts))

    def ask(
        self,
        model: Runnable[Any, Any],
        messages: Any,
        config: Config,
        emit: Callable[[Any], State] | None = None,
    ) -> Invoke:
        """Return the effect of asking a model, whose run has the chain's name as a tag and as `stage` in its metadata."""
        stage = self.name or self.get_name()
        tags, metadata = config.get("tags") or [], config.get("metadata") or {}
        own: Config = {**config, "tags": [*tags, stage], "metadata": {**metadata, "stage": stage}}
        return Invoke(model if self.asks_for_code else for_words(model), messages, own, emit)


def _text(name: str, held: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Return a value as text, or nothing where a model must not see data."""
    if values.get("schema_only") and name not in _SCHEMA_KEYS:
        return ""
    value = check_history(held[name]) if name == "history" else held[name]
    return get_buffer_string(value) if name == "history" and not isinstance(value, str) else str(value)
