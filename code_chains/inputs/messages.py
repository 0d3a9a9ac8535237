"""A question or a program in any form that LangChain passes on: text, a message, messages, or the value of a prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    convert_to_messages,
    get_buffer_string,
)
from langchain_core.prompt_values import PromptValue

from code_chains.errors import InputError

_MESSAGES = "messages"
_MAX_NAME_CHARS = 100
_NOT_MESSAGES = (ValueError, TypeError, KeyError, NotImplementedError, AttributeError)


def as_state(
    given: Any,
    key: str,
    history: str | None,
    read: Callable[[Any], str] | None = None,
    *,
    context: str = "context",
) -> dict[str, Any]:
    """Return inputs as a dict in which a key holds text, and the messages before it are the history.

    The question is the user's: what other workers of a graph have said since, whose messages have names, is context.

    Args:
        given: Text, a message, a list of messages, the value of a prompt, or a dict with one of these; a dict may
            have `messages` in place of the key, as agents and LangGraph do.
        key: The key of the text.
        history: The key of what was said before; None if only the last message counts, as the reply of a model does.
        read: Returns the text of a message.
        context: The key of what may help.

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
    if history is None:
        return {**state, key: (read or _text)(messages[-1])}
    asked = _place_of_question(messages)
    said = [message for message in messages[asked + 1 :] if str(message.text).strip()]
    if said and isinstance(said[-1], AIMessage) and not said[-1].name:
        raise InputError("The last message is a model's. Let the messages end with the question.")
    state[key] = (read or _text)(messages[asked])
    if said:
        state[context] = "\n\n".join(filter(None, [str(state.get(context) or ""), transcript(said)]))
    if asked:
        if state.get(history):
            raise InputError(
                f"There are earlier messages and {history!r} as well. Pass what was said before once."
            )
        state[history] = messages[:asked]
    return state


def transcript(messages: Sequence[BaseMessage]) -> str:
    """Return what messages say, each after the name of who said it, or after the role that it has."""
    # Indented, so that no line of a message looks like another turn.
    lines = (get_buffer_string([one]).replace("\n", "\n  ") for one in messages)
    names = (" ".join(str(one.name or "").split())[:_MAX_NAME_CHARS] for one in messages)
    pairs = zip(names, lines, strict=True)
    return "\n".join(f"{name}:{line.partition(':')[2]}" if name else line for name, line in pairs)


def _place_of_question(messages: list[BaseMessage]) -> int:
    """Return the place of the last message of the user: of the one who spoke first.

    Others of a graph speak under names of their own. Where all have names, another one who speaks after an answer is a user.
    """
    humans = [number for number, message in enumerate(messages) if isinstance(message, HumanMessage)]
    if not humans:
        return len(messages) - 1
    if messages[humans[0]].name:
        answered = max((number for number, message in enumerate(messages) if _is_answer(message)), default=-1)
        humans = [number for number in humans if number > answered] or humans
    return [number for number in humans if messages[number].name == messages[humans[0]].name][-1]


def _is_answer(message: BaseMessage) -> bool:
    """Return whether a message answers the user: words of a model that no worker of a graph said."""
    is_model = isinstance(message, AIMessage) and not message.name and not message.tool_calls
    return is_model and bool(str(message.text).strip())


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
