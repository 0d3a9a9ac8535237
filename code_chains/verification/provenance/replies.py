"""What a model says in a conversation instead of writing a program: thanks returned, or what was said before."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from code_chains.verification.expectations import expectations_of
from code_chains.verification.grounding import unsupported_numbers

REPLY = "Reply:"
"""How such a reply begins."""
REPLY_RULE = (
    f"- Only if the message needs no program, such as thanks or a question about this conversation, write one line instead"
    f" that begins with `{REPLY}`, with what you say."
)
OWN_WORDS = "Nothing was computed: these are the model's own words."
_LINE = re.compile(r"\s*[*_`]*reply\s*[:：][*_`]*\s*(\S.*)", re.IGNORECASE | re.DOTALL)
_MAX_CHARS = 2000


def may_reply(values: Mapping[str, Any]) -> bool:
    """Return whether a question may be answered in words: one of a conversation, which asks for no value or function."""
    return bool(values.get("history")) and values.get("answer_type") is None and not expectations_of(values)


def own_words(values: Mapping[str, Any]) -> str:
    """Return the reply of a model that wrote no program; empty if it is none, or states a number that nobody has told.

    Args:
        values: The state of a chain, with `query`, `history`, `code` and `reply`.
    """
    match = _LINE.fullmatch(str(values.get("reply") or ""))
    if match is None or str(values.get("code") or "").strip() or not may_reply(values):
        return ""
    text = match[1].strip()[:_MAX_CHARS]
    told = [str(values.get("query") or ""), _text(values["history"])]
    return "" if unsupported_numbers(text, *told) else text


def _text(history: object) -> str:
    messages = history if isinstance(history, list) else [history]
    return "\n".join(str(getattr(message, "text", message)) for message in messages)
