"""query, history -> standalone_question."""

from __future__ import annotations

from typing import ClassVar

from langchain_core.messages import HumanMessage, SystemMessage

from code_chains.analysis.replies.text import visible_text
from code_chains.chains.asking import AskingChain
from code_chains.chains.base import Config, Flow, State
from code_chains.chains.generate import ask_for_text, to_text
from code_chains.inputs import check_query, fenced

CONDENSE_PROMPT = (
    "The last message of a conversation may refer to what was said before. Write it as a question that can be understood"
    " alone, in its own language, with the names that it refers to. If it can be understood alone already, repeat it. Write"
    " nothing but the question."
)
_MAX_REFERRING_CHARS = 120
"""A longer question states itself what it is about, in whatever language."""


class CondenseChain(AskingChain):
    """Write a question that refers to earlier turns as one that stands alone. Adds `standalone_question`.

    What is retrieved, planned or translated depends on what is asked, which "And in March?" does not tell. One call, only
    where there is a history and the question is short; otherwise, and where the model gives no question, the text is empty.
    (The idea is the condensed question of LangChain's `ConversationalRetrievalChain`.)

    Args:
        model: Any chat model, or a Runnable around one.
        prompt: The system message.
    """

    input_keys: ClassVar[list[str]] = ["query"]
    optional_keys: ClassVar[list[str]] = ["history", "schema_only"]
    output_keys: ClassVar[list[str]] = ["standalone_question"]

    name: str | None = "condense"
    prompt: str = CONDENSE_PROMPT

    def is_needed(self, values: State) -> bool:
        """Return whether a question may refer to something."""
        return bool(values.get("history")) and len(str(values["query"])) <= _MAX_REFERRING_CHARS

    def skipped(self) -> State:
        """Return that the question stands alone."""
        return {"standalone_question": ""}

    def _flow(self, values: State, config: Config) -> Flow:
        question = ""
        if self.is_needed(values):
            said = fenced(to_text("history", values))
            asked = f"The conversation so far:\n{said}\n\nThe last message:\n{check_query(values['query'])}"
            messages = [SystemMessage(self.rules(values)), HumanMessage(asked)]
            question = visible_text((yield from ask_for_text(self, messages, config))).strip()
        is_question = len(question) <= 4 * _MAX_REFERRING_CHARS and "```" not in question
        yield {"standalone_question": question if is_question else ""}
