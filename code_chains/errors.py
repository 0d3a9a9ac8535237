"""What can go wrong, grouped by who can fix it.

CodeChainsError
├── ConfigurationError     an invalid argument: change it as the message says
├── InputError             an invalid question, file or variable: change it as the message says
├── ExecutorError          the executor broke: retry if `is_retryable`
│   ├── IsolationError     the required isolation is not available on this machine
│   ├── OverloadedError    at capacity: nothing was run, retry later
│   └── SessionError       a session has ended with its state, or is busy
├── BudgetError            a limit of a Budget is reached; our chains make it a `stop_reason`
├── StoreError             a store's file is unusable: fix what the message names; retry if `is_retryable`
├── WeightsError           the embedded model cannot be downloaded or loaded
└── CodeFailedError        only from `Execution.raise_for_failure()`; defined beside it in `state`

A traceback, a timeout, a refused program or a wrong answer is a value in the result, not an exception.
Errors of a model's provider stay what LangChain raises (`langchain_core.exceptions.ModelError`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

EXECUTOR_CLOSED = "The executor, or the chain that made it, is closed. Create a new one."
"""What all executors say once they are closed."""
NO_FOLDER = "Make a temporary folder writable, such as /tmp, or name one in TMPDIR."
"""What to do where no temporary folder can be made, as in containers that are read-only throughout."""
_MAX_VALUE_CHARS = 80
BudgetLimit = Literal["usd", "tokens", "model_calls", "tool_calls", "seconds", "attempts"]
"""What a `Budget` limits."""


def brief(value: object) -> str:
    """Return a value as a message shows it: on one line, and shortened."""
    try:
        shown = repr(value)
    except (ValueError, RecursionError):  # An integer with thousands of digits, or lists within lists.
        shown = f"a value of type {type(value).__name__}"
    return shown if len(shown) <= _MAX_VALUE_CHARS else shown[: _MAX_VALUE_CHARS - 3] + "..."


class CodeChainsError(Exception):
    """The root of the exceptions of this library."""

    is_retryable: bool = False
    """Whether the same call may succeed when it is repeated."""


class ConfigurationError(CodeChainsError, ValueError):
    """An argument is invalid.

    Args:
        argument: Name of the argument.
        value: Its value; shown by its `repr`, shortened.
        remedy: What to pass instead, as the end of the sentence "Pass …".
        because: Why the value is invalid, as a clause, if the remedy does not say so.
    """

    argument: str
    remedy: str
    value: object
    because: str = ""

    def __init__(self, argument: str, value: object, remedy: str, *, because: str = "") -> None:
        self.argument, self.value, self.remedy = argument, value, remedy
        shown = brief(value)
        self.because = because
        cause = f": {because}" if because else ""
        super().__init__(f"Invalid {argument}={shown}{cause}. Pass {remedy}.")


class UnknownArgumentError(ConfigurationError, TypeError):
    """An argument does not exist.

    Args:
        argument: Its name.
        remedy: What to pass instead, as the end of the sentence "Pass …".
    """

    def __init__(self, argument: str, remedy: str) -> None:
        self.argument, self.remedy, self.value = argument, remedy, None
        Exception.__init__(self, f"There is no argument {argument!r}. Pass {remedy}.")


class MissingExtraError(ConfigurationError):
    """An argument requires an optional dependency that is not installed.

    Args:
        argument: Name of the argument.
        value: Its value.
        extra: The extra.
        instead: What else to do, as a clause, if there is an alternative.
    """

    def __init__(self, argument: str, value: object, extra: str, *, instead: str = "") -> None:
        command = f'pip install -e ".[{extra}]"'
        super().__init__(argument, value, f"it once the extra is installed ({command})")
        needed = f"{argument}={value!r} needs the extra {extra!r}."
        alternative = f", or {instead}" if instead else ""
        self.args: tuple[Any, ...] = (f"{needed} In a clone of the repository, run: {command}{alternative}",)


def check_bool(argument: str, value: object) -> None:
    """Raise unless an argument that turns something on or off is True or False.

    Raises:
        ConfigurationError: It is neither.
    """
    if not isinstance(value, bool):
        raise ConfigurationError(argument, value, "True or False")


def check_int(
    argument: str, value: object, remedy: str, *, minimum: int | None = None, maximum: int | None = None
) -> int:
    """Return a validated integer.

    Args:
        argument: Name of the argument.
        value: Its value.
        remedy: What to pass instead, as the end of the sentence "Pass …".
        minimum: Its smallest valid value, if there is one.
        maximum: Its largest valid value, if there is one.

    Raises:
        ConfigurationError: It is not an int (bools are rejected), or it is out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigurationError(argument, value, remedy)
    if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        raise ConfigurationError(argument, value, remedy)
    return value


def refusal_reason(error: Exception) -> str:
    """Return why a check or an approver refuses, if it says so by an exception, as blocklists of tutorials do.

    Raises:
        Exception: The error itself, if it is a mistake in the code, an error of this library, or an interrupt of LangGraph.
    """
    is_interrupt = any(kind.__name__ == "GraphBubbleUp" for kind in type(error).__mro__)
    if is_interrupt or isinstance(error, _NO_REFUSALS):
        raise error
    return str(error) or type(error).__name__


@contextmanager
def needs(extra: str, argument: str, value: object) -> Iterator[None]:
    """Import packages of an extra in this context; raise a `MissingExtraError` if one is missing."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(argument, value, extra) from error


_NO_REFUSALS = (
    TypeError,
    AttributeError,
    NameError,
    ImportError,
    LookupError,
    ArithmeticError,
    CodeChainsError,
)


class InputError(CodeChainsError, ValueError):
    """A question, file or variable is invalid."""


class ExecutorError(CodeChainsError, RuntimeError):
    """The executor broke; the program is not to blame.

    Args:
        message: What happened and what to do next.
        is_retryable: Whether the same run may succeed when repeated.
    """

    def __init__(self, message: str, *, is_retryable: bool = False) -> None:
        super().__init__(message)
        self.is_retryable = is_retryable


class IsolationError(ExecutorError):
    """The required isolation is not available on this machine; nothing was run."""


class OverloadedError(ExecutorError):
    """The executor or the queue is at capacity; nothing was run, and a later retry may succeed.

    Args:
        message: What is at capacity.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, is_retryable=True)


class SessionError(ExecutorError):
    """A session has ended with its state, is busy, or has nothing to roll back to."""


class BudgetError(CodeChainsError, RuntimeError):
    """A limit of a budget is reached; the call that would have exceeded it was not made.

    Args:
        limit: The limit, e.g. `tokens`.
        allowed: Its value.
    """

    allowed: float
    limit: BudgetLimit

    def __init__(self, limit: BudgetLimit, allowed: float) -> None:
        self.limit, self.allowed = limit, allowed
        super().__init__(
            f"The budget is exhausted ({limit}={allowed:g}). Raise the limit, or use a new Budget."
        )


class StoreError(CodeChainsError, RuntimeError):
    """The file of a store cannot be created, read or written, or is of another kind; it is left unchanged.

    Args:
        message: Which file, what happened and what to do next.
        is_retryable: Whether the same call may succeed when repeated.
    """

    def __init__(self, message: str, *, is_retryable: bool = False) -> None:
        super().__init__(message)
        self.is_retryable = is_retryable


class WeightsError(CodeChainsError, RuntimeError):
    """The weights of an embedded model cannot be downloaded, verified or loaded."""
