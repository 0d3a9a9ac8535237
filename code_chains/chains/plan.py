"""query, (files, variables, earlier, feedback) -> steps."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableBinding

from code_chains.chains.base import Call, Config, Do, Piece, Program, State
from code_chains.chains.generate import reply_text
from code_chains.inputs import check_query, fenced, told
from code_chains.sampling import chat_model

__all__ = ["PLAN_PROMPT", "PlanChain", "read_steps", "seems_to_need_steps"]

PLAN_PROMPT = """\
You split a task for a Python programmer into steps, but only where it needs several.
- Most tasks are one step. Make another one only where it builds on a result that has to be there first.
- A step is one sentence. One short program does it, and its output shows that it is done.
- Later steps find the variables and files of earlier ones. Do not plan imports, explanations or checks.
- Reply with JSON and nothing else: {"steps": ["...", "..."]}"""

_EXAMPLES = (
    ("What is the sum of the numbers from 1 to 5?", ["Print the sum of the numbers from 1 to 5."]),
    (
        "Make a table of the squares up to 10, save it as squares.csv, then read it again and tell the mean.",
        [
            "Save a table of the squares of 1 to 10 as squares.csv.",
            "Read squares.csv and print the mean of the squares.",
        ],
    ),
)
_SCHEMA = {
    "type": "object",
    "properties": {"steps": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 8}},
    "required": ["steps"],
    "additionalProperties": False,
}
_MOST_STEPS = 8
_ITEM = re.compile(r"^\s*(?:step\s*)?(?:\d{1,2}[.):]|[-*•])\s*(?:\*\*)?(.+?)(?:\*\*)?\s*$", re.IGNORECASE)
_FOLLOWS = re.compile(
    r"\b(?:then|afterwards?|after that|and finally|followed by|step by step|subsequently"
    r"|dann|danach|anschließend|luego|después|entonces|puis|ensuite|après|poi|dopo|depois|затем|потом)\b"
    r"|然后|接着|之后|次に|その後|^\s*2[.)]\s",
    re.IGNORECASE | re.MULTILINE,
)


class PlanChain(Piece):
    """Splits a task into steps, only where it needs several. Adds `steps`, a list of sentences.

    With `earlier` and `feedback` it plans the rest anew, after a step that failed. A model that speaks OpenAI's protocol is
    held to a JSON schema; of any other reply JSON is read where there is some, else its numbered lines. A reply that holds
    no plan means one step: the task itself.

    Args:
        model: Any chat model, or a Runnable around one.
        prompt: The system message.
    """

    name: str | None = "plan"
    model: Runnable[LanguageModelInput, Any]
    prompt: str = PLAN_PROMPT

    @property
    def input_keys(self) -> list[str]:
        """It needs a task."""
        return ["query"]

    @property
    def optional_keys(self) -> list[str]:
        """It sees what is there, what was done and what failed."""
        return ["files", "variables", "earlier", "feedback"]

    @property
    def output_keys(self) -> list[str]:
        """It adds the steps."""
        return ["steps"]

    def _program(self, values: State, config: Config) -> Program:
        messages = yield Do(self.messages, values, config)
        reply = yield Call(_structured(self.model), messages, config)
        yield {"steps": read_steps(reply_text(reply)) or [values["query"]]}

    def messages(self, values: Mapping[str, Any]) -> list[BaseMessage]:
        """The messages that are sent: rules, two examples, the task with what is there."""
        messages: list[BaseMessage] = [SystemMessage(self.prompt)]
        for task, steps in _EXAMPLES:
            messages += [HumanMessage(f"Task: {task}"), AIMessage(json.dumps({"steps": steps}))]
        parts = [*told(values), f"Task: {check_query(values['query'])}"]
        if values.get("earlier"):
            parts.append(f"These steps are done:\n{fenced(str(values['earlier']))}")
        if values.get("feedback"):
            parts.append(f"The next step failed:\n{fenced(str(values['feedback']))}\nPlan what is left in another way.")
        return [*messages, HumanMessage("\n\n".join(parts))]


def seems_to_need_steps(query: str) -> bool:
    """Whether a task says that one thing comes after another, in one of a dozen languages.

    Example:
        >>> seems_to_need_steps("Create a CSV with sample data, then read it and calculate statistics.")
        True
        >>> seems_to_need_steps("What is the sum of the numbers from 1 to 5?")
        False
    """
    return bool(_FOLLOWS.search(query))


def read_steps(reply: str) -> list[str]:
    r"""The steps in a reply: those of its JSON, else its numbered lines; none for anything else.

    Example:
        >>> read_steps('Here is the plan:\n1. Make the file.\n2) Read it.')
        ['Make the file.', 'Read it.']
    """
    start, end = reply.find("{"), reply.rfind("}")
    try:
        found = json.loads(reply[start : end + 1])["steps"]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = [match[1] for line in reply.splitlines() if (match := _ITEM.match(line))]
    several = found if isinstance(found, list) else []
    steps = [" ".join(step.split()) for step in several if isinstance(step, str) and step.strip()]
    return steps[:_MOST_STEPS]


def _structured(model: Runnable[LanguageModelInput, Any]) -> Runnable[LanguageModelInput, Any]:
    inner = chat_model(model)
    speaks = inner is not None and inner._llm_type in ("openai-chat", "azure-openai-chat")
    if not speaks or not isinstance(model, BaseChatModel | RunnableBinding):
        return model
    schema = {"name": "plan", "schema": _SCHEMA, "strict": True}
    return model.bind(response_format={"type": "json_schema", "json_schema": schema})
