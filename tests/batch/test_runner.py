"""Many questions: in this process and on real workers, with workers and clients that are killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pytest_httpserver import HTTPServer

from code_chains import Budget, CodeChain, Limits, Repair, SandboxExecutor, create_code_chain
from code_chains.apps.terminal import batch_progress
from code_chains.apps.terminal.cli import cli
from code_chains.batch.records import Answer
from code_chains.batch.results_file import ResultsFile, read_records
from code_chains.batch.runner import map_questions
from code_chains.batch.warm_up import warm_up
from code_chains.errors import ConfigurationError, ExecutorError, IsolationError
from code_chains.state import Execution
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code
from tests.conftest import ROOT, OpenAI, soon

FACTORY = f"{__name__}:create"


def script(messages: list[Any]) -> str:
    """Reply with a program that prints twice the number in the question."""
    prompt = str(messages[-1].text)
    if not asks_for_code(messages):
        return "Done."
    number = next(word for word in prompt.split() if word.strip("?").isdigit()).strip("?")
    return f"print({number} * 2)"


def create() -> CodeChain:
    """Create the chain of workers: a scripted model, a real sandbox."""
    return create_code_chain(
        ScriptedModel(script), executor=SandboxExecutor(limits=Limits(seconds=60), preload=())
    )


def create_deadly() -> CodeChain:
    """Create a chain that kills its worker at question 13."""

    def reply(messages: list[Any]) -> str:
        if "13" in str(messages[-1].text):
            time.sleep(1)  # The answers of its neighbours are fetched by then.
            os.kill(os.getpid(), signal.SIGKILL)
        return script(messages)

    return create_code_chain(ScriptedModel(reply), executor=ScriptedExecutor(lambda code: "x"))


def create_unisolated() -> CodeChain:
    """Create a chain whose executor cannot isolate programs."""

    def refuse(code: str) -> str:
        raise IsolationError("There are no namespaces here.")

    return create_code_chain(ScriptedModel(script), executor=ScriptedExecutor(refuse))


def questions_up_to(count: int) -> list[str]:
    return [f"Double {n} ?" for n in range(count)]


def are_correct(answers: Any) -> bool:
    """Return whether all answers are right; the first that is not fails here, with what it is."""
    for answer in answers:
        expected = str(2 * int(answer.question.query.split()[1]))
        assert answer.result.get("output") == expected, answer
    return True


# -- in this process -----------------------------------------------------------------------------------------------------


@pytest.fixture
def chain(sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    with create_code_chain(ScriptedModel(script), executor=sandbox) as chain:
        yield chain


@pytest.mark.slow
def test_each_question_is_answered_once(chain: CodeChain) -> None:
    answers = list(map_questions(chain, questions_up_to(12)))
    assert Counter(answer.question.query for answer in answers) == Counter(questions_up_to(12))
    assert are_correct(answers)


def test_questions_are_consumed_lazily(chain: CodeChain) -> None:
    consumed: list[int] = []

    def endless() -> Iterator[str]:
        for n in range(10**9):
            consumed.append(n)
            yield f"Double {n} ?"

    answers = map_questions(chain, endless(), concurrency=2)
    assert are_correct([next(answers) for _ in range(4)])
    answers.close()
    assert len(consumed) < 12


def test_a_failing_question_does_not_affect_the_others(sandbox: SandboxExecutor) -> None:
    def reply(messages: list[Any]) -> str:
        if " 1 " in str(messages[-1].text):
            raise RuntimeError("no connection")
        return script(messages)

    with create_code_chain(ScriptedModel(reply), executor=sandbox) as chain:
        answers = {answer.question.query: answer for answer in map_questions(chain, questions_up_to(3))}
    assert answers["Double 1 ?"].error.startswith("RuntimeError: no connection")
    assert are_correct(answer for answer in answers.values() if not answer.error)


def test_questions_in_the_results_file_are_skipped(chain: CodeChain, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    with ResultsFile(path) as results_file:
        first = list(map_questions(chain, questions_up_to(3), results_file=results_file))
    with ResultsFile(path, resume=True) as results_file:
        second = list(map_questions(chain, questions_up_to(5), results_file=results_file))
    assert (len(first), sorted(answer.question.query for answer in second)) == (3, questions_up_to(5)[3:])


def test_what_met_a_limit_is_asked_again_if_that_is_asked_for(tmp_path: Path) -> None:
    path, runs = tmp_path / "answers.jsonl", list[str]()

    def run(code: str) -> Execution:
        runs.append(code)
        return Execution("timeout" if len(runs) == 1 else "ok", stdout="1\n")

    model = ScriptedModel(lambda messages: "print(1)")
    with create_code_chain(model, executor=ScriptedExecutor(run), interpret=False, solve=Repair(1)) as chain:
        for again, count in (((), 2), ((), 2), (("limits",), 3), (("limits",), 3)):
            with ResultsFile(path, resume=path.exists()) as results_file:
                list(
                    map_questions(chain, ["a?", "b?"], results_file=results_file, again=again, concurrency=1)
                )
            assert len(runs) == count
    ends = [record["computed"]["execution"]["status"] for record, _ in read_records(path)]
    assert sorted(ends) == ["ok", "ok"]


def test_an_interrupted_run_saves_its_failures(sandbox: SandboxExecutor, tmp_path: Path) -> None:
    def reply(_: list[Any]) -> str:
        raise RuntimeError("no connection")

    with (
        create_code_chain(ScriptedModel(reply), executor=sandbox) as chain,
        ResultsFile(tmp_path / "a.jsonl") as results_file,
    ):
        answers = map_questions(chain, questions_up_to(9), results_file=results_file, concurrency=1)
        next(answers)
        answers.close()
    assert "no connection" in (tmp_path / "a.jsonl.failed").read_text()


def test_an_answer_in_the_results_file_can_be_restored(chain: CodeChain, tmp_path: Path) -> None:
    with ResultsFile(tmp_path / "answers.jsonl") as results_file:
        (answer,) = map_questions(chain, questions_up_to(1), results_file=results_file)
        (record,) = results_file.records()
        restored = results_file.answer_to(answer.question, record)
    assert (restored.result["execution"], restored.result["verdict"]) == (
        answer.result["execution"],
        answer.result["verdict"],
    )


def test_a_budget_applies_to_all_questions_together(chain: CodeChain, tmp_path: Path) -> None:
    with ResultsFile(tmp_path / "answers.jsonl") as results_file:
        answers = list(
            map_questions(
                chain,
                questions_up_to(50),
                budget=Budget(model_calls=10),
                concurrency=2,
                results_file=results_file,
            )
        )
    assert sum(answer.result["usage"].model_calls for answer in answers if answer.ok) <= 10
    assert len(answers) < 10
    assert len(results_file.done) == sum(answer.ok for answer in answers)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "code_chains", "run", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_command_answers_a_file_and_resumes(openai_server: OpenAI, tmp_path: Path) -> None:
    questions, out = tmp_path / "questions.txt", tmp_path / "answers.jsonl"
    questions.write_text("one?\ntwo?\n")
    arguments = (str(questions), "--out", str(out), "--model", "test", "--base-url", openai_server.base_url)
    first, refused = run(*arguments), CliRunner().invoke(cli, ["run", *arguments])
    questions.write_text("one?\ntwo?\nthree?\n")
    second = CliRunner().invoke(cli, ["run", *arguments, "--resume"])
    assert (first.returncode, refused.exit_code, second.exit_code) == (0, 1, 0), first.stderr + second.stderr
    assert "--resume" in refused.stderr
    assert [record["given"]["query"] for record in records(out)][2:] == ["three?"]
    assert "3 of 3 done" in second.stderr


@pytest.mark.slow
def test_the_command_reports_failures(openai_server: OpenAI, tmp_path: Path) -> None:
    questions, out = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    questions.write_text('{"id": "a", "query": "one?", "session_id": ""}\n"two?"\n')
    arguments = (str(questions), "--out", str(out), "--model", "test", "--base-url", openai_server.base_url)
    process = run(*arguments)
    assert (
        process.returncode,
        f"{questions}, line 1 (one?): " in process.stderr,
        "1 of 2 done, 1 failed" in process.stderr,
    ) == (
        1,
        True,
        True,
    )
    assert json.loads(Path(f"{out}.failed").read_text())["id"] == "a"


@pytest.mark.slow
def test_the_command_reports_progress_without_a_terminal_and_exports_a_table(
    openai_server: OpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(batch_progress, "REPORT_INTERVAL_S", 0.01)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.csv").write_text("amount\n42\n")
    (tmp_path / "q.csv").write_text("query;files\nWhat is in sales.csv?;sales.csv\none?;\n")
    arguments = ["run", "q.csv", "--out", "a.jsonl", "--export", "a.csv", "--concurrency", "1"]
    result = CliRunner().invoke(cli, [*arguments, "--model", "test", "--base-url", openai_server.base_url])
    assert result.exit_code == 0, result.stderr
    assert "1 of 2 done, 1 not started" in result.stderr
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 3


def test_a_question_that_names_a_file_and_has_none_is_refused_before_a_model_is_asked(
    openai_server: OpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.csv").touch()
    (tmp_path / "q.txt").write_text("one?\nWhat is in sales.csv?\n")
    arguments = ["run", "q.txt", "--out", "a.jsonl", "--model", "test", "--base-url", openai_server.base_url]
    result = CliRunner().invoke(cli, arguments)
    assert (result.exit_code, openai_server.requests) == (2, [])
    assert "q.txt, line 2: Programs cannot see sales.csv" in result.stderr


def test_a_budget_too_small_for_any_question_ends_the_run(chain: CodeChain) -> None:
    answers = list(map_questions(chain, questions_up_to(50), budget=Budget(tokens=10), concurrency=2))
    assert {answer.limit for answer in answers} == {"tokens"}
    assert len(answers) < 5


# -- on workers ----------------------------------------------------------------------------------------------------------

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """A client of three worker processes."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=3, threads_per_worker=2, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run_on_scheduler(_allow_two_failures)
        yield client


def _allow_two_failures(dask_scheduler: Any) -> None:
    """Let a question survive that was beside a deadly one twice, as dying workers take their neighbours along."""
    dask_scheduler.allowed_failures = 2


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def pids(client: Any) -> list[int]:
    return sorted(client.run(os.getpid).values())


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_worker_loses_nothing_and_repeats_nothing(workers: Any, tmp_path: Path) -> None:
    before = pids(workers)
    path = tmp_path / "answers.jsonl"
    with ResultsFile(path) as results_file:
        answers: list[Answer] = []
        for answer in map_questions(FACTORY, questions_up_to(60), cluster=workers, results_file=results_file):
            answers.append(answer)
            if len(answers) == 20:
                os.kill(before[0], signal.SIGKILL)
    assert Counter(answer.question.query for answer in answers) == Counter(questions_up_to(60))
    assert are_correct(answers)
    assert len(records(path)) == 60


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_answer_that_dies_with_its_worker_before_it_is_read_is_computed_again(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from code_chains.batch import workers as module

    before = pids(workers)
    killed: list[int] = []
    read = module.ClusterWorkers._answers

    def kill_first(self: Any, future: Any, job: Any, status: str) -> list[Answer] | None:
        if not killed:
            killed.extend(before)
            for pid in before:
                os.kill(pid, signal.SIGKILL)
            soon(lambda: future.status != "finished")
        return read(self, future, job, status)

    monkeypatch.setattr(module.ClusterWorkers, "_answers", kill_first)
    # A question that waits may meet each of the workers just before it is killed.
    answers = list(map_questions(FACTORY, questions_up_to(8), cluster=workers, allowed_failures=9))
    assert Counter(answer.question.query for answer in answers) == Counter(questions_up_to(8))
    assert are_correct(answers)


@pytest.mark.slow
@pytest.mark.kernel_sandbox
@pytest.mark.timeout(300)
def test_a_question_that_kills_its_workers_is_abandoned(workers: Any, tmp_path: Path) -> None:
    spec = f"{__name__}:create_deadly"
    with ResultsFile(tmp_path / "answers.jsonl") as results_file:
        answers = list(
            map_questions(
                spec,
                [f"Double {n} ?" for n in (1, 13, 2, 3)],
                cluster=workers,
                results_file=results_file,
            )
        )
        assert [answer.question.query for answer in answers if answer.is_lost] == ["Double 13 ?"]
        assert len(results_file.done) == 3
        repeated = list(map_questions(spec, ["Double 13 ?"], cluster=workers, results_file=results_file))
    assert repeated == []


@pytest.mark.slow
def test_a_worker_without_isolation_takes_no_question() -> None:
    with pytest.raises(IsolationError, match=r"tcp://127.*no namespaces"):
        list(map_questions(f"{__name__}:create_unisolated", questions_up_to(1), cluster=1))


@pytest.mark.slow
def test_a_chain_that_workers_cannot_build_is_an_error() -> None:
    with pytest.raises(ExecutorError, match="nowhere"):
        list(map_questions("nowhere:make", questions_up_to(1), cluster=1))


@pytest.mark.smoke
@pytest.mark.slow
def test_only_json_is_sent_to_workers(chain: CodeChain, workers: Any) -> None:
    for wrong in (chain, {"model": object()}):
        with pytest.raises(ConfigurationError, match="JSON"):
            list(map_questions(wrong, questions_up_to(1), cluster=workers))


def create_of_environment() -> CodeChain:
    """Create a chain whose programs print a variable of the environment."""
    model = ScriptedModel(lambda messages: f"print({os.environ['CHAIN_NUMBER']})")
    return create_code_chain(
        model, executor=ScriptedExecutor(lambda code: code.strip()[6:-1]), interpret=False
    )


@pytest.mark.slow
def test_processes_that_are_started_early_have_the_environment_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warm_up()
    monkeypatch.setenv("CHAIN_NUMBER", "7")
    [answer] = map_questions(f"{__name__}:create_of_environment", ["Which number?"], cluster=1)
    assert answer.result["output"] == "7"


def test_an_unreachable_cluster_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from code_chains.batch import workers as module

    monkeypatch.setattr(module, "_CONNECT_TIMEOUT_S", 0.5)
    with pytest.raises(ExecutorError, match="cannot be reached"):
        list(map_questions({"model": "local"}, questions_up_to(1), cluster="tcp://127.0.0.1:9"))


def test_what_answers_at_an_address_and_is_no_scheduler_is_an_error(
    httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from code_chains.batch import workers as module

    monkeypatch.setattr(module, "_CONNECT_TIMEOUT_S", 0.5)
    with pytest.raises(ExecutorError, match="is no scheduler of Dask"):
        list(
            map_questions(
                {"model": "local"}, questions_up_to(1), cluster=f"tcp://127.0.0.1:{httpserver.port}"
            )
        )


CLIENT = """
import sys
from code_chains.batch.runner import map_questions
from code_chains.batch.results_file import ResultsFile, read_records
with ResultsFile(sys.argv[2], resume=True) as results_file:
    questions = [f"Double {{n}} ?" for n in range(50)]
    for answer in map_questions({factory!r}, questions, cluster=sys.argv[1], results_file=results_file):
        print(answer.id, flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_run_of_a_killed_client_can_be_resumed(workers: Any, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    command = [sys.executable, "-c", CLIENT.format(factory=FACTORY), workers.scheduler.address, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as first:
        assert first.stdout
        for _ in range(20):
            assert first.stdout.readline()
        first.kill()
    saved = len(records(path))
    process = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert len(process.stdout.split()) == 50 - saved
    assert Counter(record["given"]["query"] for record in records(path)) == Counter(questions_up_to(50))


@pytest.mark.slow
def test_a_worker_that_is_killed_leaves_no_sandbox_behind(workers: Any) -> None:
    list(map_questions(FACTORY, questions_up_to(6), cluster=workers))
    victim = pids(workers)[0]
    descendants = {
        pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if victim in _ancestors(pid)
    }
    os.kill(victim, signal.SIGKILL)
    assert descendants
    assert soon(lambda: not any(Path(f"/proc/{pid}/cwd").exists() for pid in descendants), 20)


def _ancestors(pid: int) -> set[int]:
    ancestors: set[int] = set()
    while pid > 1 and pid not in ancestors:
        ancestors.add(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return ancestors


@pytest.mark.slow
def test_a_cluster_without_workers_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import LocalCluster

    from code_chains.batch import workers as module

    monkeypatch.setattr(module, "_WORKER_TIMEOUT_S", 0.3)
    monkeypatch.setattr(module, "_CHECK_INTERVAL_S", 0.0)
    with (
        LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
        pytest.raises(ExecutorError, match="The cluster is gone, or has no workers"),
    ):
        list(map_questions(FACTORY, questions_up_to(1), cluster=cluster))


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler with two workers, as docs/scale.md starts them."""
    file = tmp_path / "scheduler.json"
    commands = [
        ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)],
        *[
            [
                "worker",
                "--scheduler-file",
                str(file),
                "--nthreads",
                "2",
                "--no-dashboard",
                "--host",
                "127.0.0.1",
            ]
        ]
        * 2,
    ]
    with contextlib.ExitStack() as stack:
        for command in commands:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{command[0]}", *command[1:]],
                stderr=subprocess.DEVNULL,
                cwd=tmp_path,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            assert soon(file.exists, 30)
        yield str(json.loads(file.read_text())["address"])


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_the_command_asks_a_cluster_and_its_files_are_those_of_the_client(
    scheduler: str, openai_server: OpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "sales.csv").write_text("amount\n42\n")
    (tmp_path / "sales.csv").write_text("amount\n1000\n")  # Where the workers stand.
    openai_server.script = lambda messages: "```python\nprint(open('sales.csv').read().split()[1])\n```"
    (folder / "q.csv").write_text("id;query;files;Region\na;What is in sales.csv?;sales.csv;North\n")
    process = run("q.csv", "--out", "a.jsonl", "--cluster", scheduler, "--concurrency", "8", "--export", "a.csv",
                  "--model", "test", "--base-url", openai_server.base_url)  # fmt: skip
    assert process.returncode == 0, process.stderr
    (record,) = records(folder / "a.jsonl")
    assert (record["computed"]["output"], record["given"]["own"]) == ("42", {"Region": "North"})
    assert "North" in (folder / "a.csv").read_text()
