"""code, (finish_reason, variables, files, query, session, known_failures) -> problems."""

from __future__ import annotations

import ast
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, ClassVar

from langchain_core.runnables import ensure_config

from code_chains.analysis.checks import (
    POLICIES,
    STANDARD,
    Check,
    find_problems,
    names_defined,
    resolve_checks,
    shorter_than,
)
from code_chains.analysis.checks.imports import imports_available
from code_chains.analysis.parsing import parse
from code_chains.analysis.replies.extraction import as_program, no_program, refused
from code_chains.callbacks.budget import find_budgets
from code_chains.chains.base import Analyse, Config, Flow, RunFunction, State, StreamingChain
from code_chains.chains.generate import repeats_example
from code_chains.errors import ConfigurationError, refusal_reason
from code_chains.executors.approval import arejection, rejection
from code_chains.executors.inputs import check_code
from code_chains.state import Problem
from code_chains.toolbox import Toolbox

_TOO_LARGE = "It is too large to check. Write a shorter program, and read data from files."
_REJECTED = "It was not approved. Write another program."
_REPEATED = "It is a program that failed before, so it was not run again. Write another program."
_EXAMPLE = "It is the example of the prompt, which answers another question. Write a program for this one."
_BUILT_IN = {id(check) for checks in POLICIES.values() for check in checks}
_REFUSED = "provider"
"""The check that finds that a reply was withheld."""
_NO_CODE = {
    "length": "The reply was cut off at the length limit. Write a shorter program.",
    "missing": "The reply was cut off before its end. Write the whole program again.",
}


@dataclass(frozen=True)
class ApprovalRequest:
    """What an approver is shown.

    Attributes:
        code: The program that is about to run.
        problems: Advice of the checks.
        query: The question; empty if there is none.
        files: `{name in the working directory: path on this machine}`.
        variables: `{name: value}`.
    """

    code: str
    problems: tuple[Problem, ...]
    query: str
    files: Mapping[str, Any]
    variables: Mapping[str, Any]


Approve = Callable[[ApprovalRequest], bool | str | Awaitable[bool | str]]
"""Decides whether a program may run: True, False, or the reason for a rejection as text."""


class ValidateChain(StreamingChain):
    """Check a program before it runs. Adds `problems`; an error among them keeps the program from running.

    Args:
        checks: The name of a policy, or functions from code to problems.
        approve: A function, sync or async, that decides on each program that passes the checks. It returns
            True, or False or the reason as text, which is fed back to the model.
        language: The language of programs; the checks of this library read Python.
        has_module: Tells whether programs can import a module, or None if that is unknown; then a program that needs a
            missing one is refused with the name of its distribution, before it runs. See `Executor.has_module`.
        names: Names that programs find besides variables.
        toolbox: The tools that programs find, whose calls are checked.

    Example:
        >>> [str(problem) for problem in ValidateChain().invoke({"code": "print(nope)"})["problems"]]
        ["line 1: undefined name 'nope'"]
    """

    input_keys: ClassVar[list[str]] = ["code"]
    optional_keys: ClassVar[list[str]] = [
        *("finish_reason", "reply", "variables", "files", "query", "session", "known_failures"),
    ]
    output_keys: ClassVar[list[str]] = ["problems"]

    name: str | None = "validate"
    checks: tuple[Check, ...]
    approve: Approve | None = None
    language: str = "python"
    has_module: Callable[[str], bool | None] | None = None
    names: tuple[str, ...] = ()
    toolbox: Toolbox | None = None

    def __init__(
        self,
        checks: str | Check | Sequence[str | Check] = STANDARD,
        *,
        approve: Approve | None = None,
        **kwargs: Any,
    ) -> None:
        given: object = approve
        if given is not None and not callable(given):
            remedy = "a function that takes an ApprovalRequest"
            raise ConfigurationError("ValidateChain.approve", approve, remedy)
        super().__init__(**{"checks": resolve_checks(checks), "approve": approve, **kwargs})

    def _flow(self, values: State, config: Config) -> Flow:
        check_code(values["code"])
        problems: list[Problem] = yield Analyse(
            self._check, values, config, inline=self._is_fast(), otherwise=[self._too_large()]
        )
        if self.approve is not None and all(problem.severity == "advice" for problem in problems):
            request = ApprovalRequest(
                as_program(values["code"], self.language),
                tuple(problems),
                str(values.get("query") or ""),
                values.get("files") or {},
                values.get("variables") or {},
            )
            reason = yield RunFunction(self._reject, request, config, self._areject)
            if reason:
                problems = [*problems, Problem("approve", reason)]
        yield {"problems": problems}

    def _is_fast(self) -> bool:
        """Return whether the checks may run on an event loop: built-in checks, pyflakes imported already."""
        executor = getattr(self.has_module, "__self__", None)
        is_local = getattr(executor, "answers_at_once", True)
        return is_local and "pyflakes.checker" in sys.modules and _BUILT_IN.issuperset(map(id, self.checks))

    def _too_large(self) -> Problem:
        """Return what is said of a program that was not checked: only `standard`, which advises, lets it run."""
        is_lenient = set(map(id, self.checks)) <= set(map(id, STANDARD))
        return Problem("size", _TOO_LARGE, severity="advice" if is_lenient else "error")

    def _may_have(self, module: str) -> bool:
        return self.has_module is None or self.has_module(module) is not False

    def _reject(self, request: ApprovalRequest) -> str:
        assert self.approve is not None
        try:
            return rejection(self.approve, request, _REJECTED)
        except Exception as error:
            return refusal_reason(error)

    async def _areject(self, request: ApprovalRequest) -> str:
        assert self.approve is not None
        try:
            return await arejection(self.approve, request, _REJECTED)
        except Exception as error:
            return refusal_reason(error)

    def _check(self, state: State) -> list[Problem]:
        code = as_program(state["code"], self.language)
        if not code.strip():
            return [_missing_program(state, self.language)]
        if repeated := _repeated(code, state):
            return [Problem("not_repeated", repeated)]
        budgets = find_budgets(ensure_config())
        limits = [int(budget.limits["code_lines"]) for budget in budgets if "code_lines" in budget.limits]
        checks = list(self.checks)
        names = (*self.names, *(self.toolbox.program_names if self.toolbox else ()))
        if redefined := _redefined(code, names):
            return [Problem("tools_kept", f"{redefined} exists already. Call it; do not define it again.")]
        if self.toolbox:
            from code_chains.toolbox.checking import find_wrong_calls

            if wrong := find_wrong_calls(code, self.toolbox):
                return wrong
        if limits:
            checks.append(shorter_than(min(limits)))
        if state.get("session") is not None:  # It defines names and modules that only the run knows.
            checks = [check for check in checks if check is not names_defined]
        elif self.has_module is not None and self.language == "python":
            modules = {
                PurePosixPath(str(name)).parts[0].removesuffix(".py") for name in state.get("files") or ()
            }
            checks.append(imports_available(modules, is_installed=self._may_have))
        return find_problems(code, checks, defined=(*names, *(state.get("variables") or ())))


def _missing_program(state: State, language: str) -> Problem:
    reply, reason = state.get("reply") or state["code"], state.get("finish_reason") or ""
    if reason == "refused":
        return Problem(_REFUSED, refused(reply))
    return Problem("has_code", _NO_CODE.get(reason) or no_program(reply, language))


def is_refused(problems: Sequence[Problem]) -> bool:
    """Return whether a provider refused to reply, as it would again."""
    return any(problem.check == _REFUSED for problem in problems)


def _repeated(code: str, state: State) -> str:
    """Return what is said of a program that has failed before, or that answers an example; empty for any other."""
    from code_chains.verification.feedback import same_program

    if any(same_program(code, known) for known in state.get("known_failures") or ()):
        return _REPEATED
    return _EXAMPLE if repeats_example(code, str(state.get("query") or "")) else ""


def _redefined(code: str, names: tuple[str, ...]) -> str:
    """Return the name of a tool that a program defines itself, which would be called in its place; empty if none."""
    tree = parse(code) if names else None
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    defined = {node.name for node in (tree.body if tree else ()) if isinstance(node, kinds)}
    return next((name for name in names if name in defined), "")
