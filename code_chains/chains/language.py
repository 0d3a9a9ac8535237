"""query, (language, history) -> language."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import HumanMessage

from code_chains.chains.base import Config, Do, Piece, Program, State
from code_chains.inputs import check_query
from code_chains.language import check_language, detect_language

__all__ = ["LanguageChain"]

_MOST = 10
"""How many questions of a conversation are looked at."""


_SHORT = 1000
"""Characters of a question up to which telling its language takes less than a thread would cost."""


class LanguageChain(Piece):
    """Finds the language of a question, so that the answer and the labels of plots come in it. No model is asked.

    A question too short to tell is taken to be in the language of the conversation.

    Args:
        language: `"auto"`, or the language of all answers, e.g. `"es"`.

    Example:
        >>> LanguageChain().invoke({"query": "¿Cuál es la suma de los números del 1 al 5?"})["language"]
        'es'
    """

    name: str | None = "language"
    language: str = "auto"

    def __init__(self, language: str = "auto", **kwargs: Any) -> None:
        super().__init__(**{"language": check_language(language), **kwargs})

    @property
    def input_keys(self) -> list[str]:
        """It needs the question."""
        return ["query"]

    @property
    def optional_keys(self) -> list[str]:
        """A language that is given stands."""
        return ["language", "history"]

    @property
    def output_keys(self) -> list[str]:
        """It adds the language."""
        return ["language"]

    def _program(self, values: State, config: Config) -> Program:
        short = not values.get("history") and len(str(values["query"])) < _SHORT
        yield {"language": (yield Do(self._find, values, config, quick=short))}

    def _find(self, values: State) -> str:
        given = check_language(values.get("language") or self.language)
        if given != "auto":
            return given
        so_far = functools.reduce(_detect, _questions(values.get("history")), "en")
        return _detect(so_far, check_query(values["query"]))


def _detect(so_far: str, question: str) -> str:
    return detect_language(question, default=so_far)


def _questions(history: object) -> list[str]:
    messages = history if isinstance(history, Sequence) else ()
    return [str(one.text) for one in messages if isinstance(one, HumanMessage)][-_MOST:]
