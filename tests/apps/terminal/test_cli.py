"""The command line: output, messages and exit codes."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from code_chains import CodeChain
from code_chains.apps.terminal import doctor as doctor_module
from code_chains.apps.terminal import progress
from code_chains.apps.terminal.cli import cli
from code_chains.apps.terminal.doctor import _check_call
from code_chains.callbacks.redaction import describe_error
from tests.conftest import HOSTILE, QUESTION, ROOT, SUM_ANSWER, SUM_CODE, OpenAI


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def ask(server: OpenAI, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["ask", "--model", "test", "--base-url", server.base_url, *arguments])


def test_the_answer_alone_goes_to_standard_output(openai_server: OpenAI) -> None:
    result = ask(openai_server, QUESTION)
    assert (result.exit_code, result.stdout) == (0, f"{SUM_ANSWER}\n")


def test_stages_code_and_output_go_to_standard_error(openai_server: OpenAI) -> None:
    lines = [line.strip() for line in ask(openai_server, QUESTION).stderr.splitlines()]
    stages = ["Writing a program", "Checking the program", "Running the program", "Evaluating the outcome"]
    story = [stages[0], SUM_CODE, stages[1], "Sum: 15", stages[2], stages[3]]
    assert [re.sub(r" +\d\.\d s.*", "", line) for line in lines[:6]] == story


@pytest.mark.kernel_sandbox
def test_json_is_the_whole_result(openai_server: OpenAI) -> None:
    result = json.loads(ask(openai_server, QUESTION, "--json").stdout)
    assert (result["answer"], result["execution"]["status"], result["verdict"]["status"]) == (
        SUM_ANSWER,
        "ok",
        "unverified",
    )
    assert result["execution"]["isolation"]["level"] == "kernel"


def test_show_selects_the_keys(openai_server: OpenAI) -> None:
    stderr = ask(openai_server, QUESTION, "--show", "verdict,attempts,usage").stderr
    assert all(
        part in stderr for part in ("unverified: The program ran", "attempt 1, initial: ok", "2 model calls")
    )
    assert SUM_CODE not in stderr


def test_a_file_is_passed_to_the_program(openai_server: OpenAI, sales: Path) -> None:
    openai_server.script = lambda messages: "```python\nprint(open('sales.csv').readline())\n```"
    assert "region,amount" in ask(openai_server, "Which columns?", "--file", str(sales)).stderr


@pytest.mark.slow
@pytest.mark.kernel_sandbox
def test_an_address_that_is_named_and_no_other_is_reached(openai_server: OpenAI) -> None:
    address = openai_server.base_url.split("/")[2]
    code = "import socket\nfor port in (PORT, 9):\n  print(socket.socket().connect_ex(('127.0.0.1', port)))"
    openai_server.script = lambda messages: f"```python\n{code.replace('PORT', address.split(':')[1])}\n```"
    result = json.loads(
        ask(openai_server, QUESTION, "--json", "--network", f"127.0.0.1:{address.split(':')[1]}").stdout
    )
    assert result["execution"]["stdout"].split() == ["0", "111"]


DRAWS = "```python\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nopen('out.csv', 'w').write('a')\n```"


@pytest.mark.slow
@pytest.mark.kernel_sandbox
def test_figures_and_files_are_saved_beside_and_it_is_said_where(
    openai_server: OpenAI, workdir: Path
) -> None:
    openai_server.script = lambda messages: DRAWS
    stderr = ask(openai_server, "Draw it").stderr
    assert stderr.splitlines()[-1] == "Saved in answer-files: out.csv, figure-1.png"
    assert (workdir / "answer-files" / "figure-1.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.kernel_sandbox
def test_figures_are_saved_in_the_folder_that_is_named(openai_server: OpenAI, workdir: Path) -> None:
    openai_server.script = lambda messages: DRAWS
    ask(openai_server, "Draw it", "--out", "a b/c", "--json")
    assert sorted(path.name for path in (workdir / "a b" / "c").iterdir()) == ["figure-1.png", "out.csv"]


def test_a_folder_that_cannot_be_made_is_an_error_before_a_model_is_asked(
    openai_server: OpenAI, workdir: Path
) -> None:
    (workdir / "file").touch()
    result = ask(openai_server, "Draw it", "--out", "file/plots")
    assert (result.exit_code, openai_server.requests) == (2, [])


def test_a_file_that_is_too_large_is_missed_aloud(openai_server: OpenAI, workdir: Path) -> None:
    openai_server.script = lambda messages: (
        "```python\nopen('a', 'wb').write(bytes(17 << 20))\nprint('written')\n```"
    )
    result = ask(openai_server, "Write it")
    assert "larger than the limits" in result.stderr


def test_a_table_is_shown_and_no_file(openai_server: OpenAI, workdir: Path) -> None:
    openai_server.script = lambda messages: "```python\nimport pandas\npandas.DataFrame({'a': [1]})\n```"
    result = ask(openai_server, "Show it")
    assert ("result.html" in result.output, "Saved" in result.stderr, list(workdir.iterdir())) == (
        False,
        False,
        [],
    )


def test_a_question_in_the_place_of_a_command_is_told_how_to_be_asked() -> None:
    result = CliRunner().invoke(cli, ["what is 2+2"])
    assert (result.exit_code, "code-chains ask 'what is 2+2'" in result.stderr) == (2, True)


@pytest.mark.parametrize("question", ["-5 + 3 is what?", "- what is this?", "-(2 + 3) * 4 is what?"])
def test_a_question_may_begin_with_a_minus(openai_server: OpenAI, question: str) -> None:
    assert ask(openai_server, question, "--show", "verdict").exit_code == 0
    assert question in str(openai_server.requests[0])


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_is_an_option(option: str) -> None:
    assert CliRunner().invoke(cli, [option], prog_name="code-chains").output.startswith("code-chains 0.")


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    ("question", "note"),
    [("What is the total in foo.csv?", "names foo.csv"), ("Is 3.11 newer than 3.9, e.g. today?", "")],
)
def test_data_that_does_not_exist_is_named(
    openai_server: OpenAI, workdir: Path, question: str, note: str
) -> None:
    stderr = ask(openai_server, question).stderr
    assert note in stderr
    assert bool(note) == ("no file of that name" in stderr)


@pytest.mark.kernel_sandbox
def test_a_figure_is_kept_where_the_folder_cannot_be_written(
    openai_server: OpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "answer-files").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    openai_server.script = lambda messages: "```python\nopen('a.csv', 'w').write('1')\nprint(15)\n```"
    result = ask(openai_server, QUESTION)
    assert result.exit_code == 0
    assert (tmp_path / "data/code_chains/answer-files/a.csv").read_text() == "1"


def test_the_verdict_is_shown_after_the_answer(openai_server: OpenAI) -> None:
    lines = ask(openai_server, QUESTION).output.splitlines()
    checks = "Examples or tests would check it: --tests FILE, --verify"
    assert lines[-3:] == [SUM_ANSWER, "unverified: The program ran; nothing checked its output.", checks]


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    ["What is the total in sales.csv?", "Plot ./sales.csv", "sales.csv: how many rows", "(sales.csv)"],
)
def test_a_file_that_is_named_and_not_passed_is_an_error_before_a_model_is_asked(
    openai_server: OpenAI, sales: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    monkeypatch.chdir(sales.parent)
    result = ask(openai_server, question)
    assert (result.exit_code, openai_server.requests) == (2, [])
    assert "Pass it with -f" in result.stderr
    assert ask(openai_server, question, "-f", str(sales)).exit_code == 0


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    "question",
    [
        "What is 1.5 times 2?",
        "Write results.txt",
        "Is 3.11 newer than e.g. 3.9?",
        "计算半径为3.14的圆的面积" * 30,
    ],
)
def test_a_question_that_names_no_file_of_the_folder_is_asked(
    openai_server: OpenAI, sales: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    monkeypatch.chdir(sales.parent)
    assert ask(openai_server, question).exit_code == 0


@pytest.mark.parametrize(("reply", "code"), [("y\n", 0), ("n\n" * 9, 1)])
def test_nothing_runs_before_it_is_approved(openai_server: OpenAI, reply: str, code: int) -> None:
    arguments = ["ask", "--model", "test", "--base-url", openai_server.base_url, QUESTION, "--approve"]
    result = CliRunner().invoke(cli, arguments, input=reply)
    assert (result.exit_code, "Run it?" in result.stderr, SUM_CODE in result.stderr) == (code, True, True)


def test_what_the_model_said_instead_of_a_program_is_shown_and_no_run_is(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: "I'm sorry, I cannot.\n" * 20
    result = ask(openai_server, "¿Cuánto es 6 por 7?", "--max-attempts", "1")
    assert "ningún programa. \"I'm sorry, I cannot. I'm sorry" in result.stdout
    assert (len(result.stdout) < 500, "Running the program" in result.stderr) == (True, False)


def test_samples_give_a_verdict(openai_server: OpenAI) -> None:
    stderr = ask(openai_server, QUESTION, "--samples", "3", "--show", "verdict").stderr
    assert "plausible (by vote): 3 of 3 programs" in stderr


@pytest.mark.host
def test_the_model_can_be_given_examples(openai_server: OpenAI) -> None:
    assert "Searching for examples" in ask(openai_server, QUESTION, "--snippets").stderr


@pytest.mark.host
def test_the_model_is_shown_the_functions_of_a_package(openai_server: OpenAI) -> None:
    prompts: list[str] = []
    script = openai_server.script

    def keep(messages: list[Any]) -> str:
        prompts.append(str(messages))
        return script(messages)

    openai_server.script = keep
    ask(openai_server, "What is the harmonic_mean of 40 and 60?", "--package", "statistics")
    assert "harmonic_mean(data, weights=None)" in prompts[0]


@pytest.mark.parametrize(
    ("options", "reason"),
    {
        "none of this name": (["--package", "no_such_package"], "no_such_package"),
        "and a folder": (["--package", "statistics", "--snippets", "."], "SnippetStore.from_package"),
    }.values(),
)
def test_a_package_that_cannot_be_shown_is_refused(
    openai_server: OpenAI, options: list[str], reason: str
) -> None:
    done = ask(openai_server, QUESTION, *options)
    assert (done.exit_code, reason in done.stderr) == (2, True)


def test_tests_in_a_file_verify_the_outcome(openai_server: OpenAI, tmp_path: Path) -> None:
    (tmp_path / "tests.py").write_text("assert '15' in output")
    stderr = ask(openai_server, QUESTION, "--tests", str(tmp_path / "tests.py"), "--show", "verdict").stderr
    assert "verified (by tests)" in stderr


def test_a_budget_stops_the_command(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: "```python\n1 / 0\n```"
    result = ask(openai_server, QUESTION, "--budget", "model_calls=1", "--json")
    assert (result.exit_code, json.loads(result.stdout)["stop_reason"]) == (1, "model_calls")


@pytest.mark.parametrize("word", ["apples=5", "tokens=many", "tokens"])
def test_an_invalid_budget_is_refused(openai_server: OpenAI, word: str) -> None:
    assert ask(openai_server, QUESTION, "--budget", word).exit_code == 2


def test_no_answer_is_exit_code_one(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: "```python\n1 / 0\n```"
    result = ask(openai_server, QUESTION)
    assert (result.exit_code, "division by zero" in result.stdout) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([""], "question is empty"),
        (["x" * 100_001], "100,001 characters"),
        ([QUESTION, "--file", "/nowhere/a.csv"], "does not exist"),
        ([QUESTION, "--show", "everything"], "unknown value 'everything'"),
        ([QUESTION, "--executor", "lxc"], "--executor lxc"),
        ([QUESTION, "--network", "api.example.org"], "--network"),
        ([QUESTION, "--network", "api.example.org:443", "--executor", "wasm"], "only the executor sandbox"),
        ([QUESTION, "--memory", "lots"], "--memory lots"),
        ([QUESTION, "--model", "nobody:x"], "nobody:x"),
        ([QUESTION, "--model", "openai:gpt-5-mini"], "OPENAI_API_KEY"),
        ([QUESTION, "--max-attempts", "0"], "'--max-attempts': 0 is not in the range"),
        ([], "Missing argument"),
        ([QUESTION, "--no-such-option"], "No such option"),
    ],
)
def test_a_usage_error_is_exit_code_two_with_a_reason(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["ask", *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_dead_server_is_reported_in_one_line() -> None:
    result = CliRunner().invoke(cli, ["ask", QUESTION, "--model", "x", "--base-url", "http://127.0.0.1:9/v1"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "127.0.0.1:9/v1 cannot be reached" in result.stderr


@pytest.mark.host
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to send to one process")
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
    # Shells start jobs in the background with SIGINT ignored, and processes inherit that.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    assert running.stderr is not None
    seen = ""
    while "Checking the program" not in seen:
        seen += running.stderr.readline()
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    assert "Interrupted." in running.stderr.read()
    running.stderr.close()


@pytest.mark.host
def test_the_command_works_at_a_terminal(openai_server: OpenAI) -> None:
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


@pytest.mark.kernel_sandbox
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["doctor", "--base-url", "http://127.0.0.1:9/v1"], "with --model"),
        (["ask", "-m", "x", "--snippets", "What is 1 + 1?"], "put it before --snippets"),
        (["search", "sums", "-k", "0"], "x>=1"),
    ],
)
def test_a_usage_error_says_what_to_do(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CODE_CHAINS_MODEL", raising=False)
    result = CliRunner().invoke(cli, arguments, input="1")
    assert (result.exit_code, words in result.stderr) == (2, True)


@pytest.mark.slow
def test_doctor_proves_the_isolation() -> None:
    result = CliRunner().invoke(cli, ["doctor"])
    assert result.exit_code == 0
    assert (
        "namespaces: kernel; a probe inside confirmed as closed: filesystem, network, processes, environment"
        in result.stdout
    )


def test_models_are_listed_with_their_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE_CHAINS_MODELS", str(tmp_path))
    assert "local:0.5b      491 MB  not downloaded" in CliRunner().invoke(cli, ["models", "list"]).stdout


@pytest.mark.parametrize("command", ["pull", "remove"])
def test_an_unknown_model_is_named(command: str) -> None:
    result = CliRunner().invoke(cli, ["models", command, "local:9b"])
    assert (result.exit_code, "local:9b" in result.stderr) == (2, True)


def test_remove_reports_whether_the_model_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODE_CHAINS_MODELS", str(tmp_path))
    assert CliRunner().invoke(cli, ["models", "remove", "local"]).stdout == "not installed\n"


@pytest.mark.parametrize(
    "arguments",
    [[], ["ask"], ["chat"], ["models"], ["models", "list"], ["models", "pull"], ["doctor"], ["serve"]],
)
def test_every_command_has_a_help_text(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, [*arguments, "--help"])
    assert (result.exit_code, result.stdout.startswith("Usage:")) == (0, True)


def test_control_characters_do_not_reach_the_terminal(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: "```python\nprint('\\x1b[2Jevil')\n```"
    result = ask(openai_server, QUESTION)
    assert ("evil" in result.stderr, "\x1b" in result.stderr + result.stdout) == (True, False)


def test_an_error_of_a_provider_cannot_control_the_terminal_or_reveal_a_key(openai_server: OpenAI) -> None:
    openai_server.faults = [HOSTILE]
    result = ask(openai_server, QUESTION)
    assert (result.exit_code, "owned" in result.output) == (1, True)
    assert [
        part for part in ("\x1b", "\x07", "\x9b", "\u202e", "1234567890abcdef") if part in result.output
    ] == []


@pytest.mark.parametrize("command", ["pull", "remove"])
def test_an_unexpected_error_cannot_control_the_terminal_or_reveal_a_key(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr("code_chains.apps.terminal.cli_resources.find_weights", fail)
    result = CliRunner().invoke(cli, ["models", command, "local"])
    assert (result.exit_code, "owned" in result.output, "Traceback" in result.output) == (1, True, True)
    assert [part for part in ("\x1b", "\x9b", "\u202e", "1234567890abcdef") if part in result.output] == []


def test_a_warning_cannot_control_the_terminal_or_reveal_a_key() -> None:
    warn = f"lambda name: logging.getLogger('x').warning('It said: %s', {HOSTILE!r})"
    code = (
        "import logging; from code_chains.apps.terminal import cli, cli_resources\n"
        f"cli_resources.find_weights = {warn}\ncli.cli(['models', 'pull', 'local'])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "It said:" in result.stderr
    assert [part for part in ("\x1b", "\x9b", "\u202e", "1234567890abcdef") if part in result.stderr] == []


def test_json_contains_no_control_characters(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: "```python\nprint('\\x9b2J \\u202e \\U000e0041 año')\n```"
    result = ask(openai_server, QUESTION, "--json")
    assert [char for char in result.stdout if char != "\n" and not char.isprintable()] == []
    assert json.loads(result.stdout)["output"] == "\x9b2J \u202e \U000e0041 año"
    assert "año" in result.stdout


def test_markup_in_a_verdict_is_text(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: "```python\n{}['[/foo]']\n```"
    result = ask(openai_server, QUESTION, "--show", "verdict")
    assert (result.exit_code, "KeyError: '[/foo]'" in result.stderr) == (1, True)


def test_a_long_line_is_not_wrapped_in_a_pipe(openai_server: OpenAI) -> None:
    line = f"print('{'x' * 300}END')"
    openai_server.script = lambda messages: f"```python\n{line}\n```"
    assert f"  {line}\n" in ask(openai_server, QUESTION).stderr


@pytest.mark.host
def test_a_closed_pipe_is_not_an_error(openai_server: OpenAI) -> None:
    arguments = ["ask", QUESTION, "--model", "x", "--base-url", openai_server.base_url]
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        [sys.executable, "-m", "code_chains", *arguments], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert b"Broken" not in result.stderr


# -- serve -------------------------------------------------------------------------------------------------------------


def serve(server: OpenAI, *arguments: str) -> Result:
    return CliRunner().invoke(
        cli,
        ["serve", "--model", "test", "--base-url", server.base_url, "--no-open", "--no-store", *arguments],
    )


def test_a_page_needs_its_extra(openai_server: OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "code_chains.apps.page.server", raising=False)
    monkeypatch.setitem(sys.modules, "nicegui", None)
    result = serve(openai_server)
    assert (result.exit_code, 'pip install -e ".[ui]"' in result.stderr) == (2, True)


@pytest.mark.parametrize(("flags", "status"), [(["--approve"], "refused"), ([], "ok")])
def test_the_page_requests_approval_only_if_enabled(
    flags: list[str], status: str, openai_server: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(chains: Mapping[str, CodeChain], **_: object) -> None:
        click.echo(chains["test"].invoke({"query": QUESTION})["execution"].status)

    monkeypatch.setattr("code_chains.apps.page.server.serve", ask)
    assert serve(openai_server, "--max-attempts", "1", *flags).stdout.strip() == status


def test_the_models_of_a_page_share_executor_and_budget(
    openai_server: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def show(chains: Mapping[str, CodeChain], **_: object) -> None:
        first, second = chains.values()
        click.echo(f"{list(chains)} {first.executor is second.executor} {first.budget is second.budget}")

    monkeypatch.setattr("code_chains.apps.page.server.serve", show)
    shown = serve(openai_server, "-m", "other", "-m", "test", "--budget", "tokens=900").stdout.strip()
    assert shown == "['test', 'other'] True True"


def test_a_port_in_use_is_reported_in_one_line(openai_server: OpenAI) -> None:
    result = serve(openai_server, "--port", openai_server.base_url.split(":")[2].split("/")[0])
    assert (result.exit_code, result.stderr.count("\n"), "in use. Pass another port" in result.stderr) == (
        2,
        1,
        True,
    )


def test_a_concurrency_of_zero_is_a_usage_error(openai_server: OpenAI) -> None:
    assert serve(openai_server, "--concurrency", "0").exit_code == 2


def test_an_index_is_stored_in_the_users_cache_and_searched_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code = tmp_path / "code"
    code.mkdir()
    (code / "a.py").write_text('"""Add up numbers."""\nprint(sum([1, 2]))\n')
    first, second = (CliRunner().invoke(cli, ["index", str(code)]).output for _ in range(2))
    assert ("(1 added" in first, "1 unchanged" in second) == (True, True)
    assert "sum([1, 2])" in CliRunner().invoke(cli, ["search", "add", "--in", str(code)]).output
    assert [path.name for path in code.iterdir()] == ["a.py"]


# -- errors of models ----------------------------------------------------------------------------------------

FAULTS = {
    401: "refuses the API key (401: ",
    403: "refuses access (403: ",
    404: "has no such model or path (404: ",
    429: "accepts no more requests for now (429: ",
    500: "failed (500: ",
    400: "refuses the request (400: ",
}


@pytest.mark.parametrize(("status", "message"), FAULTS.items(), ids=map(str, FAULTS))
def test_doctor_calls_the_model_and_explains_what_is_wrong(
    openai_server: OpenAI, status: int, message: str
) -> None:
    openai_server.faults = [str(status)]
    checked = _check_call("test", openai_server.base_url)
    assert checked[0] is False
    assert f"{openai_server.base_url} {message}fault {status})" in checked[1]


def test_doctor_shows_what_the_model_replied(openai_server: OpenAI) -> None:
    openai_server.script = lambda messages: "ready"
    ok, message = _check_call("test", openai_server.base_url)
    assert (ok, message.partition(" in ")[0]) == (True, "test: replied 'ready'")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://user:secret@127.0.0.1:9/v1?key=secret"])
def test_a_server_that_cannot_be_reached_is_named_without_secrets(url: str) -> None:
    result = CliRunner().invoke(cli, ["ask", "--model", "test", "--base-url", url, QUESTION])
    assert result.exit_code == 1
    assert "server http://127.0.0.1:9/v1 cannot be reached (" in result.stderr
    assert ("secret" in result.stderr, ".." in result.stderr) == (False, False)


@pytest.mark.slow
def test_a_long_wait_is_reported_without_a_terminal(
    openai_server: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "WAITING_INTERVAL_S", 0.3)
    openai_server.faults = ["hang"]
    assert "Writing a program … " in ask(openai_server, QUESTION).stderr


def test_a_server_that_is_too_slow_is_named(openai_server: OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_module, "_TIMEOUT_S", 0.2)
    openai_server.faults = ["hang"]
    assert "did not answer in time" in _check_call("test", openai_server.base_url)[1]


def test_a_page_instead_of_an_api_is_explained(openai_server: OpenAI) -> None:
    assert "usually ends with /v1" in describe_error(ValueError("Unexpected response type from … <html>"))


@pytest.mark.parametrize("option", ["-f", "--file"])
def test_a_shell_completes_the_files_of_an_option(option: str) -> None:
    words = {"COMP_WORDS": f"code-chains ask {option} ", "COMP_CWORD": "3"}
    environment = {**os.environ, **words, "_CODE_CHAINS_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-m", "code_chains"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("file,")


def test_a_fallback_that_does_not_exist_is_named(openai_server: OpenAI) -> None:
    result = ask(openai_server, QUESTION, "--fallback-model", "nobody")
    assert (result.exit_code, "--fallback-model nobody" in result.stderr) == (2, True)


@pytest.mark.parametrize("memory", ["5", "1M"])
def test_too_little_memory_is_refused(openai_server: OpenAI, memory: str) -> None:
    result = ask(openai_server, QUESTION, "--memory", memory)
    assert (result.exit_code, "a number alone is in bytes" in result.stderr) == (2, True)


def test_a_server_needs_the_name_of_a_model(openai_server: OpenAI) -> None:
    result = CliRunner().invoke(cli, ["ask", "--base-url", openai_server.base_url, QUESTION])
    assert (result.exit_code, openai_server.requests, "--model" in result.stderr) == (2, [], True)


# -- help ----------------------------------------------------------------------------------------------------


def test_no_help_is_cut() -> None:
    for command in ([], ["models"], ["cache"], ["log"]):
        listed = CliRunner().invoke(cli, [*command, "--help"], terminal_width=80).stdout
        assert "..." not in listed.partition("Commands:")[2]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_commands(shell: str) -> None:
    script = CliRunner().invoke(cli, ["completion", shell]).stdout
    assert "_CODE_CHAINS_COMPLETE" in script
    environment = {f"COMP_{name}": value for name, value in (("WORDS", "code-chains as"), ("CWORD", "1"))}
    environment |= {"_CODE_CHAINS_COMPLETE": f"{shell}_complete", "PYTHONPATH": str(ROOT)}
    if shell == "fish":
        environment["COMP_CWORD"] = "as"
    done = subprocess.run(
        [sys.executable, "-m", "code_chains"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ask" in done.stdout, done.stderr


def test_an_empty_search_is_refused() -> None:
    assert CliRunner().invoke(cli, ["search", " "]).exit_code == 2
