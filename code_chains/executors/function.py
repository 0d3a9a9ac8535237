"""A function that runs programs, as tutorials write it, as an executor."""

from __future__ import annotations

import asyncio
import inspect
import os
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from code_chains.errors import ConfigurationError, InputError, refusal_reason
from code_chains.executors.base import Executor
from code_chains.executors.runner import Program
from code_chains.records import ErrorReport, Execution

_OUTPUTS = ("output", "stdout", "result")
_ERRORS = ("error", "stderr", "exception", "traceback")


class FunctionExecutor(Executor):
    """Run programs by a function of the code: what it protects is up to the function.

    Args:
        function: `code -> outcome`, sync or async. An outcome is an `Execution`, text, or a dict with `output` (or `stdout`,
            `result`) and, of a failure, `error` (or `stderr`), `success=False` or a `returncode` other than 0. An
            exception is a failure as well, unless it is a mistake in the function itself.
    """

    def __init__(self, function: Callable[[str], Any]) -> None:
        super().__init__()
        self.function = function

    def check_data(self, files: object, variables: object) -> None:
        """See `Runner.check_data`."""
        if files or variables:
            raise InputError(
                f"The function {_name(self.function)!r} takes code alone: no files or variables."
            )

    def _execute(self, program: Program) -> Execution:
        self.check_data(program.files, program.variables)
        try:
            outcome = self.function(program.code)
            if inspect.isawaitable(outcome):
                outcome = asyncio.run(_awaited(outcome))
        except Exception as error:
            reason = str(error) if _is_of_program(error, self.function) else refusal_reason(error)
            return Execution("error", error=ErrorReport(type(error).__name__, reason))
        return _as_execution(outcome, _name(self.function))


def as_executor(executor: object) -> object:
    """Return an executor for a function, or for an object that has one named `run`; anything else as it is."""
    if isinstance(executor, Executor | str) or executor is None:
        return executor
    run = getattr(executor, "run", executor)
    return FunctionExecutor(run) if callable(run) and not isinstance(executor, type) else executor


def _name(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _is_of_program(error: Exception, function: Any) -> bool:
    """Return whether an exception passed through code that is in no file, as what `exec` runs, and not the function's."""
    own = getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", "")
    places = {frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)} - {own}
    return any(not place.startswith("<frozen ") and not os.path.exists(place) for place in places)


async def _awaited(outcome: Any) -> Any:
    return await outcome


def _as_execution(outcome: object, name: str) -> Execution:
    if isinstance(outcome, Execution):
        return outcome
    if outcome is None or isinstance(outcome, str):
        return Execution("ok", stdout=outcome or "")
    if not isinstance(outcome, Mapping):
        remedy = "a function that returns text, an Execution, or a dict such as {'output': …, 'error': …}"
        raise ConfigurationError("executor", name, remedy, because=f"it returned {type(outcome).__name__}")
    output = next((str(outcome[key]) for key in _OUTPUTS if outcome.get(key) is not None), "")
    reason = next((str(outcome[key]).strip() for key in _ERRORS if outcome.get(key)), "")
    said = [outcome[key] for key in ("success", "ok") if key in outcome]
    has_failed = not all(said) or bool(outcome.get("returncode") or outcome.get("exit_code"))
    if has_failed or ("error" in outcome and outcome["error"] and not said):
        last = reason.rpartition("\n")[2] or "It failed."
        kind, colon, message = last.partition(": ")
        is_typed = bool(colon) and kind.isidentifier()
        report = ErrorReport(kind, message, traceback=reason) if is_typed else ErrorReport("Error", last)
        return Execution("error", stdout=output, error=report)
    return Execution("ok", stdout=output)
