"""A model that computes with numbers of its own is asked whether the question states what its answer needs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field

from code_chains import (
    Agreement,
    Answerability,
    Budget,
    ConfigurationError,
    Escalate,
    GeneratedTests,
    Judge,
    Repair,
    SandboxExecutor,
    Verdict,
    create_code_chain,
)
from code_chains.chains import AnswerabilityChain
from code_chains.chains.ranks import UNCHECKED
from code_chains.language.reasons import translate_reason
from code_chains.testing import ScriptedModel

TAXI = "We are six people and share a taxi. What does each of us pay?"
MISSING = "The model says that this is not given: the fare."
SIZES = ("local:0.5b", "local:1.5b")


def fare() -> float:
    """Return the fare of the taxi."""
    return 36


class Asked(ScriptedModel):
    """A model that says that the fare is missing, and counts how often it is asked so."""

    model_name: str = "another"
    temperature: float | None = None
    questions: list[str] = Field(default_factory=list)

    def __init__(
        self, reply: str = "Missing: the fare", program: str = "round(36 / 6, 2)", **kwargs: Any
    ) -> None:
        questions: list[str] = []

        def respond(messages: Any) -> str:
            if not str(messages[0].content).startswith("You check questions"):
                return f"```python\nprint({program})\n```"
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
        "Missing: ...",
        "Nothing is missing: all is there",
        "Missing:",
    ],
)
def test_any_other_reply_leaves_the_verdict_as_it_was(sandbox: SandboxExecutor, reply: str) -> None:
    assert ask(Asked(reply), sandbox, verify=[Answerability()])["verdict"] == UNCHECKED


@pytest.mark.parametrize(
    "reply",
    [
        "**Missing:** the fare",
        "missing: the fare.",
        "Missing: the fare\nComplete",
        "<think>Six people, no fare.</think>\nMissing: the fare",
        "- Missing:\n- the fare",
        "> Missing\uff1a the fare\x1b",
    ],
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


@pytest.mark.parametrize(
    "query",
    [
        "How can six people split a taxi, and what does each pay?",
        "Explain what six people pay who share a taxi in a five story city.",
        "How much paint do six people draw?",
    ],
)
def test_it_is_asked_however_a_question_begins(sandbox: SandboxExecutor, query: str) -> None:
    model = Asked(model_name="local:1.5b")
    ask(model, sandbox, query)
    assert model.questions == [query]


def test_nothing_is_asked_in_a_session_that_may_hold_it(sandbox: SandboxExecutor) -> None:
    model = Asked(model_name="local:1.5b")
    with sandbox.session() as session:
        session.run("fare = 36")
        ask(model, sandbox, state={"session": session})
    with create_code_chain(model, executor=sandbox, interpret=False, memory=False) as chain:
        chain.invoke({"query": TAXI, "session_id": "a", "variables": {"fare": 36}})
        chain.invoke({"query": TAXI, "session_id": "a"})
    assert model.questions == []


def test_nothing_is_asked_of_what_failed_or_is_in_doubt(sandbox: SandboxExecutor) -> None:
    for program in ("1 / 0", "None"):
        model = Asked(model_name="local:1.5b", program=program)
        ask(model, sandbox)
        assert model.questions == []


@pytest.mark.parametrize("options", [{"solve": Repair(samples=3)}, {"verify": [GeneratedTests()]}])
def test_neither_a_vote_nor_generated_tests_outweigh_it(
    sandbox: SandboxExecutor, options: dict[str, Any]
) -> None:
    result = ask(Asked(model_name="local:1.5b", temperature=0.0), sandbox, **options)
    assert (result["verdict"].status, result["verdict"].reason) == ("unverified", MISSING)


@pytest.mark.parametrize(("first", "second", "is_asked"), [(*SIZES, True), (*SIZES[::-1], False)])
def test_the_model_that_wrote_the_program_decides(
    sandbox: SandboxExecutor, first: str, second: str, is_asked: bool
) -> None:
    failing, other = Asked(model_name=first, program="1 / 0"), Asked(model_name=second)
    ask(failing, sandbox, solve=Escalate([other], Repair(1)))
    assert (failing.questions, other.questions) == ([], [TAXI] * is_asked)


def test_a_budget_that_is_spent_costs_no_answer(sandbox: SandboxExecutor) -> None:
    result = ask(Asked(model_name="local:1.5b"), sandbox, budget=Budget(model_calls=1))
    assert (result["output"], result["verdict"].status) == ("6.0", "unverified")
    assert result["verdict"].reason.startswith("answerability was not asked: ")


@pytest.mark.parametrize("options", [{"tools": [fare]}, {"executor": "sql"}])
def test_where_something_else_may_hold_it_naming_it_is_an_error(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="may hold what a question lacks"):
        create_code_chain(Asked(), verify=[Answerability()], **options)


@pytest.mark.parametrize("options", [{"checks": "none"}, {"tools": [fare]}])
def test_nothing_is_asked_without_checks_or_with_tools(
    sandbox: SandboxExecutor, options: dict[str, Any]
) -> None:
    model = Asked(model_name="local:1.5b")
    ask(model, sandbox, **options)
    assert model.questions == []


def test_given_tests_decide_alone(sandbox: SandboxExecutor) -> None:
    model = Asked(model_name="local:1.5b")
    result = ask(model, sandbox, state={"tests": "assert output"})
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
    assert (result["verdict"], result["output"]) == (UNCHECKED, "6.0")


def test_it_is_said_in_the_language_of_the_question(sandbox: SandboxExecutor) -> None:
    assert translate_reason(MISSING, "de") == "Nach Angabe des Modells ist dies nicht gegeben: the fare."
