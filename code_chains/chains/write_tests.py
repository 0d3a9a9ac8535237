"""query, (files, variables) -> generated_tests."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from code_chains.chains.base import Call, Chain, Config, Do, Piece, Program, State
from code_chains.chains.generate import finish_reason, reply_text
from code_chains.errors import BudgetError
from code_chains.expectations import names_of
from code_chains.extraction import extract_code
from code_chains.inputs import check_query, fenced, told
from code_chains.parsing import parse

__all__ = ["TESTS_PROMPT", "WriteTestsChain"]

TESTS_PROMPT = """\
You write tests for a program that somebody else writes to answer a question.
- Reply with one fenced Python block of assert statements and nothing else.
- `output` is all that the program printed, as text. Functions that the question names can be called.
- Test what must hold of any right answer. Work results out in the test; never write down one you have not computed."""

_EXAMPLE = (
    "How many days are there between 1 March 2024 and 25 December 2024?",
    "from datetime import date\nimport re\n\n"
    "days = (date(2024, 12, 25) - date(2024, 3, 1)).days\n"
    'assert str(days) in re.findall(r"\\d+", output)',
)


class WriteTestsChain(Piece):
    """Asks a model for tests of an answer, before there is one. Adds `generated_tests`; empty where there are none.

    They come from the question alone, so that they do not repeat what the program says. Still the same model may misread
    the question twice: passing them makes an outcome `plausible`, never `verified`. The idea is that of CodeT (Chen et al.,
    2022).

    Args:
        model: Any chat model, or a Runnable around one.
        prompt: The system message.
        validate_tests: What reads the tests before they run, such as the `ValidateChain` of the programs; tests in which it
            finds errors are left out.
    """

    name: str | None = "write_tests"
    model: Runnable[LanguageModelInput, Any]
    prompt: str = TESTS_PROMPT
    validate_tests: Chain | None = None

    @property
    def input_keys(self) -> list[str]:
        """It needs the question."""
        return ["query"]

    @property
    def optional_keys(self) -> list[str]:
        """It sees what is there, and writes none where some are given."""
        return ["files", "variables", "tests", "examples"]

    @property
    def output_keys(self) -> list[str]:
        """It adds the tests."""
        return ["generated_tests"]

    def _program(self, values: State, config: Config) -> Program:
        tests = ""
        if not values.get("tests") and not values.get("examples"):
            tests = yield from self._write(values, config)
        yield {"generated_tests": tests}

    def _write(self, values: State, config: Config) -> Program:
        messages = yield Do(self.messages, values, config)
        try:
            reply = yield Call(self.model, messages, config)
        except BudgetError:  # Whoever writes the program will run into the limit, too, and say so.
            return ""
        tests = extract_code(reply_text(reply)) if finish_reason(reply, self.model) == "stop" else ""
        if not _asserts(tests) or self.validate_tests is None:
            return tests if _asserts(tests) else ""
        given = dict.fromkeys((*names_of(tests), *(values.get("variables") or {})))
        state = {**values, "code": tests, "variables": given}
        problems = (yield Call(self.validate_tests, state, config))["problems"]
        return "" if any(problem.severity == "error" for problem in problems) else tests

    def messages(self, values: Mapping[str, Any]) -> list[BaseMessage]:
        """The messages that are sent: rules, one example, the question with what is there."""
        question = "\n\n".join([*told(values), check_query(values["query"])])
        example = [HumanMessage(_EXAMPLE[0]), AIMessage(fenced(_EXAMPLE[1], "python"))]
        return [SystemMessage(self.prompt), *example, HumanMessage(question)]


def _asserts(tests: str) -> bool:
    """Whether these are tests at all: an assertion that depends on something."""
    tree = parse(tests)
    found = [node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)] if tree else []
    return any(isinstance(node, ast.Name) for test in found for node in ast.walk(test))
