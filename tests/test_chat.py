"""A conversation at the terminal, as somebody has it who types or who pipes: in a process of its own, with a real server."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from code_chains.chat import saved
from code_chains.errors import InputError
from code_chains.state import Artifact

from .conftest import ROOT, OpenAI, soon

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
    said = "\n".join(str(message["content"]) for message in messages if message["role"] == "user")
    _, told, output = str(messages[-1]["content"]).partition("Output of the program:")
    if told:
        return f"Answer: {output.split('```')[1].partition(chr(10))[2].strip()}"
    return f"```python\n{PROGRAMS[max(PROGRAMS, key=said.rfind)]}\n```"


class Running:
    """A chat in a process of its own."""

    def __init__(self, server: OpenAI, folder: Path, *options: str) -> None:
        self.command = [sys.executable, "-m", "code_chains", "chat", "-m", "x", "--base-url", server.base_url, *options]
        environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), "PYTHONPATH": str(ROOT), "TERM": "dumb"}
        self.options: dict[str, Any] = {"cwd": folder, "env": environment}

    def __call__(self, *lines: str) -> tuple[list[str], str]:
        """The answers to some lines, and what else was said."""
        text = "".join(f"{line}\n" for line in lines)
        done = subprocess.run(self.command, input=text, capture_output=True, text=True, check=False, **self.options)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return [line for line in done.stdout.splitlines() if line], done.stderr


@pytest.fixture
def server(openai_server: OpenAI) -> OpenAI:
    openai_server.script = script
    return openai_server


@pytest.fixture
def chat(server: OpenAI, tmp_path: Path) -> Callable[..., tuple[list[str], str]]:
    return lambda *lines, options=(): Running(server, tmp_path, "--max-attempts", "1", *options)(*lines)


def test_questions_go_on_with_what_was_there(chat: Any) -> None:
    answers, said = chat(TAKE, "", DOUBLE)
    assert answers == ["Answer: x is 21", "Answer: x is 42"]
    assert "x = x * 2" in said
    assert "> " not in said.replace("->", "")


def test_undo_takes_back_state_and_history(chat: Any, server: OpenAI) -> None:
    answers, said = chat(TAKE, DOUBLE, "/undo", WHAT)
    assert answers[-1] == "Answer: x is 21"
    assert f"Taken back: {DOUBLE}" in said
    asked = [body for body in server.requests if WHAT in str(body["messages"][-1])]
    assert all(DOUBLE not in str(body["messages"]) for body in asked)


def test_reset_begins_anew(chat: Any) -> None:
    answers, said = chat(TAKE, "/reset", WHAT, "/undo", "/undo")
    assert "NameError" in answers[-1]
    assert "The conversation is empty." in said
    assert "Error: There is nothing to take back." in said


def test_a_session_goes_on_in_another_process(chat: Any, tmp_path: Path) -> None:
    assert chat(TAKE, options=["--session", "ann"])[0] == ["Answer: x is 21"]
    answers, said = chat(DOUBLE, options=["--session", "ann"])
    assert (answers, "has 1 turn and goes on" in said) == (["Answer: x is 42"], True)
    assert "has 2 turns" in chat("/exit", TAKE, options=["--session", "ann"])[1]
    assert "goes on" not in chat(options=["--session", "bob"])[1]
    store = tmp_path / "data" / "code_chains" / "conversations.sqlite"
    assert store.stat().st_mode & 0o777 == 0o600


def test_files_come_with_the_first_question_and_when_they_are_added(chat: Any, sales: Path, tmp_path: Path) -> None:
    answers, _ = chat("Count the lines", "Fail", "Count the lines", options=["-f", str(sales)])
    assert [answers[0], answers[-1]] == ["Answer: 3 lines"] * 2
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "sales.csv").write_text("one\n")
    answers, said = chat("Fail", "/file new/sales.csv", "Fail", "Count the lines", "/undo", "Count the lines", "/file")
    assert answers[-2:] == ["Answer: 1 lines"] * 2
    assert "Error: Say which" in said
    assert "does not exist" in chat("/file nothing.csv")[1]


def test_what_programs_make_is_saved_once_and_named(chat: Any, tmp_path: Path) -> None:
    _, said = chat(TAKE, "Plot it", "What is it?", "Show a table", "Write a file")
    assert "Saved in chat-files: plots.png, figure-1.png\n" in said or "Saved in chat-files: plots.png\n" in said
    files = {path.name for path in (tmp_path / "chat-files").iterdir()}
    assert files - {"figure-1.png"} == {"plots.png", "out.txt"}
    chat(TAKE, DOUBLE, "Write a file")
    texts = {path.name: path.read_text() for path in (tmp_path / "chat-files").glob("*.txt")}
    assert texts == {"out.txt": "21", "out-2.txt": "42"}


def test_the_folder_is_named_after_the_session(chat: Any, tmp_path: Path) -> None:
    chat(TAKE, "Write a file", options=["--session", "../a b"])
    assert (tmp_path / "a-b-files" / "out.txt").read_text() == "21"


def test_it_is_saved_as_a_notebook_and_a_script(chat: Any, tmp_path: Path) -> None:
    _, said = chat("/save early.md", TAKE, DOUBLE, "Plot it", "/save it.ipynb", "/save it.py", "/save it.doc", "/save")
    notebook = nbformat.read(tmp_path / "it.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells if cell.cell_type == "code"][1] == PROGRAMS[DOUBLE] + "\n"
    assert "x = x * 2" in (tmp_path / "it.py").read_text()
    assert all(
        part in said for part in ("Saved: it.ipynb\n", "nothing to export", "'it.doc' ends with none", "Say where")
    )


def test_costs_are_summed_up(chat: Any) -> None:
    assert "4 model calls, 44 tokens read, 28 written" in chat(TAKE, DOUBLE, "/cost")[1]


def test_commands_explain_themselves(chat: Any) -> None:
    answers, said = chat("/help", "/what now", "/code", TAKE, "/code", "//etc", "How many\\", "words")
    assert answers == ["Answer: x is 21", "Answer: slash", "Answer: two lines"]
    assert all(f"{word} " in said for word in ("/help", "/save", "/undo", "/reset", "/cost", "/file", "/code", "/exit"))
    assert "There is no /what; there are /help, /save" in said
    assert "There is no program yet" in said
    assert said.count("x = 21") == 2


def test_an_error_is_one_line_and_the_chat_goes_on(chat: Any, server: OpenAI) -> None:
    server.faults = ["json"]
    answers, said = chat(TAKE, "x" * 100_001, TAKE)
    assert answers == ["Answer: x is 21"]
    errors = [line for line in said.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 2
    assert "100,001 characters" in errors[1]


def test_what_is_no_text_is_refused(server: OpenAI, tmp_path: Path) -> None:
    chat = Running(server, tmp_path)
    done = subprocess.run(chat.command, input=b"\xff?\nTake 21\n", capture_output=True, check=False, **chat.options)
    assert (done.returncode, done.stdout) == (0, b"Answer: x is 21\n")
    assert b"no text (broken UTF-8)" in done.stderr


def test_a_dead_server_is_no_end(tmp_path: Path, server: OpenAI) -> None:
    answers, said = Running(server, tmp_path, "--base-url", "http://127.0.0.1:9/v1")(TAKE, "/cost")
    assert answers == []
    assert "Error: The model: Connection error" in said
    assert "0 model calls" in said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--session", " "], "session_id must be"),
        (["-f", "/nowhere.csv"], "does not exist"),
        (["--show", "everything"], "'everything' is none of"),
        (["--json"], "No such option"),
    ],
)
def test_wrong_use_is_exit_code_two(options: list[str], says: str, server: OpenAI, tmp_path: Path) -> None:
    chat = Running(server, tmp_path, *options)
    done = subprocess.run(chat.command, input="", capture_output=True, text=True, check=False, **chat.options)
    assert (done.returncode, says in done.stderr) == (2, True)


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


def test_an_interrupt_stops_the_turn_and_no_more(server: OpenAI, tmp_path: Path) -> None:
    chat = Running(server, tmp_path, "--seconds", "60")
    running = subprocess.Popen(
        chat.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **chat.options
    )
    assert running.stdin is not None
    assert running.stderr is not None
    running.stdin.write(f"{TAKE}\nRun forever\n{DOUBLE}\n")
    running.stdin.flush()
    checked = 0
    while checked < 2:  # A stage is told when it has ended; the second program runs next.
        checked += "Checking it" in running.stderr.readline()
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    out, said = running.communicate(timeout=60)
    assert (running.returncode, out.split("\n")[:-1]) == (0, ["Answer: x is 21", "Answer: x is 42"])
    assert "Stopped; the conversation is as it was before." in said


def test_an_interrupt_while_the_model_thinks(server: OpenAI, tmp_path: Path) -> None:
    thinking = threading.Event()

    def slow(messages: list[dict[str, Any]]) -> str:
        if "Fail" in str(messages[-1]["content"]):
            thinking.set()
            time.sleep(2)
        return script(messages)

    server.script = slow
    chat = Running(server, tmp_path)
    running = subprocess.Popen(
        chat.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **chat.options
    )
    assert running.stdin is not None
    running.stdin.write(f"{TAKE}\nFail\n{DOUBLE}\n")
    running.stdin.flush()
    assert thinking.wait(30)
    for _ in range(3):  # Impatience is no reason to end.
        running.send_signal(signal.SIGINT)
        time.sleep(0.05)
    out, said = running.communicate(timeout=60)
    assert (running.returncode, out.split("\n")[:-1]) == (0, ["Answer: x is 21", "Answer: x is 42"])
    assert said.count("Stopped") == 1


# -- at a terminal -----------------------------------------------------------------------------------------------------

OWNS_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class Terminal:
    """A chat at a terminal of its own, where Ctrl-C is a key."""

    def __init__(self, chat: Running) -> None:
        self.seen = ""
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
                self.seen += data.decode(errors="replace")
        except OSError:  # The other side is closed.
            return

    def type(self, text: str, *, then: str) -> None:
        """Type something, and wait until something is seen."""
        start = len(self.seen)
        os.write(self._master, text.encode())
        assert soon(lambda: then in self.seen[start:], 30), self.seen[start:]

    def end(self) -> int:
        code = self.running.wait(30)
        self._reader.join(5)
        os.close(self._master)
        return code


@pytest.fixture
def terminal(server: OpenAI, tmp_path: Path) -> Iterator[Callable[[], Terminal]]:
    opened: list[Terminal] = []

    def open_one() -> Terminal:
        opened.append(Terminal(Running(server, tmp_path, "--seconds", "60")))
        assert soon(lambda: "> " in opened[-1].seen, 30), opened[-1].seen
        return opened[-1]

    yield open_one
    for one in opened:
        if one.running.poll() is None:
            one.running.kill()
            one.end()


def test_at_a_terminal_keys_stop_turns_and_leave(terminal: Callable[[], Terminal], tmp_path: Path) -> None:
    one = terminal()
    one.type(f"{TAKE}\n", then="Answer: x is 21")
    one.type("Run forever\n", then="Checking it")
    time.sleep(1)
    one.type("\x03", then="Stopped; the conversation")
    one.type(f"{DOUBLE}\n", then="Answer: x is 42")
    one.type("How many\\\n", then="... ")
    one.type("\x03", then="leaves")
    one.type("/cost\n", then="model calls")
    one.type("\x03", then="leaves")
    os.write(one._master, b"\x03")
    assert one.end() == 0
    history = tmp_path / "data" / "code_chains" / "history"
    assert history.read_text().splitlines()[-5:] == [TAKE, "Run forever", DOUBLE, "How many\\", "/cost"]
    assert history.stat().st_mode & 0o777 == 0o600


def test_at_a_terminal_what_was_typed_comes_back(terminal: Callable[[], Terminal], tmp_path: Path) -> None:
    history = tmp_path / "data" / "code_chains" / "history"
    history.parent.mkdir(parents=True)
    history.write_text("".join(f"/line {number}\n" for number in range(1200)))
    one = terminal()
    one.type("\x1b[A", then="/line 1199")
    one.type("\n", then="> ")  # Before that the terminal itself would take Ctrl-D.
    assert "There is no /line" in one.seen
    os.write(one._master, b"\x04")
    assert one.end() == 0
    assert len(history.read_text().splitlines()) == 1000


# -- what is kept ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x"])
def test_what_leads_out_of_the_folder_is_not_saved(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be called"):
        saved(Artifact(name, "text/plain", b""), tmp_path / "files")
    assert list(tmp_path.rglob("x")) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "a.txt").symlink_to(tmp_path / "mine")
    (tmp_path / "b.txt").symlink_to(tmp_path / "nowhere")
    assert saved(Artifact("a.txt", "text/plain", b"new"), tmp_path).name == "a-2.txt"
    assert saved(Artifact("b.txt", "text/plain", b"new"), tmp_path).name == "b-2.txt"
    assert ((tmp_path / "mine").read_text(), (tmp_path / "nowhere").exists()) == ("mine", False)
