"""What to do about errors of a model's provider: connection, key, name, limits."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from traceback import walk_tb
from urllib.parse import urlsplit

from code_chains.callbacks.proxies import proxy_variable

_REMEDIES = {
    401: ("refuses the API key", "Set the right one, e.g. OPENAI_API_KEY."),
    403: ("refuses access", "Check what the API key is allowed to use."),
    404: (
        "has no such model or path",
        "Check the name of the model, and the base URL, which usually ends with /v1.",
    ),
    429: ("accepts no more requests for now", "Wait, or check the limits and the credit of your account."),
}
_BROKEN = (JSONDecodeError, LookupError, TypeError, AttributeError)
_MODELS = "langchain_core.language_models"
_NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
_SAID = ("insufficient_quota", "credit balance is too low")
_SECONDS = re.compile(r"\d{1,9}(?:\.\d*)?")
_ENDPOINTS = ("/chat/completions", "/responses", "/messages", "/api/chat")


def explain_provider_error(error: BaseException) -> str:
    """Return which server failed, how, and what to do, of the errors of LangChain's providers; empty for any other error.

    They are told apart by what they have in common: the request, and the status of the response.
    """
    server = _server(error)
    if not server:
        return ""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return _explain_status(server, status, str(error))
    if "timeout" in type(error).__name__.lower():
        return f"The model's server {server} did not answer in time. Try again, or raise the timeout."
    reason = next((str(cause) for cause in _causes(error) if isinstance(cause, OSError)), "")
    detail = f" ({reason})" if reason else ""
    if variable := proxy_variable(server):
        return (
            f"The model's server {server} cannot be reached through the proxy in {variable}{detail}. Correct the"
            f" variable, or add {urlsplit(server).hostname} to NO_PROXY."
        )
    remedy = "Start it" if _is_own(server) else "Check the network"
    return f"The model's server {server} cannot be reached{detail}. {remedy}, or correct the base URL."


def status_of(error: BaseException) -> int | None:
    """Return the status of a provider's response; 503 if there was a request and no response; None for any other error."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status
    return 503 if _server(error) else None


def is_broken_reply(error: BaseException) -> bool:
    """Return whether a model failed over the reply of its provider: it was no completion, such as HTML, or one cut short."""
    frames = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    return isinstance(error, _BROKEN) and any(name.startswith(_MODELS) for name in frames)


def is_out_of_credit(error: BaseException) -> bool:
    """Return whether a provider refuses requests until its bill is paid; some say so with the status of a rate limit."""
    if not isinstance(getattr(error, "status_code", None), int):
        return False
    return getattr(error, "code", None) in _NO_CREDIT or any(said in str(error).lower() for said in _SAID)


def retry_after(error: BaseException) -> float:
    """Return in how many seconds a provider wants to be asked again; 0 if it does not say."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    told = str(headers.get("retry-after") or "0")
    try:
        seconds = (
            float(told) if _SECONDS.fullmatch(told) else parsedate_to_datetime(told).timestamp() - time.time()
        )
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, seconds)


def _is_own(server: str) -> bool:
    """Return whether a server is probably one that its user runs."""
    host = urlsplit(server).hostname or ""
    return "." not in host or host.replace(".", "").isdigit() or host.endswith(".local")


def _explain_status(server: str, status: int, message: str) -> str:
    message = message.removeprefix(f"Error code: {status} - ").rstrip(".")
    what, remedy = _REMEDIES.get(status, ("refuses the request", ""))
    if status >= 500:
        what, remedy = "failed", "Try again later."
    return f"The model's server {server} {what} ({status}: {message}). {remedy}".rstrip()


def _server(error: BaseException) -> str:
    """Return the address of the server without credentials and query; empty if there was no request."""
    try:
        parts = urlsplit(str(error.request.url))  # type: ignore[attr-defined]
    except Exception:  # Other errors have no request, or raise where it is not set.
        return ""
    path = parts.path
    for endpoint in _ENDPOINTS:
        path = path.removesuffix(endpoint)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path.rstrip('/')}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what an error was raised from, the innermost first."""
    causes: list[BaseException] = []
    cause = error.__cause__ or error.__context__
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return reversed(causes)
