"""What a provider withholds ends the question, and what LangChain's cache answers costs nothing."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from code_chains import (
    Budget,
    Escalate,
    GeneratedTests,
    Iterate,
    Language,
    Plan,
    Repair,
    SandboxExecutor,
    create_code_chain,
)
from code_chains.chains.generate import finish_reason
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import QUESTION, SUM_ANSWER, SUM_CODE

SENTENCE = "I can't help with that."
REFUSALS: dict[str, AIMessage] = {
    "Chat Completions": AIMessage("", additional_kwargs={"refusal": SENTENCE}),
    "Responses": AIMessage([{"type": "refusal", "refusal": SENTENCE}]),
    "a block of its own": AIMessage(
        [{"type": "non_standard", "value": {"type": "refusal", "refusal": SENTENCE}}]
    ),
    "Anthropic": AIMessage(SENTENCE, response_metadata={"stop_reason": "refusal"}),
    "Azure": AIMessage("", response_metadata={"finish_reason": "content_filter"}),
    "Gemini": AIMessage("", response_metadata={"finish_reason": "SAFETY"}),
    "Bedrock": AIMessage(SENTENCE, response_metadata={"stopReason": "guardrail_intervened"}),
}


@pytest.mark.parametrize("solve", [Repair(3), Iterate(), Escalate([ScriptedModel(lambda _: SUM_CODE)])])
@pytest.mark.parametrize("reply", REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_ends_a_question(sandbox: SandboxExecutor, reply: AIMessage, solve: Any) -> None:
    asked = list[str]()

    def refuse(messages: list[Any]) -> AIMessage:
        asked.append("asked")
        return reply

    with create_code_chain(ScriptedModel(refuse), executor=sandbox, solve=solve) as chain:
        result = chain.invoke(QUESTION)
    assert (asked, result["stop_reason"], result["verdict"].status) == (["asked"], "refused", "failed")
    expected = SENTENCE if SENTENCE in str(reply) else "withheld the reply"
    assert expected in result["verdict"].reason
    assert expected in result["answer"]


def test_a_tool_call_is_no_reply_that_was_cut_off(sandbox: SandboxExecutor) -> None:
    call = {"name": "python", "args": {"code": SUM_CODE}, "id": "1"}
    reply = AIMessage("", tool_calls=[call], response_metadata={"finish_reason": "tool_calls"})
    model = ScriptedModel(lambda messages: reply if asks_for_code(messages) else SUM_ANSWER)
    with create_code_chain(model, executor=sandbox) as chain:
        assert chain.invoke(QUESTION)["output"] == "Sum: 15"


def test_what_the_cache_of_langchain_answers_costs_nothing(sandbox: SandboxExecutor) -> None:
    model = ScriptedModel(lambda messages: SUM_CODE if asks_for_code(messages) else SUM_ANSWER)
    set_llm_cache(InMemoryCache())
    try:
        with Budget(model_calls=3) as budget, create_code_chain(model, executor=sandbox) as chain:
            results = [chain.invoke(QUESTION) for _ in range(4)]
    finally:
        set_llm_cache(None)
    assert [result["answer"] for result in results] == [SUM_ANSWER] * 4
    assert [result["usage"].model_calls for result in results] == [2, 0, 0, 0]
    assert budget.spent.model_calls == 2


class Program(BaseModel):
    """A program."""

    code: str


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
@pytest.mark.parametrize("include_raw", [False, True])
def test_a_model_with_structured_output_phrases_answers(method: Any, include_raw: bool) -> None:
    from code_chains.models.sampling import for_words

    model = ChatOpenAI(model="gpt-5-mini", api_key="none")
    assert for_words(model.with_structured_output(Program, method=method, include_raw=include_raw)) is model
    assert for_words(model.bind(stop=["x"])) is not model
    other: Any = RunnableLambda(str)
    assert for_words(other) is other


@pytest.mark.parametrize(
    "metadata",
    [
        {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
        {"prompt_feedback": {"block_reason": "SAFETY"}},
    ],
    ids=["Responses", "Gemini"],
)
def test_a_prompt_that_is_blocked_ends_a_question(sandbox: SandboxExecutor, metadata: dict[str, Any]) -> None:
    model = ScriptedModel(lambda messages: AIMessage("", response_metadata=metadata))
    with create_code_chain(model, executor=sandbox) as chain:
        result = chain.invoke(QUESTION)
    assert (result["stop_reason"], result["usage"].model_calls) == ("refused", 1)


def test_a_reply_at_its_length_limit_is_none() -> None:
    reply = AIMessage(
        "x", response_metadata={"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    )
    assert finish_reason(reply) == "length"


@pytest.mark.parametrize(
    "options",
    [
        {"solve": Plan()},
        {"verify": [GeneratedTests()]},
        {"language": Language("es", translate=True)},
    ],
    ids=["plan", "tests", "translation"],
)
def test_what_comes_before_a_program_is_refused_once(
    sandbox: SandboxExecutor, options: dict[str, Any]
) -> None:
    model = ScriptedModel(lambda messages: AIMessage("", additional_kwargs={"refusal": SENTENCE}))
    with create_code_chain(model, executor=sandbox, **options) as chain:
        result = chain.invoke(QUESTION)
    assert (result["stop_reason"], result["usage"].model_calls) == ("refused", 1)
    assert SENTENCE in result["answer"]
