"""query, (files, variables, previous_steps, feedback) -> steps."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableBinding

from code_chains.analysis.replies.extraction import reply_text
from code_chains.analysis.replies.tool_calls import values_in
from code_chains.chains.asking import AskingChain
from code_chains.chains.base import Config, Flow, RunFunction, State
from code_chains.chains.generate import refusal
from code_chains.inputs import check_query, fenced
from code_chains.language.vocabulary import pattern, vocabulary
from code_chains.models.sampling import is_openai
from code_chains.profiles import describe_inputs

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
    "properties": {"steps": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 20}},
    "required": ["steps"],
    "additionalProperties": False,
}
_MAX_STEPS = 20
"""Further steps are part of the last one, so that none is lost."""
_NUMBERED = re.compile(
    r"^\s*(?:#{1,6}\s*)?[*_]{0,2}(?:[^\W\d_]{1,12}\s*)?\d{1,2}(?:\ufe0f?\u20e3|[^\W\d_]?\s*[.):：、–—-])[*_]{0,2}\s*+(\S.*)$"
    r"|^\s*\|\s*\d{1,2}\s*\|\s*+(\S.*)$"
)
"""A line with a number: alone, behind a word in any language such as "Step 1:", in a heading, or in a row of a table."""
_BULLET = re.compile(r"^\s*[-*•–]\s+(?:\[[ xX]\]\s*+)?(\S.*)$")
_NUMBERED_KEY = re.compile(r"\D{0,12}\d{1,2}")
_MAX_DEPTH = 5
_WORDS = vocabulary("plan")
_SEQUENCE_WORDS = pattern(_WORDS["sequence_words"], re.IGNORECASE | re.MULTILINE)


class PlanChain(AskingChain):
    """Split a task into steps if it needs several. Adds `steps`, a list of sentences.

    With `previous_steps` and `feedback` it plans the remainder again after a step that failed.
    OpenAI-compatible models are constrained to a JSON schema; replies of others are parsed as JSON, or else
    as a numbered list. A reply without a plan means a single step: the task itself.

    Args:
        model: Any chat model, or a Runnable around one.
        prompt: The system message.
    """

    input_keys: ClassVar[list[str]] = ["query"]
    optional_keys: ClassVar[list[str]] = [
        *("files", "variables", "previous_steps", "feedback", "profiles", "standalone_question"),
    ]
    output_keys: ClassVar[list[str]] = ["steps"]

    name: str | None = "plan"
    prompt: str = PLAN_PROMPT

    def _flow(self, values: State, config: Config) -> Flow:
        messages = yield RunFunction(self.messages, values, config)
        reply = yield self.ask(_with_schema(self.model), messages, config)
        yield from refusal(reply, self.model)
        yield {"steps": read_steps(reply_text(reply)) or [values["query"]]}

    def messages(self, values: Mapping[str, Any]) -> list[BaseMessage]:
        """Return the messages to send: rules, two examples, the task with its files and variables."""
        messages: list[BaseMessage] = [SystemMessage(self.rules(values))]
        for task, steps in _EXAMPLES:
            messages += [HumanMessage(f"Task: {task}"), AIMessage(json.dumps({"steps": steps}))]
        task = values.get("standalone_question") or check_query(values["query"])
        parts = [*describe_inputs(values), f"Task: {task}"]
        if values.get("previous_steps"):
            parts.append(f"These steps are done:\n{fenced(str(values['previous_steps']))}")
        if values.get("feedback"):
            parts.append(
                f"The next step failed:\n{fenced(str(values['feedback']))}\nPlan what is left in another way."
            )
        return [*messages, HumanMessage("\n\n".join(parts))]


def seems_to_need_steps(query: str) -> bool:
    """Return whether a task describes a sequence of actions, in one of a dozen languages.

    Example:
        >>> seems_to_need_steps("Create a CSV with sample data, then read it and calculate statistics.")
        True
        >>> seems_to_need_steps("What is the sum of the numbers from 1 to 5?")
        False
    """
    return bool(_SEQUENCE_WORDS.search(query))


def read_steps(reply: str) -> list[str]:
    r"""Parse the steps in a reply: from a list in its JSON under any key, or else from its numbered lines or bullets.

    Example:
        >>> read_steps('Here is the plan:\n1. Make the file.\n2) Read it.')
        ['Make the file.', 'Read it.']
    """
    found = next(filter(None, map(_steps_of, values_in(reply))), None) or _items(reply)
    steps = [step for step in (" ".join(text.split()) for text in found) if step]
    return [*steps[: _MAX_STEPS - 1], " ".join(steps[_MAX_STEPS - 1 :])] if len(steps) > _MAX_STEPS else steps


def _steps_of(value: Any, depth: int = 0) -> list[str]:
    """Return the steps in a value of JSON: a list of texts or of objects with one, or the texts under numbers."""
    if depth > _MAX_DEPTH:
        return []
    if isinstance(value, list):
        return [text for item in value if (text := _text_of(item))]
    if not isinstance(value, Mapping):
        return []
    if value and all(map(_NUMBERED_KEY.fullmatch, map(str, value))):
        return _steps_of(list(value.values()), depth + 1)
    return next(filter(None, (_steps_of(inner, depth + 1) for inner in value.values())), [])


def _text_of(item: Any) -> str:
    parts = item.values() if isinstance(item, Mapping) else [item]
    return ": ".join(part.strip() for part in parts if isinstance(part, str) and part.strip())


def _items(reply: str) -> list[str]:
    """Return the numbered lines of a reply, each with the bullets below it; the bullets if no line has a number."""
    items, bullets = list[str](), list[str]()
    for line in reply.splitlines():
        line = line.rstrip(" \t|")
        if match := _NUMBERED.match(line):
            items.append(match[1] or match[2])
        elif match := _BULLET.match(line):
            bullets.append(match[1])
            if items:
                items[-1] += f" {match[1]}"
    return [item.replace("**", "") for item in items or bullets]


def _with_schema(model: Runnable[LanguageModelInput, Any]) -> Runnable[LanguageModelInput, Any]:
    if not is_openai(model) or not isinstance(model, BaseChatModel | RunnableBinding):
        return model
    schema = {"name": "plan", "schema": _SCHEMA, "strict": True}
    return model.bind(response_format={"type": "json_schema", "json_schema": schema})
