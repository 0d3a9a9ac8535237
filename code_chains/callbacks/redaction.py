"""Errors and log lines as people read them: on one line, explained, and safe to print."""

from __future__ import annotations

import logging

from code_chains.callbacks.provider_errors import explain_provider_error, is_broken_reply
from code_chains.errors import CodeChainsError
from code_chains.records.printable import printable

_MAX_ERROR_CHARS = 100_000


def describe_error(error: Exception) -> str:
    """Describe an exception in one line that says what to do and is safe to print."""
    from langchain_core.exceptions import LangChainException  # Heavy, and the command line starts without it.

    # Cut first so that no provider's megabytes are searched, and again last so that no secret is cut in half.
    message = printable(str(error), _MAX_ERROR_CHARS)
    if isinstance(error, CodeChainsError):
        return message
    if explained := explain_provider_error(error):
        return printable(" ".join(explained[:_MAX_ERROR_CHARS].split()), 700)
    if is_broken_reply(error):
        said = " ".join(message.split())[:200].rstrip(".")
        return f"The reply of the model's server is broken ({type(error).__name__}: {said}). Try again later."
    if "Unexpected response type" in message:  # The words of langchain-openai.
        return "The model's server answered with something else than its API. Check the base URL: it usually ends with /v1."
    kind = "The model" if isinstance(error, LangChainException) else type(error).__name__
    return f"{kind}: {' '.join(message.split())[:500].rstrip('.')}. See `code-chains doctor`."


class PrintableFormatter(logging.Formatter):
    """A formatter whose lines are `printable`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        return printable(super().format(record))
