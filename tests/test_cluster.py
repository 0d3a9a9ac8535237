"""Many questions: in this process, on real workers, with workers, schedulers and clients that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from code_chains import Budget, CodeChain, SandboxExecutor, create_code_chain
from code_chains.answers import Answer
from code_chains.cluster import map_questions
from code_chains.errors import ConfigurationError, ExecutorError, IsolationError
from code_chains.ledger import Ledger
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code

from .conftest import ROOT, OpenAI, soon

MAKE = f"{__name__}:make"


def script(messages: list[Any]) -> str:
    """A program that prints the number in the question, twice."""
    asked = str(messages[-1].text)
    if not asks_for_code(messages):
        return "Done."
    number = next(word for word in asked.split() if word.strip("?").isdigit()).strip("?")
    return f"print({number} * 2)"


def make() -> CodeChain:
    """What workers build: a scripted model, a real sandbox."""
    return create_code_chain(ScriptedModel(script), executor=SandboxExecutor(preload=()))


def deadly() -> CodeChain:
    """A chain whose worker dies over the question 13."""

    def reply(messages: list[Any]) -> str:
        if "13" in str(messages[-1].text):
            os.kill(os.getpid(), signal.SIGKILL)
        return script(messages)

    return create_code_chain(ScriptedModel(reply), executor=ScriptedExecutor(lambda code: "x"))


def helpless() -> CodeChain:
    """A chain whose place cannot isolate anything."""

    def refuse(code: str) -> str:
        raise IsolationError("There are no namespaces here.")

    return create_code_chain(ScriptedModel(script), executor=ScriptedExecutor(refuse))


def asked(count: int) -> list[str]:
    return [f"Double {n} ?" for n in range(count)]


def right(answers: Any) -> bool:
    return all(answer.result["output"] == str(2 * int(answer.question.query.split()[1])) for answer in answers)


# -- in this process -----------------------------------------------------------------------------------------------------


@pytest.fixture
def chain(sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    with create_code_chain(ScriptedModel(script), executor=sandbox) as chain:
        yield chain


def test_each_question_is_answered_once(chain: CodeChain) -> None:
    answers = list(map_questions(chain, asked(12)))
    assert Counter(answer.question.query for answer in answers) == Counter(asked(12))
    assert right(answers)


def test_questions_are_taken_as_they_are_worked_on(chain: CodeChain) -> None:
    taken: list[int] = []

    def endless() -> Iterator[str]:
        for n in range(10**9):
            taken.append(n)
            yield f"Double {n} ?"

    answers = map_questions(chain, endless(), concurrency=2)
    assert right([next(answers) for _ in range(4)])
    answers.close()  # type: ignore[attr-defined]  # It is a generator.
    assert len(taken) < 12


def test_a_question_that_breaks_does_not_end_the_others(sandbox: SandboxExecutor) -> None:
    def reply(messages: list[Any]) -> str:
        if " 1 " in str(messages[-1].text):
            raise RuntimeError("no connection")
        return script(messages)

    with create_code_chain(ScriptedModel(reply), executor=sandbox) as chain:
        answers = {answer.question.query: answer for answer in map_questions(chain, asked(3))}
    assert answers["Double 1 ?"].error.startswith("RuntimeError: no connection")
    assert right(answer for answer in answers.values() if not answer.error)


def test_what_is_in_the_ledger_is_not_asked_again(chain: CodeChain, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    with Ledger(path) as ledger:
        first = list(map_questions(chain, asked(3), ledger=ledger))
    with Ledger(path, resume=True) as ledger:
        second = list(map_questions(chain, asked(5), ledger=ledger))
    assert (len(first), sorted(answer.question.query for answer in second)) == (3, asked(5)[3:])


def test_a_run_that_is_broken_off_keeps_what_failed(sandbox: SandboxExecutor, tmp_path: Path) -> None:
    def reply(_: list[Any]) -> str:
        raise RuntimeError("no connection")

    with create_code_chain(ScriptedModel(reply), executor=sandbox) as chain, Ledger(tmp_path / "a.jsonl") as ledger:
        answers = map_questions(chain, asked(9), ledger=ledger, concurrency=1)
        next(answers)
        answers.close()  # type: ignore[attr-defined]  # It is a generator.
    assert "no connection" in (tmp_path / "a.jsonl.failed").read_text()


def test_an_answer_of_the_ledger_can_be_read_again(chain: CodeChain, tmp_path: Path) -> None:
    with Ledger(tmp_path / "answers.jsonl") as ledger:
        (answer,) = map_questions(chain, asked(1), ledger=ledger)
    record = json.loads((tmp_path / "answers.jsonl").read_text())
    again = Answer.from_dict(answer.question, record)
    assert (again.result["execution"], again.result["verdict"]) == (
        answer.result["execution"],
        answer.result["verdict"],
    )


def test_a_budget_holds_for_all_questions(chain: CodeChain, tmp_path: Path) -> None:
    with Ledger(tmp_path / "answers.jsonl") as ledger:
        answers = list(map_questions(chain, asked(50), budget=Budget(model_calls=10), concurrency=2, ledger=ledger))
    assert sum(answer.result["usage"].model_calls for answer in answers if answer.ok) <= 10
    assert len(answers) < 10
    assert len(ledger.done) == sum(answer.ok for answer in answers)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "code_chains", "run", *words], capture_output=True, text=True, check=False
    )


def test_the_command_answers_a_file_and_goes_on(openai_server: OpenAI, tmp_path: Path) -> None:
    questions, out = tmp_path / "questions.txt", tmp_path / "answers.jsonl"
    questions.write_text("one?\ntwo?\n")
    words = (str(questions), "--out", str(out), "--model", "test", "--base-url", openai_server.base_url)
    first, refused = run(*words), run(*words)
    questions.write_text("one?\ntwo?\nthree?\n")
    second = run(*words, "--resume")
    assert (first.returncode, refused.returncode, second.returncode) == (0, 1, 0), first.stderr + second.stderr
    assert "--resume" in refused.stderr
    assert [json.loads(line)["query"] for line in out.read_text().splitlines()][2:] == ["three?"]
    assert "3 of 3 done" in second.stderr


def test_the_command_says_what_failed_and_asks_it_again(openai_server: OpenAI, tmp_path: Path) -> None:
    questions, out = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    questions.write_text('{"id": "a", "query": "one?", "files": {"x.csv": "nowhere.csv"}}\n"two?"\n')
    words = (str(questions), "--out", str(out), "--model", "test", "--base-url", openai_server.base_url)
    done = run(*words)
    assert (done.returncode, "a: " in done.stderr, "1 of 2 done, 1 failed" in done.stderr) == (1, True, True)
    assert json.loads(Path(f"{out}.failed").read_text())["id"] == "a"


def test_a_budget_that_no_question_fits_in_ends_the_run(chain: CodeChain) -> None:
    answers = list(map_questions(chain, asked(50), budget=Budget(tokens=10), concurrency=2))
    assert {answer.limit for answer in answers} == {"tokens"}
    assert len(answers) < 5


# -- on workers ----------------------------------------------------------------------------------------------------------

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """A client of three real processes."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=3, threads_per_worker=2, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run_on_scheduler(_patient)
        yield client


def _patient(dask_scheduler: Any) -> None:
    dask_scheduler.allowed_failures = 1


def pids(client: Any) -> list[int]:
    return sorted(client.run(os.getpid).values())


@pytest.mark.timeout(300)
def test_a_killed_worker_loses_nothing_and_repeats_nothing(workers: Any, tmp_path: Path) -> None:
    before = pids(workers)
    path = tmp_path / "answers.jsonl"
    with Ledger(path) as ledger:
        answers: list[Answer] = []
        for answer in map_questions(MAKE, asked(500), cluster=workers, ledger=ledger):
            answers.append(answer)
            if len(answers) == 150:
                os.kill(before[0], signal.SIGKILL)
    assert Counter(answer.question.query for answer in answers) == Counter(asked(500))
    assert right(answers)
    assert len(path.read_text().splitlines()) == 500


@pytest.mark.timeout(300)
def test_a_question_that_kills_its_workers_is_set_aside(workers: Any, tmp_path: Path) -> None:
    with Ledger(tmp_path / "answers.jsonl") as ledger:
        answers = list(
            map_questions(
                f"{__name__}:deadly", [f"Double {n} ?" for n in (1, 13, 2, 3)], cluster=workers, ledger=ledger
            )
        )
        assert [answer.question.query for answer in answers if answer.is_lost] == ["Double 13 ?"]
        assert len(ledger.done) == 3
        again = list(map_questions(f"{__name__}:deadly", ["Double 13 ?"], cluster=workers, ledger=ledger))
    assert again == []


def test_a_worker_that_cannot_isolate_takes_no_question(workers: Any) -> None:
    with pytest.raises(IsolationError, match=r"tcp://127.*no namespaces"):
        list(map_questions(f"{__name__}:helpless", asked(1), cluster=workers))


def test_a_chain_that_cannot_be_built_there_is_a_clear_error(workers: Any) -> None:
    with pytest.raises(ExecutorError, match="nowhere"):
        list(map_questions("nowhere:make", asked(1), cluster=workers))


def test_what_is_no_json_does_not_travel(chain: CodeChain, workers: Any) -> None:
    for wrong in (chain, {"model": object()}):
        with pytest.raises(ConfigurationError, match="JSON"):
            list(map_questions(wrong, asked(1), cluster=workers))


def test_a_cluster_that_is_not_there_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from code_chains import workers as module

    monkeypatch.setattr(module, "_CONNECT", 0.5)
    with pytest.raises(ExecutorError, match="cannot be reached"):
        list(map_questions({"model": "local"}, asked(1), cluster="tcp://127.0.0.1:9"))


CLIENT = """
import sys
from code_chains.cluster import map_questions
from code_chains.ledger import Ledger
with Ledger(sys.argv[2], resume=True) as ledger:
    for answer in map_questions({make!r}, [f"Double {{n}} ?" for n in range(100)], cluster=sys.argv[1], ledger=ledger):
        print(answer.id, flush=True)
"""


@pytest.mark.timeout(300)
def test_a_killed_client_goes_on_where_it_was(workers: Any, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    command = [sys.executable, "-c", CLIENT.format(make=MAKE), workers.scheduler.address, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as first:
        assert first.stdout
        for _ in range(20):
            assert first.stdout.readline()
        first.kill()
    kept = len(path.read_text().splitlines())
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(done.stdout.split()) == 100 - kept
    assert Counter(record["query"] for record in records) == Counter(asked(100))


def test_a_worker_that_is_killed_leaves_no_sandbox_behind(workers: Any) -> None:
    list(map_questions(MAKE, asked(6), cluster=workers))
    victim = pids(workers)[0]
    below = {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if victim in _ancestors(pid)}
    os.kill(victim, signal.SIGKILL)
    assert below
    assert soon(lambda: not any(Path(f"/proc/{pid}/cwd").exists() for pid in below), 20)


def _ancestors(pid: int) -> set[int]:
    found: set[int] = set()
    while pid > 1 and pid not in found:
        found.add(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return found
