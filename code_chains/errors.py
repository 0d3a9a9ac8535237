"""What can go wrong, grouped by who can mend it.

CodeChainsError
├── ConfigurationError     assembled wrongly: change the argument it names
├── InputError             asked wrongly: change the question or the file it names
├── ExecutorError          the place where code runs broke: the run can be repeated if `is_retryable`
│   ├── IsolationError     the isolation that was asked for cannot be given here
│   ├── OverloadedError    more was asked for at once than can be done: nothing was run, ask again later
│   └── SessionError       a session has ended with its state, or cannot do what was asked
├── BudgetError            a limit of a Budget is reached; chains of ours turn it into a `stop_reason` with the best so far
├── StoreError             a store's file cannot be used: mend what its message names; try again if `is_retryable`
├── WeightsError           the embedded model cannot be fetched or loaded
└── CodeFailedError        only from `Execution.raise_for_failure()`

A traceback, a timeout, a refused program or a wrong answer is no exception but a value in the result.
Errors of a model's provider stay what LangChain makes of them (`langchain_core.exceptions.ModelError`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from code_chains.state import Execution, StopReason

__all__ = [
    "BudgetError",
    "CodeChainsError",
    "CodeFailedError",
    "ConfigurationError",
    "ExecutorError",
    "InputError",
    "IsolationError",
    "OverloadedError",
    "SessionError",
    "StoreError",
    "WeightsError",
    "installing",
    "needs",
]


class CodeChainsError(Exception):
    """The root of every exception this library raises on its own account."""

    is_retryable: bool = False
    """Whether the same call may succeed when it is simply made again."""


class ConfigurationError(CodeChainsError, ValueError):
    """A part was assembled wrongly.

    Args:
        argument: Name of the argument.
        given: What was passed; shown by its `repr`, shortened.
        instead: What would do, as the end of the sentence "Pass …".
    """

    def __init__(self, argument: str, given: object, instead: str) -> None:
        self.argument, self.given, self.instead = argument, given, instead
        shown = repr(given)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        super().__init__(f"{argument}={shown} does not work. Pass {instead}.")


def installing(extra: str) -> str:
    """What would do where an extra is missing, as the end of the sentence "Pass …"."""
    return f'it after installing what it needs: pip install "code-chains[{extra}]"'


@contextmanager
def needs(extra: str, argument: str, given: object) -> Iterator[None]:
    """Import in it what an extra installs; where that is missing, a `ConfigurationError` says how to have `argument`."""
    try:
        yield
    except ImportError as error:
        raise ConfigurationError(argument, given, installing(extra)) from error


class InputError(CodeChainsError, ValueError):
    """A question, file or variable cannot be used as it was given."""


class ExecutorError(CodeChainsError, RuntimeError):
    """The place where code runs broke; the code itself is not to blame.

    Args:
        message: What happened and what to do next.
        is_retryable: Whether the same run may succeed when repeated.
    """

    def __init__(self, message: str, *, is_retryable: bool = False) -> None:
        super().__init__(message)
        self.is_retryable = is_retryable


class IsolationError(ExecutorError):
    """The isolation that was asked for cannot be given on this machine; nothing was run."""


class OverloadedError(ExecutorError):
    """More is asked for at once than can be done; nothing was run, and the same may be asked again later.

    Args:
        message: What there is too much of.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, is_retryable=True)


class SessionError(ExecutorError):
    """A session cannot do what was asked: it has ended with its state, it is busy, or there is nothing to return to."""


class BudgetError(CodeChainsError, RuntimeError):
    """A limit of a budget is reached; what would have gone beyond it was not begun.

    Args:
        limit: Which one, e.g. `tokens`.
        allowed: How much it allows.
    """

    def __init__(self, limit: StopReason, allowed: float) -> None:
        self.limit, self.allowed = limit, allowed
        super().__init__(f"The budget's limit of {allowed:g} {limit.replace('_', ' ')} is reached.")


class StoreError(CodeChainsError, RuntimeError):
    """The file of a store cannot be made, read or written, or is none of ours; it is left as it is.

    Args:
        message: Which file, what happened and what to do next.
        is_retryable: Whether the same call may succeed when repeated.
    """

    def __init__(self, message: str, *, is_retryable: bool = False) -> None:
        super().__init__(message)
        self.is_retryable = is_retryable


class WeightsError(CodeChainsError, RuntimeError):
    """The weights of an embedded model cannot be fetched, verified or loaded."""


class CodeFailedError(CodeChainsError, RuntimeError):
    """The program did not end well; raised only on request.

    Args:
        execution: The whole record of the run.
    """

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        super().__init__(execution.summary)
