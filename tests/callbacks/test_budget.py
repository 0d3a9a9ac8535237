"""Limits on what is spent: reserved before, so that they hold for many at once."""

from __future__ import annotations

import asyncio
import contextlib
import math
import operator
import time
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

from code_chains import Repair, create_code_chain
from code_chains.callbacks.budget import Budget
from code_chains.callbacks.pricing import Prices
from code_chains.callbacks.usage import UsageMeter
from code_chains.errors import BudgetError, ConfigurationError
from code_chains.executors import SandboxExecutor
from code_chains.models import resolve_model
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import QUESTION, OpenAI

REPLY = 100


def talking(delay: float = 0.0, words: int = REPLY, **usage: int) -> ScriptedModel:
    """A model whose replies cost as many tokens as they have words, or what is said here."""

    def script(messages: list[BaseMessage]) -> AIMessage:
        told = {"input_tokens": 10, "output_tokens": words, **usage}
        metadata = {"finish_reason": "stop", "model_name": "scripted"}
        return AIMessage(
            "word " * words,
            usage_metadata={**told, "total_tokens": sum(told.values())},
            response_metadata=metadata,
        )

    return ScriptedModel(script, delay=delay)


def writing(code: str, delay: float = 0.0) -> ScriptedModel:
    return ScriptedModel(
        lambda messages: f"```python\n{code}\n```" if asks_for_code(messages) else "Told.", delay=delay
    )


def ask(model: Any, budget: Budget, times: int) -> tuple[int, list[str]]:
    """How many calls were answered one after the other, and which limits stopped the others."""
    stopped: list[str] = []
    for _ in range(times):
        try:
            model.invoke("Hi", {"callbacks": [budget]})
        except BudgetError as error:
            stopped.append(error.limit)
    return times - len(stopped), stopped


# -- limits --------------------------------------------------------------------------------------------------------------


def test_calls_are_limited_on_any_langchain_chain() -> None:
    chain = ChatPromptTemplate.from_messages([("human", "{x}")]) | FakeListChatModel(responses=["Hello."])
    budget = Budget(model_calls=2)
    answered = [chain.invoke({"x": "Hi"}, {"callbacks": [budget]}).text for _ in range(2)]
    assert answered == ["Hello."] * 2
    with pytest.raises(BudgetError, match="model_calls=2"):
        chain.invoke({"x": "Hi"}, {"callbacks": [budget]})


def test_tokens_are_overshot_by_one_reply_at_most() -> None:
    budget = Budget(tokens=250)
    assert ask(talking(), budget, 5) == (3, ["tokens"] * 2)
    assert budget.spent.input_tokens + budget.spent.output_tokens <= 250 + REPLY


def test_money_is_limited() -> None:
    budget = Budget(usd=0.0015, prices={"scripted": (0, 10)})
    model = ChatScripted(talking())
    assert ask(model, budget, 4) == (2, ["usd"] * 2)
    assert budget.spent.usd == pytest.approx(0.002)


class ChatScripted(ScriptedModel):
    """A scripted model that says its name."""

    model: str = "scripted"

    def __init__(self, inner: ScriptedModel, **kwargs: Any) -> None:
        super().__init__(inner.script, delay=inner.delay, **kwargs)


def test_a_model_of_unknown_price_is_an_error_where_money_is_limited() -> None:
    with pytest.raises(ConfigurationError, match="prices="):
        ChatScripted(talking()).invoke("Hi", {"callbacks": [Budget(usd=1)]})


def test_a_model_that_keeps_no_account_is_estimated() -> None:
    budget = Budget(tokens=60)
    assert ask(FakeListChatModel(responses=["word " * 40]), budget, 5)[1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"usd": 0},
        {"tokens": 1.5},
        {"model_calls": True},
        {"seconds": "5"},
        {"per": "day"},
        {"prices": {"x": 1}},
    ],
)
def test_a_limit_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        Budget(**wrong)


# -- many at once --------------------------------------------------------------------------------------------------------


def test_threads_together_overshoot_by_one_reply_at_most() -> None:
    budget, model = Budget(tokens=1000, reply_tokens=REPLY), talking(delay=0.01)
    with ThreadPoolExecutor(16) as pool:
        answered = sum(pool.map(lambda _: ask(model, budget, 1)[0], range(40)))
    assert 9 <= answered <= 10
    assert budget.spent.input_tokens + budget.spent.output_tokens <= 1000 + REPLY


async def test_tasks_together_overshoot_by_one_reply_at_most() -> None:
    budget, model = Budget(tokens=1000, reply_tokens=REPLY), talking(delay=0.01)
    handler = budget.handler()
    outcomes = await asyncio.gather(
        *(model.ainvoke("Hi", {"callbacks": [handler]}) for _ in range(40)), return_exceptions=True
    )
    assert 9 <= sum(not isinstance(outcome, BudgetError) for outcome in outcomes) <= 10


async def test_the_limit_that_a_call_would_have_to_wait_for_is_the_one_that_is_named() -> None:
    budget = Budget(tokens=1_000_000, usd=0.0015, prices={"scripted": (0, 10)})
    model = ChatScripted(talking(delay=0.05))
    calls = (model.ainvoke("Hi", {"callbacks": [budget]}) for _ in range(2))
    _, refused = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(refused, BudgetError)
    assert refused.limit == "usd"


def test_what_could_not_be_at_once_waits_instead_of_failing() -> None:
    budget, model = Budget(tokens=2000, reply_tokens=1500), talking(delay=0.05)
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(lambda _: ask(model, budget, 1)[0], range(4))) == 4


def test_calls_are_never_one_too_many() -> None:
    budget, model = Budget(model_calls=7), talking(delay=0.005)
    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(lambda _: ask(model, budget, 1)[0], range(30))) == 7


def test_a_call_that_fails_gives_back_what_it_held() -> None:
    def script(messages: list[BaseMessage]) -> str:
        raise OSError("The line is dead.")

    budget = Budget(tokens=3000)
    for _ in range(5):
        with pytest.raises(OSError, match="dead"):
            ScriptedModel(script).invoke("Hi", {"callbacks": [budget]})
    assert ask(talking(), budget, 1)[0] == 1


def test_prompts_of_one_call_do_not_wait_for_each_other() -> None:
    with pytest.raises(BudgetError):
        talking().generate([[HumanMessage("hi")], [HumanMessage("ho")]], callbacks=[Budget(tokens=1500)])


def test_another_budget_that_refuses_leaves_nothing_held() -> None:
    inner, outer = Budget(model_calls=1), Budget(tokens=2500)
    for _ in range(2):
        with contextlib.suppress(BudgetError), ThreadPoolExecutor(1) as pool:
            pool.submit(talking().invoke, "Hi", {"callbacks": [outer, inner]}).result()
    assert ask(talking(), outer, 1)[0] == 1


async def test_a_call_that_is_cancelled_leaves_nothing_held() -> None:
    budget = Budget(tokens=2500)
    handler = budget.handler()
    slow = ChatPromptTemplate.from_messages([("human", "{x}")]) | talking(delay=1)
    task = asyncio.create_task(slow.ainvoke({"x": "Hi"}, {"callbacks": [handler]}))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.wait_for(talking().ainvoke("Hi", {"callbacks": [handler]}), 2)


async def test_a_budget_that_is_attached_twice_counts_once(sandbox: SandboxExecutor) -> None:
    budget = Budget(tokens=100_000)
    chain = create_code_chain(writing("print(1)"), executor=sandbox, budget=budget)
    chain.invoke(QUESTION, {"callbacks": [budget]})
    await chain.ainvoke(QUESTION, {"callbacks": [budget]})
    assert budget.spent.model_calls == 4


def test_a_model_that_completes_text_is_limited_too() -> None:
    model = FakeListLLM(responses=["word " * 40])
    assert ask(model, Budget(tokens=100), 5)[1]


def test_several_budgets_all_bind(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(writing("1 / 0"), executor=sandbox, budget=Budget(attempts=1))
    assert len(chain.invoke(QUESTION, {"callbacks": [Budget(tokens=100_000)]})["attempts"]) == 1


# -- in a chain ----------------------------------------------------------------------------------------------------------


def test_a_chain_stops_with_the_limit_as_its_reason(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(
        writing("1 / 0"), executor=sandbox, budget=Budget(model_calls=1), solve=Repair(5)
    )
    result = chain.invoke(QUESTION)
    assert (result["stop_reason"], len(result["attempts"]), result["verdict"].status) == (
        "model_calls",
        1,
        "failed",
    )


def test_the_best_so_far_is_kept(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(writing("print(15)"), executor=sandbox, budget=Budget(model_calls=1))
    result = chain.invoke(QUESTION)
    assert (result["output"], result["stop_reason"]) == ("15", "answered")
    assert result["answer"].startswith("15\n(The budget is exhausted (model_calls=1).")


def test_nothing_left_at_all_is_said(sandbox: SandboxExecutor) -> None:
    budget = Budget(model_calls=1)
    ask(talking(), budget, 1)
    result = create_code_chain(writing("print(15)"), executor=sandbox, budget=budget).invoke(QUESTION)
    assert (result["attempts"], result["stop_reason"]) == ([], "model_calls")
    assert "model_calls=1" in result["answer"]


@pytest.mark.parametrize(("per", "answered"), [("all", 2), ("question", 4)])
def test_a_budget_is_for_all_or_for_each(sandbox: SandboxExecutor, per: Any, answered: int) -> None:
    chain = create_code_chain(
        writing("print(1)"), executor=sandbox, interpret=False, budget=Budget(attempts=2, per=per)
    )
    results = chain.batch([{"query": QUESTION}] * 4)
    assert sum(result["stop_reason"] == "answered" for result in results) == answered


def test_lines_of_code_are_limited(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(
        writing("x = 1\nprint(x)"), executor=sandbox, interpret=False, budget=Budget(code_lines=1)
    )
    assert "at most 1 are allowed" in chain.invoke(QUESTION)["attempts"][0].summary


@pytest.mark.parametrize("streamed", [False, True])
def test_the_clock_stops_a_model_that_is_slow(sandbox: SandboxExecutor, streamed: bool) -> None:
    chain = create_code_chain(writing("print(1)", delay=20), executor=sandbox, budget=Budget(seconds=0.5))
    began = time.monotonic()
    result = reduce(operator.add, chain.stream(QUESTION)) if streamed else chain.invoke(QUESTION)
    assert (result["stop_reason"], time.monotonic() - began < 5) == ("seconds", True)


@pytest.mark.slow
async def test_the_clock_stops_it_on_an_event_loop_too(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(writing("print(1)", delay=8), executor=sandbox, budget=Budget(seconds=0.5))
    began = time.monotonic()
    result = await chain.ainvoke(QUESTION)
    assert (result["stop_reason"], time.monotonic() - began < 6) == ("seconds", True)


async def test_async_is_limited_like_sync(sandbox: SandboxExecutor) -> None:
    chains = [
        create_code_chain(writing("1 / 0"), executor=sandbox, budget=Budget(model_calls=2)) for _ in range(2)
    ]
    assert await chains[0].ainvoke(QUESTION) == chains[1].invoke(QUESTION)


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [False, True])
def test_the_clock_stops_an_answer_that_stalls(sandbox: SandboxExecutor, streamed: bool) -> None:
    def script(messages: list[BaseMessage]) -> str:
        time.sleep(0 if asks_for_code(messages) else 20)
        return "print(15)"

    chain = create_code_chain(ScriptedModel(script), executor=sandbox, budget=Budget(seconds=1))
    began = time.monotonic()
    result = reduce(operator.add, chain.stream(QUESTION)) if streamed else chain.invoke(QUESTION)
    assert ("seconds=1" in result["answer"], time.monotonic() - began < 5) == (True, True)


def test_a_limit_is_no_warning_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    ask(talking(), Budget(model_calls=1), 2)
    assert "Error in" not in caplog.text


# -- usage and prices ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_usage_is_told_by_model_and_by_stage(
    openai_server: OpenAI, sandbox: SandboxExecutor, streamed: bool
) -> None:
    chain = create_code_chain(resolve_model("gpt-4o-mini", base_url=openai_server.base_url), executor=sandbox)
    usage = (reduce(operator.add, chain.stream(QUESTION)) if streamed else chain.invoke(QUESTION))["usage"]
    assert usage.by_stage["generate"] == {"model_calls": 1, "input_tokens": 11, "output_tokens": 7}
    assert (set(usage.by_stage), usage.input_tokens) == ({"generate", "interpret"}, 22)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("/home/ann/models/small.gguf", "small.gguf"),
        ("gguf:/home/ann/small.gguf", "small.gguf"),
        ("C:\\models\\small.gguf", "small.gguf"),
        ("~/small", "small"),
        ("unsloth/Qwen3-4B-GGUF:Q4/Qwen3.gguf", "unsloth/Qwen3-4B-GGUF:Q4/Qwen3.gguf"),
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("llama3.2:3b", "llama3.2:3b"),
    ],
)
def test_usage_names_no_folder_of_a_machine(model: str, name: str) -> None:
    meter = UsageMeter()
    reply = AIMessage(
        "Hi",
        response_metadata={"model_name": model},
        usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    )
    ScriptedModel(lambda messages: reply).invoke("Hi", {"callbacks": [meter]})
    assert list(meter.usage.by_model) == [name]


def test_a_known_model_has_its_price() -> None:
    assert Prices().cost("gpt-4o-mini", "openai", 1_000_000, 1_000_000) == pytest.approx(0.75)


def test_the_embedded_models_are_free() -> None:
    assert Prices().is_free("local", "code_chains")


def test_an_unknown_price_is_none_and_not_zero() -> None:
    meter = UsageMeter()
    talking().invoke("Hi", {"callbacks": [meter]})
    assert (Prices().cost("nobody-knows", "", 1, 1), meter.usage.usd) == (None, None)


def test_a_price_that_is_given_counts(openai_server: OpenAI) -> None:
    meter = UsageMeter({"mine": (1.0, 2.0)})
    model = ChatOpenAI(model="mine", base_url=openai_server.base_url, api_key="none")
    model.invoke("Hi", {"callbacks": [meter]})
    assert meter.usage.usd == pytest.approx((11 * 1 + 7 * 2) / 1e6)


@pytest.mark.slow
@pytest.mark.parametrize("session", [None, "ann"])
@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke"])
def test_a_program_does_not_outlast_the_time(sandbox: SandboxExecutor, session: str | None, way: str) -> None:
    model = writing("import time\nprint('begun')\ntime.sleep(30)")
    with create_code_chain(model, executor=sandbox, budget=Budget(seconds=1.5)) as chain:
        asked = {"query": "?", "session_id": session}
        began = time.monotonic()
        if way == "stream":
            result: Any = reduce(operator.add, chain.stream(asked))
        else:
            result = asyncio.run(chain.ainvoke(asked)) if way == "ainvoke" else chain.invoke(asked)
    assert time.monotonic() - began < 15
    assert (result["stop_reason"], result["execution"].status) == ("seconds", "timeout")
    assert (result["stdout"], "the budget" in result["execution"].error.message) == ("begun\n", True)


@pytest.mark.slow
def test_tests_do_not_outlast_the_time(sandbox: SandboxExecutor) -> None:
    with create_code_chain(writing("print(1)"), executor=sandbox, budget=Budget(seconds=1.5)) as chain:
        began = time.monotonic()
        result = chain.invoke({"query": "?", "tests": "import time; time.sleep(30)\nassert 1"})
    assert time.monotonic() - began < 15
    assert (result["stop_reason"], result["verdict"].status) == ("seconds", "failed")


def test_the_clock_starts_with_the_first_model_call(sandbox: SandboxExecutor) -> None:
    budget = Budget(seconds=5)
    assert budget.deadline == math.inf
    with create_code_chain(writing("print(1)"), executor=sandbox, budget=budget) as chain:
        chain.invoke("?")
    assert budget.deadline < time.monotonic() + 5


def test_a_budget_of_each_question_has_a_limit() -> None:
    with pytest.raises(ConfigurationError, match="a limit as well"):
        Budget(per="question")
