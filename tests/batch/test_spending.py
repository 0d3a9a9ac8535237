"""What a run of many questions has cost: unknown is never zero."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from code_chains import Budget, CodeChain, ConversationMemory, SandboxExecutor, create_code_chain
from code_chains.apps.terminal.batch_progress import Counts, watch_batch
from code_chains.batch.questions import Question
from code_chains.batch.records import Answer
from code_chains.batch.results_file import ResultsFile
from code_chains.batch.runner import TooManyErrorsError, map_questions
from code_chains.errors import ConfigurationError, ExecutorError
from code_chains.state import Usage
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code


def spent(chain: Any, questions: list[str], **options: Any) -> Counts:
    counts = Counts(len(questions))
    for answer in map_questions(chain, questions, concurrency=1, **options):
        counts.add(answer)
    return counts


def chain_of(reply: Any) -> CodeChain:
    return create_code_chain(ScriptedModel(reply), executor=ScriptedExecutor(lambda code: "4"))


def breaking(error: Exception, times: int) -> Any:
    """Return a script whose answers in words fail some times, after the program was paid."""
    left = [error] * times

    def reply(messages: list[Any]) -> str:
        if not asks_for_code(messages) and left:
            raise left.pop()
        return "print(2 + 2)" if asks_for_code(messages) else "Four."

    return reply


def test_what_a_question_cost_before_it_failed_is_counted() -> None:
    with chain_of(breaking(ValueError("It broke."), 9)) as chain:
        counts = spent(chain, ["What is 2 + 2?"])
    assert counts.failed.total() == 1
    assert counts.usage.model_calls == 1
    assert counts.usage.tokens > 100


def test_tries_that_failed_are_counted_with_the_one_that_succeeds() -> None:
    outage = ExecutorError("The network is down.", is_retryable=True)
    with chain_of(breaking(outage, 1)) as chain:
        counts = spent(chain, ["What is 2 + 2?"])
    assert (counts.done, counts.usage.model_calls) == (1, 3)


def test_the_budget_counts_tries_that_failed() -> None:
    outage = ExecutorError("The network is down.", is_retryable=True)
    with chain_of(breaking(outage, 1)) as chain:
        counts = spent(chain, ["What is 2 + 2?", "And 3 + 1?"], budget=Budget(model_calls=4))
    assert counts.done == 1


def silent(messages: list[Any]) -> AIMessage:
    return AIMessage("print(2 + 2)" if asks_for_code(messages) else "Four.")


def test_tokens_that_no_provider_tells_are_estimated_and_said_to_be() -> None:
    with chain_of(silent) as chain:
        counts = spent(chain, ["What is 2 + 2?"])
    assert counts.usage.estimated_calls == counts.usage.model_calls == 2
    assert "about" in counts.cost
    assert "2 that told no tokens" in counts.cost


def test_dollars_of_which_a_part_is_unknown_are_at_least_so_many() -> None:
    counts = Counts(2)
    for usd in (20.0, None):
        counts.add(
            Answer(
                Question("1", {"query": "What is 2 + 2?"}), {"usage": Usage(1, 10, 10, usd=usd)}, "It broke."
            )
        )
    assert counts.cost.startswith("at least 20.0000 dollars, 40 tokens, 2 model calls")
    assert counts.to_dict()["usd"] is None


def test_a_budget_for_each_question_is_refused_where_all_share_it(chain: CodeChain) -> None:
    with pytest.raises(ConfigurationError, match="per question"):
        map_questions(chain, ["What is 2 + 2?"], budget=Budget(tokens=5, per="question"))


@pytest.fixture
def chain() -> CodeChain:
    return chain_of(silent)


def create_silent() -> CodeChain:
    return chain_of(silent)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_cluster_keeps_to_a_budget_of_tokens_that_nobody_tells() -> None:
    pytest.importorskip("distributed")
    counts = spent(
        f"{__name__}:create_silent", ["What is 2 + 2?"] * 30, budget=Budget(tokens=4000), cluster=1
    )
    assert counts.remaining > 10
    assert counts.usage.estimated_calls


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_cluster_refuses_to_limit_dollars_where_the_price_is_unknown() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(TooManyErrorsError, match="its price is unknown"):
        spent(f"{__name__}:create_silent", ["What is 2 + 2?"] * 30, budget=Budget(usd=1), cluster=1)


def test_turns_that_are_asked_again_are_counted_twice() -> None:
    outage = ExecutorError("The network is down.", is_retryable=True)
    questions: list[Any] = [{"query": "What is 2 + 2?", "session_id": "a"}] * 2
    script = breaking(outage, 1)
    with create_code_chain(
        ScriptedModel(script), executor=ScriptedExecutor(lambda code: "4"), memory=ConversationMemory()
    ) as chain:
        counts = spent(chain, questions)
    assert counts.done == 2
    assert counts.usage.model_calls == 5


@pytest.mark.parametrize("told", [(0, 0), (-100, 10), (10**30, 5)])
def test_an_account_that_cannot_be_is_none(told: tuple[int, int]) -> None:
    def reply(messages: list[Any]) -> AIMessage:
        usage: Any = {"input_tokens": told[0], "output_tokens": told[1], "total_tokens": sum(told)}
        return AIMessage("print(2 + 2)" if asks_for_code(messages) else "Four.", usage_metadata=usage)

    with chain_of(reply) as chain:
        counts = spent(chain, ["What is 2 + 2?"])
    assert counts.usage.estimated_calls == 2
    assert 0 < counts.usage.tokens < 10_000


def test_what_was_being_answered_when_a_run_ended_is_said_to_be_unknown() -> None:
    released = threading.Event()

    def reply(messages: list[Any]) -> str:
        if "hangs" in messages[-1].text:
            released.wait(60)
        return "print(2 + 2)" if asks_for_code(messages) else "Four."

    counts = Counts(2)
    with chain_of(reply) as chain:
        answers = map_questions(chain, ["What is 2 + 2?", "What hangs?"], concurrency=2)
        watched: Any = watch_batch(answers, counts)
        next(watched)
        watched.close()
        answers.close()
        released.set()
    assert "1 of 2 done, 1 interrupted" in str(counts)
    assert "at least " in counts.cost


def test_answers_in_words_alone_are_counted() -> None:
    with chain_of(lambda messages: "It is a matter of taste, and nothing to compute.") as chain:
        counts = spent(chain, ["What is nicer?"])
    assert "1 in words without a program" in str(counts)


def test_the_reason_of_an_end_is_that_of_the_last_failure(tmp_path: Path) -> None:
    failures = iter([True, True, False])

    def reply(messages: list[Any]) -> str:
        if asks_for_code(messages) and next(failures, False):
            raise ValueError("It broke.")
        return "print(2 + 2)" if asks_for_code(messages) else "Four."

    with chain_of(reply) as chain, pytest.raises(TooManyErrorsError, match="It broke"):
        spent(chain, ["What is 2 + 2?", "And 3 + 1?", "And 1 + 3?"], max_errors=1)


@pytest.mark.kernel_sandbox
def test_answers_whose_files_are_gone_are_asked_again_if_that_is_asked_for(
    sandbox: SandboxExecutor, tmp_path: Path
) -> None:
    model = ScriptedModel(lambda messages: "open('a.txt', 'w').write('a'); print(1)")
    with create_code_chain(model, executor=sandbox, interpret=False) as chain:
        for again, count in (((), 1), ((), 0), (("files",), 1)):
            with ResultsFile(tmp_path / "a.jsonl", resume=True) as results_file:
                assert len(results_file.without_files) == (again == ("files",)) or not count
                asked = map_questions(chain, ["Which letter?"], results_file=results_file, again=again)
                assert len(list(asked)) == count
            if not again and count == 0:
                shutil.rmtree(tmp_path / "a.jsonl.files")


@pytest.mark.kernel_sandbox
def test_endless_output_takes_a_hundred_kilobytes_of_the_file(
    sandbox: SandboxExecutor, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    model = ScriptedModel(lambda messages: "while True: print('word' * 9)")
    with (
        create_code_chain(model, executor=sandbox, interpret=False) as chain,
        ResultsFile(path) as results_file,
    ):
        (answer,) = map_questions(chain, ["Which words?"], results_file=results_file)
    assert not answer.ok
    assert path.stat().st_size < 120_000
