"""Options per question: what the `configurable` of a config may choose in place of an argument of the chain."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from inspect import signature
from typing import Any

from langchain_core.runnables import (
    ConfigurableField,
    ConfigurableFieldSingleOption,
    ConfigurableFieldSpec,
    ensure_config,
)
from langchain_core.runnables.configurable import make_options_spec
from langchain_core.runnables.utils import AnyConfigurableField

from code_chains.callbacks.budget import Budget
from code_chains.errors import ConfigurationError, InputError
from code_chains.executors.limits import Limits

OPTIONS = ("max_attempts", "approve", "checks", "limits", "budget", "language", "instructions", "verify")
"""Names of the options."""
_WITH_FIELDS: Mapping[str, Callable[..., object]] = {"limits": Limits, "budget": Budget}
_ANNOTATIONS: Mapping[str, Any] = {
    "max_attempts": int | None,
    "limits": Limits | dict[str, Any] | None,
    "budget": Budget | dict[str, Any] | None,
    "language": str | None,
    "instructions": str | None,
}
_FIXED = ("executor", "solve", "tools", "snippets", "data", "answer_type", "interpret", "memory", "cache")
"""Arguments that a question cannot change; `model` may be that of a configurable model."""


def choose_how(key: str) -> str:
    """Return how a name that is no input is chosen, as a sentence; empty for a name that is nothing else either."""
    if key in OPTIONS:
        return f'An option of a question goes into its config: {{"configurable": {{{key!r}: …}}}}.'
    if key in (*_FIXED, "model"):
        return f"{key} is an argument of create_code_chain: make a chain with {key}=…."
    return ""


def chosen_options(configured: Mapping[str, AnyConfigurableField]) -> dict[str, Any]:
    """Return the options of a run, which its config chooses by their names or by those that the chain gave them.

    Args:
        configured: What `configurable_fields` has set.

    Raises:
        InputError: The config of the question names an argument that a question cannot change, or a misspelt option.
    """
    config = ensure_config()
    configurable = config.get("configurable") or {}
    if configurable and getattr(config.get("callbacks"), "parent_run_id", None) is None:
        _check_names(configurable.keys() - {spec.id for spec in configured.values()})
    chosen = {name: _value_of(spec, configurable) for name, spec in configured.items()}
    chosen |= {name: configurable[name] for name in OPTIONS if name in configurable}
    return {name: from_fields(name, value) for name, value in chosen.items() if value is not None}


def _value_of(spec: AnyConfigurableField, configurable: Mapping[str, Any]) -> Any:
    """Return what a config chooses for an option: a value, or by its name one of those that the chain offers, or several."""
    if isinstance(spec, ConfigurableField):
        return configurable.get(spec.id)
    named = configurable.get(spec.id, spec.default)
    try:
        if isinstance(spec, ConfigurableFieldSingleOption):
            return spec.options[named]
        return [spec.options[name] for name in named]
    except (KeyError, TypeError) as error:
        raise InputError(f"{spec.id}={named!r} is none of {', '.join(spec.options)}.") from error


def spec_of(name: str, spec: AnyConfigurableField) -> ConfigurableFieldSpec:
    """Return what servers are told of an option that `configurable_fields` has named."""
    if not isinstance(spec, ConfigurableField):
        return make_options_spec(spec, None)
    annotation = spec.annotation or _ANNOTATIONS.get(name, Any)
    return ConfigurableFieldSpec(
        spec.id, annotation, spec.name, spec.description, default=None, is_shared=spec.is_shared
    )


def check_fields(names: Collection[str]) -> None:
    """Refuse what `configurable_fields` cannot set.

    Raises:
        ConfigurationError: A field is no option.
    """
    for name in names:
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, n=1) or [f"one of {', '.join(OPTIONS)}"]
            because = choose_how(name) or "it is no option"
            raise ConfigurationError("configurable_fields", name, near[0], because=because.rstrip("."))


def from_fields(name: str, value: object) -> object:
    """Return limits or a budget that were given by their fields, as JSON has them; anything else as it is."""
    if name not in _WITH_FIELDS or not isinstance(value, Mapping):
        return value
    kind = _WITH_FIELDS[name]
    try:
        return kind(**value)
    except TypeError as error:
        known = ", ".join(parameter for parameter in signature(kind).parameters)
        raise InputError(
            f"{name}={dict(value)!r} has a field that {name} lack: they have {known}."
        ) from error


def _check_names(names: Collection[str]) -> None:
    for name in names:
        if name in _FIXED:
            raise InputError(f"A question cannot change {name!r}. {choose_how(name)}")
        known = (*OPTIONS, "session_id", "thread_id")
        near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.85)
        if near and name not in known:
            raise InputError(
                f"There is no option {name!r}; did you mean {near[0]!r}? Rename it in the config."
            )
