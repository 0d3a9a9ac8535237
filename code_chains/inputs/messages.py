"""A question or a program in any form that LangChain passes on: text, a message, messages, or the value of a prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue

from code_chains.errors import InputError

_MESSAGES = "messages"
_NOT_MESSAGES = (ValueError, TypeError, KeyError, NotImplementedError, AttributeError)


def as_state(
    given: Any, key: str, history: str | None, read: Callable[[Any], str] | None = None
) -> dict[str, Any]:
    """Return inputs as a dict in which a key holds text, and the messages before it are the history.

    Args:
        given: Text, a message, a list of messages, the value of a prompt, or a dict with one of these; a dict may
            have `messages` in place of the key, as agents and LangGraph do.
        key: The key of the text.
        history: The key of what was said before; None if only the last message counts, as the reply of a model does.
        read: Returns the text of a message.

    Raises:
        InputError: The messages are none, are beside a history of their own, or do not end with what is asked.
    """
    state = dict(given) if isinstance(given, Mapping) and "role" not in given else {key: given}
    if key not in state and _MESSAGES in state:
        state[key] = state.pop(_MESSAGES)
    value = state.get(key)
    if not isinstance(value, PromptValue | BaseMessage | list | tuple | Mapping):
        return state
    messages = _messages(value)
    state[key] = (read or _text)(messages[-1])
    if history is None:
        return state
    if isinstance(messages[-1], AIMessage):
        raise InputError("The last message is a model's. Let the messages end with the question.")
    if len(messages) > 1:
        if state.get(history):
            raise InputError(
                f"There are earlier messages and {history!r} as well. Pass what was said before once."
            )
        state[history] = messages[:-1]
    return state


def _messages(value: Any) -> list[BaseMessage]:
    """Return messages, of which the last is not empty."""
    if isinstance(value, PromptValue):
        value = value.to_messages()
    is_single = isinstance(value, BaseMessage | Mapping)
    try:
        messages = convert_to_messages([value] if is_single else value)
    except _NOT_MESSAGES as error:
        kind = type(value).__name__
        raise InputError(f"The question must be text or messages, not {kind}: {error}") from error
    if not messages:
        raise InputError("There are no messages. Pass the question as the last of them.")
    return messages


def _text(message: BaseMessage) -> str:
    """Return the text of a question."""
    if isinstance(message.content, list):
        others = {str(block.get("type")) for block in message.content if isinstance(block, dict)} - {"text"}
        if others:
            raise InputError(
                f"A question is text; {', '.join(sorted(others))} cannot be asked. Pass data as files=."
            )
    return str(message.text)
