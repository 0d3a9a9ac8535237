"""query -> verdict, by asking a model whether a question states what its answer needs."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from code_chains.analysis.replies.text import visible_text
from code_chains.chains.generate import DATA_KEYS
from code_chains.chains.opinion import OpinionChain
from code_chains.chains.ranks import UNCHECKED, Rank
from code_chains.state import Verdict
from code_chains.verification.provenance.inventions import asks_for_inventions
from code_chains.verification.provenance.needs import read_need

_log = logging.getLogger(__name__)

ANSWERABILITY_PROMPT = """\
You check questions before somebody computes their answers. Reply `Complete` if all numbers, names and data that are needed \
are in the question or follow from it by computing. Otherwise reply `Missing:` and what only the one who asks could know."""

_COMPLETE = "Complete"
_EXAMPLES: tuple[tuple[str, str], ...] = (
    ("What is the area of a rectangle that is 12 cm long?", "the width of the rectangle"),
    ("What is the area of a rectangle that is 12 cm long and 7 cm wide?", ""),
    (
        "My brother saved 40 a month since his birthday. How much does he have now?",
        "the day of the birthday, and what day it is now",
    ),
    ("Count the words in 'the cat sat on the mat' that begin with t.", ""),
    ("What time is it in Lima when it is 18:00 there?", "which place is meant"),
    ("Rechnen Sie 12 Tage in Stunden um.", ""),
    ("We are six people and share a taxi. What does each of us pay?", "the fare of the taxi"),
    ("We are six people and share a taxi for 43.80. What does each of us pay?", ""),
    ("What is the 40th Fibonacci number?", ""),
    ("Mia and Tom leave at 9:40 and drive 310 km to the sea. When do they arrive?", "how fast they drive"),
    ("How many days are there between 1 March 2024 and 25 December 2024?", ""),
    ("I earn 19.50 an hour. What did I earn this week, after 12% tax?", "the hours worked this week"),
    ("A waiter earns 14 an hour, and 21 an hour after the first 8 hours. What does he get for 11 hours?", ""),
    (
        "How many tiles of 20 x 25 cm does the kitchen floor need?",
        "the length and the width of the kitchen floor",
    ),
    ("A cylinder is 30 cm high. How many litres does it hold?", "the radius of the cylinder"),
    ("Wie viele Sekunden hat eine Woche?", ""),
    ("Wie alt ist meine Schwester, wenn ich 34 bin?", "wie viel älter oder jünger die Schwester ist"),
    ("sort these names by length: Ann, Christopher, Bob", ""),
    ("which of our three shops sold most last week", "what each of the shops sold last week"),
    ("Two dice are thrown. What is the probability that the sum is at least 9?", ""),
    ("how many lines of the log i sent you are errors", "the log"),
    ("Which numbers from 1 to 30 are prime, and what is their sum?", ""),
    ("what is the mean of those measurements?", "the measurements"),
    (
        "¿Cuánto pago por 3 kg de manzanas si me hacen un 10 % de descuento?",
        "el precio de un kilo de manzanas",
    ),
    ("Un kilo de manzanas cuesta 2,40 €. ¿Cuánto pago por 3 kg con un 10 % de descuento?", ""),
    ("Here are my expenses: rent 850, food 310, train 96. What share is rent?", ""),
    (
        "My rent rises by the same percentage as last year. It is 850 now, what will it be?",
        "the percentage of last year",
    ),
)
"""Questions, each with what is missing; mostly in pairs that differ in that alone."""
_MISSING = re.compile(r"[\s*_`>#\"'-]*missing[*_`]*\s*[:\uff1a][\s\u2022-]*([^\n]*)", re.IGNORECASE)
_DESCRIBED = {"session_variables", "previous_steps"}
"""Keys that tell what a session holds; empty ones that it holds nothing."""


class AnswerabilityChain(OpinionChain):
    """Ask a model whether a question states what its answer needs. Adds `verdict`: in doubt by `provenance` if it does not.

    A small model rarely says so when it is told to write a program, but often if that is all it is asked: unanswerable
    questions as in Rajpurkar et al. (2018, arXiv:1806.03822). The outcome stays, `unverified`, with what is missing as the
    reason. It is not asked where files, variables, standard input, retrieved examples or earlier turns may hold what is
    needed, nor about questions for something made up or for a program. If it cannot be asked, nothing is in doubt.

    Args:
        model: Any chat model, or a Runnable around one.
        prompt: The system message.

    Example:
        >>> from code_chains.testing import ScriptedModel
        >>> chain = AnswerabilityChain(model=ScriptedModel(lambda messages: "Missing: the fare"))
        >>> chain.invoke({"query": "We are six people and share a taxi. What does each of us pay?"})["verdict"].reason
        'The model says that this is not given: the fare.'
    """

    input_keys: ClassVar[list[str]] = ["query"]
    optional_keys: ClassVar[list[str]] = [
        *(key for key in DATA_KEYS if key != "answer_type"),
        "session_variables",
    ]
    rank: ClassVar[Rank] = Rank.DOUBT

    name: str | None = "answerability"
    prompt: str = ANSWERABILITY_PROMPT

    def unasked(self, values: Mapping[str, Any]) -> Verdict | None:
        """Return that nothing is known where the question need not state anything."""
        is_made_up = asks_for_inventions(str(values["query"]))
        stands_alone = not any(values.get(key) for key in self.optional_keys)
        # Invariant: a session of the caller's own holds what nobody described.
        is_own = values.get("session") is not None and not _DESCRIBED & values.keys()
        return UNCHECKED if is_made_up or is_own or not stands_alone else None

    def unreached(self, error: str) -> Verdict:
        """Return the verdict as it was: a question that is not asked about is one like any other."""
        _log.warning("The model could not be asked what is missing: %s", error)
        return UNCHECKED

    def messages(self, values: Mapping[str, Any]) -> list[BaseMessage]:
        """Return the messages to send: rules, examples, and the question."""
        messages: list[BaseMessage] = [SystemMessage(self.rules(values))]
        for question, missing in _EXAMPLES:
            messages += [
                HumanMessage(question),
                AIMessage(f"Missing: {missing}" if missing else _COMPLETE),
            ]
        return [*messages, HumanMessage(str(values["query"]))]

    def read(self, reply: str) -> Verdict:
        """Return the verdict in a reply; only one that begins with `Missing:` is a doubt."""
        match = _MISSING.match(visible_text(reply))
        missing = read_need(match[1].rstrip(" .")) if match else ""
        if not missing:
            return UNCHECKED
        return Verdict("unverified", "provenance", f"The model says that this is not given: {missing}.")
