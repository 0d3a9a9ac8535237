"""Texts without what looks like a secret, before they go to places where others read them."""

from __future__ import annotations

import os
import re

__all__ = ["without_secrets"]

_KNOWN = re.compile(
    r"""
      \bsk-[A-Za-z0-9_-]{16,}                                       # OpenAI, Anthropic
    | \b[spr]k_(?:live|test)_[A-Za-z0-9]{10,}                       # Stripe
    | \bgh[pousr]_[A-Za-z0-9]{30,} | \bgithub_pat_[A-Za-z0-9_]{20,} | \bglpat-[A-Za-z0-9_-]{16,}
    | \bhf_[A-Za-z0-9]{30,} | \blsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}    # Hugging Face, LangSmith
    | \bxox[abprs]-[A-Za-z0-9-]{10,} | \bAIza[A-Za-z0-9_-]{30,} | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \beyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{0,4000}
    | -----BEGIN\ [A-Z ]{0,40}PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]{0,40}PRIVATE\ KEY-----|\Z)
    | (?<=://)[^/\s:@]{0,200}:[^/\s]{1,400}(?=@)                    # A password in an address
    | (?i:(?<=bearer\ ))[A-Za-z0-9._~+/-]{8,}=* | (?i:(?<=authorization:\ basic\ ))[A-Za-z0-9+/]{4,}=*
    """,
    re.DOTALL | re.VERBOSE,
)
_NAMED = re.compile(
    r"""
    ((?:api[_-]?key|access[_-]?key|secret(?:[_-]?key)?|token|password|passwd|credential)(?![A-Za-z])
     ["']?\]?\s{0,8}(?::\s{0,8}\w{1,20}\s{0,8}(?==))?[:=]\s{0,8})
    ( [bfru]{0,2}(?: \"\"\".{1,4000}?\"\"\" | '''.{1,4000}?''' | "[^"\n]{1,4000}" | '[^'\n]{1,4000}' )
    | (?=[^\s"'`,;(){}\[\]]{0,200}\d)[^\s"'`,;(){}\[\]]{6,} )
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""A value that is given to such a name: in quotes, or a word with a digit in it. Each part is bounded, so that no text takes
more than linear time."""
_QUOTE = re.compile(r"[bfru]{0,2}(\"\"\"|'''|\"|')", re.IGNORECASE)
_SECRET_NAMES = re.compile(r"(?i)key|secret|token|passw|credential")


def without_secrets(text: str) -> str:
    """Text with `[secret]` in the place of whatever looks like one.

    These are: keys of well-known services, JSON web tokens, private keys, passwords in addresses, values that a program or a
    settings file gives to a name such as `api_key`, and what this process has in environment variables with names such as
    `…_KEY`, `…_TOKEN`, `…_SECRET` or `…_PASSWORD`. It is a filter, not a promise.

    Example:
        >>> without_secrets("client = Client(api_key='abc')")
        "client = Client(api_key='[secret]')"
    """
    for name, value in os.environ.items():
        if _SECRET_NAMES.search(name) and len(value) >= 8:
            text = text.replace(value, "[secret]")
    return _KNOWN.sub("[secret]", _NAMED.sub(_hidden, text))


def _hidden(found: re.Match[str]) -> str:
    quote = _QUOTE.match(found[2])
    return f"{found[1]}{quote[0]}[secret]{quote[1]}" if quote else f"{found[1]}[secret]"
