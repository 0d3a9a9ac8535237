"""Outcomes that nothing else checks, verified by further programs."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool

from code_chains import Agreement, Budget, Repair, SandboxExecutor, create_code_chain
from code_chains.errors import ConfigurationError
from code_chains.testing import ScriptedModel

QUERY = {"query": "How many are there?"}


def replies(*programs: str) -> ScriptedModel:
    """A model whose programs are these, in the order of being asked for them."""
    left = itertools.cycle(programs)
    return ScriptedModel(lambda messages: f"```python\n{next(left)}\n```")


def ask(box: SandboxExecutor, *programs: str, state: Any = None, **options: Any) -> dict[str, Any]:
    options = {"interpret": False, "verify": [Agreement()], "executor": box, "checks": (), **options}
    with create_code_chain(replies(*programs), **options) as chain:
        return dict(chain.invoke({**QUERY, **(state or {})}))


class SampledModel(ScriptedModel):
    """A model whose further programs are asked for at a higher temperature."""

    temperature: float = 0.0


class TinyModel(SampledModel):
    """A model that passes for the smallest embedded one."""

    model_name: str = "local:0.5b"


def test_three_programs_that_agree_make_an_outcome_plausible(sandbox: SandboxExecutor) -> None:
    result = ask(sandbox, "print('Count:', 15)", "print(sum([7, 8]))", "print(3 * 5)", "raise SystemExit")
    assert (result["output"], result["verdict"].status) == ("Count: 15", "plausible")
    assert result["verdict"].reason == "3 of 3 programs gave the same outcome."
    assert [attempt.strategy for attempt in result["attempts"]] == ["initial", "verify", "verify"]
    assert result["usage"].model_calls == 3
    assert len(result["programs"]) == 3


def test_a_lead_of_three_programs_decides(sandbox: SandboxExecutor) -> None:
    result = ask(sandbox, "print(14)", "print(15)", "print('Count: 15')", "print(7 + 8)", "print(15.0)")
    assert (result["output"], result["verdict"].status, result["code"]) == ("15", "plausible", "print(15)\n")
    assert result["verdict"].reason == "4 of 5 programs gave the same outcome."


@pytest.mark.parametrize("last", ["print(16)", "1 / 0"])
def test_with_a_smaller_lead_the_most_frequent_outcome_stays_and_says_so(
    sandbox: SandboxExecutor, last: str
) -> None:
    result = ask(sandbox, "print(15)", "print(14)", "print(7 * 2)", last, "1 / 0", "1 / 0")
    assert (result["output"], result["verdict"].status) == ("14", "unverified")
    assert "gave other outcomes" in result["verdict"].reason


def test_no_program_is_written_once_the_others_could_not_decide(sandbox: SandboxExecutor) -> None:
    result = ask(sandbox, "print(14)", "print(15)", "print(16)", "print(17)", "print(18)", "print(19)")
    assert (result["output"], len(result["programs"])) == ("14", 4)


def test_agreement_on_zero_says_little(sandbox: SandboxExecutor) -> None:
    verdict = ask(sandbox, "print('Vowels:', 0)", "print(len([]))", "print(0)")["verdict"]
    assert (verdict.status, "gave zero" in verdict.reason) == ("unverified", True)


def test_a_further_program_that_fails_decides_nothing(sandbox: SandboxExecutor) -> None:
    right = ask(sandbox, "print(14)", "1 / 0", "print(2 * 7)", "print(28 / 2)")
    assert right["verdict"].status == "plausible"
    assert ask(sandbox, "print(14)", "1 / 0", "1 / 0", "print(2 * 7)")["verdict"].status == "unverified"


@pytest.mark.parametrize("second", ["print(384)", "n = 384\nprint(n)", "print( 384 )  # other words"])
def test_the_same_program_of_a_model_that_repeats_itself_confirms_nothing(
    sandbox: SandboxExecutor, second: str
) -> None:
    result = ask(sandbox, "n = 384\nprint(n)", second, "total = 384\nprint(total)", "print(380 + 4)")
    is_same = second.startswith("n")
    assert (result["verdict"].status == "unverified") == is_same


def test_the_same_program_at_a_higher_temperature_or_of_another_model_confirms(
    sandbox: SandboxExecutor,
) -> None:
    def reply(messages: list[BaseMessage]) -> str:
        return "```python\nprint(384)\n```"

    for model, other in ((SampledModel(script=reply), None), (ScriptedModel(reply), ScriptedModel(reply))):
        with create_code_chain(
            model, executor=sandbox, interpret=False, verify=[Agreement(other)], checks=()
        ) as chain:
            assert chain.invoke(QUERY)["verdict"].status == "plausible"


def test_a_model_that_agrees_with_its_own_mistakes_is_refused_and_auto_leaves_it(
    sandbox: SandboxExecutor,
) -> None:
    tiny = TinyModel(script=lambda messages: "```python\nprint(384)\n```")
    with pytest.raises(ConfigurationError, match="a larger model"):
        create_code_chain(tiny, verify=[Agreement()])
    with pytest.raises(ConfigurationError, match="a larger model"):
        create_code_chain(ScriptedModel(lambda messages: ""), verify=[Agreement(tiny)])
    with create_code_chain(
        tiny, executor=sandbox, interpret=False, verify=[Agreement(when="auto")], checks=()
    ) as chain:
        result = chain.invoke(QUERY)
    assert (result["verdict"].status, result["usage"].model_calls) == ("unverified", 1)


def test_a_reply_from_a_cache_is_no_other_sample(sandbox: SandboxExecutor) -> None:
    class DefaultModel(ScriptedModel):
        """A model whose provider decides on the temperature."""

        temperature: float | None = None

    left = iter(range(100))
    model = DefaultModel(script=lambda messages: f"```python\nprint({next(left)})\n```")
    set_llm_cache(InMemoryCache())
    try:
        with create_code_chain(
            model, executor=sandbox, interpret=False, verify=[Agreement()], checks=()
        ) as chain:
            result = chain.invoke(QUERY)
    finally:
        set_llm_cache(None)
    assert (result["verdict"].status, len(set(result["programs"]))) == ("unverified", 4)


@pytest.mark.parametrize("model", [0.5, False, "open ai:x"])
def test_what_cannot_verify_is_refused(model: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Agreement\.model"):
        create_code_chain(ScriptedModel(lambda messages: ""), verify=[Agreement(model)])


def test_what_tests_decide_is_not_solved_again(sandbox: SandboxExecutor) -> None:
    state = {"tests": "assert f(2) == 4"}
    right = ask(sandbox, "def f(n):\n    return 2 * n", "print(1)", "print(1)", state=state)
    wrong = ask(sandbox, "def f(n):\n    return n", "print(1)", "print(1)", state=state, solve=Repair(1))
    assert (right["verdict"].status, len(right["attempts"])) == ("verified", 1)
    assert (wrong["verdict"].status, len(wrong["attempts"])) == ("failed", 1)


def test_a_definition_cannot_be_compared(sandbox: SandboxExecutor) -> None:
    result = ask(
        sandbox, "def f(n):\n    return n", "print(1)", "print(1)", state={"query": "Write a function f."}
    )
    assert (result["verdict"].status, len(result["attempts"])) == ("unverified", 1)


def test_a_spent_budget_keeps_the_answer(sandbox: SandboxExecutor) -> None:
    result = ask(sandbox, "print(14)", "print(14)", "print(14)", budget=Budget(model_calls=1))
    assert (result["output"], result["verdict"].status) == ("14", "unverified")
    assert "No other program checked it" in result["verdict"].reason


def test_a_session_keeps_the_state_of_the_first_program(sandbox: SandboxExecutor) -> None:
    programs = ("n = 14\nprint(n)", "n = 15\nprint(n)", "n = 5 * 3\nprint(n)", "print(15)")
    with create_code_chain(
        replies(*programs), executor=sandbox, interpret=False, verify=[Agreement()]
    ) as chain:
        result = chain.invoke({**QUERY, "session_id": "s"})
        assert (result["output"], result["verdict"].status) == ("14", "unverified")
        assert chain.execute("print(n)", "s")["output"] == "14"


def test_tools_with_effects_are_refused_and_auto_leaves_them_alone(sandbox: SandboxExecutor) -> None:
    paid: list[int] = []

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    with pytest.raises(ConfigurationError, match=r"Invalid verify=Agreement.*read_only"):
        ask(sandbox, "print(1)", tools=[pay])
    result = ask(sandbox, "print(pay(1))", tools=[pay], verify=[Agreement(when="auto")])
    assert (result["verdict"].status, paid) == ("unverified", [1])


def test_streaming_and_async_give_the_same(sandbox: SandboxExecutor) -> None:
    with create_code_chain(
        replies("print(14)", "print(15)", "print(7 + 8)", "print(3 * 5)", "print(15.0)"),
        executor=sandbox,
        interpret=False,
        verify=[Agreement()],
        checks=(),
    ) as chain:
        invoked = chain.invoke(QUERY)
        streamed: dict[str, Any] = {}
        for chunk in chain.stream(QUERY):
            for key, value in chunk.items():
                streamed[key] = (
                    streamed[key] + value
                    if key in ("programs", "stdout", "attempts") and key in streamed
                    else value
                )
        awaited = asyncio.run(chain.ainvoke(QUERY))
    for result in (streamed, awaited):
        assert result["output"] == invoked["output"] == "15"
        assert result["programs"] == invoked["programs"]
        assert [one.number for one in result["attempts"]] == [1, 2, 3, 4, 5]


def test_plans_samples_and_types_go_together_with_it(sandbox: SandboxExecutor) -> None:
    typed = ask(sandbox, "15", "float(15)", "5 * 3", answer_type=int)
    assert (typed["value"], typed["verdict"].status) == (15, "plausible")
    assert (
        ask(sandbox, *["print(15)"] * 2, "print(3 * 5)", "print(7 + 8)", solve=Repair(samples=2))[
            "verdict"
        ].status
        == "plausible"
    )
