"""query, (language, history) -> language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from langchain_core.messages import HumanMessage

from code_chains.analysis.work import is_brief
from code_chains.chains.base import Config, Flow, RunFunction, State, StreamingChain
from code_chains.inputs import check_query
from code_chains.language import check_language, detect_language

_MAX_QUESTIONS = 10
"""Questions of a conversation that are considered."""


class LanguageChain(StreamingChain):
    """Detect the language of a question, so that the answer and the labels of plots use it. No model is called.

    A question that is too short to tell is assumed to be in the language of the conversation.

    Args:
        language: `"auto"`, or the language of all answers, e.g. `"es"`.

    Example:
        >>> LanguageChain().invoke({"query": "¿Cuál es la suma de los números del 1 al 5?"})["language"]
        'es'
    """

    input_keys: ClassVar[list[str]] = ["query"]
    optional_keys: ClassVar[list[str]] = ["language", "history"]
    output_keys: ClassVar[list[str]] = ["language"]

    name: str | None = "language"
    language: str = "auto"

    def __init__(self, language: str = "auto", **kwargs: Any) -> None:
        super().__init__(**{"language": check_language(language), **kwargs})

    def _flow(self, values: State, config: Config) -> Flow:
        inline = not values.get("history") and is_brief(str(values["query"]))
        yield {"language": (yield RunFunction(self._detect, values, config, inline=inline))}

    def _detect(self, values: State) -> str:
        language = check_language(values.get("language") or self.language)
        if language != "auto":
            return language
        detected = "en"
        for question in [*_questions(values.get("history")), check_query(values["query"])]:
            detected = detect_language(question, default=detected)
        return detected


def _questions(history: object) -> list[str]:
    messages = history if isinstance(history, Sequence) else ()
    questions = [str(message.text) for message in messages if isinstance(message, HumanMessage)]
    return questions[-_MAX_QUESTIONS:]
