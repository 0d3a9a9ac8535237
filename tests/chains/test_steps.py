"""Tasks that are done in steps, in one session."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from code_chains import Plan, Repair, create_code_chain
from code_chains.callbacks.budget import Budget
from code_chains.chains import PlanChain
from code_chains.chains.plan import read_steps, seems_to_need_steps
from code_chains.errors import ConfigurationError
from code_chains.executors import MontyExecutor, SandboxExecutor
from code_chains.testing import ScriptedModel
from tests.chains.test_verdicts import fenced
from tests.conftest import QUESTION, OpenAI

TASK = "Create a CSV with sample data, then read it and calculate statistics."
CREATE = "Save sample data as sample.csv."
READ = "Read sample.csv and print the mean."
SAVES = "name = 'sample.csv'\nopen(name, 'w').write('1\\n2\\n6\\n')\nprint('saved', name)"
MEANS = "numbers = [int(line) for line in open(name)]\nprint('Mean:', sum(numbers) / len(numbers))"


def planning(plan: str, solve: Callable[[str, list[BaseMessage]], str] | None = None) -> ScriptedModel:
    """A model that plans so, and solves the two steps of the task."""

    def script(messages: list[BaseMessage]) -> str:
        asked = str(messages[-1].text)
        if "split a task" in str(messages[0].text):
            return "1. " + READ if "step failed" in asked else plan
        if "Output of the program:" in asked:
            return "The mean is 3."
        if solve and (code := solve(asked, messages)):
            return fenced(code)
        return fenced(MEANS if READ in asked.partition("(This is one step")[0] else SAVES)

    return ScriptedModel(script)


PLAN = f'{{"steps": ["{CREATE}", "{READ}"]}}'


def test_later_steps_find_variables_and_files_of_earlier_ones(sandbox: SandboxExecutor) -> None:
    result = create_code_chain(planning(PLAN), executor=sandbox, solve=Plan(when="auto")).invoke(TASK)
    assert (result["steps"], result["output"]) == ([CREATE, READ], "saved sample.csv\nMean: 3.0")
    assert [attempt.step for attempt in result["attempts"]] == [1, 2]


def test_the_programs_together_are_the_program(sandbox: SandboxExecutor) -> None:
    code = create_code_chain(planning(PLAN), executor=sandbox, solve=Plan(when="auto")).invoke(TASK)["code"]
    assert sandbox.run(code).output == "saved sample.csv\nMean: 3.0"


def test_files_of_every_step_are_kept(sandbox: SandboxExecutor) -> None:
    result = create_code_chain(planning(PLAN), executor=sandbox, solve=Plan(when="auto")).invoke(TASK)
    assert [artifact.name for artifact in result["execution"].artifacts] == ["sample.csv"]


def test_a_simple_question_is_not_planned(sandbox: SandboxExecutor) -> None:
    result = create_code_chain(planning(PLAN), executor=sandbox, solve=Plan(when="auto")).invoke(QUESTION)
    assert (result["steps"], result["usage"].by_stage.get("plan")) == ([QUESTION], None)


def test_a_plan_of_one_step_is_no_plan(sandbox: SandboxExecutor) -> None:
    result = create_code_chain(planning('{"steps": ["Do it."]}'), executor=sandbox, solve=Plan()).invoke(
        QUESTION
    )
    assert (result["steps"], result["attempts"][0].step) == ([QUESTION], None)


def test_a_step_sees_the_programs_and_outputs_of_earlier_ones(sandbox: SandboxExecutor) -> None:
    seen: list[str] = []

    def solve(asked: str, messages: list[BaseMessage]) -> str:
        seen.append(asked)
        return ""

    create_code_chain(planning(PLAN, solve), executor=sandbox, solve=Plan()).invoke(TASK)
    assert ("saved sample.csv" in seen[1], SAVES in seen[1], "saved sample.csv" in seen[0]) == (
        True,
        True,
        False,
    )


def test_a_step_that_fails_is_planned_anew_once(sandbox: SandboxExecutor) -> None:
    def solve(asked: str, messages: list[BaseMessage]) -> str:
        return "1 / 0" if "Broken" in asked.partition("(This is one step")[0] else ""

    plan = f'{{"steps": ["{CREATE}", "Broken."]}}'
    result = create_code_chain(planning(plan, solve), executor=sandbox, solve=Plan(Repair(1))).invoke(TASK)
    assert (result["steps"], result["verdict"].status) == ([CREATE, READ], "unverified")
    assert [(attempt.number, attempt.step, attempt.status) for attempt in result["attempts"]] == [
        (1, 1, "ok"),
        (2, 2, "error"),
        (3, 2, "ok"),
    ]


def test_without_a_new_plan_the_step_is_tried_once_more(sandbox: SandboxExecutor) -> None:
    tried: list[str] = []

    def script(messages: list[BaseMessage]) -> str:
        asked = str(messages[-1].text)
        if "split a task" in str(messages[0].text):
            return "Hm." if "step failed" in asked else PLAN
        if READ in asked.partition("(This is one step")[0]:
            tried.append("")
            return fenced(MEANS if len(tried) > 1 else "1 / 0")
        return fenced(SAVES)

    chain = create_code_chain(ScriptedModel(script), executor=sandbox, interpret=False, solve=Plan(Repair(1)))
    assert chain.invoke(TASK)["output"] == "saved sample.csv\nMean: 3.0"


def test_a_step_that_fails_again_is_the_end(sandbox: SandboxExecutor) -> None:
    def solve(asked: str, messages: list[BaseMessage]) -> str:
        return "1 / 0" if READ in asked.partition("(This is one step")[0] else ""

    result = create_code_chain(planning(PLAN, solve), executor=sandbox, solve=Plan(Repair(1))).invoke(TASK)
    assert (result["verdict"].status, len(result["attempts"])) == ("failed", 3)
    assert "division by zero" in result["answer"]


def test_tests_are_for_all_steps_together(sandbox: SandboxExecutor) -> None:
    state = {"query": TASK, "tests": "assert numbers == [1, 2, 6]"}
    result = create_code_chain(planning(PLAN), executor=sandbox, solve=Plan()).invoke(state)
    assert result["verdict"].status == "verified"


def test_a_budget_ends_a_plan_with_what_is_done(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(planning(PLAN), executor=sandbox, budget=Budget(model_calls=2), solve=Plan())
    result = chain.invoke(TASK)
    assert (result["stop_reason"], result["output"]) == ("model_calls", "saved sample.csv")


async def test_all_ways_give_the_same(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(planning(PLAN), executor=sandbox, solve=Plan())
    expected = chain.invoke(TASK)
    assert await chain.ainvoke(TASK) == expected == functools.reduce(operator.add, chain.stream(TASK))


def test_the_session_is_closed_at_the_end(sandbox: SandboxExecutor) -> None:
    of_others = set(sandbox._sessions)
    create_code_chain(planning(PLAN), executor=sandbox, solve=Plan()).invoke(TASK)
    assert sandbox._sessions <= of_others


def test_an_executor_without_sessions_cannot_plan() -> None:
    with MontyExecutor() as executor, pytest.raises(ConfigurationError, match="does not open sessions"):
        create_code_chain(planning(PLAN), executor=executor, solve=Plan())


# -- the plan ------------------------------------------------------------------------------------------------------------

REPLIES: dict[str, tuple[str, list[str]]] = {
    "JSON": (PLAN, [CREATE, READ]),
    "JSON in a fence": (f"Sure!\n```json\n{PLAN}\n```", [CREATE, READ]),
    "a numbered list": (f"Plan:\n1. {CREATE}\n2) {READ}\nDone.", [CREATE, READ]),
    "steps by name": (f"Step 1: {CREATE}\nStep 2: {READ}", [CREATE, READ]),
    "a list alone": (json.dumps([CREATE, READ]), [CREATE, READ]),
    "a list of Python": (f"steps = {[CREATE, READ]!r}", [CREATE, READ]),
    "another key": (json.dumps({"plan": [CREATE, READ]}), [CREATE, READ]),
    "objects": (json.dumps({"steps": [{"id": 1, "do": CREATE}, {"id": 2, "do": READ}]}), [CREATE, READ]),
    "numbers as keys": (json.dumps({"step1": CREATE, "step2": READ}), [CREATE, READ]),
    "a call of a tool": (
        json.dumps({"name": "plan", "arguments": {"steps": [CREATE, READ]}}),
        [CREATE, READ],
    ),
    "headings": (f"### Step 1: {CREATE}\n\n### Step 2: {READ}", [CREATE, READ]),
    "steps in another language": (f"**Schritt 1:** {CREATE}\n**Schritt 2:** {READ}", [CREATE, READ]),
    "steps in Chinese": (f"第1步：{CREATE}\n第2步：{READ}", [CREATE, READ]),
    "a table": (f"| # | step |\n|---|---|\n| 1 | {CREATE} |\n| 2 | {READ} |", [CREATE, READ]),
    "a list of what to do": (f"- [ ] {CREATE}\n- [ ] {READ}", [CREATE, READ]),
    "bullets below numbers": (f"1. {CREATE}\n   - at once\n2. {READ}", [f"{CREATE} at once", READ]),
    "a date in prose": ("2024-01-01 is a date.\nIt had 5 sales.", []),
    "bullets": (f"- {CREATE}\n* **{READ}**", [CREATE, READ]),
    "prose": ("I would just do it.", []),
    "JSON of another kind": ('{"plan": 5}', []),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("reply", "steps"), REPLIES.values(), ids=REPLIES)
def test_a_plan_is_read_however_it_is_written(reply: str, steps: list[str]) -> None:
    assert read_steps(reply) == steps


def test_no_step_of_a_long_plan_is_lost() -> None:
    steps = [f"Print {number}." for number in range(25)]
    assert read_steps(json.dumps({"steps": steps[:12]})) == steps[:12]
    assert " ".join(read_steps(json.dumps({"steps": steps}))) == " ".join(steps)


@given(st.text())
def test_reading_a_plan_never_raises(reply: str) -> None:
    assert len(read_steps(reply)) <= 20


def test_a_reply_without_a_plan_is_one_step() -> None:
    assert PlanChain(model=ScriptedModel(lambda messages: "Hm.")).invoke("Do it.")["steps"] == ["Do it."]


def test_a_model_of_openais_protocol_is_held_to_a_schema(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: PLAN
    model: Any = __import__("langchain_openai").ChatOpenAI(
        model="x", base_url=openai_server.base_url, api_key="none"
    )
    assert PlanChain(model=model).invoke(TASK)["steps"] == [CREATE, READ]
    assert openai_server.requests[0]["response_format"]["json_schema"]["name"] == "plan"


@pytest.mark.parametrize(
    "query",
    [
        TASK,
        "Crea un CSV y luego léelo.",
        "Erst speichern, dann lesen.",
        "1. Make it\n2. Read it",
        "先创建文件 然后读取",
    ],
)
def test_a_task_that_says_what_follows_needs_steps(query: str) -> None:
    assert seems_to_need_steps(query)
