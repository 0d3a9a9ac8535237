"""query, (files, variables) -> generated_tests."""

from __future__ import annotations

import ast
import logging
from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import Field

from code_chains.analysis.parsing import nodes, tree_of
from code_chains.analysis.replies.extraction import extract_code, reply_text
from code_chains.analysis.work import is_brief, walk
from code_chains.chains.asking import AskingChain
from code_chains.chains.base import Chain, Config, Flow, Invoke, RunFunction, State
from code_chains.chains.generate import finish_reason, refusal
from code_chains.errors import BudgetError, InputError
from code_chains.inputs import check_query, fenced
from code_chains.profiles import describe_inputs
from code_chains.verification.expectations import expect
from code_chains.verification.expectations.assertions import names_of

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


_AGAIN = "These tests cannot be used: {} Write them again, in one fenced Python block and nothing else."
_log = logging.getLogger(__name__)


class WriteTestsChain(AskingChain):
    """Ask a model for tests of an answer before the answer exists. Adds `generated_tests`; empty if there are none.

    The tests are derived from the question alone, so that they do not repeat what the program does. The same
    model may still misread the question twice: passing them makes an outcome `plausible`, never `verified`.
    The idea is that of CodeT (Chen et al., 2022).

    Args:
        model: Any chat model, or a Runnable around one.
        prompt: The system message.
        max_attempts: How often it is asked, as long as its tests cannot be used.
        validate_tests: Validates the tests before they run, e.g. the `ValidateChain` of the programs; tests
            in which it finds errors are discarded.
    """

    input_keys: ClassVar[list[str]] = ["query"]
    optional_keys: ClassVar[list[str]] = ["files", "variables", "tests", "examples", "profiles"]
    output_keys: ClassVar[list[str]] = ["generated_tests"]

    asks_for_code: ClassVar[bool] = True
    name: str | None = "write_tests"
    prompt: str = TESTS_PROMPT
    validate_tests: Chain | None = None
    max_attempts: int = Field(2, ge=1, le=5)

    def _flow(self, values: State, config: Config) -> Flow:
        tests = ""
        if not values.get("tests") and not values.get("examples"):
            tests = yield from self._write(values, config)
        yield {"generated_tests": tests}

    def _write(self, values: State, config: Config) -> Flow:
        """Return tests that can be used; why they cannot is what the model is told when it is asked again."""
        messages = yield RunFunction(self.messages, values, config)
        for _ in range(self.max_attempts):
            try:
                reply = yield self.ask(self.model, messages, config)
            except BudgetError:  # The next call reaches the limit, too, and reports it.
                return ""
            yield from refusal(reply, self.model)
            if finish_reason(reply, self.model) != "stop":
                return ""
            text = reply_text(reply)
            tests = extract_code(text)
            objection = yield RunFunction(_problem, tests, config, inline=is_brief(tests))
            if not objection:
                is_valid = yield from self._is_valid(tests, values, config)
                return tests if is_valid else ""
            _log.info("Tests that a model wrote cannot be used: %s", objection)
            messages = [*messages, AIMessage(text), HumanMessage(_AGAIN.format(objection))]
        return ""

    def _is_valid(self, tests: str, values: State, config: Config) -> Flow:
        """Return whether checks and approvers accept the tests."""
        if self.validate_tests is None:
            return True
        variables = dict.fromkeys((*names_of(tests), *(values.get("variables") or {})))
        state = {**values, "code": tests, "variables": variables}
        problems = (yield Invoke(self.validate_tests, state, config))["problems"]
        return all(problem.severity != "error" for problem in problems)

    def messages(self, values: Mapping[str, Any]) -> list[BaseMessage]:
        """Return the messages to send: rules, one example, the question with its files and variables."""
        question = "\n\n".join([*describe_inputs(values), check_query(values["query"])])
        example = [HumanMessage(_EXAMPLE[0]), AIMessage(fenced(_EXAMPLE[1], "python"))]
        return [SystemMessage(self.rules(values)), *example, HumanMessage(question)]


def _problem(tests: str) -> str:
    """Return why tests may not be used, or that no assertion of theirs depends on a name; empty if they may be."""
    try:
        expect(tests)
    except InputError as error:
        return str(error)
    assertions = [node.test for node in nodes(tree_of(tests), ast.Assert)]
    if any(isinstance(node, ast.Name) for assertion in assertions for node in walk(assertion)):
        return ""
    return "No assertion of theirs says anything about the program."
