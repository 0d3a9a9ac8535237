"""Words in, answer out, exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from code_chains import CodeChain
from code_chains.cli import cli

from .conftest import QUESTION, SUM_ANSWER, SUM_CODE, OpenAI


def ask(server: OpenAI, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["ask", "--model", "test", "--base-url", server.base_url, *arguments])


def test_the_answer_alone_goes_to_standard_output(openai_server: OpenAI) -> None:
    done = ask(openai_server, QUESTION)
    assert (done.exit_code, done.stdout) == (0, f"{SUM_ANSWER}\n")


def test_stages_code_and_output_go_to_standard_error(openai_server: OpenAI) -> None:
    lines = [line.strip() for line in ask(openai_server, QUESTION).stderr.splitlines()]
    stages = ["Writing a program", "Checking it", "Running it in the sandbox", "Judging the outcome"]
    assert [line[:27].strip() for line in lines[:4]] == stages
    assert (SUM_CODE in lines, "Sum: 15" in lines) == (True, True)


def test_json_is_the_whole_result(openai_server: OpenAI) -> None:
    result = json.loads(ask(openai_server, QUESTION, "--json").stdout)
    assert (result["answer"], result["execution"]["status"], result["verdict"]["status"]) == (
        SUM_ANSWER,
        "ok",
        "unverified",
    )
    assert result["execution"]["isolation"]["level"] == "kernel"


def test_what_is_shown_can_be_chosen(openai_server: OpenAI) -> None:
    shown = ask(openai_server, QUESTION, "--show", "verdict,attempts,usage").stderr
    assert all(part in shown for part in ("unverified (by none)", "attempt 1, first: ok", "2 model calls"))
    assert SUM_CODE not in shown


def test_a_file_is_given_to_the_program(openai_server: OpenAI, sales: Path) -> None:
    openai_server.script = lambda messages: "```python\nprint(open('sales.csv').readline())\n```"
    assert "region,amount" in ask(openai_server, "Which columns?", "--file", str(sales)).stderr


@pytest.mark.parametrize(("said", "code"), [("y\n", 0), ("n\n" * 9, 1)])
def test_nothing_runs_before_it_is_approved(openai_server: OpenAI, said: str, code: int) -> None:
    arguments = ["ask", "--model", "test", "--base-url", openai_server.base_url, QUESTION, "--approve"]
    done = CliRunner().invoke(cli, arguments, input=said)
    assert (done.exit_code, "Run it?" in done.stderr, SUM_CODE in done.stderr) == (code, True, True)


def test_samples_and_a_judge_give_a_verdict(openai_server: OpenAI) -> None:
    shown = ask(openai_server, QUESTION, "--samples", "3", "--show", "verdict").stderr
    assert "plausible (by vote): 3 of 3 programs" in shown


def test_examples_can_be_shown_to_the_model(openai_server: OpenAI) -> None:
    assert "Looking for examples" in ask(openai_server, QUESTION, "--snippets").stderr


def test_tests_in_a_file_verify(openai_server: OpenAI, tmp_path: Path) -> None:
    (tmp_path / "tests.py").write_text("assert '15' in output")
    shown = ask(openai_server, QUESTION, "--tests", str(tmp_path / "tests.py"), "--show", "verdict").stderr
    assert "verified (by tests)" in shown


def test_a_budget_stops_it(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: "```python\n1 / 0\n```"
    done = ask(openai_server, QUESTION, "--budget", "model_calls=1", "--json")
    assert (done.exit_code, json.loads(done.stdout)["stop_reason"]) == (1, "model_calls")


@pytest.mark.parametrize("word", ["apples=5", "tokens=many", "tokens"])
def test_a_budget_that_is_none_is_refused(openai_server: OpenAI, word: str) -> None:
    assert ask(openai_server, QUESTION, "--budget", word).exit_code == 2


def test_no_answer_is_exit_code_one(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: "```python\n1 / 0\n```"
    done = ask(openai_server, QUESTION)
    assert (done.exit_code, "division by zero" in done.stdout) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([""], "question is empty"),
        (["x" * 100_001], "100,001 characters"),
        ([QUESTION, "--file", "/nowhere/a.csv"], "does not exist"),
        ([QUESTION, "--show", "everything"], "'everything' is none of"),
        ([QUESTION, "--executor", "docker"], "executor='docker'"),
        ([QUESTION, "--memory", "lots"], "Limits.memory"),
        ([QUESTION, "--model", "nobody:x"], "nobody:x"),
        ([QUESTION, "--model", "openai:gpt-5-mini"], "OPENAI_API_KEY"),
        ([QUESTION, "--max-attempts", "0"], "max_attempts=0"),
        ([], "Missing argument"),
        ([QUESTION, "--no-such-option"], "No such option"),
    ],
)
def test_wrong_use_is_exit_code_two_with_a_reason(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(cli, ["ask", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dead_server_is_one_clear_line() -> None:
    done = CliRunner().invoke(cli, ["ask", QUESTION, "--model", "x", "--base-url", "http://127.0.0.1:9/v1"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "Error: The model: Connection error" in done.stderr


def test_an_interrupt_is_exit_code_130(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: "```python\nimport time; time.sleep(60)\n```"
    command = [
        sys.executable,
        "-m",
        "code_chains",
        "ask",
        QUESTION,
        "--model",
        "x",
        "--base-url",
        openai_server.base_url,
    ]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    seen = ""
    while "Checking it" not in seen:
        seen += running.stderr.readline()
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    assert running.wait(10) == 130
    assert "Interrupted." in running.stderr.read()
    running.stderr.close()


def test_on_a_terminal_it_works_too(openai_server: OpenAI) -> None:
    import pty

    command = [
        sys.executable,
        "-m",
        "code_chains",
        "ask",
        QUESTION,
        "--model",
        "x",
        "--base-url",
        openai_server.base_url,
    ]
    master, slave = pty.openpty()
    running = subprocess.Popen(command, stdout=slave, stderr=slave, stdin=slave)
    os.close(slave)
    seen = b""
    while True:
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(master)
    assert running.wait(10) == 0
    assert SUM_ANSWER in seen.decode()


def test_doctor_proves_the_isolation() -> None:
    done = CliRunner().invoke(cli, ["doctor"])
    assert done.exit_code == 0
    assert "namespaces: kernel; a probe inside found closed: filesystem, network, processes, environment" in done.stdout


def test_models_are_listed_with_their_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE_CHAINS_MODELS", str(tmp_path))
    assert "local:0.5b      491 MB  not fetched yet" in CliRunner().invoke(cli, ["models", "list"]).stdout


@pytest.mark.parametrize("command", ["pull", "remove"])
def test_an_unknown_model_is_named(command: str) -> None:
    done = CliRunner().invoke(cli, ["models", command, "local:9b"])
    assert (done.exit_code, "local:9b" in done.stderr) == (2, True)


def test_remove_says_whether_there_was_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE_CHAINS_MODELS", str(tmp_path))
    assert CliRunner().invoke(cli, ["models", "remove", "local"]).stdout == "was not there\n"


@pytest.mark.parametrize(
    "arguments", [[], ["ask"], ["chat"], ["models"], ["models", "list"], ["models", "pull"], ["doctor"], ["serve"]]
)
def test_every_command_explains_itself(arguments: list[str]) -> None:
    done = CliRunner().invoke(cli, [*arguments, "--help"])
    assert (done.exit_code, done.stdout.startswith("Usage:")) == (0, True)


def test_control_characters_do_not_reach_the_terminal(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: "```python\nprint('\\x1b[2Jevil')\n```"
    done = ask(openai_server, QUESTION)
    assert ("evil" in done.stderr, "\x1b" in done.stderr + done.stdout) == (True, False)


def test_markup_in_a_verdict_is_text(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: "```python\n{}['[/foo]']\n```"
    done = ask(openai_server, QUESTION, "--show", "verdict")
    assert (done.exit_code, "KeyError: '[/foo]'" in done.stderr) == (1, True)


def test_a_long_line_is_shown_whole_in_a_pipe(openai_server: OpenAI) -> None:
    line = f"print('{'x' * 300}END')"
    openai_server.script = lambda messages: f"```python\n{line}\n```"
    assert f"  {line}\n" in ask(openai_server, QUESTION).stderr


def test_a_reader_who_leaves_is_no_error(openai_server: OpenAI) -> None:
    arguments = ["ask", QUESTION, "--model", "x", "--base-url", openai_server.base_url]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "code_chains", *arguments], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert b"Broken" not in done.stderr


# -- serve -------------------------------------------------------------------------------------------------------------


def serve(server: OpenAI, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["serve", "--model", "test", "--base-url", server.base_url, "--no-open", *arguments])


def test_a_page_needs_its_extra(openai_server: OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "code_chains.page.server", raising=False)
    monkeypatch.setitem(sys.modules, "nicegui", None)
    done = serve(openai_server)
    assert (done.exit_code, 'pip install "code-chains[ui]"' in done.stderr) == (2, True)


@pytest.mark.parametrize(("flags", "status"), [(["--approve"], "refused"), ([], "ok")])
def test_a_page_approves_programs_where_that_is_asked_for(
    flags: list[str], status: str, openai_server: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(chain: CodeChain, **_: object) -> None:
        click.echo(chain.invoke({"query": QUESTION})["execution"].status)

    monkeypatch.setattr("code_chains.page.server.serve", ask)
    assert serve(openai_server, "--max-attempts", "1", *flags).stdout.strip() == status


def test_a_port_that_is_taken_is_one_clear_line(openai_server: OpenAI) -> None:
    done = serve(openai_server, "--port", openai_server.base_url.split(":")[2].split("/")[0])
    assert (done.exit_code, done.stderr.count("\n"), "another address" in done.stderr) == (2, 1, True)


def test_a_page_without_room_for_a_question_is_wrong_use(openai_server: OpenAI) -> None:
    assert serve(openai_server, "--concurrency", "0").exit_code == 2
