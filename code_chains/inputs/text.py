"""Text of a question and of a conversation, validated; and text for a model, fenced and shortened."""

from __future__ import annotations

import difflib
import itertools
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from typing import Any, Self

from langchain_core.messages import BaseMessage, convert_to_messages

from code_chains.errors import InputError
from code_chains.executors.inputs import is_text

_ROLES = {"human", "user", "ai", "assistant", "system", "developer", "function", "tool", "remove"}
"""What LangChain knows as the role of a message."""
_WORD = re.compile("[a-z_]+")
MAX_QUERY_CHARS = 100_000
"""Maximum length of a question, in characters. Put longer texts into a file."""


class FencedText(str):
    """Text for a model whose untrusted parts are in fences already; what has become plain text is fenced as a whole.

    Args:
        text: The text.
        examples: The part of it whose values belong to other tasks.
    """

    __slots__ = ("examples",)
    examples: str

    def __new__(cls, text: str, examples: str = "") -> Self:
        """Create the text."""
        self = super().__new__(cls, text)
        self.examples = examples
        return self


def check_history(history: Any) -> str | list[BaseMessage]:
    """Return the conversation so far as text or messages.

    Args:
        history: Text, or messages in any form that LangChain knows: its own, `(role, text)` or OpenAI's dicts; or pairs of
            question and answer, as `ConversationalRetrievalChain` and Gradio have them.

    Raises:
        InputError: It is none of these.
    """
    if isinstance(history, str):
        return history
    is_single = isinstance(history, BaseMessage | Mapping) or (
        isinstance(history, tuple) and len(history) == 2 and all(isinstance(part, str) for part in history)
    )
    try:
        messages = [history] if is_single else history
        if isinstance(messages, list):
            messages = _expanded(messages)
        return convert_to_messages(messages)
    except (ValueError, TypeError, KeyError, NotImplementedError, AttributeError) as error:
        raise InputError(
            f"history must be text or messages, not {shortened(repr(history), 100)}: {error}"
        ) from error


def _expanded(items: list[Any]) -> list[Any]:
    """Return messages as they are, and two for each pair of a question and its answer, which may be missing.

    A word may be a role, which LangChain knows or refuses: beside other roles, and if all that are none look misspelt.
    """
    words = [item[0] for item in items if _is_pair(item)]
    asked = {word for word in words if word not in _ROLES}
    if not asked.issuperset(words):
        asked = {question for question in asked if not _WORD.fullmatch(question)}
    if all(difflib.get_close_matches(question, _ROLES, cutoff=0.7) for question in asked):
        return items
    messages: list[Any] = []
    for item in items:
        if not _is_pair(item) or item[0] not in asked:
            messages.append(item)
            continue
        question, answer = item
        messages += [("human", question)] if answer is None else [("human", question), ("ai", answer)]
    return messages


def _is_pair(item: Any) -> bool:
    """Return whether an item is a text and something else: a question with its answer, or a role with its text."""
    return isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], str)


def check_query(query: object) -> str:
    """Return a validated question.

    Raises:
        InputError: It is not text, empty, or longer than `MAX_QUERY_CHARS` characters.
    """
    if not isinstance(query, str):
        raise InputError(f"The question must be text, not {type(query).__name__}.")
    if not query.strip():
        raise InputError(
            'The question is empty. Ask something, e.g. "What is the sum of the numbers from 1 to 5?".'
        )
    if not is_text(query):
        raise InputError("The question holds characters that are not text (broken UTF-8). Type them again.")
    if len(query) > MAX_QUERY_CHARS:
        raise InputError(
            f"The question has {len(query):,} characters; at most {MAX_QUERY_CHARS:,} are allowed. Put long texts"
            " into a file and pass it with files=."
        )
    return query


def check_keys(
    keys: Collection[str], known: Collection[str], choose_how: Callable[[str], str] | None = None
) -> None:
    """Refuse keys that are nearly those of inputs, as a question without its tests would look unverified for no reason.

    Args:
        keys: Keys of the inputs.
        known: Keys that are read.
        choose_how: Says how a name is chosen that is no input; without it, chains before and after may use all others.

    Raises:
        InputError: A key is misspelt, or is none.
    """
    missing = [key for key in known if key not in keys]
    for key in keys:
        if key in known:
            continue
        remedy = choose_how(str(key)) if choose_how else ""
        if remedy:
            raise InputError(f"There is no input {key!r}. {remedy}")
        # A question that lacks its text has that under another name.
        others = ["query"] if choose_how and "query" in missing else []
        if near := difflib.get_close_matches(str(key), missing, n=1, cutoff=0.85) or others:
            raise InputError(f"There is no input {key!r}; did you mean {near[0]!r}? Rename the key.")
        if choose_how:
            raise InputError(
                f"There is no input {key!r}. A question takes {', '.join(dict.fromkeys(known))}."
            )


def check_session_id(session_id: object) -> str:
    """Return a validated name of a conversation.

    Raises:
        InputError: It is not text, empty, or longer than 500 characters.
    """
    if (
        not isinstance(session_id, str)
        or not session_id.strip()
        or len(session_id) > 500
        or not is_text(session_id)
    ):
        raise InputError(
            f"session_id must be a text of 1 to 500 characters, not {shortened(repr(session_id), 100)}."
        )
    return session_id


def fenced(text: str, language: str = "text") -> str:
    """Return text inside a Markdown fence that the text itself cannot close, whatever it contains."""
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def shortened(text: str, length: int) -> str:
    """Return the beginning and the end of a text, of about so many characters at most."""
    half = length // 2
    return text if len(text) <= length else f"{text[:half]}\n… (shortened) …\n{text[-half:]}"


def folded(text: str) -> str:
    """Return text without case and accents, as it is compared.

    Example:
        >>> folded("Éclair")
        'eclair'
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(itertools.filterfalse(unicodedata.combining, decomposed))
