"""A model that computes with numbers of its own is asked whether the question states what its answer needs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field

from code_chains import (
    Agreement,
    Answerability,
    AnswerabilityChain,
    Judge,
    SandboxExecutor,
    Verdict,
    create_code_chain,
)
from code_chains.chains.evaluate import UNCHECKED
from code_chains.language.reasons import translate_reason
from code_chains.testing import ScriptedModel

TAXI = "We are six people and share a taxi. What does each of us pay?"
MISSING = "The model says that this is not given: the fare."
PROGRAM = "```python\nprint(round(36 / 6, 2))\n```"


def fare() -> float:
    """Return the fare of the taxi."""
    return 36


class Asked(ScriptedModel):
    """A model that says that the fare is missing, and counts how often it is asked so."""

    model_name: str = "another"
    questions: list[str] = Field(default_factory=list)

    def __init__(self, reply: str = "Missing: the fare", **kwargs: Any) -> None:
        questions: list[str] = []

        def respond(messages: Any) -> str:
            if not str(messages[0].content).startswith("You check questions"):
                return PROGRAM
            questions.append(str(messages[-1].content))
            return reply

        super().__init__(respond, **kwargs)
        self.questions = questions


def ask(
    model: Asked, box: SandboxExecutor, query: str = TAXI, state: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    with create_code_chain(model, executor=box, interpret=False, **options) as chain:
        return dict(chain.invoke({"query": query, **(state or {})}))


def test_what_is_missing_is_said_beside_the_answer(sandbox: SandboxExecutor) -> None:
    result = ask(Asked(), sandbox, verify=[Answerability()])
    verdict = result["verdict"]
    assert (verdict.status, verdict.by, verdict.reason) == ("unverified", "provenance", MISSING)
    assert (result["output"], len(result["attempts"])) == ("6.0", 1)


@pytest.mark.parametrize(
    "reply",
    [
        "Complete",
        "Complete.",
        "",
        "Missing: nothing",
        "Missing: **none**",
        "Nothing is missing: all is there",
        "Missing:",
    ],
)
def test_any_other_reply_leaves_the_verdict_as_it_was(sandbox: SandboxExecutor, reply: str) -> None:
    assert ask(Asked(reply), sandbox, verify=[Answerability()])["verdict"] == UNCHECKED


@pytest.mark.parametrize(
    "reply", ["**Missing:** the fare", "missing: the fare.", "Missing: the fare\nComplete"]
)
def test_what_is_missing_is_read_in_any_dress(reply: str) -> None:
    assert AnswerabilityChain(model=Asked(reply)).invoke({"query": TAXI})["verdict"].reason == MISSING


@pytest.mark.parametrize(
    ("name", "is_asked"), [("local:0.5b", False), ("local:1.5b", True), ("another", False)]
)
def test_the_embedded_model_is_asked_if_it_can_tell(
    sandbox: SandboxExecutor, name: str, is_asked: bool
) -> None:
    model = Asked(model_name=name)
    ask(model, sandbox)
    assert model.questions == [TAXI] * is_asked


@pytest.mark.parametrize(
    ("query", "state"),
    [
        (TAXI, {"files": {"fares.csv": b"fare\n36\n"}}),
        (TAXI, {"variables": {"fare": 36}}),
        (TAXI, {"history": "user: The fare is 36."}),
        (TAXI, {"context": "The fare is 36."}),
        ("Make up the fare of a taxi that six people share.", {}),
        ("Write a function that shares the fare of a taxi.", {}),
    ],
)
def test_nothing_is_asked_where_a_question_need_not_state_it(
    sandbox: SandboxExecutor, query: str, state: dict[str, Any]
) -> None:
    model = Asked(model_name="local:1.5b")
    ask(model, sandbox, query, state)
    assert model.questions == []


@pytest.mark.parametrize("options", [{"checks": "none"}, {"tools": [fare]}])
def test_nothing_is_asked_without_checks_or_with_tools(
    sandbox: SandboxExecutor, options: dict[str, Any]
) -> None:
    model = Asked(model_name="local:1.5b")
    ask(model, sandbox, **options)
    assert model.questions == []


def test_given_tests_decide_alone(sandbox: SandboxExecutor) -> None:
    model = Asked(model_name="local:1.5b")
    result = ask(model, sandbox, state={"tests": "assert round(36 / 6, 2) == 6"})
    assert (result["verdict"].status, model.questions) == ("verified", [])


def test_no_vote_and_no_judge_is_asked_about_it(sandbox: SandboxExecutor) -> None:
    model = Asked()
    result = ask(
        model, sandbox, verify=[Answerability(), Judge(ScriptedModel(lambda _: "YES: right")), Agreement()]
    )
    assert (result["verdict"].reason, len(result["attempts"])) == (MISSING, 1)


def test_a_verifier_of_ones_own_may_know_better(sandbox: SandboxExecutor) -> None:
    known = Verdict("verified", "tests", "It is the fare of all.")
    assert ask(Asked(), sandbox, verify=[Answerability(), lambda state: known])["verdict"] == known


def test_another_model_may_be_asked(sandbox: SandboxExecutor) -> None:
    model, other = Asked(model_name="local:1.5b"), Asked()
    assert ask(model, sandbox, verify=[Answerability(other)])["verdict"].reason == MISSING
    assert (model.questions, other.questions) == ([], [TAXI])


def test_a_model_that_cannot_be_asked_costs_no_answer(sandbox: SandboxExecutor) -> None:
    def fail(messages: Any) -> str:
        raise ConnectionError("no route")

    result = ask(Asked(), sandbox, verify=[Answerability(ScriptedModel(fail))])
    assert (result["verdict"].status, result["output"]) == ("unverified", "6.0")
    assert "no route" in result["verdict"].reason


def test_it_is_said_in_the_language_of_the_question(sandbox: SandboxExecutor) -> None:
    assert translate_reason(MISSING, "de") == "Nach Angabe des Modells ist dies nicht gegeben: the fare."
