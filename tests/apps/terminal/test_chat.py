"""Conversations at the terminal and through a pipe, as a process with a real model server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from click.testing import CliRunner

from code_chains.apps.terminal.cli import cli
from tests.conftest import HOSTILE, ROOT, OpenAI, soon

pytestmark = pytest.mark.host  # Each starts a process.
PROGRAMS = {
    "Take 21": "x = 21\nprint('x is', x)",
    "Now double it": "x = x * 2\nprint('x is', x)",
    "What is it?": "print('x is', x)",
    "Run forever": "x = 0\nwhile True: pass",
    "Fail": "1 / 0",
    "Plot it": "import matplotlib.pyplot as plt\nplt.plot([1, x])\nplt.savefig('plots.png')\nx",
    "Write a file": "open('out.txt', 'w').write(str(x))\nprint('written')",
    "Show a table": "import pandas as pd\npd.DataFrame({'x': [x]})",
    "Count the lines": "print(len(open('sales.csv').readlines()), 'lines')",
    "How many\nwords": "print('two lines')",
    "/etc": "print('slash')",
}
TAKE, DOUBLE, WHAT = "Take 21", "Now double it", "What is it?"


def script(messages: list[dict[str, Any]]) -> str:
    questions = "\n".join(str(message["content"]) for message in messages if message["role"] == "user")
    _, has_output, output = str(messages[-1]["content"]).partition("Output of the program:")
    if has_output:
        return f"Answer: {output.split('```')[1].partition(chr(10))[2].strip()}"
    return f"```python\n{PROGRAMS[max(PROGRAMS, key=questions.rfind)]}\n```"


Chat = Callable[..., tuple[list[str], str]]
"""`chat(*lines, options=())` gives lines of input to a new chat and returns its answers and messages."""


class ChatProcess:
    """A chat as a process."""

    def __init__(self, server: OpenAI, folder: Path, *options: str) -> None:
        self.arguments = ["chat", "-m", "x", "--base-url", server.base_url, *options]
        self.command = [sys.executable, "-m", "code_chains", *self.arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb", **data_folder(folder)}
        self.options: dict[str, Any] = {"cwd": folder, "env": environment}

    def __call__(self, *lines: str) -> tuple[list[str], str]:
        """Run with some lines as input, and return the answers and the messages."""
        command = [sys.executable, "-m", "tests.support.lean_cli", *self.arguments]
        text = "".join(f"{line}\n" for line in lines)
        process = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, **self.options
        )
        assert process.returncode == 0, process.stderr
        assert "Traceback" not in process.stderr
        return [line for line in process.stdout.splitlines() if line], process.stderr


def data_folder(folder: Path) -> dict[str, str]:
    """Return the environment in which conversations are stored in a folder."""
    return {"XDG_DATA_HOME": str(folder / "data")}


@pytest.fixture
def server(openai_server: OpenAI) -> OpenAI:
    openai_server.script = script
    return openai_server


@pytest.fixture
def chat(server: OpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chat:
    """A chat in this process, which starts sooner than one of its own."""
    monkeypatch.chdir(tmp_path)

    def invoke(*lines: str, options: Sequence[str] = ()) -> tuple[list[str], str]:
        arguments = ["chat", "-m", "x", "--base-url", server.base_url, "--max-attempts", "1", *options]
        text = "".join(f"{line}\n" for line in lines)
        result = CliRunner(env=data_folder(tmp_path)).invoke(
            cli, arguments, input=text, catch_exceptions=False
        )
        assert result.exit_code == 0, result.stderr
        return [line for line in result.stdout.splitlines() if line], result.stderr

    return invoke


@pytest.mark.smoke
@pytest.mark.kernel_sandbox
def test_questions_continue_with_earlier_state(chat: Chat) -> None:
    answers, messages = chat(TAKE, "", DOUBLE)
    assert answers == ["Answer: x is 21", "Answer: x is 42"]
    assert "x = x * 2" in messages
    assert "> " not in messages.replace("->", "")


@pytest.mark.smoke
@pytest.mark.kernel_sandbox
def test_undo_removes_state_and_history(chat: Chat, server: OpenAI) -> None:
    answers, messages = chat(TAKE, DOUBLE, "/undo", WHAT)
    assert answers[-1] == "Answer: x is 21"
    assert f"Undone: {DOUBLE}" in messages
    requests = [body for body in server.requests if WHAT in str(body["messages"][-1])]
    assert all(DOUBLE not in str(body["messages"]) for body in requests)


@pytest.mark.kernel_sandbox
def test_reset_starts_a_new_conversation(chat: Chat) -> None:
    answers, messages = chat(TAKE, "/reset", WHAT, "/undo", "/undo")
    assert "NameError" in answers[-1]
    assert "The conversation is empty." in messages
    assert "Error: There is nothing to undo." in messages


@pytest.mark.parametrize("word", ["exit", "quit", "/quit", "/exit", "EXIT", " quit ", "exit()", ":q"])
def test_a_word_that_leaves_is_no_question(chat: Chat, server: OpenAI, word: str) -> None:
    assert chat(word, TAKE)[0] == []
    assert server.requests == []


def test_a_file_that_is_named_and_not_passed_is_an_error(chat: Chat, sales: Path, server: OpenAI) -> None:
    answers, messages = chat(
        "Count the lines of sales.csv", "/file sales.csv", "Count the lines of sales.csv"
    )
    assert (answers, "Pass it with -f sales.csv" in messages) == (["Answer: 3 lines"], True)


@pytest.mark.kernel_sandbox
def test_a_session_continues_in_another_process(chat: Chat, server: OpenAI, tmp_path: Path) -> None:
    ann = ["--session", "ann"]
    first, said = ChatProcess(server, tmp_path, *ann)(TAKE)
    assert first == ["Answer: x is 21"]
    answers, messages = chat(DOUBLE, options=ann)
    assert "Continuing a conversation with 1 turn." in messages, said + messages
    assert answers == ["Answer: x is 42"]
    assert "with 2 turns" in chat("/exit", TAKE, options=ann)[1]
    assert "Continuing" not in chat(options=["--session", "bob"])[1]
    store = tmp_path / "data" / "code_chains" / "conversations.sqlite"
    assert store.stat().st_mode & 0o777 == 0o600


def test_files_are_passed_with_the_next_question(chat: Chat, sales: Path, tmp_path: Path) -> None:
    answers, _ = chat("Count the lines", "Fail", "Count the lines", options=["-f", str(sales)])
    assert [answers[0], answers[-1]] == ["Answer: 3 lines"] * 2
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "sales.csv").write_text("one\n")
    answers, messages = chat(
        "Fail", "/file new/sales.csv", "Fail", "Count the lines", "/undo", "Count the lines", "/file"
    )
    assert answers[-2:] == ["Answer: 1 lines"] * 2
    assert "Error: Name a file" in messages
    assert "does not exist" in chat("/file nothing.csv")[1]


@pytest.mark.kernel_sandbox
def test_artifacts_are_saved_once(chat: Chat, tmp_path: Path) -> None:
    _, messages = chat(TAKE, "Plot it", "What is it?", "Show a table", "Write a file")
    assert (
        "Saved in chat-files: plots.png, figure-1.png\n" in messages
        or "Saved in chat-files: plots.png\n" in messages
    )
    files = {path.name for path in (tmp_path / "chat-files").iterdir()}
    assert files - {"figure-1.png"} == {"plots.png", "out.txt"}
    chat(TAKE, DOUBLE, "Write a file")
    texts = {path: (tmp_path / path).read_text() for path in ("chat-files/out.txt", "chat-files/2/out.txt")}
    assert texts == {"chat-files/out.txt": "21", "chat-files/2/out.txt": "42"}


@pytest.mark.kernel_sandbox
def test_the_folder_is_named_after_the_session(chat: Chat, tmp_path: Path) -> None:
    chat(TAKE, "Write a file", options=["--session", "../a b"])
    assert (tmp_path / "a-b-files" / "out.txt").read_text() == "21"


@pytest.mark.kernel_sandbox
def test_a_conversation_is_exported_as_notebook_and_script(chat: Chat, tmp_path: Path) -> None:
    _, messages = chat(
        "/save early.md", TAKE, DOUBLE, "Plot it", "/save it.ipynb", "/save it.py", "/save it.doc", "/save"
    )
    notebook = nbformat.read(tmp_path / "it.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells if cell.cell_type == "code"][1] == PROGRAMS[DOUBLE] + "\n"
    assert "x = x * 2" in (tmp_path / "it.py").read_text()
    assert all(
        part in messages
        for part in ("Saved: it.ipynb\n", "nothing to export", "'it.doc' must end with", "Name a file")
    )


@pytest.mark.kernel_sandbox
def test_usage_is_added_up(chat: Chat) -> None:
    assert "unknown price, 72 tokens, 4 model calls" in chat(TAKE, DOUBLE, "/cost")[1]


def test_commands_are_documented(chat: Chat) -> None:
    answers, messages = chat("/help", "/what now", "/code", TAKE, "/code", "//etc", "How many\\", "words")
    assert answers == ["Answer: x is 21", "Answer: slash", "Answer: two lines"]
    assert all(
        f"{word} " in messages
        for word in ("/help", "/save", "/undo", "/reset", "/cost", "/file", "/code", "/exit")
    )
    assert "Unknown command /what. Commands: /help, /save" in messages
    assert "There is no program yet" in messages
    assert messages.count("x = 21") == 2


@pytest.mark.smoke
def test_an_error_is_one_line_and_the_chat_goes_on(chat: Chat, server: OpenAI) -> None:
    server.faults = ["json"]
    answers, messages = chat(TAKE, "x" * 100_001, TAKE)
    assert answers == ["Answer: x is 21"]
    errors = [line for line in messages.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 2
    assert "100,001 characters" in errors[1]


def test_an_error_of_a_provider_cannot_control_the_terminal_or_reveal_a_key(
    chat: Chat, server: OpenAI
) -> None:
    server.faults = [HOSTILE]
    _, messages = chat(TAKE, "/reset")
    assert "owned" in messages
    assert [part for part in ("\x1b", "\x07", "\x9b", "\u202e", "1234567890abcdef") if part in messages] == []


def test_invalid_utf8_is_refused(server: OpenAI, tmp_path: Path) -> None:
    chat = ChatProcess(server, tmp_path)
    process = subprocess.run(
        chat.command, input=b"\xff?\nTake 21\n", capture_output=True, check=False, **chat.options
    )
    assert (process.returncode, process.stdout) == (0, b"Answer: x is 21\n")
    assert b"not text (broken UTF-8)" in process.stderr


def test_a_dead_server_does_not_end_the_chat(chat: Chat) -> None:
    answers, messages = chat(TAKE, "/cost", options=["--base-url", "http://127.0.0.1:9/v1"])
    assert answers == []
    assert "cannot be reached" in messages
    assert "0 model calls" in messages


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--session", " "], "session_id must be"),
        (["-f", "/nowhere.csv"], "does not exist"),
        (["--show", "everything"], "unknown value 'everything'"),
        (["--json"], "No such option"),
    ],
)
def test_a_usage_error_is_exit_code_two(
    options: list[str], message: str, server: OpenAI, tmp_path: Path
) -> None:
    chat = ChatProcess(server, tmp_path, *options)
    process = subprocess.run(
        chat.command, input="", capture_output=True, text=True, check=False, **chat.options
    )
    assert (process.returncode, message in process.stderr) == (2, True)


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


def test_an_interrupt_stops_only_the_turn(server: OpenAI, tmp_path: Path) -> None:
    chat = ChatProcess(server, tmp_path, "--seconds", "60")
    running = subprocess.Popen(
        chat.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **chat.options,
    )
    assert running.stdin is not None
    assert running.stderr is not None
    running.stdin.write(f"{TAKE}\nRun forever\n{DOUBLE}\n")
    running.stdin.flush()
    checked = 0
    while checked < 2:  # A stage is reported at its end; the second program runs next.
        checked += "Checking the program" in running.stderr.readline()
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    out, messages = running.communicate(timeout=60)
    assert (running.returncode, out.split("\n")[:-1]) == (0, ["Answer: x is 21", "Answer: x is 42"])
    assert "Stopped. The conversation is unchanged." in messages


def test_an_interrupt_while_the_model_thinks(server: OpenAI, tmp_path: Path) -> None:
    thinking = threading.Event()

    def slow(messages: list[dict[str, Any]]) -> str:
        if "Fail" in str(messages[-1]["content"]):
            thinking.set()
            time.sleep(2)
        return script(messages)

    server.script = slow
    chat = ChatProcess(server, tmp_path)
    running = subprocess.Popen(
        chat.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **chat.options,
    )
    assert running.stdin is not None
    running.stdin.write(f"{TAKE}\nFail\n{DOUBLE}\n")
    running.stdin.flush()
    assert thinking.wait(30)
    for _ in range(3):  # Repeated interrupts do not end the chat.
        running.send_signal(signal.SIGINT)
        time.sleep(0.05)
    out, messages = running.communicate(timeout=60)
    assert (running.returncode, out.split("\n")[:-1]) == (0, ["Answer: x is 21", "Answer: x is 42"])
    assert messages.count("Stopped") == 1


# -- at a terminal -----------------------------------------------------------------------------------------------------

OWNS_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


PROMPTS = ("> ", "... ", "[y/N]: ")


class Terminal:
    """A chat at a pseudo-terminal, where Ctrl-C is a key."""

    def __init__(self, chat: ChatProcess) -> None:
        import pty  # Not on Windows.

        self.screen = ""
        self._master, slave = pty.openpty()
        self.running = subprocess.Popen(
            [sys.executable, "-c", OWNS_TERMINAL, *chat.command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            **chat.options,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._master, 4096):
                self.screen += data.decode(errors="replace")
        except OSError:  # The other side is closed.
            return

    def at_prompt(self) -> None:
        """Wait until the editor reads keys: an end of file that the terminal itself takes before would be lost."""
        assert soon(lambda: self.screen.endswith(PROMPTS), 30), self.screen

    def type(self, text: str, *, then: str) -> None:
        """Type a text at a prompt, and wait for an output."""
        self.at_prompt()
        self.press(text, then=then)

    def press(self, text: str, *, then: str) -> None:
        """Type a text right now, and wait for an output."""
        start = len(self.screen)
        os.write(self._master, text.encode())
        assert soon(lambda: then in self.screen[start:], 30), self.screen[start:]

    def leave(self, key: str = "\x04") -> int:
        """End the chat by a key at its prompt."""
        self.at_prompt()
        os.write(self._master, key.encode())
        return self.end()

    def end(self) -> int:
        code = self.running.wait(30)
        self._reader.join(5)
        os.close(self._master)
        return code


@pytest.fixture
def terminal(server: OpenAI, tmp_path: Path) -> Iterator[Callable[[], Terminal]]:
    opened: list[Terminal] = []

    def open_terminal() -> Terminal:
        opened.append(Terminal(ChatProcess(server, tmp_path, "--seconds", "60")))
        assert soon(lambda: "> " in opened[-1].screen, 30), opened[-1].screen
        return opened[-1]

    yield open_terminal
    for opened_terminal in opened:
        if opened_terminal.running.poll() is None:
            opened_terminal.running.kill()
            opened_terminal.end()


def test_at_a_terminal_keys_stop_turns_and_exit(terminal: Callable[[], Terminal], tmp_path: Path) -> None:
    chat = terminal()
    chat.type(f"{TAKE}\n", then="Answer: x is 21")
    chat.type("Run forever\n", then="Checking the program")
    time.sleep(1)
    chat.press("\x03", then="Stopped. The conversation")
    chat.type(f"{DOUBLE}\n", then="Answer: x is 42")
    chat.type("How many\\\n", then="... ")
    chat.type("\x03", then="to exit")
    chat.type("/cost\n", then="model calls")
    chat.type("\x03", then="to exit")
    assert chat.leave("\x03") == 0
    history = tmp_path / "data" / "code_chains" / "history"
    assert history.read_text().splitlines()[-5:] == [TAKE, "Run forever", DOUBLE, "How many\\", "/cost"]
    assert history.stat().st_mode & 0o777 == 0o600


def test_a_pasted_question_of_several_lines_is_one(
    terminal: Callable[[], Terminal], server: OpenAI, tmp_path: Path
) -> None:
    chat = terminal()
    chat.type("\x1b[200~How many\nwords\n\x1b[201~", then="words")
    chat.press("\n", then="Answer: two lines")
    chat.type(f"{TAKE}\n", then="Answer: x is 21")
    assert chat.leave() == 0
    history = tmp_path / "data" / "code_chains" / "history"
    assert history.read_text().splitlines() == ["How many words", TAKE]


def test_at_a_terminal_a_file_is_replaced_once_that_is_confirmed(
    terminal: Callable[[], Terminal], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("mine")
    chat = terminal()
    chat.type(f"{TAKE}\n", then="Answer: x is 21")
    chat.type("/save mine.py\n", then="Replace it?")
    chat.type("n\n", then="Nothing was saved")
    assert (tmp_path / "mine.py").read_text() == "mine"
    chat.type("/save mine.py\n", then="Replace it?")
    chat.type("y\n", then="Saved: mine.py")
    assert chat.leave() == 0


def test_at_a_terminal_the_history_is_available(terminal: Callable[[], Terminal], tmp_path: Path) -> None:
    history = tmp_path / "data" / "code_chains" / "history"
    history.parent.mkdir(parents=True)
    history.write_text("".join(f"/line {number}\n" for number in range(1200)))
    chat = terminal()
    chat.type("\x1b[A", then="/line 1199")
    chat.press("\n", then="Unknown command /line")
    assert chat.leave() == 0
    assert len(history.read_text().splitlines()) == 1000
