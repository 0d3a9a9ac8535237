"""code, (finish_reason, variables) -> problems."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import Any

from code_chains.chains.base import Config, Do, Piece, Program, State
from code_chains.checks import STANDARD, Check, find_problems, resolve_checks
from code_chains.state import Problem

__all__ = ["ValidateChain"]

_NO_CODE = {
    "length": "The reply was cut off at the length limit. Write a shorter program.",
    "missing": "The reply was cut off before its end. Write the whole program again.",
}


class ValidateChain(Piece):
    """Reads a program before it runs. Adds `problems`; empty is good.

    Args:
        checks: The name of a policy, or functions from code to problems.

    Example:
        >>> [str(problem) for problem in ValidateChain().invoke({"code": "print(nope)"})["problems"]]
        ["line 1: undefined name 'nope' (names_defined)"]
    """

    name: str | None = "validate"
    checks: tuple[Check, ...]

    def __init__(self, checks: str | Check | Several[Check] = STANDARD, **kwargs: Any) -> None:
        super().__init__(**{"checks": resolve_checks(checks), **kwargs})

    @property
    def input_keys(self) -> list[str]:
        """It reads the program."""
        return ["code"]

    @property
    def optional_keys(self) -> list[str]:
        """It says why there is no program, and knows names that are given."""
        return ["finish_reason", "variables"]

    @property
    def output_keys(self) -> list[str]:
        """It adds what it found."""
        return ["problems"]

    def _program(self, values: State, config: Config) -> Program:
        yield (yield Do(self._find, values, config))

    def _find(self, state: State) -> State:
        code = state["code"]
        if not code.strip():
            reason = _NO_CODE.get(state.get("finish_reason") or "", "The reply held no Python program.")
            return {"problems": [Problem("has_code", reason)]}
        return {"problems": find_problems(code, self.checks, given=state.get("variables") or ())}
