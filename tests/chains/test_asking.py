"""What the chains that ask a model have in common."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from code_chains import Budget, Plan, SandboxExecutor, create_code_chain, extract_code
from code_chains.chains import GenerateChain, InterpretChain
from code_chains.errors import BudgetError, ConfigurationError, InputError
from code_chains.state import ErrorReport, Execution
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code

Generate: Any = GenerateChain
BOX = ScriptedExecutor(lambda code: "4")
MODEL = ScriptedModel(lambda messages: "len('five')" if asks_for_code(messages) else "It is 4.")


class Stages(BaseCallbackHandler):
    """Collects stages and tags of model runs."""

    def __init__(self) -> None:
        self.seen: dict[str, list[str]] = {}

    def on_chat_model_start(self, *_: Any, tags: Any = None, metadata: Any = None, **__: Any) -> None:
        self.seen[metadata["stage"]] = tags


def test_runs_of_models_carry_their_stage() -> None:
    handler = Stages()
    create_code_chain(MODEL, executor=BOX).invoke("Why?", {"callbacks": [handler], "tags": ["mine"]})
    assert {stage: stage in tags and "mine" in tags for stage, tags in handler.seen.items()} == {
        "generate": True,
        "interpret": True,
    }


@pytest.mark.parametrize("kind", [GenerateChain, InterpretChain])
def test_a_model_is_positional_or_called_llm(kind: Any) -> None:
    assert kind(MODEL).model is kind(llm=MODEL).model is kind(model=MODEL).model


def test_without_a_model_the_message_says_so() -> None:
    with pytest.raises(ConfigurationError, match="model"):
        Generate()


def rules(prompt: Any, **inputs: Any) -> str:
    chain = Generate(MODEL, prompt=prompt)
    return str(chain.messages({"query": "add {history}", **inputs})[0].text)


def test_variables_of_prompts_are_filled_once() -> None:
    assert rules("Write code to: {query} {'a': 1} {other}") == "Write code to: add {history} {'a': 1} {other}"
    assert rules(PromptTemplate.from_template("{unit}: {query} {{x}}"), unit="SI") == "SI: add {history} {x}"


def test_a_missing_variable_of_a_template_is_named() -> None:
    with pytest.raises(InputError, match="unit"):
        rules(PromptTemplate.from_template("Use {unit}."))


class Program(BaseModel):
    imports: str = ""
    code: str


@pytest.mark.parametrize(
    "reply",
    [
        Program(code="len('five')"),
        Program(imports="import math", code="math.isqrt(16)"),
        {"code": "len('five')"},
        {"raw": AIMessage("…"), "parsed": Program(code="len('five')"), "parsing_error": None},
    ],
)
def test_models_with_structured_output_write_programs(reply: Any) -> None:
    model = RunnableLambda(lambda messages: reply)
    assert create_code_chain(model, executor=BOX, interpret=False).invoke("Why?")["output"] == "4"


def test_attempts_hold_program_output_and_error() -> None:
    failure = Execution("error", stdout="5\n", error=ErrorReport("ZeroDivisionError", "division by zero"))
    box = ScriptedExecutor(lambda code: failure)
    chain = create_code_chain(ScriptedModel(lambda _: "print(5)\n1 / 0"), executor=box)
    steps = [(attempt.code, attempt.output, attempt.error) for attempt in chain.invoke("Why?")["attempts"]]
    assert steps[0][:2] == ("print(5)\n1 / 0\n", "5")
    assert steps[0][2] is not None
    assert steps[0][2].type == "ZeroDivisionError"


def test_steps_of_ones_own_are_not_planned(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(MODEL, executor=sandbox, solve=Plan())
    assert chain.invoke({"query": "Do it.", "steps": ["Load.", "Sum."]})["steps"] == ["Load.", "Sum."]
    with pytest.raises(InputError, match="steps"):
        chain.invoke({"query": "Do it.", "steps": "Load."})


def test_a_budget_in_a_block_and_those_around_it_all_count() -> None:
    model = ScriptedModel(lambda messages: "x")
    with Budget() as day:
        with Budget() as first:
            model.invoke("a")
        with Budget(model_calls=1) as second:
            model.invoke("b")
            with pytest.raises(BudgetError):
                model.invoke("c")
        model.invoke("d")
    model.invoke("e")
    assert [budget.spent.model_calls for budget in (day, first, second)] == [3, 1, 1]


def test_too_many_budgets_in_each_other_are_refused() -> None:
    with (
        Budget(),
        Budget(),
        Budget(),
        Budget(),
        pytest.raises(ConfigurationError, match="4 blocks"),
        Budget(),
    ):
        pass


def test_a_budget_counts_and_limits_what_happens_within_it() -> None:
    with Budget(model_calls=1) as budget:
        MODEL.invoke("Hi")
        with pytest.raises(BudgetError):
            MODEL.invoke("Hi")
    MODEL.invoke("Hi")
    assert budget.spent.model_calls == 1


@pytest.mark.parametrize("reply", [AIMessage("```python\n1\n```"), {"code": "1"}, "```python\n1\n```"])
def test_programs_are_extracted_from_replies_of_every_kind(reply: Any) -> None:
    assert extract_code(reply) == "1\n"
