"""A chain as JSON: what the command line, the notebook and the workers of a cluster build chains from."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import Any

from code_chains.assembly.code_chain import CodeChain
from code_chains.assembly.factory import create_code_chain
from code_chains.assembly.settings import Data, Language, Prompts, Snippets
from code_chains.assembly.solvers import Escalate, Iterate, Plan, Repair
from code_chains.assembly.verifiers import Agreement, Answerability, Calibrated, GeneratedTests, Judge
from code_chains.callbacks.budget import Budget
from code_chains.errors import ConfigurationError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.models import resolve_model
from code_chains.models.resolve import is_embedded

ChainSpec = Mapping[str, Any] | str
"""Arguments of `create_code_chain` as JSON, or `"module:function"`, naming a function that returns a chain.

A value is an object that names its type, `{"type": "Repair", "attempts": 5}`; `executor`, `limits` and `budget` may be
arguments of `SandboxExecutor`, `Limits` and `Budget`. `base_url` is the address of an OpenAI-compatible server, `timeout`
how many seconds a request to a model may take.
"""

_VALUES = {
    value.__name__: value
    for value in (
        Agreement,
        Answerability,
        Calibrated,
        Data,
        Escalate,
        GeneratedTests,
        Iterate,
        Judge,
        Language,
        Plan,
        Prompts,
        Repair,
        Snippets,
    )
}
_ARGUMENTS: Mapping[str, Any] = {"executor": SandboxExecutor, "limits": Limits, "budget": Budget}


def serialize_spec(chain: ChainSpec) -> str:
    """Serialize the specification of a chain.

    Raises:
        ConfigurationError: It contains a value that JSON cannot represent.
    """
    try:
        return json.dumps(chain if isinstance(chain, str) else dict(chain), sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ConfigurationError("chain", chain, f"JSON values only ({error})") from error


def build_chain(serialized: str) -> CodeChain:
    """Build a chain from its serialized specification.

    Raises:
        ConfigurationError: There is no such function, or an argument is invalid.
    """
    spec = json.loads(serialized)
    if isinstance(spec, str):
        return _call_factory(spec)
    chain = create_code_chain(**read_arguments(spec))
    chain.request_timeout = spec.get("timeout")
    return chain


def read_arguments(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `create_code_chain` that a specification describes.

    Raises:
        ConfigurationError: A value names no type, or one of its arguments is invalid.
    """
    arguments = {name: _read(name, value) for name, value in spec.items()}
    for name, create in _ARGUMENTS.items():
        if isinstance(fields := arguments.get(name), dict):
            if isinstance(fields.get("limits"), dict):
                fields = {**fields, "limits": _create("limits", Limits, fields["limits"])}
            arguments[name] = _create(name, create, fields)
    base_url, timeout = arguments.pop("base_url", None), arguments.pop("timeout", None)
    model = arguments.get("model")
    options = {} if timeout is None else {"timeout": timeout}
    if base_url or (options and isinstance(model, str) and not is_embedded(model)):
        arguments["model"] = resolve_model(arguments["model"], base_url=base_url, **options)
    return arguments


def _read(argument: str, value: Any) -> Any:
    """Return what a JSON value stands for."""
    if isinstance(value, list):
        return [_read(argument, item) for item in value]
    if not isinstance(value, dict) or "type" not in value:
        return value
    fields = {name: _read(argument, field) for name, field in value.items() if name != "type"}
    if value["type"] not in _VALUES:
        raise ConfigurationError(argument, value, f"one of the types {', '.join(_VALUES)}")
    return _create(argument, _VALUES[value["type"]], fields)


def _create(argument: str, create: Any, fields: Mapping[str, Any]) -> Any:
    try:
        return create(**fields)
    except TypeError as error:  # A name that it does not have.
        raise ConfigurationError(
            argument, dict(fields), f"arguments of {create.__name__} ({error})"
        ) from error


def _call_factory(name: str) -> CodeChain:
    module, _, function = name.partition(":")
    try:
        create = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            "chain", name, f'"module:function", naming an existing function ({error})'
        ) from error
    chain = create()
    if not isinstance(chain, CodeChain):
        raise ConfigurationError("chain", name, "a function that returns a CodeChain")
    return chain
