"""A function that runs programs, as tutorials write it, as an executor."""

from __future__ import annotations

import asyncio
import inspect
import os
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from subprocess import CompletedProcess
from typing import Any, get_origin, get_type_hints

from code_chains.errors import ConfigurationError, InputError, refusal_reason
from code_chains.executors.base import Executor
from code_chains.executors.runner import Program
from code_chains.records import ErrorReport, Execution

_OUTPUTS = ("output", "stdout", "result")
_ERRORS = ("error", "stderr", "exception", "traceback")
_OUTCOMES = (str, Execution, CompletedProcess, Mapping, type(None), Awaitable)


class FunctionExecutor(Executor):
    """Run programs by a function of the code: what it protects is up to the function.

    Args:
        function: `code -> outcome`, sync or async. An outcome is an `Execution`, text, a `CompletedProcess`, or a dict with
            `output` (or `stdout`, `result`) and, of a failure, `error` (or `stderr`), `success=False`, `status="error"` or
            a `returncode` other than 0. An exception is a failure as well, unless it is a mistake in the function itself.

    Raises:
        ConfigurationError: The function says that it returns something else, such as a tuple.
    """

    def __init__(self, function: Callable[[str], Any]) -> None:
        super().__init__()
        self.function = function
        returned = get_origin(kind := _returned(function)) or kind
        if isinstance(returned, type) and not issubclass(returned, _OUTCOMES):
            raise _no_outcome(_name(function), returned.__name__)

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


def as_executor(executor: object) -> Executor:
    """Return an executor for a function, or for an object that has one named `run`.

    Raises:
        ConfigurationError: It is neither.
    """
    run: Any = getattr(executor, "run", executor)
    # A builtin, such as `print`, takes a program for something else.
    if not callable(run) or isinstance(executor, type) or inspect.isbuiltin(run):
        remedy = "an Executor, e.g. SandboxExecutor(), or a function of the code"
        raise ConfigurationError("executor", executor, remedy)
    return FunctionExecutor(run)


def _name(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _is_of_program(error: Exception, function: Any) -> bool:
    """Return whether an exception passed through code that is in no file, as what `exec` runs, and not the function's."""
    own = getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", "")
    places = {frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)} - {own}
    return any(not place.startswith("<frozen ") and not os.path.exists(place) for place in places)


async def _awaited(outcome: Any) -> Any:
    return await outcome


def _returned(function: object) -> object:
    """Return the type that a function says it returns; None if it says nothing that can be found out."""
    try:
        return get_type_hints(function).get("return")
    except (TypeError, NameError, AttributeError):
        return None


def _no_outcome(name: str, kind: str) -> ConfigurationError:
    remedy = "a function that returns text, an Execution, a CompletedProcess, or a dict such as {'output': …, 'error': …}"
    return ConfigurationError("executor", name, remedy, because=f"it returns {kind}")


def _as_execution(outcome: object, name: str) -> Execution:
    if isinstance(outcome, Execution):
        is_told = outcome.ok or outcome.error is not None or not outcome.stderr.strip()
        return outcome if is_told else replace(outcome, error=_report(outcome.stderr))
    if outcome is None or isinstance(outcome, str):
        return Execution("ok", stdout=outcome or "")
    if isinstance(outcome, CompletedProcess):
        outcome = vars(outcome)
    if not isinstance(outcome, Mapping):
        raise _no_outcome(name, type(outcome).__name__)
    output = next((_text(outcome[key]) for key in _OUTPUTS if outcome.get(key) is not None), "")
    reason = next((_text(outcome[key]).strip() for key in _ERRORS if outcome.get(key)), "")
    said = [outcome[key] for key in ("success", "ok") if key in outcome]
    if "status" in outcome:
        said.append(str(outcome["status"]).lower() in ("ok", "success", "succeeded", "completed", "0"))
    has_failed = not all(said) or bool(outcome.get("returncode") or outcome.get("exit_code"))
    if has_failed or ("error" in outcome and outcome["error"] and not said):
        return Execution("error", stdout=output, error=_report(reason or "It failed."))
    return Execution("ok", stdout=output)


def _report(reason: str) -> ErrorReport:
    """Return the report of a failure: the kind and message of its last line, and all of it as the traceback."""
    last = reason.strip().rpartition("\n")[2]
    kind, colon, message = last.partition(": ")
    is_typed = bool(colon) and kind.isidentifier()
    return ErrorReport(kind, message, traceback=reason) if is_typed else ErrorReport("Error", last)


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
