"""What happens to a question before its stages: inputs are validated, handlers added, and modules imported ahead."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, CallbackManager

from code_chains.callbacks.budget import Budget, find_budgets
from code_chains.callbacks.capacity import AsyncCapacityCheck, CapacityCheck
from code_chains.callbacks.pricing import Prices
from code_chains.chains.base import Config, State
from code_chains.chains.evaluate import check_expectations
from code_chains.errors import ConfigurationError, ExecutorError, InputError
from code_chains.executors import Executor
from code_chains.inputs import (
    check_history,
)

if TYPE_CHECKING:
    from code_chains.verification.expectations import Expectations
    from code_chains.verification.values.answer_types import AnswerType

_IMPORTED_LATER = (
    "receipts.receipt",
    "verification.provenance.inventions",
    "verification.provenance.needs",
    "verification.sanity.verdict",
)
"""Modules that stages of a question import when they come to it."""
_USER_CODE_QUERY = "Run this program of mine."


def session_of(configurable: Mapping[str, Any]) -> State:
    """Return the session that a config names: ours, or the thread of LangGraph, which may be any object with a name."""
    thread, session = configurable.get("thread_id"), configurable.get("session_id")
    if session is None and thread is not None:  # A server may send the other name with None.
        session = str(thread)
    return {} if session is None else {"session_id": session}


def checked_inputs(
    values: State, *, executor: Executor | None, schema_only: bool, answer_type: AnswerType | None
) -> State:
    """Return the inputs, validated before anything is spent, with what the arguments of the chain add to them."""
    expectations, values = _expectations(executor, values), dict(values)
    if expectations.runs and values.get("stdin") is None:  # What is shown is what the first example expects.
        values["stdin"] = expectations.runs[0].stdin
    if values.get("schema_only") and not schema_only:
        raise InputError(
            "Schemas alone are sent by create_code_chain(data=Data(schema_only=True)), which also limits judge and memory."
        )
    if values.get("answer_type") is not None:
        raise InputError("answer_type is an argument of create_code_chain. Make a chain for each type.")
    if schema_only:
        values["schema_only"] = True
    if answer_type is not None:
        values |= {"answer_type": answer_type, "return_value": True}
    if executor is not None:
        executor.check_stdin(values.get("stdin"))
        executor.check_data(values.get("files"), values.get("variables"))
    if values.get("history") and values.get("chat_history"):
        raise InputError("There are 'history' and 'chat_history' as well. Pass what was said before once.")
    if history := values.get("history") or values.get("chat_history"):
        values["history"] = check_history(history)
    return values


def _expectations(executor: Executor | None, values: State) -> Expectations:
    expectations = check_expectations(values)
    if expectations and executor is not None and not executor.runs_tests:
        because = f"{type(executor).__name__} cannot run the tests of a question"
        remedy = "one that can, such as SandboxExecutor(), or leave tests and examples out"
        raise ConfigurationError("executor", executor, remedy, because=because)
    return expectations


def own_prices(budget: Budget | None, config: Config) -> dict[str, tuple[float, float]]:
    """Return the prices that a budget, and those that listen to a run, bring."""
    budgets = [*find_budgets(config), *([budget] if budget else [])]
    return {name: price for each in budgets for name, price in each.prices.own.items()}


def enforcing_handlers(
    executor: Executor | None, budget: Budget | None, config: Config
) -> list[BaseCallbackHandler]:
    """Return the handlers that enforce capacity and budget; the latter is new for each question if it is per question."""
    is_async = isinstance(config.get("callbacks"), AsyncCallbackManager)
    checks = [] if executor is None else [CapacityCheck(executor.check_capacity)]
    if budget is None or (budget.per == "all" and budget in find_budgets(config)):
        return [AsyncCapacityCheck(check) for check in checks] if is_async else [*checks]
    budget = budget.fresh() if budget.per == "question" else budget
    if is_async:  # One handler for both: on an event loop several handlers would run concurrently.
        return [budget.handler(before=checks[0].check) if checks else budget.handler()]
    return [*checks, budget]


def user_code_inputs(code: str, session_id: str | None, query: str, files: Mapping[str, Any] | None) -> State:
    """Return the inputs of a program that a person wrote.

    Raises:
        InputError: The program is empty.
    """
    if not isinstance(code, str) or not code.strip():
        raise InputError("The program is empty. Pass Python source, e.g. print(6 * 7).")
    return {"query": query or _USER_CODE_QUERY, "code": code, "session_id": session_id, "files": files or {}}


@functools.cache
def import_ahead(_: None) -> None:
    """Import in a thread what the first question would import on the event loop, which would stand still."""
    Prices().cost("gpt-5-mini", "openai", 1, 1)  # The public list, if that is installed.
    for name in (
        "pyflakes.checker",
        *map("code_chains.{}".format, _IMPORTED_LATER),
        *(("openai.resources.chat.completions",) if "openai" in sys.modules else ()),
    ):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def warm_up(executor: Executor) -> None:
    """Start what the first run would otherwise wait for."""
    with contextlib.suppress(ExecutorError):  # The run reports it.
        executor.warm_up()


def add_handlers(callbacks: Any, handlers: Sequence[BaseCallbackHandler]) -> Any:
    """Return callbacks with additional handlers, for this run and all below it."""
    if isinstance(callbacks, CallbackManager | AsyncCallbackManager):
        callbacks = callbacks.copy()
        for handler in handlers:
            callbacks.add_handler(handler, inherit=True)
        return callbacks
    return [*(callbacks or []), *handlers]
