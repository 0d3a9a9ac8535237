"""Examples of LangSmith's datasets as inputs of a chain with what is expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from code_chains.errors import InputError

_QUERY_NAMES = ("query", "question", "input")
_EXPECTED_NAMES = ("expected", "answer", "output")
_INPUTS = ("files", "variables", "tests", "examples", "session_id")
"""Inputs of a chain; others of an example, such as notes, must not become keys of the state."""
COLUMNS = {
    **dict.fromkeys(map("input_{}".format, _QUERY_NAMES), "query"),
    **dict.fromkeys(map("output_{}".format, _EXPECTED_NAMES), "expected"),
    **dict(zip(map("input_{}".format, _INPUTS), _INPUTS, strict=True)),
}
"""Columns of an exported table, and the keys that they stand for."""


def as_inputs(place: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item as inputs with what is expected, whether it is an example of a dataset or has that form already.

    Raises:
        InputError: It is an example without a question or without a reference output.
    """
    if "query" in item or not isinstance(item.get("inputs"), Mapping):
        return dict(item)
    outputs = item.get("outputs")
    if not isinstance(outputs, Mapping):
        raise InputError(f"{place} has no outputs, which say what is expected.")
    own_id = {"id": item["id"]} if item.get("id") is not None else {}
    return {**own_id, **inputs_of(item["inputs"], place), "expected": expected_of(outputs, place)}


def inputs_of(inputs: Mapping[str, Any], place: str = "The example") -> dict[str, Any]:
    """Return the inputs of an example as inputs of a chain.

    Raises:
        InputError: There is no question.
    """
    further = {name: inputs[name] for name in _INPUTS if inputs.get(name)}
    return {"query": _find(inputs, _QUERY_NAMES, f"{place}: inputs"), **further}


def expected_of(outputs: Mapping[str, Any], place: str = "The example") -> Any:
    """Return what the reference outputs of an example expect.

    Raises:
        InputError: They do not say so.
    """
    return _find(outputs, _EXPECTED_NAMES, f"{place}: outputs")


def _find(mapping: Mapping[str, Any], names: tuple[str, ...], what: str) -> Any:
    """Return the value of the only one of these names."""
    found = [name for name in names if name in mapping]
    if len(found) != 1:
        raise InputError(
            f"{what} must have one of {', '.join(names)}; there are {', '.join(mapping) or 'none'}."
        )
    return mapping[found[0]]
