"""The variables that a conversation's turns were given: passed again, they do not overwrite what programs made of them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from code_chains.errors import InputError
from code_chains.state import Turn


class GivenVariables:
    """Checksums of variables by name, with the turns that were given them."""

    def __init__(self) -> None:
        self._marks: dict[str, tuple[str, str]] = {}

    def new_of(self, variables: Mapping[str, Any], turns: Iterable[Turn]) -> dict[str, Any]:
        """Return the variables that none of the turns, whose state is there, was given with these values."""
        kept = {turn.id for turn in turns}
        return {name: value for name, value in variables.items() if not self._is_known(name, value, kept)}

    def add(self, variables: Mapping[str, Any], turn: Turn) -> None:
        """Remember what a turn was given."""
        self._marks |= {name: (_mark(value), turn.id) for name, value in variables.items()}

    def _is_known(self, name: str, value: object, kept: set[str]) -> bool:
        mark, turn_id = self._marks.get(name, ("", ""))
        return turn_id in kept and mark == _mark(value)


def _mark(value: object) -> str:
    """Return a checksum of what a program would see of a value; of what has none one that no other value has."""
    from code_chains.executors.values import describe_variables
    from code_chains.storage.fingerprint import NotFingerprintableError, fingerprint

    try:
        return fingerprint(describe_variables({"value": value}))
    except (NotFingerprintableError, InputError, TypeError, ValueError, RecursionError):
        return secrets.token_hex(8)
