"""In a conversation a model may answer in its own words where nothing is to be computed, and they are said to be that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from code_chains import CodeChain, create_code_chain
from code_chains.language import LANGUAGES
from code_chains.language.reasons import translate_reason
from code_chains.testing import ScriptedExecutor, ScriptedModel
from code_chains.verification.provenance.replies import OWN_WORDS, REPLY_RULE, own_words

HISTORY = [HumanMessage("What is 6 times 7?"), AIMessage("It is 42.")]
SAID = {
    "Thanks!": "Reply: You are welcome.",
    "¡Gracias!": "Reply: De nada.",
    "What did I ask first?": "**Reply:** You asked what 6 times 7 is.",
    "What was the result?": "Reply: It was 42.",
    "Who are you?": "reply: I write programs.\nAsk me anything.",
}


@pytest.fixture
def prompts() -> list[str]:
    return []


@pytest.fixture
def chain(prompts: list[str]) -> Iterator[CodeChain]:
    def reply(messages: list[BaseMessage]) -> str:
        prompts.append(str(messages[0].text))
        query = str(messages[-1].text).rpartition("\n\n")[2]
        return SAID.get(query, "Reply: It is 600." if "total" in query else "print(6 * 7)")

    executor = ScriptedExecutor(lambda code: str(eval(code.strip()[6:-1])))
    with create_code_chain(ScriptedModel(reply), executor=executor, interpret=False) as chain:
        yield chain


@pytest.mark.parametrize("query", SAID)
def test_words_are_answered_with_words(query: str) -> None:
    model = ScriptedModel(lambda messages: SAID[query])
    with create_code_chain(model, executor=ScriptedExecutor(lambda code: "")) as chain:
        result = chain.invoke({"query": query, "history": HISTORY})
    assert result["answer"] == SAID[query].strip("*").partition(":")[2].strip("* ")
    assert (result["verdict"].status, result["verdict"].by) == ("unverified", "reply")
    assert result["verdict"].reason == OWN_WORDS
    assert (result["stop_reason"], len(result["attempts"])) == ("answered", 1)


def test_a_session_goes_on_after_thanks() -> None:
    replies = iter(["print(6 * 7)", "It is 42.", "Reply: You are welcome.", "print(6 * 8)", "It is 48."])
    model = ScriptedModel(lambda messages: next(replies))
    with create_code_chain(model, executor="sandbox") as chain:
        asked = [
            chain.invoke({"query": query, "session_id": "a"})["answer"]
            for query in ("What is 6 times 7?", "Thanks!", "And 6 times 8?")
        ]
        assert asked == ["It is 42.", "You are welcome.", "It is 48."]


NOT_WORDS: dict[str, dict[str, Any]] = {
    "a first question": {"history": None},
    "a number that nobody told": {"reply": "Reply: The total is 600."},
    "a program": {"code": "print(1)"},
    "tests": {"tests": "assert f(1) == 1"},
    "no mark": {"reply": "You are welcome."},
    "nothing": {"reply": "Reply:"},
}


@pytest.mark.parametrize("changed", NOT_WORDS.values(), ids=NOT_WORDS)
def test_other_replies_without_a_program_are_no_answers(changed: dict[str, Any]) -> None:
    state = {"query": "Thanks!", "history": HISTORY, "reply": "Reply: You are welcome.", "code": ""}
    assert own_words(state) == "You are welcome."
    assert own_words({**state, **changed}) == ""


def test_the_model_is_told_so_only_in_a_conversation(chain: CodeChain, prompts: list[str]) -> None:
    chain.invoke("What is 6 times 7?")
    chain.invoke({"query": "What is 6 times 7?", "history": HISTORY})
    assert [REPLY_RULE in prompt for prompt in prompts] == [False, True]


def test_a_number_in_words_of_the_model_is_repaired(chain: CodeChain) -> None:
    result = chain.invoke({"query": "What is the total?", "history": HISTORY})
    assert (result["output"], len(result["attempts"])) == ("42", 2)


@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - {"en"}))
def test_it_is_said_in_each_language(language: str) -> None:
    assert translate_reason(OWN_WORDS, language) not in ("", OWN_WORDS)
