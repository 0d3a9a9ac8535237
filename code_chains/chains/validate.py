"""code, (finish_reason, variables, files, query, session) -> problems."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Sequence as Several
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import ensure_config
from langchain_core.runnables.config import run_in_executor

from code_chains.budget import find_budgets
from code_chains.chains.base import Config, Do, Piece, Program, State
from code_chains.checks import POLICIES, STANDARD, Check, find_problems, names_defined, resolve_checks, shorter_than
from code_chains.state import Problem

__all__ = ["ApprovalRequest", "Approve", "ValidateChain"]

_SHORT = 500
"""Programs of a few lines are checked, by checks of our own, in about the time that a thread would cost."""
_OWN = {id(check) for checks in POLICIES.values() for check in checks}
_NO_CODE = {
    "length": "The reply was cut off at the length limit. Write a shorter program.",
    "missing": "The reply was cut off before its end. Write the whole program again.",
}


@dataclass(frozen=True)
class ApprovalRequest:
    """What someone who approves programs gets to see.

    Attributes:
        code: The program that is about to run.
        problems: Advice of the checks about it.
        query: The question; empty where there is none.
        files: `{name in the working directory: path on this machine}`.
        variables: `{name: value}`.
    """

    code: str
    problems: tuple[Problem, ...]
    query: str
    files: Mapping[str, Any]
    variables: Mapping[str, Any]


Approve = Callable[[ApprovalRequest], bool | str | Awaitable[bool | str]]
"""Says whether a program may run; text says that it may not, and why."""


class ValidateChain(Piece):
    """Reads a program before it runs. Adds `problems`; one that is an error keeps it from running.

    Args:
        checks: The name of a policy, or functions from code to problems.
        approve: A function, plain or async, that has the last word on each program that the checks let pass. It returns
            True, or False or the reason as text, which goes back to the model.

    Example:
        >>> [str(problem) for problem in ValidateChain().invoke({"code": "print(nope)"})["problems"]]
        ["line 1: undefined name 'nope' (names_defined)"]
    """

    name: str | None = "validate"
    checks: tuple[Check, ...]
    approve: Approve | None = None

    def __init__(self, checks: str | Check | Several[Check] = STANDARD, **kwargs: Any) -> None:
        super().__init__(**{"checks": resolve_checks(checks), **kwargs})

    @property
    def input_keys(self) -> list[str]:
        """It reads the program."""
        return ["code"]

    @property
    def optional_keys(self) -> list[str]:
        """It says why there is no program, knows names that are given, and shows all of it to whoever approves."""
        return ["finish_reason", "variables", "files", "query", "session"]

    @property
    def output_keys(self) -> list[str]:
        """It adds what it found."""
        return ["problems"]

    def _program(self, values: State, config: Config) -> Program:
        problems: list[Problem] = yield Do(self._find, values, config, quick=self._is_quick(values["code"]))
        if self.approve is not None and all(problem.severity == "advice" for problem in problems):
            request = ApprovalRequest(
                values["code"],
                tuple(problems),
                str(values.get("query") or ""),
                values.get("files") or {},
                values.get("variables") or {},
            )
            problems = [*problems, *_refusal((yield Do(self._ask, request, config, self._aask)))]
        yield {"problems": problems}

    def _is_quick(self, code: str) -> bool:
        """Whether it may be read on an event loop: not before what reads it has been imported elsewhere."""
        return len(code) <= _SHORT and "pyflakes.checker" in sys.modules and _OWN.issuperset(map(id, self.checks))

    def _ask(self, request: ApprovalRequest) -> object:
        assert self.approve is not None
        said = self.approve(request)
        if not inspect.isawaitable(said):
            return said

        async def wait() -> object:
            return await said

        with ThreadPoolExecutor(1) as thread:  # This one may run a loop of its own.
            return thread.submit(asyncio.run, wait()).result()

    async def _aask(self, request: ApprovalRequest) -> object:
        assert self.approve is not None
        if inspect.iscoroutinefunction(self.approve):
            return await self.approve(request)
        said = await run_in_executor(None, self.approve, request)
        return await said if inspect.isawaitable(said) else said

    def _find(self, state: State) -> list[Problem]:
        code = state["code"]
        if not code.strip():
            reason = _NO_CODE.get(state.get("finish_reason") or "", "The reply held no Python program.")
            return [Problem("has_code", reason)]
        budgets = find_budgets(ensure_config())
        lines = [int(budget.limits["code_lines"]) for budget in budgets if "code_lines" in budget.limits]
        checks = [*self.checks, *([shorter_than(min(lines))] if lines else [])]
        if state.get("session") is not None:  # It has names of its own; the run will tell.
            checks = [check for check in checks if check is not names_defined]
        return find_problems(code, checks, given=state.get("variables") or ())


def _refusal(said: object) -> list[Problem]:
    if said is True:
        return []
    reason = said if isinstance(said, str) and said.strip() else "It was not approved. Write another program."
    return [Problem("approve", reason)]
