"""A chat model that replies by a function of the messages."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable


def asks_for_code(messages: Sequence[BaseMessage]) -> bool:
    """Return whether these messages ask for a program, rather than for an answer in words or for a question condensed."""
    asked = str(messages[-1].text)
    return "Output of the program:" not in asked and "\n\nThe last message:\n" not in asked


class ScriptedModel(BaseChatModel):
    """A chat model whose replies are computed by a function of the messages. It streams word by word.

    Args:
        script: `messages -> reply`; a reply is text, or an `AIMessage` if its metadata matters.
        delay: Duration of each call in seconds.

    Example:
        >>> ScriptedModel(lambda messages: messages[-1].text.upper()).invoke("hello").text
        'HELLO'
    """

    script: Callable[[list[BaseMessage]], str | AIMessage]
    delay: float = 0.0

    def __init__(self, script: Callable[[list[BaseMessage]], str | AIMessage], **kwargs: Any) -> None:
        super().__init__(script=script, **kwargs)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _reply(self, messages: list[BaseMessage]) -> AIMessage:
        if self.delay:
            time.sleep(self.delay)
        reply = self.script(messages)
        if isinstance(reply, AIMessage):
            return reply
        inputs, outputs = sum(len(str(message.text).split()) for message in messages), len(reply.split())
        usage = UsageMetadata(input_tokens=inputs, output_tokens=outputs, total_tokens=inputs + outputs)
        metadata = {"finish_reason": "stop", "model_name": "scripted"}
        return AIMessage(reply, usage_metadata=usage, response_metadata=metadata)

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the same model: its script decides about tool calls, with an `AIMessage(tool_calls=…)`."""
        return self.bind(tools=tools, tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._reply(messages)
        for word in re.split(r"(?<= )", str(reply.text)):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
        last = AIMessageChunk(
            content="",
            tool_call_chunks=[
                tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index)
                for index, call in enumerate(reply.tool_calls)
            ],
            usage_metadata=reply.usage_metadata,
            response_metadata=reply.response_metadata,
        )
        yield ChatGenerationChunk(message=last)
