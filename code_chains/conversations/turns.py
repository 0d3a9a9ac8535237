"""Turns: made of what a chain got and returned, and as bytes for a store."""

from __future__ import annotations

import json
import logging
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from code_chains.errors import InputError, StoreError, brief
from code_chains.inputs import shortened
from code_chains.state import DisplayData, Execution, Turn, Verdict

if TYPE_CHECKING:
    from code_chains.conversations.replay import Inputs

_log = logging.getLogger(__name__)
_MAX_OUTPUT_CHARS = 100_000
"""Approximate maximum length of the stored output of a turn."""
_ID_DIGITS = 20
_ID = re.compile(r"[0-9]{20}-[0-9a-z]{1,32}")


class Turns(list[Turn]):
    """The turns of a conversation.

    Args:
        turns: The turns.
        inputs: Returns what one of them was given, as far as it was kept.
    """

    def __init__(self, turns: Iterable[Turn], inputs: Callable[[Turn], Inputs]) -> None:
        super().__init__(turns)
        self.inputs = inputs


def serialize(entry: Mapping[str, Any]) -> bytes:
    """Return an entry of a store."""
    return json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass")


def new_turn_id(after: str = "") -> str:
    """Return a unique id that sorts by time, and after the id of another turn.

    Raises:
        StoreError: No id sorts after that one, which is none of ours.
    """
    last = int(after[:_ID_DIGITS]) if is_turn_id(after) else 0
    number = max(time.time_ns(), last + 1)
    if (after and not last) or number >= 10**_ID_DIGITS:
        raise StoreError(
            f"The store was changed by something else: it has an entry {brief(after)}. Delete it."
        )
    return f"{number:020d}-{uuid.uuid4().hex[:8]}"


def is_turn_id(name: str) -> bool:
    """Return whether a name is one that `new_turn_id` makes."""
    return _ID.fullmatch(name) is not None


def create_turn(inputs: Mapping[str, Any], outputs: Mapping[str, Any], turn_id: str) -> Turn:
    """Return the turn that inputs and outputs of a chain are."""
    verdict, execution = outputs.get("verdict"), outputs.get("execution")
    ok = isinstance(verdict, Verdict) and verdict.ok
    needs = verdict.reason if isinstance(verdict, Verdict) and verdict.needs else ""
    return Turn(
        id=turn_id,
        query=str(inputs.get("query", "")),
        answer=str(outputs.get("answer") or needs),
        code=str(outputs.get("code") or inputs.get("code") or ""),
        output=shortened(str(outputs.get("output") or ""), _MAX_OUTPUT_CHARS),
        status=verdict.status if isinstance(verdict, Verdict) else "unverified",
        files={str(name): os.path.abspath(path) for name, path in (inputs.get("files") or {}).items()},
        variables=_json_variables(inputs.get("variables") or {}),
        artifacts=execution.artifacts if isinstance(execution, Execution) else (),
        display_data=_mime_bundle(execution) if isinstance(execution, Execution) else (),
        runs=max(1, len(outputs.get("steps") or [1])) if ok else 0,
    )


def _mime_bundle(execution: Execution) -> tuple[DisplayData, ...]:
    """Return how a value displays itself, with its text as the last form, as notebooks have it; empty if only as text."""
    markup = tuple(data for data in execution.display_data if data.media_type.startswith("text/"))
    if not markup or execution.result is None:
        return markup
    return (*markup, DisplayData("text/plain", shortened(execution.result, _MAX_OUTPUT_CHARS)))


def _json_variables(variables: Mapping[str, Any]) -> dict[str, JsonValue]:
    from code_chains.executors.values import check_json_variables

    json_values: dict[str, JsonValue] = {}
    for name, value in variables.items():
        # Others are kept with the inputs: frames and dates, and text and integers that JSON has no word for.
        with suppress(InputError, ValueError):
            checked = check_json_variables({name: value})
            json.dumps(checked, ensure_ascii=False).encode()
            json_values |= checked
    return json_values


def deserialize(data: bytes | None) -> Turn | None:
    """Return a stored turn; None if it was removed meanwhile, or is invalid."""
    if data is None:
        return None
    try:
        turn = Turn.from_dict(read_entry(data)["turn"])
        if not is_turn_id(turn.id):
            raise ValueError(f"its id is {brief(turn.id)}")
    except (ValueError, KeyError, TypeError) as error:
        _log.warning("A turn of a conversation is invalid and is skipped: %s", error)
        return None
    return turn


def read_entry(data: bytes | None) -> dict[str, Any]:
    """Return an entry of a store, which others may have written; an empty one if it is missing, or no object.

    Raises:
        ValueError: It is not JSON.
    """
    from code_chains.storage.foreign import parse_json

    entry = parse_json(data) if data else {}
    return entry if isinstance(entry, dict) else {}
