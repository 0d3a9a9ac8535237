"""Text that is safe to print: without secrets, and without characters that steer a terminal or cannot be seen."""

from __future__ import annotations

import os
import re
import unicodedata

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

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
_MARGIN = 1000
"""Characters behind the end of a message that are read, so that a secret across it is recognised."""
_SECRET_NAMES = re.compile(r"(?i)key|secret|token|passw|credential")


def without_secrets(text: str) -> str:
    """Return text with `[secret]` in place of whatever looks like one.

    Redacted are keys of well-known services, JSON web tokens, private keys, passwords in addresses, values
    that a program or a settings file gives to a name such as `api_key`, and what this process has in
    environment variables with names such as `…_KEY`, `…_TOKEN`, `…_SECRET` or `…_PASSWORD`. This is best
    effort.

    Example:
        >>> without_secrets("client = Client(api_key='abc')")
        "client = Client(api_key='[secret]')"
    """
    for name, value in os.environ.items():
        if _SECRET_NAMES.search(name) and len(value) >= 8:
            text = text.replace(value, "[secret]")
    return _KNOWN.sub("[secret]", _NAMED.sub(_hidden, text))


def _hidden(match: re.Match[str]) -> str:
    quote = _QUOTE.match(match[2])
    return f"{match[1]}{quote[0]}[secret]{quote[1]}" if quote else f"{match[1]}[secret]"


def strip_control_chars(text: str) -> str:
    """Replace control characters, which steer terminals, bidirectional marks and lone surrogates."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def printable(message: str, max_chars: int = 20_000) -> str:
    """Make an error or another message safe to print: without control characters, and without what looks like a secret.

    Invariant: a message is cut before it is read, as a program or another machine may have written it, and an expression
    lets no other thread run.

    Programs, outputs and answers go through `strip_control_chars` alone: a person who approves a program must
    see all of it, and a question may ask for a password.

    Args:
        message: The message.
        max_chars: Its length at most.
    """
    return without_secrets(strip_control_chars(message[: max_chars + _MARGIN]))[:max_chars]


def escape_invisible(document: str) -> str:
    r"""Escape characters that cannot be seen; the value of a JSON document stays the same.

    These are control, bidirectional, format and unassigned characters, and variation selectors; lines and tabs are kept.

    Example:
        >>> escape_invisible('"\u202e"')
        '"\\u202e"'
    """
    return re.sub(r"[^ -~\n\t]", _escaped, document)


def _escaped(match: re.Match[str]) -> str:
    category = unicodedata.category(match[0])
    is_selector = "\ufe00" <= match[0] <= "\ufe0f" or "\U000e0100" <= match[0] <= "\U000e01ef"
    if not category.startswith("C") and category not in ("Zl", "Zp") and not is_selector:
        return match[0]
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
