"""Proxies that the environment sets for the clients of models: which variable is in the way, and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from code_chains.errors import ConfigurationError

_SCHEMES = ("http", "https", "all")
_MASK = "***"


def proxy_variable(url: str) -> str:
    """Return the name of the variable with the proxy of a server; empty if it is reached directly."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return ""
    names = dict(_variables())
    return names.get(parts.scheme) or names.get("all", "")


def invalid_proxy() -> ConfigurationError | None:
    """Return the error of the variable whose proxy no client can be built with; None if there is none."""
    from openai import DefaultHttpxClient

    for _, name in _variables():
        try:
            DefaultHttpxClient(proxy=_complete(os.environ[name]), trust_env=False).close()
        except Exception as error:
            return _invalid(name, error)
    return None


def _invalid(name: str, error: Exception) -> ConfigurationError:
    reason, alternative = str(error), ""
    if isinstance(error, ImportError):
        reason, alternative = "SOCKS needs the package socksio", ", or run pip install socksio"
    remedy = (
        f"a proxy such as http://proxy.example.org:3128{alternative}; NO_PROXY names servers without a proxy"
    )
    return ConfigurationError(name, _without_password(os.environ[name]), remedy, because=reason)


def _variables() -> Iterator[tuple[str, str]]:
    """Yield the schemes with a proxy and the variable of each; that in small letters counts, as in curl."""
    for scheme in _SCHEMES:
        names = (f"{scheme}_proxy", f"{scheme}_proxy".upper())
        if name := next((name for name in names if os.environ.get(name)), None):
            yield scheme, name


def _complete(value: str) -> str:
    return value if "://" in value else f"http://{value}"


def _without_password(value: str) -> str:
    scheme, separator, rest = value.rpartition("//")
    credentials, at, host = rest.rpartition("@")
    return f"{scheme}{separator}{_MASK if credentials else ''}{at}{host}"
