"""How fast questions are asked, what is asked again, and when a run ends."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from code_chains import CodeChain, create_code_chain
from code_chains.batch import pace
from code_chains.batch.pace import Rate
from code_chains.batch.records import Answer
from code_chains.batch.results_file import ResultsFile
from code_chains.batch.runner import TooManyErrorsError, map_questions
from code_chains.errors import ConfigurationError, OverloadedError
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code

QUESTIONS = [f"Question {number}?" for number in range(40)]


def chain_that(reply: Callable[[str], str]) -> CodeChain:
    """Return a chain whose model replies to the text of a question."""
    model = ScriptedModel(lambda messages: reply(str(messages[-1].text)))
    return create_code_chain(model, executor=ScriptedExecutor(lambda code: "1"), interpret=False)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MAX_GUESS_S", 0.05)
    monkeypatch.setattr(pace, "MAX_COOL_DOWN_S", 0.05)


def test_what_passes_is_asked_again_until_it_is_answered() -> None:
    failures = iter([True] * 10)

    def reply(text: str) -> str:
        if next(failures, False):
            raise OverloadedError("The server is busy.")
        return "print(1)"

    with chain_that(reply) as chain:
        answers = list(map_questions(chain, QUESTIONS, concurrency=4))
    assert (len(answers), [answer.error for answer in answers if answer.error]) == (40, [])


@pytest.mark.parametrize(
    "error", [IndexError("list index out of range"), TypeError("null choices"), KeyError("x")]
)
def test_a_reply_that_is_no_completion_is_asked_for_again(error: Exception) -> None:
    failures = iter([True] * 10)

    def reply(text: str) -> str:
        if next(failures, False):
            raise error
        return "print(1)"

    with chain_that(reply) as chain:
        answers = list(map_questions(chain, QUESTIONS, concurrency=4))
    assert (len(answers), [answer.error for answer in answers if answer.error]) == (40, [])


def test_a_reply_that_stays_broken_is_said_to_be_so() -> None:
    def reply(text: str) -> str:
        raise IndexError("list index out of range")

    with chain_that(reply) as chain:
        (answer,) = map_questions(chain, ["Why?"], retries=1)
    assert answer.error.startswith(
        "The reply of the model's server is broken (IndexError: list index out of range)."
    )


def test_a_rate_holds_back_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "WINDOW_S", 30.0)
    began = time.monotonic()
    with chain_that(lambda text: "print(1)") as chain:
        answers = list(map_questions(chain, QUESTIONS[:1], rate=Rate(tokens=1)))
    assert len(answers) == 1
    assert time.monotonic() - began < 10


def test_requests_of_running_questions_wait_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MAX_GUESS_S", 0.6)
    monkeypatch.setattr(pace, "MAX_COOL_DOWN_S", 0.6)
    failed, told = list[float](), list[float]()

    def reply(messages: list[Any]) -> str:
        if not asks_for_code(messages):
            told.append(time.monotonic())
            return "It is 1."
        if "Question 1?" in messages[-1].text and not failed:
            failed.append(time.monotonic())
            raise OverloadedError("The server is busy.")
        time.sleep(0.2)
        return "print(1)"

    with create_code_chain(ScriptedModel(reply), executor=ScriptedExecutor(lambda code: "1")) as chain:
        list(map_questions(chain, QUESTIONS[:2], concurrency=2))
    assert told[0] - failed[0] > 0.5


def test_all_wait_while_the_provider_cannot_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MAX_GUESS_S", 0.4)
    monkeypatch.setattr(pace, "MAX_COOL_DOWN_S", 0.4)
    started: list[float] = []

    def reply(text: str) -> str:
        started.append(time.monotonic())
        if len(started) == 1:
            raise OverloadedError("The server is busy.")
        return "print(1)"

    with chain_that(reply) as chain:
        list(map_questions(chain, QUESTIONS[:5], concurrency=1))
    assert started[1] - started[0] >= 0.4


def test_what_fails_for_every_question_ends_the_run_after_a_few() -> None:
    asked: list[str] = []

    def refuse(text: str) -> str:
        asked.append(text)
        raise ConfigurationError("model", "x", "one that is there")

    with chain_that(refuse) as chain, pytest.raises(TooManyErrorsError, match=r"one that is there.*--resume"):
        list(map_questions(chain, QUESTIONS, concurrency=32))
    assert len(asked) <= 5


@pytest.mark.parametrize(("limit", "at_most"), [(3, 5), (0.2, 22)])
def test_too_many_errors_end_the_run(limit: float, at_most: int) -> None:
    def fail(text: str) -> str:
        raise RuntimeError("no")

    answers = list[Answer]()
    with chain_that(fail) as chain, pytest.raises(TooManyErrorsError):
        answers.extend(map_questions(chain, QUESTIONS, concurrency=1, max_errors=limit))
    assert len(answers) <= at_most


def test_a_stopped_run_finishes_what_it_has_begun_and_writes_it(tmp_path: Path) -> None:
    go = threading.Event()

    def reply(text: str) -> str:
        go.wait(10)
        return "print(1)"

    with chain_that(reply) as chain, ResultsFile(tmp_path / "a.jsonl") as results_file:
        answers = map_questions(chain, QUESTIONS, concurrency=2, results_file=results_file)
        threading.Timer(0.2, answers.stop).start()
        threading.Timer(0.4, go.set).start()
        assert len(list(answers)) == len(results_file.done) == 2


def test_an_end_waits_for_no_request_that_hangs() -> None:
    released = threading.Event()

    def reply(messages: list[Any]) -> str:
        if "hangs" in messages[-1].text:
            released.wait(60)
        return "print(2 + 2)"

    with create_code_chain(
        ScriptedModel(reply), executor=ScriptedExecutor(lambda code: "4"), interpret=False
    ) as chain:
        answers = map_questions(chain, ["What is 2 + 2?", "What hangs?"], concurrency=2)
        next(answers)
        began = time.monotonic()
        answers.close()
        assert time.monotonic() - began < 2
        released.set()


def test_turns_of_a_session_are_answered_in_order() -> None:
    def reply(text: str) -> str:
        time.sleep(0.01 if "B" in text else 0.1)
        return "print(1)"

    questions = [
        {"query": f"{name} of {session}", "session_id": session} for name in "ABC" for session in "xy"
    ]
    with chain_that(reply) as chain:
        order = [answer.question.query for answer in map_questions(chain, questions, concurrency=4)]
    for session in "xy":
        assert [text for text in order if text.endswith(session)] == [
            f"{name} of {session}" for name in "ABC"
        ]


def test_a_question_that_changed_takes_the_place_of_its_answer(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with chain_that(lambda text: "print(1)") as chain:
        for query in ("one?", "two?"):
            with ResultsFile(path, resume=True) as results_file:
                list(map_questions(chain, [{"id": 1, "query": query}], results_file=results_file))
                assert [record["given"]["query"] for record in results_file.records()] == [query]
    assert len(list(map(json.loads, path.read_text().splitlines()))) == 2


def test_a_file_that_changed_is_asked_about_again(tmp_path: Path) -> None:
    sales = tmp_path / "sales.csv"
    asked: list[int] = []
    with chain_that(lambda text: "print(1)") as chain:
        for content in ("a\n1\n", "a\n1\n", "a\n22\n"):
            if not sales.exists() or sales.read_text() != content:
                sales.write_text(content)
            question = {"id": 1, "query": "Sum?", "files": {"sales.csv": sales}}
            with ResultsFile(tmp_path / "a.jsonl", resume=True) as results_file:
                asked.append(len(list(map_questions(chain, [question], results_file=results_file))))
    assert asked == [1, 0, 1]


def test_a_rate_holds_questions_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "WINDOW_S", 0.5)
    start = time.monotonic()
    with chain_that(lambda text: "print(1)") as chain:
        list(map_questions(chain, QUESTIONS[:6], rate=Rate(requests=3)))
    assert time.monotonic() - start >= 0.5


@pytest.mark.parametrize("limit", ["", "many", "0", "5 euros"])
def test_a_rate_is_a_number_a_minute(limit: str) -> None:
    with pytest.raises(ConfigurationError, match="90000 tokens"):
        Rate.parse(limit)


def test_rates_of_requests_and_tokens_are_read() -> None:
    assert Rate.parse("60", "90000 tokens") == Rate(60, 90_000)


@pytest.fixture
def frames() -> Any:
    return pytest.importorskip("pandas")


def test_what_is_sent_to_a_worker_arrives_as_it_was(tmp_path: Path, frames: Any) -> None:
    from code_chains.batch.questions import Question
    from code_chains.batch.transport import pack_question, unpack_question

    here, gone = tmp_path / "a.csv", tmp_path / "b.csv"
    here.write_text("1")
    gone.write_text("2")
    frame = frames.DataFrame({"a": [1, 2]}, index=["x", "y"])
    inputs = {
        "query": "?",
        "files": {"a": here, "b": gone, "c": b"3"},
        "variables": {"f": frame, "d": {1: (2, b"x")}},
    }
    packed = pack_question(Question("1", inputs))
    gone.write_text("another")
    question, missing = unpack_question(packed)
    assert (question.inputs["files"], missing) == ({"a": here, "c": b"3"}, [str(gone)])
    assert question.inputs["variables"]["f"].equals(frame)
    assert question.inputs["variables"]["d"] == {1: (2, b"x")}


class NoCreditError(Exception):
    """The error of a provider that waits for its bill to be paid, with the status of a rate limit."""

    status_code, code = 429, "insufficient_quota"


def test_a_provider_without_credit_is_not_waited_for() -> None:
    asked = list[str]()

    def reply(text: str) -> str:
        asked.append(text)
        raise NoCreditError("You exceeded your current quota.")

    with chain_that(reply) as chain, pytest.raises(TooManyErrorsError, match="exceeded your current quota"):
        list(map_questions(chain, QUESTIONS, concurrency=4))
    assert len(asked) < 10
