"""Stronger models for what a weaker one fails at."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import pytest
from pydantic import Field

from code_chains import Budget, CodeChain, Escalate, Plan, Repair, create_code_chain
from code_chains.assembly.parts import Parts
from code_chains.chains import EscalateChain, ValidateChain
from code_chains.errors import ConfigurationError
from code_chains.executors import SandboxExecutor
from code_chains.storage.sqlite import SqliteStore
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code
from tests.conftest import QUESTION


class Counted(ScriptedModel):
    """Writes one program, and knows how often it was asked for one."""

    calls: list[str] = Field(default_factory=list)


def model(program: str) -> Counted:
    def script(messages: list[Any]) -> str:
        if not asks_for_code(messages):
            return "It is 15."
        made.calls.append(str(messages[-1].text))
        return f"```python\n{program}\n```"

    made = Counted(script=script)
    return made


FAILS, ANSWERS = "1 / 0", "print(sum(range(1, 6)))"


def chain(
    sandbox: SandboxExecutor, *programs: str, in_steps: bool = False, **options: Any
) -> tuple[CodeChain, list[Counted]]:
    first, *others = models = [model(program) for program in programs]
    solve = Escalate(others, Repair(2))
    made = create_code_chain(
        first, executor=sandbox, solve=Plan(solve, when="auto") if in_steps else solve, **options
    )
    return made, models


def test_a_stronger_model_answers_what_the_first_one_fails_at(sandbox: SandboxExecutor) -> None:
    result = chain(sandbox, FAILS, ANSWERS)[0].invoke(QUESTION)
    assert (result["output"], result["verdict"].status, result["stop_reason"]) == (
        "15",
        "unverified",
        "answered",
    )
    assert [(made.number, made.model, made.status) for made in result["attempts"]] == [
        (1, "Counted", "error"),
        (2, "Counted", "refused"),  # It repeated itself.
        (3, "Counted (2)", "ok"),
    ]


def test_the_model_whose_program_counts_phrases_the_answer(sandbox: SandboxExecutor) -> None:
    weak = ScriptedModel(lambda messages: FAILS if asks_for_code(messages) else "I am weak.")
    strong = ScriptedModel(lambda messages: ANSWERS if asks_for_code(messages) else "It is 15.")
    for models, answer in (([weak, strong], "It is 15."), ([strong, weak], "It is 15.")):
        made = create_code_chain(models[0], executor=sandbox, solve=Escalate(models[1:], Repair(1)))
        assert made.invoke(QUESTION)["answer"] == answer


def test_it_is_not_asked_if_the_first_one_answers(sandbox: SandboxExecutor) -> None:
    made, (_, stronger) = chain(sandbox, ANSWERS, ANSWERS)
    assert [attempt.number for attempt in made.invoke(QUESTION)["attempts"]] == [1]
    assert stronger.calls == []


def test_it_begins_anew(sandbox: SandboxExecutor) -> None:
    made, (_, stronger) = chain(sandbox, FAILS, ANSWERS)
    made.invoke(QUESTION)
    assert "ZeroDivisionError" not in stronger.calls[0]


def test_if_all_fail_the_best_outcome_is_told(sandbox: SandboxExecutor) -> None:
    result = chain(sandbox, FAILS, "import nothing_at_all", "print(41)")[0].invoke(
        {"query": QUESTION, "tests": "assert output.strip() == '42'"}
    )
    assert (result["verdict"].status, result["output"], result["stop_reason"]) == (
        "failed",
        "41",
        "attempts",
    )
    assert len(result["attempts"]) == len({attempt.number for attempt in result["attempts"]}) >= 4


def test_a_budget_is_for_all_models_together(sandbox: SandboxExecutor) -> None:
    budget = Budget(model_calls=2, per="question")
    made, (_, stronger) = chain(sandbox, FAILS, ANSWERS, budget=budget)
    result = made.invoke(QUESTION)
    assert (result["stop_reason"], result["usage"].model_calls, stronger.calls) == ("model_calls", 2, [])


def test_the_same_model_may_have_a_second_chance(sandbox: SandboxExecutor) -> None:
    twice = model(FAILS)
    made = create_code_chain(twice, executor=sandbox, solve=Escalate([twice, twice], Repair(1)))
    escalate = next(stage for stage in made.chains if isinstance(stage, EscalateChain))
    assert [name for name, _ in escalate.solvers] == ["Counted", "Counted (2)", "Counted (3)"]


def test_an_exception_of_a_model_is_no_reason_to_escalate(sandbox: SandboxExecutor) -> None:
    def broken(_: list[Any]) -> str:
        raise RuntimeError("401")

    stronger = model(ANSWERS)
    made = create_code_chain(ScriptedModel(broken), executor=sandbox, solve=Escalate([stronger]))
    with pytest.raises(RuntimeError, match="401"):
        made.invoke(QUESTION)
    assert stronger.calls == []


async def test_streams_sum_to_what_is_returned(sandbox: SandboxExecutor) -> None:
    made = chain(sandbox, FAILS, ANSWERS)[0]
    whole = made.invoke(QUESTION)
    streamed = reduce(operator.add, made.stream(QUESTION))
    async_streamed = reduce(operator.add, [chunk async for chunk in made.astream(QUESTION)])
    for key in ("code", "output", "verdict", "attempts", "programs", "stdout", "stop_reason", "answer"):
        assert streamed[key] == async_streamed[key] == whole[key], key


def test_a_conversation_keeps_the_state_of_the_accepted_program(sandbox: SandboxExecutor) -> None:
    made, _ = chain(sandbox, "x = 1\n1 / 0", "x = 42\nprint(x)")
    made.invoke({"query": QUESTION, "session_id": "ann"})
    assert made.execute("x", "ann")["output"] == "42"


def test_another_fallback_is_another_answer_in_the_cache(sandbox: SandboxExecutor, tmp_path: Any) -> None:
    outputs = []
    for program in (ANSWERS, "print(43)"):
        cache = SqliteStore(tmp_path / "answers.sqlite")
        outputs.append(chain(sandbox, FAILS, program, cache=cache)[0].invoke(QUESTION)["output"])
    assert outputs == ["15", "43"]


def test_steps_escalate_one_by_one(sandbox: SandboxExecutor) -> None:
    result = chain(sandbox, FAILS, ANSWERS, in_steps=True)[0].invoke(QUESTION)
    assert result["output"] == "15"


@pytest.mark.parametrize("models", ["openai:gpt-5-mini", [3], 5])
def test_what_are_no_models_is_refused(sandbox: SandboxExecutor, models: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Escalate\.models"):
        create_code_chain(model(ANSWERS), executor=sandbox, solve=Escalate(models))


def test_a_chain_without_solvers_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="solvers"):
        EscalateChain([])


def test_records_of_attempts_name_no_folder() -> None:
    parts = Parts("local", ScriptedExecutor(str), ValidateChain())
    assert parts.name_model("gguf:/home/ann/small.gguf", model(ANSWERS)) == "gguf:small.gguf"
    assert list(parts.models) == ["gguf:small.gguf"]
