"""query, (files, variables) -> generated_tests."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from code_chains.analysis.parsing import parse
from code_chains.analysis.replies.extraction import extract_code
from code_chains.chains.base import Chain, Config, Flow, Invoke, RunFunction, State, StreamingChain
from code_chains.chains.generate import finish_reason, reply_text
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


class WriteTestsChain(StreamingChain):
    """Ask a model for tests of an answer before the answer exists. Adds `generated_tests`; empty if there are none.

    The tests are derived from the question alone, so that they do not repeat what the program does. The same
    model may still misread the question twice: passing them makes an outcome `plausible`, never `verified`.
    The idea is that of CodeT (Chen et al., 2022).

    Args:
        model: Any chat model, or a Runnable around one.
        prompt: The system message.
        validate_tests: Validates the tests before they run, e.g. the `ValidateChain` of the programs; tests
            in which it finds errors are discarded.
    """

    input_keys: ClassVar[list[str]] = ["query"]
    optional_keys: ClassVar[list[str]] = ["files", "variables", "tests", "examples", "profiles"]
    output_keys: ClassVar[list[str]] = ["generated_tests"]

    name: str | None = "write_tests"
    model: Runnable[LanguageModelInput, Any]
    prompt: str = TESTS_PROMPT
    validate_tests: Chain | None = None

    def _flow(self, values: State, config: Config) -> Flow:
        tests = ""
        if not values.get("tests") and not values.get("examples"):
            tests = yield from self._write(values, config)
        yield {"generated_tests": tests}

    def _write(self, values: State, config: Config) -> Flow:
        messages = yield RunFunction(self.messages, values, config)
        try:
            reply = yield Invoke(self.model, messages, config)
        except BudgetError:  # The next call reaches the limit, too, and reports it.
            return ""
        if finish_reason(reply, self.model) != "stop":
            return ""
        tests = extract_code(reply_text(reply))
        if not _are_usable(tests):
            return ""
        if self.validate_tests is not None:
            variables = dict.fromkeys((*names_of(tests), *(values.get("variables") or {})))
            state = {**values, "code": tests, "variables": variables}
            problems = (yield Invoke(self.validate_tests, state, config))["problems"]
            if any(problem.severity == "error" for problem in problems):
                return ""
        return tests

    def messages(self, values: Mapping[str, Any]) -> list[BaseMessage]:
        """Return the messages to send: rules, one example, the question with its files and variables."""
        question = "\n\n".join([*describe_inputs(values), check_query(values["query"])])
        example = [HumanMessage(_EXAMPLE[0]), AIMessage(fenced(_EXAMPLE[1], "python"))]
        return [SystemMessage(self.prompt), *example, HumanMessage(question)]


def _are_usable(tests: str) -> bool:
    """Return whether the tests hold an assertion that depends on a name, and may be used."""
    try:
        expect(tests)
    except InputError:
        return False
    tree = parse(tests)
    if tree is None:
        return False
    assertions = [node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    return any(isinstance(node, ast.Name) for assertion in assertions for node in ast.walk(assertion))
