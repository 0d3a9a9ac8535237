"""query, language -> translation."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from code_chains.chains.base import Call, Config, Piece, Program, State
from code_chains.chains.generate import finish_reason, reply_text
from code_chains.errors import BudgetError
from code_chains.inputs import check_query

__all__ = ["TRANSLATE_PROMPT", "TranslateChain"]

TRANSLATE_PROMPT = """\
You translate questions about data and programs into English.
- Reply with the translation and nothing else; never answer the question.
- Keep numbers, names of files and columns, code and quoted text exactly as they are."""

_EXAMPLE = (
    '¿Cuál es la media de la columna "precio" de ventas.csv?',
    'What is the mean of the column "precio" of ventas.csv?',
)


class TranslateChain(Piece):
    """Translates a question into English for models and examples that know English best. Adds `translation`.

    The question stays as it is: a model that writes the program sees both, and the answer is still told in the question's
    language. A question in English needs no call; a translation that was cut off is left out.

    Args:
        model: Any chat model, or a Runnable around one.
        prompt: The system message.
    """

    name: str | None = "translate"
    model: Runnable[LanguageModelInput, Any]
    prompt: str = TRANSLATE_PROMPT

    @property
    def input_keys(self) -> list[str]:
        """It needs the question."""
        return ["query"]

    @property
    def optional_keys(self) -> list[str]:
        """It asks no model where the question is in English."""
        return ["language"]

    @property
    def output_keys(self) -> list[str]:
        """It adds the question in English."""
        return ["translation"]

    def _program(self, values: State, config: Config) -> Program:
        query = check_query(values["query"])
        translation = ""
        if values.get("language") != "en":
            try:
                reply = yield Call(self.model, self.messages(query), config)
                translation = reply_text(reply).strip() if finish_reason(reply, self.model) == "stop" else ""
            except BudgetError:  # Whoever writes the program will run into the limit, too, and say so.
                translation = ""
        yield {"translation": translation}

    def messages(self, query: str) -> list[BaseMessage]:
        """The messages that are sent: rules, one example, the question."""
        return [SystemMessage(self.prompt), HumanMessage(_EXAMPLE[0]), AIMessage(_EXAMPLE[1]), HumanMessage(query)]
