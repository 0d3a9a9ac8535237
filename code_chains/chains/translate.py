"""query, language -> translation."""

from __future__ import annotations

from typing import ClassVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from code_chains.chains.asking import AskingChain
from code_chains.chains.base import Config, Flow, State
from code_chains.chains.generate import ask_for_text
from code_chains.inputs import check_query

TRANSLATE_PROMPT = """\
You translate questions about data and programs into English.
- Reply with the translation and nothing else; never answer the question.
- Keep numbers, names of files and columns, code and quoted text exactly as they are."""

_EXAMPLE = (
    '¿Cuál es la media de la columna "precio" de ventas.csv?',
    'What is the mean of the column "precio" of ventas.csv?',
)


class TranslateChain(AskingChain):
    """Translate a question into English, for models and examples that know English best. Adds `translation`.

    The question itself is unchanged: the model that writes the program sees both, and the answer is still
    given in the question's language. A question in English costs no call; a truncated translation is
    discarded.

    Args:
        model: Any chat model, or a Runnable around one.
        prompt: The system message.
    """

    input_keys: ClassVar[list[str]] = ["query"]
    optional_keys: ClassVar[list[str]] = ["language", "standalone_question"]
    output_keys: ClassVar[list[str]] = ["translation"]

    name: str | None = "translate"
    prompt: str = TRANSLATE_PROMPT

    def _flow(self, values: State, config: Config) -> Flow:
        query = values.get("standalone_question") or check_query(values["query"])
        translation = ""
        if values.get("language") != "en":
            translation = yield from ask_for_text(self, self.messages(query), config)
        yield {"translation": translation}

    def messages(self, query: str) -> list[BaseMessage]:
        """Return the messages to send: rules, one example, the question."""
        return [
            SystemMessage(self.rules({"query": query})),
            HumanMessage(_EXAMPLE[0]),
            AIMessage(_EXAMPLE[1]),
            HumanMessage(query),
        ]
