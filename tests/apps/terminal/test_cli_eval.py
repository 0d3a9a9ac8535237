"""The command that evaluates: its table, its files and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from code_chains.apps.terminal.cli import cli
from code_chains.evaluation import Evaluation
from tests.conftest import QUESTION, OpenAI


@pytest.fixture(autouse=True)
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a file of two cases, one of which is answered wrongly."""
    monkeypatch.chdir(tmp_path)
    cases = [
        {"id": "sum", "query": QUESTION, "expected": 15},
        {"id": "product", "query": "What is the product?", "expected_pattern": "^120$"},
    ]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    return tmp_path


def run(server: OpenAI, *arguments: str) -> Result:
    return CliRunner().invoke(
        cli, ["eval", "cases.jsonl", "--model", "test", "--base-url", server.base_url, *arguments]
    )


def test_the_table_goes_to_standard_output_and_a_wrong_answer_is_no_failure(openai_server: OpenAI) -> None:
    result = run(openai_server)
    assert (result.exit_code, result.stdout.splitlines()[0].split()[:3]) == (0, ["right", "1/2", "50.0%"])
    assert "2 of 2 done" in result.stderr


@pytest.mark.parametrize(("share", "code"), [("0.5", 0), ("0.6", 1)])
def test_the_exit_code_tells_whether_the_accuracy_suffices(
    openai_server: OpenAI, share: str, code: int
) -> None:
    assert run(openai_server, "--min-accuracy", share).exit_code == code


def test_report_and_evaluation_are_written(openai_server: OpenAI, workdir: Path) -> None:
    result = run(openai_server, "--report", "r.html", "--json", "e.json")
    assert result.exit_code == 0, result.stderr
    assert [score.id for score in Evaluation.load("e.json").wrong] == ["product"]
    page = (workdir / "r.html").read_text()
    assert page.index("What is the product?") < page.index(QUESTION)


def test_an_evaluation_is_compared_with_one_that_was_saved(openai_server: OpenAI) -> None:
    run(openai_server, "--json", "e.json")
    openai_server.script = lambda messages: "```python\nprint(120)\n```"
    stdout = run(openai_server, "--compare", "e.json").stdout
    assert "both 0, only the first 1, only the second 1" in stdout
    assert "only the second: product" in stdout


def test_answers_in_the_results_file_are_not_asked_again(openai_server: OpenAI) -> None:
    first = run(openai_server, "--results", "a.jsonl")
    asked = len(openai_server.requests)
    second = run(openai_server, "--results", "a.jsonl")
    assert (len(openai_server.requests), asked > 0) == (asked, True)
    assert first.stdout.splitlines()[:2] == second.stdout.splitlines()[:2]


def test_a_case_may_ask_the_model_to_judge(openai_server: OpenAI, workdir: Path) -> None:
    reply = openai_server.script

    def judge(messages: list[dict[str, Any]]) -> str:
        return "YES: It does." if "YES or NO" in str(messages[-1]["content"]) else reply(messages)

    openai_server.script = judge
    (workdir / "cases.jsonl").write_text(json.dumps({"query": QUESTION, "judge": True}))
    result = run(openai_server, "--json", "e.json")
    assert result.exit_code == 0, result.stderr
    assert Evaluation.load("e.json").scores[0].reason == "It does."


def test_an_error_of_the_provider_is_told_and_is_no_wrong_answer(
    openai_server: OpenAI, workdir: Path
) -> None:
    openai_server.faults += ["500"] * 9
    result = run(openai_server, "--retries", "0", "--results", "a.jsonl")
    assert (result.exit_code, "failed" in result.stderr, "errors" in result.stdout) == (1, True, True)
    openai_server.faults.clear()
    assert "1/2" in run(openai_server, "--results", "a.jsonl").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--report", "r.txt"], "must end with .html"),
        (["--json", "nowhere/e.json"], "does not exist"),
        (["--compare", "cases.jsonl"], "is not an evaluation"),
        (["--min-accuracy", "90"], "0<=x<=1"),
    ],
)
def test_wrong_options_are_an_error_before_a_model_is_asked(
    openai_server: OpenAI, arguments: list[str], message: str
) -> None:
    result = run(openai_server, *arguments)
    assert (result.exit_code, openai_server.requests, message in result.stderr) == (2, [], True)


def test_a_broken_case_is_an_error_before_a_model_is_asked(openai_server: OpenAI, workdir: Path) -> None:
    with (workdir / "cases.jsonl").open("a") as file:
        file.write('\n{"query": "b?"}\n')
    result = run(openai_server)
    assert (result.exit_code, openai_server.requests) == (2, [])
    assert "cases.jsonl, line 3 says nothing about what is expected" in result.stderr


def test_an_evaluation_of_other_cases_is_refused_before_a_model_is_asked(
    openai_server: OpenAI, workdir: Path
) -> None:
    Evaluation(()).save(workdir / "e.json")
    result = run(openai_server, "--compare", "e.json")
    assert (result.exit_code, openai_server.requests) == (2, [])


def test_the_cases_are_never_replaced(openai_server: OpenAI, workdir: Path) -> None:
    (workdir / "cases.jsonl").rename("cases.json")
    arguments = ["eval", "cases.json", "--json", "cases.json", "--base-url", openai_server.base_url]
    result = CliRunner().invoke(cli, arguments)
    assert (result.exit_code, "would replace the cases" in result.stderr) == (2, True)
