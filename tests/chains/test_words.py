"""Words where words are asked for, and definitions where these are: given twice by the model, and checked by nothing."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from code_chains import Prompts, SandboxExecutor, create_code_chain
from code_chains.testing import ScriptedModel, asks_for_code

NOTHING = "Nothing was computed: these are the model's own words."
LEAP = "def is_leap(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)"


def ask(sandbox: SandboxExecutor, inputs: Any, *replies: str, **options: Any) -> dict[str, Any]:
    left = [*replies]

    def reply(messages: list[BaseMessage]) -> str:
        if not asks_for_code(messages):
            return "It is so."
        return left.pop(0) if len(left) > 1 else left[0]

    with create_code_chain(ScriptedModel(reply), executor=sandbox, **options) as chain:
        return chain.invoke(inputs)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Hello!", "Hello! How can I help you?"),
        (
            "What is a closure?",
            "A closure is a function that keeps the variables of the place where it was made.",
        ),
        ("Explain this program: print(7 * 6)", "It multiplies 7 by 6 and prints the product."),
        ("¡Hola!", "¡Hola! ¿En qué puedo ayudarte?"),
        ("Who are you?", "I am a helper that writes programs. One of many."),
        ("Danke!", "Reply: Gern geschehen!"),
    ],
)
def test_words_that_a_model_gives_twice_are_an_answer(
    sandbox: SandboxExecutor, query: str, words: str
) -> None:
    result = ask(sandbox, query, words, "I have nothing to run here.")
    assert (result["verdict"].status, result["verdict"].by, len(result["attempts"])) == (
        "unverified",
        "reply",
        2,
    )
    assert result["output"] == result["answer"]
    told, _, said = result["answer"].partition("\n\n")
    assert said == words.removeprefix("Reply: ")
    if result["answer_language"] == "en":
        assert told == NOTHING


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("How high is the tower?", "It is 324 m high."),
        ("How many people live there?", "About twelve thousand people live there."),
        ("How far is it?", "Four hundred kilometres."),
        ("When is it?", "On the 4th of May."),
        ("When was it?", "In the 1940s."),
        ("How much is it?", "It is ½."),
        ("How high is it?", "Ⅻ metres."),
        ("When was it built?", "In MCMXLV."),
        ("¿Cuánto cuesta?", "Cuesta quinientos euros."),
    ],
)
def test_a_figure_that_nobody_gave_is_no_answer_however_often_it_is_said(
    sandbox: SandboxExecutor, query: str, words: str
) -> None:
    result = ask(sandbox, query, words)
    assert (result["verdict"].status, result["execution"].status) == ("failed", "refused")
    assert result["verdict"].by != "reply"


@pytest.mark.parametrize(
    "more",
    [
        {"files": {"a.csv": b"a\n1\n"}},
        {"variables": {"n": 1}},
        {"tests": "assert f(1) == 1"},
        {"examples": [(1, 1)]},
    ],
    ids=["files", "variables", "tests", "examples"],
)
def test_where_there_is_something_to_compute_with_words_are_no_answer(
    sandbox: SandboxExecutor, more: dict[str, Any]
) -> None:
    assert ask(sandbox, {"query": "What is in it?", **more}, "Much is in it.")["verdict"].status == "failed"


def test_words_may_state_what_the_context_states(sandbox: SandboxExecutor) -> None:
    inputs = {"query": "How does freight_of decide?", "context": "Above 31 kg freight_of takes a pallet."}
    assert ask(sandbox, inputs, "By weight: above 31 kg.")["verdict"].by == "reply"
    assert ask(sandbox, inputs, "By weight: above 70 kg.")["verdict"].status == "failed"


@pytest.mark.parametrize(
    "text", ["```python\nimport math\n\ndef main(", "A closure is a function that keeps the"]
)
def test_a_reply_that_was_cut_off_is_no_answer(sandbox: SandboxExecutor, text: str) -> None:
    cut = AIMessage(text, response_metadata={"finish_reason": "length"})
    model = ScriptedModel(lambda messages: cut if asks_for_code(messages) else "It is so.")
    result = create_code_chain(model, executor=sandbox).invoke("What is a closure?")
    assert (result["verdict"].status, result["verdict"].by != "reply") == ("failed", True)


def test_words_are_no_answer_of_a_type(sandbox: SandboxExecutor) -> None:
    assert ask(sandbox, "What is it?", "It is fine.", answer_type=int)["verdict"].status == "failed"


def test_a_program_after_words_is_the_answer(sandbox: SandboxExecutor) -> None:
    result = ask(sandbox, "What is 6 times 7?", "Let me think.", "print(6 * 7)")
    assert (result["output"], result["verdict"].by) == ("42", "none")


@pytest.mark.parametrize(
    "query",
    [
        "leap year function please",
        "Gib mir Code für Schaltjahre",
        "Refactor this: def is_leap(y): return y % 4 == 0",
        "I need a helper that tells leap years",
        "How do I check for leap years in Python?",
    ],
)
def test_what_a_model_defines_twice_is_handed_over(sandbox: SandboxExecutor, query: str) -> None:
    again = LEAP.replace("and (", "and  (")
    result = ask(sandbox, query, LEAP, again)
    assert (result["verdict"].status, len(result["attempts"])) in (("unverified", 2), ("unverified", 1))
    assert "def is_leap" in result["answer"]


def test_another_definition_is_another_attempt(sandbox: SandboxExecutor) -> None:
    result = ask(sandbox, "leap years please", LEAP, "def other():\n    pass", LEAP, LEAP)
    assert len(result["attempts"]) == 3


def test_an_app_may_want_programs_alone(sandbox: SandboxExecutor) -> None:
    only = Prompts(words=False)
    assert ask(sandbox, "Hello!", "Hello!", instructions=only)["verdict"].status == "failed"
    assert ask(sandbox, "leap year please", LEAP, instructions=only)["verdict"].status == "failed"
