"""What visitors are told of an error; its details are for whoever runs the server, in the log."""

from __future__ import annotations

import logging
import re
from pathlib import PurePosixPath

from code_chains.callbacks.redaction import describe_error
from code_chains.errors import (
    BudgetError,
    CodeChainsError,
    ExecutorError,
    InputError,
    OverloadedError,
    StoreError,
    WeightsError,
)

_log = logging.getLogger(__name__)
_MESSAGES: tuple[tuple[type[Exception], str], ...] = (
    (OverloadedError, "Too many programs run at the moment. Try again later."),
    (BudgetError, "The budget for questions is spent."),
    (WeightsError, "The model is not available at the moment. Try again later."),
    (ExecutorError, "Programs cannot be run at the moment. Try again later."),
    (StoreError, "The conversation cannot be read or saved at the moment. Try again later."),
    (
        CodeChainsError,
        "The question cannot be answered here. Whoever runs this page finds the reason in its log.",
    ),
)
_OTHER = "The model did not answer. Try again later."


def report_error(error: Exception, *, to_owner: bool = False) -> str:
    """Return what a visitor is told of an error, and log its details.

    An `InputError` is about what the visitor entered, and is told as it is. Other messages quote a provider, or advise
    whoever runs the server.

    Args:
        error: The error.
        to_owner: Whether the visitor runs the server.
    """
    if isinstance(error, InputError):
        return _without_folders(describe_error(error))
    _log.warning("An action on the page failed: %s", describe_error(error))
    _log.debug("Its traceback:", exc_info=error)
    if to_owner:
        return describe_error(error)
    return next((message for kind, message in _MESSAGES if isinstance(error, kind)), _OTHER)


def _without_folders(message: str) -> str:
    """Return a message with names of files alone: visitors need not know folders of this machine."""
    named = re.sub(r"'(/[^']*)'", lambda match: repr(PurePosixPath(match[1]).name), message)
    return named.partition(" Paths are relative to ")[0]
