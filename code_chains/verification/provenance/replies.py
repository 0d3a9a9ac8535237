"""What a model says in place of a program: thanks returned, what was said before, or words where these are asked for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from code_chains.language.reasons import translate_reason
from code_chains.verification.expectations import expectations_of
from code_chains.verification.grounding import unsupported_numbers
from code_chains.verification.number_words import stated_in_words

REPLY = "Reply:"
"""How such a reply begins."""
REPLY_RULE = (
    f"- Only if the message needs no program, such as thanks or a question about this conversation, write one line instead"
    f" that begins with `{REPLY}`, with what you say."
)
OWN_WORDS = "Nothing was computed: these are the model's own words."
_LINE = re.compile(r"(?<![\s*_`])\s*+[*_`]*+reply\s*+[:：][*_`]*+\s*+(\S.*)", re.IGNORECASE | re.DOTALL)
_MAX_CHARS, _MAX_TRIVIAL = 2000, 2
"""Of words; "one" and "two" are hardly ever a result."""
_ROMAN = re.compile(r"\b[MDCLXVI]{3,}\b")
_TO_COMPUTE_WITH = (
    "files",
    "variables",
    "tests",
    "examples",
    "answer_type",
    "generated_tests",
    "stdin",
)
"""What nobody answers in words alone."""


def may_reply(values: Mapping[str, Any]) -> bool:
    """Return whether a question may be answered in words: one of a conversation, which asks for no value or function."""
    return bool(values.get("history")) and values.get("answer_type") is None and not expectations_of(values)


def own_words(values: Mapping[str, Any]) -> str:
    """Return the reply of a model that wrote no program; empty if it is none, or states a number that nobody has told.

    It is one in a conversation that says so itself, or words that a model gave again when it was asked for a program, where
    there is nothing to compute with. These begin with the sentence that nothing was computed.

    Args:
        values: The state of a chain, with `query`, `history`, `code`, `reply` and `words`.
    """
    reply = str(values.get("reply") or "").strip()
    if str(values.get("code") or "").strip() or not reply or values.get("finish_reason") == "length":
        return ""
    told = [str(values.get("query") or ""), *map(_text, (values.get("history"), values.get("context")))]
    match = _LINE.fullmatch(reply)
    if match is not None and may_reply(values):
        text = match[1].strip()[:_MAX_CHARS]
        return "" if unsupported_numbers(text, *told) else text
    words = (_LINE.sub(r"\1", str(values.get("words") or ""))).strip()[:_MAX_CHARS]
    if not words or any(values.get(key) for key in _TO_COMPUTE_WITH) or _states_more(words, told):
        return ""
    return f"{translate_reason(OWN_WORDS, values.get('language'))}\n\n{words}"


def _states_more(words: str, told: list[str]) -> bool:
    """Return whether words state a number, in digits or in words, that nobody has told."""
    known = "\n".join(told)
    figures = {*re.findall(r"\d+", words), *_ROMAN.findall(words), *filter(_is_figure, words)}
    stated = {number for number in stated_in_words(words) if number > _MAX_TRIVIAL}
    is_more = any(figure not in known for figure in figures) or stated.difference(stated_in_words(known))
    return bool(is_more or unsupported_numbers(words, *told))


def _is_figure(sign: str) -> bool:
    """Return whether a sign stands for a number and is no digit: ½, Ⅻ or ②."""
    return unicodedata.category(sign) in ("Nl", "No")


def _text(told: object) -> str:
    parts = told if isinstance(told, list) else [told or ""]
    return "\n".join(str(getattr(part, "text", part)) for part in parts)
