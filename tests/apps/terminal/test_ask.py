"""One question at the terminal: standard input, the log, and its continuation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from code_chains.apps.terminal import question_log
from code_chains.apps.terminal.cli import cli
from code_chains.apps.terminal.question_log import QuestionLog
from code_chains.apps.terminal.standard_input import name_of_data
from tests.conftest import ROOT, OpenAI

Run = Callable[..., Result]
"""`run(*arguments, stdin=b"")` runs a command with a log of its own."""


@pytest.fixture
def run(openai_server: OpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    environment = {"XDG_DATA_HOME": str(tmp_path / "data"), "CODE_CHAINS_LOG": "1"}
    openai_server.script = program_in_question

    def invoke(*arguments: str, stdin: bytes = b"", **env: str) -> Result:
        command = arguments[0] if arguments else ""
        model = ["-m", "test", "--base-url", openai_server.base_url] if command in ("ask", "chat") else []
        return CliRunner(env={**environment, **env}).invoke(cli, [*arguments, *model], input=stdin)

    return invoke


def program_in_question(messages: list[dict[str, Any]]) -> str:
    """Reply with the program that the question is, and with its output as the answer."""
    _, has_output, output = str(messages[-1]["content"]).partition("Output of the program:")
    if has_output:
        return output.split("```")[1].partition("\n")[2].strip()
    question = str(messages[-1]["content"]).rpartition("\n\n")[2].removeprefix("Task: ")
    return f"```python\n{question.strip()}\n```"


# -- the question ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["ask", "-"], ["ask"]])
def test_standard_input_is_the_question_without_another(run: Run, arguments: list[str]) -> None:
    result = run(*arguments, stdin=b"print(6 * 7)\n")
    assert (result.exit_code, result.stdout) == (0, "42\n")


def test_a_question_of_several_lines_is_one(run: Run, openai_server: OpenAI) -> None:
    assert run("ask", "-", stdin=b"a = 6\nprint(a * 7)\n").stdout == "42\n"


@pytest.mark.parametrize("stdin", [b"", b" \n"])
def test_an_empty_standard_input_is_a_usage_error(run: Run, openai_server: OpenAI, stdin: bytes) -> None:
    result = run("ask", "-", stdin=stdin)
    assert (result.exit_code, openai_server.requests) == (2, [])
    assert "standard input is empty" in result.stderr


def test_a_question_without_quotes_is_a_usage_error_that_shows_them(run: Run) -> None:
    result = run("ask", "What", "is", "6", "times", "7?")
    assert (result.exit_code, 'ask "What is 6 times 7?"' in result.stderr) == (2, True)


def test_binary_standard_input_is_no_question(run: Run) -> None:
    result = run("ask", "-", stdin=b"\xff\xfe\x00")
    assert (result.exit_code, "not UTF-8 text" in result.stderr) == (2, True)


# -- data ------------------------------------------------------------------------------------------------------

DATA = {
    "stdin.csv": b"region,amount\nnorth,10\nsouth,32\n",
    "stdin.tsv": b"a\tb\n1\t2\n",
    "stdin.json": b'{"a": [1,\n2]}',
    "stdin.jsonl": b'{"a": 1}\n{"a": 2}\n',
    "stdin.txt": b"just\nsome words, and more\n",
    "stdin.png": b"\x89PNG\r\n\x1a\n\0\0",
    "stdin.pdf": b"%PDF-1.7 \0",
    "stdin.parquet": b"PAR1\0\0",
    "stdin.xlsx": b"PK\x03\x04 xl/workbook.xml",
    "stdin.zip": b"PK\x03\x04 a.txt",
    "stdin.bin": b"\0\1\2",
}


@pytest.mark.parametrize(("name", "data"), DATA.items(), ids=DATA)
def test_data_is_named_after_what_it_is(name: str, data: bytes) -> None:
    assert name_of_data(data) == name


def test_semicolons_and_quoted_commas_are_a_table() -> None:
    assert name_of_data(b'a;b\n1,5;2\n3,5;"4"\n') == "stdin.csv"
    assert name_of_data(b'a,b\n"x, y",2\n') == "stdin.csv"


@pytest.mark.slow
def test_piped_data_is_a_file_for_the_program(run: Run) -> None:
    result = run("ask", "print(open('stdin.csv').read().count('\\n'))", stdin=DATA["stdin.csv"])
    assert (result.stdout, "as stdin.csv (32 bytes)" in result.stderr) == ("3\n", True)


def test_binary_data_arrives_unchanged(run: Run) -> None:
    assert (
        run("ask", "print(open('stdin.png', 'rb').read()[-2:])", stdin=DATA["stdin.png"]).stdout
        == "b'\\x00\\x00'\n"
    )


def test_data_and_files_come_together(run: Run, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("b")
    question = "import os; print(sorted(os.listdir()))"
    assert run("ask", question, "-f", "b.txt", stdin=b"a").stdout == "['b.txt', 'stdin.txt']\n"


def test_a_row_that_is_left_out_is_named_below_the_answer(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("r,n\nN,1\nTotal,1\n")
    assert (
        'Note: a.csv: 1 line left out: line 3 (a total: "Total")'
        in run("ask", "print(1)", "-f", "a.csv").stderr
    )


def test_a_file_of_the_same_name_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "stdin.txt").write_text("b")
    assert run("ask", "print(1)", "-f", "stdin.txt", stdin=b"a").exit_code == 2


def test_the_input_answers_prompts_with_approve(run: Run) -> None:
    assert run("ask", "print(6 * 7)", "--approve", stdin=b"y\n").stdout == "42\n"


def test_without_input_there_is_no_file(run: Run) -> None:
    assert run("ask", "import os; print(os.listdir())").stdout == "[]\n"


@pytest.mark.host
@pytest.mark.parametrize("redirect", ["</dev/null", "<&-"])
def test_standard_input_that_is_closed_or_empty_is_no_data(
    openai_server: OpenAI, tmp_path: Path, redirect: str
) -> None:
    openai_server.script = program_in_question
    command = f"{sys.executable} -m code_chains ask 'print(6 * 7)' -m x --base-url {openai_server.base_url} {redirect}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert (done.stdout, done.returncode) == (b"42\n", 0), done.stderr


# -- the log ---------------------------------------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.host
@pytest.mark.kernel_sandbox
def test_a_question_continues_the_last_one_with_its_state(run: Run) -> None:
    run("ask", "x = 6; print(x)")
    assert run("ask", "--continue", "print(x * 7)").stdout == "42\n"
    assert run("ask", "-c", "print(x * 8)").stdout == "48\n"


@pytest.mark.host
@pytest.mark.kernel_sandbox
def test_data_is_still_there_when_a_question_is_continued(run: Run) -> None:
    run("ask", "rows = open('stdin.csv').read().split(); print(len(rows))", stdin=DATA["stdin.csv"])
    assert run("ask", "-c", "print(rows[-1])").stdout == "south,32\n"


@pytest.mark.host
def test_a_question_on_its_own_starts_anew(run: Run) -> None:
    run("ask", "x = 6; print(x)")
    assert run("ask", "print('x' in globals())").stdout == "False\n"


@pytest.mark.host
@pytest.mark.kernel_sandbox
def test_a_failed_question_leaves_the_state_of_the_conversation(run: Run) -> None:
    run("ask", "x = 6; print(x)")
    assert run("ask", "-c", "--max-attempts", "1", "x = 9; 1 / 0").exit_code == 1
    assert run("ask", "-c", "print(x)").stdout == "6\n"


def test_without_a_question_before_there_is_nothing_to_continue(run: Run, openai_server: OpenAI) -> None:
    result = run("ask", "--continue", "print(1)")
    assert (result.exit_code, openai_server.requests) == (2, [])
    assert "Ask one first" in result.stderr


@pytest.mark.host
def test_the_log_lists_and_shows_questions(run: Run) -> None:
    for number in range(3):
        run("ask", f"print({number})")
    listed = run("log", "-n", "2").stdout.splitlines()
    assert [(line.split()[0], line.rpartition("  ")[2].strip()) for line in listed] == [
        ("2", "1 turn    print(1)"[-8:]),
        ("1", "print(2)"),
    ]
    assert "## print(1)" in run("log", "show", "2").stdout
    assert json.loads(run("log", "show", "--json").stdout)[0]["answer"] == "2"
    assert run("log", "show", "4").exit_code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists instead of modes")
def test_only_its_user_can_read_the_log(run: Run, tmp_path: Path) -> None:
    run("ask", "print(1)", stdin=b"data")
    folder = tmp_path / "data" / "code_chains"
    kept = [path for path in folder.rglob("*") if path.is_file()]
    assert len(kept) >= 2
    assert {path.stat().st_mode & 0o077 for path in [folder, *kept]} == {0}


def test_the_log_is_deleted_with_its_data(run: Run, tmp_path: Path) -> None:
    run("ask", "print('a secret')", stdin=b"data")
    assert run("log", "clear", "--yes").stdout == "1 questions deleted\n"
    assert run("log").stdout == ""
    assert list((tmp_path / "data" / "code_chains" / "stdin").iterdir()) == []


@pytest.mark.parametrize(("options", "env"), [(["--no-log"], {}), ([], {"CODE_CHAINS_LOG": "0"})])
def test_the_log_can_be_turned_off(run: Run, tmp_path: Path, options: list[str], env: dict[str, str]) -> None:
    assert run("ask", "print(6 * 7)", *options, **env).stdout == "42\n"
    assert not (tmp_path / "data").exists()
    assert run("ask", "-c", "print(1)", *options, **env).exit_code == 2


def test_a_log_that_cannot_be_written_is_no_reason_not_to_answer(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder")
    result = run("ask", "print(6 * 7)")
    assert (result.stdout, "Questions are not logged" in result.stderr) == ("42\n", True)


@pytest.mark.host
def test_questions_that_are_asked_at_once_are_all_logged(
    run: Run, openai_server: OpenAI, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "code_chains", "ask", "-m", "x", "--base-url", openai_server.base_url]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "CODE_CHAINS_LOG": "1",
    }

    def ask(number: int) -> int:
        done = subprocess.run(
            [*command, f"print({number})"], env=environment, stdin=subprocess.DEVNULL, check=False
        )
        return done.returncode

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(ask, range(3))) == [0, 0, 0]
    assert len(run("log").stdout.splitlines()) == 3


# -- saved conversations ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_conversations_are_listed_and_deleted(run: Run) -> None:
    for name in ("first", "second"):
        run("chat", "--session", name, stdin=b"print(1)\n")
    assert [line.split()[0] for line in run("chat", "--list").stdout.splitlines()] == ["first", "second"]
    assert run("chat", "--delete", "first").stdout == "Deleted: first\n"
    assert [line.split()[0] for line in run("chat", "--list").stdout.splitlines()] == ["second"]


def test_a_conversation_that_does_not_exist_is_not_deleted(run: Run) -> None:
    run("chat", "--session", "mine", stdin=b"print(1)\n")
    result = run("chat", "--delete", "nobody")
    assert (result.exit_code, "Saved conversations: mine" in result.stderr) == (2, True)


def test_a_pipe_cannot_confirm_that_a_file_is_replaced(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("mine")
    result = run("chat", stdin=b"print(1)\n/save mine.py\n/save new.py\n/save new.py\n")
    assert ("'mine.py' exists" in result.stderr, (tmp_path / "mine.py").read_text()) == (True, "mine")
    assert result.stderr.count("Saved: new.py") == 2


def test_data_of_questions_at_once_is_kept(tmp_path: Path) -> None:
    with QuestionLog(tmp_path) as log, ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda n: log.keep_data("stdin.txt", bytes([n]) * 1000), range(100)))
    assert all(path.read_bytes()[0] == n for n, path in enumerate(paths))


def test_the_oldest_data_is_deleted_beyond_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_log, "_MAX_DATA_BYTES", 2500)
    with QuestionLog(tmp_path) as log:
        for number in range(5):
            path = log.keep_data("stdin.txt", bytes([number]) * 1000)
            os.utime(path, (number, number))
        last = log.keep_data("stdin.txt", b"last" * 250)
    assert last.exists()
    assert len(list((tmp_path / "stdin").iterdir())) == 2


def test_a_followup_without_its_conversation_is_not_asked(
    run: Run, openai_server: OpenAI, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("no folder")
    result = run("ask", "--continue", "print(1)")
    assert (result.exit_code, openai_server.requests) == (1, [])


@pytest.mark.host
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_shows_at_once_that_something_happens(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    begin = (
        "import sys, runpy; sys.argv[0] = 'code-chains'; runpy.run_module('code_chains', run_name='__main__')"
    )
    command = [sys.executable, "-c", begin, "ask", "6 * 7", "-m", "gguf:none"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        seen = os.read(ours, 100)
        process.kill()
    os.close(ours)
    assert seen.startswith("Starting …".encode())
