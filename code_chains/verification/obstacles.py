"""What stops a program that another program would meet as well: no network, too little memory or time, a missing library."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from code_chains.analysis.dotted_names import words
from code_chains.executors.distributions import distribution_of
from code_chains.state import ErrorReport, Execution

_MAX_CHARS = 4000
NO_NETWORK = "Programs have no network, except for addresses that the application allows."
_MISSING_MODULE = re.compile(r"(?:No module named|There is no module) '([\w.]+)'")
_NO_NETWORK = re.compile(
    r"NameResolutionError|getaddrinfo|name resolution|Name or service not known|nodename nor servname"
    r"|Network is unreachable|NewConnectionError|Cannot connect to host|No address associated"
)
_NETWORK_LIBRARIES = words(
    "yfinance wikipedia wikipediaapi ccxt tweepy googletrans forex_python currency_converter feedparser pytrends selenium"
    " playwright requests_html googlesearch geopy pyowm alpha_vantage newsapi openai serpapi mechanize aiohttp httpx"
)
"""Libraries that are of no use without a network."""
_NETWORK_ERRORS = {"gaierror", "ConnectError", "ConnectTimeout", "NameResolutionError", "NewConnectionError"}


class Obstacle(NamedTuple):
    """What stopped a program.

    Attributes:
        kind: What is missing.
        sentence: The same for people, in English; empty if the error says it in a sentence.
        module: The missing module, if that is it.
    """

    kind: Literal["input", "memory", "module", "network", "time"]
    sentence: str = ""
    module: str = ""


def find_obstacle(execution: Execution) -> Obstacle | None:
    """Return what stopped a program; None for errors of its own."""
    error = execution.error
    if execution.ok and _is_enclosed(execution) and _NO_NETWORK.search(execution.output[:_MAX_CHARS]):
        return Obstacle("network", NO_NETWORK)  # The program caught the error itself.
    if execution.status == "timeout":
        return Obstacle("time")
    if execution.status == "memory" or (error and error.type == "MemoryError"):
        sentence = "The program needed more memory than it may use."
        return Obstacle("memory", "" if error and error.type == "MemoryLimit" else sentence)
    return _obstacle_of(error, execution) if error else None


def _obstacle_of(error: ErrorReport, execution: Execution) -> Obstacle | None:
    match = _MISSING_MODULE.search(error.message)
    if match and match[1].split(".")[0] in _NETWORK_LIBRARIES and _is_enclosed(execution):
        return Obstacle("network", NO_NETWORK)
    if match and "did you mean" not in error.message:
        library = distribution_of(match[1])
        return Obstacle(
            "module", f"The program needs the library {library}, which is not installed.", match[1]
        )
    if error.type == "EOFError" and "reading a line" in error.message:
        return Obstacle("input", "The program asked for input, but nobody can type while it runs.")
    is_refused = error.type in _NETWORK_ERRORS or _NO_NETWORK.search(error.message) is not None
    return Obstacle("network", NO_NETWORK) if is_refused and _is_enclosed(execution) else None


def _is_enclosed(execution: Execution) -> bool:
    """Return whether a program had no network, as far as is known."""
    return execution.isolation is None or execution.isolation.network
