"""Asked to end, an app lets what is under way end, begins nothing new, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from code_chains import CodeChain, ConversationMemory, SandboxExecutor, SqliteStore, create_code_chain
from code_chains.errors import ExecutorError
from code_chains.testing import ScriptedModel, asks_for_code

from .conftest import ROOT, OpenAI, soon

SLOW = "import time; time.sleep(1.5); print('slept')"
ENDLESS = "import time; time.sleep(60)"


@pytest.fixture
def chain(sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    def script(messages: list[Any]) -> str:
        asked = str(messages[-1].text)
        return (ENDLESS if "endless" in asked else SLOW) if asks_for_code(messages) else "It slept."

    with create_code_chain(ScriptedModel(script), executor=sandbox, max_attempts=1) as chain:
        yield chain


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def begun(chain: CodeChain) -> Callable[[], bool]:
    return lambda: chain._questions._taken > 0


def test_a_question_under_way_is_answered(chain: CodeChain, threads: ThreadPoolExecutor) -> None:
    asked = threads.submit(chain.invoke, {"query": "Sleep", "session_id": "ann"})
    assert soon(begun(chain))
    assert chain.drain(10)
    assert asked.result(1)["answer"] == "It slept."


def test_a_program_of_ones_own_ends_too(chain: CodeChain, threads: ThreadPoolExecutor) -> None:
    running = threads.submit(chain.execute, SLOW)
    assert soon(begun(chain))
    assert chain.drain(10)
    assert running.result(1)["output"] == "slept"


def test_no_question_begins_any_more(chain: CodeChain) -> None:
    assert chain.drain()
    with pytest.raises(ExecutorError, match="closed"):
        chain.invoke("Sleep")


def test_a_question_that_takes_too_long_is_given_up(threads: ThreadPoolExecutor) -> None:
    with create_code_chain(ScriptedModel(lambda _: ENDLESS), max_attempts=1, interpret=False) as chain:
        asked, began = threads.submit(chain.invoke, "Sleep"), time.monotonic()
        assert soon(begun(chain))
        assert not chain.drain(0.5)
        with pytest.raises(ExecutorError):
            asked.result(5)
        assert time.monotonic() - began < 6


# -- SIGTERM -------------------------------------------------------------------------------------------------------------


@contextmanager
def running(folder: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A command of ours, which must have ended and left no temporary file and no process at the end."""
    (folder / "temporary").mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(folder / "temporary"),
        "XDG_DATA_HOME": str(folder / "data"),
        "TERM": "dumb",
        "CODE_CHAINS_TEST": str(folder),
    }
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    arguments = [sys.executable, "-m", "code_chains", *command]
    with subprocess.Popen(arguments, env=environment, cwd=folder, text=True, **pipes) as process:
        try:
            yield process
            assert process.wait(15) == 143
        finally:
            process.kill()
    assert list((folder / "temporary").iterdir()) == []
    assert soon(lambda: not any(_is_of(folder, pid) for pid in os.listdir("/proc") if pid.isdigit()))


def _is_of(folder: Path, pid: str) -> bool:
    try:
        return f"CODE_CHAINS_TEST={folder}\0" in Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return False


@pytest.fixture
def slow_model(openai_server: OpenAI) -> OpenAI:
    told = "Output of the program:"
    openai_server.script = lambda messages: "It slept." if told in str(messages[-1]["content"]) else SLOW
    return openai_server


def test_a_chat_ends_its_turn_and_keeps_it(slow_model: OpenAI, tmp_path: Path) -> None:
    with running(tmp_path, "chat", "-m", "x", "--base-url", slow_model.base_url, "--session", "ann") as chat:
        assert chat.stdin
        assert chat.stdout
        chat.stdin.write("Sleep\nSleep again\n")
        chat.stdin.flush()
        assert soon(lambda: bool(slow_model.requests), 20)
        chat.send_signal(signal.SIGTERM)
        assert chat.stdout.read().strip() == "It slept."
    with SqliteStore(tmp_path / "data" / "code_chains" / "conversations.sqlite") as store:
        assert [turn.query for turn in ConversationMemory(store).turns("ann")] == ["Sleep"]


def test_a_chat_without_a_turn_ends_at_once(slow_model: OpenAI, tmp_path: Path) -> None:
    with running(tmp_path, "chat", "-m", "x", "--base-url", slow_model.base_url) as chat:
        assert chat.stdin
        chat.stdin.write("/help\n")
        chat.stdin.flush()
        assert chat.stderr
        assert "show this" in chat.stderr.readline()
        time.sleep(0.3)
        chat.send_signal(signal.SIGTERM)


def say(server: subprocess.Popen[str], method: str, number: int | None = None, **parameters: Any) -> None:
    assert server.stdin
    message = {"jsonrpc": "2.0", "method": method, "params": parameters}
    server.stdin.write(json.dumps(message if number is None else {**message, "id": number}) + "\n")
    server.stdin.flush()


@pytest.mark.parametrize("busy", [False, True])
def test_a_server_of_tools_ends_its_calls_while_its_client_stays(tmp_path: Path, busy: bool) -> None:
    with running(tmp_path, "mcp") as server:
        assert server.stdout
        client = {"name": "test", "version": "1"}
        say(server, "initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        assert '"id":1' in server.stdout.readline()
        say(server, "notifications/initialized")
        if busy:
            say(server, "tools/call", 2, name="run_python", arguments={"code": SLOW})
            time.sleep(0.7)
        server.send_signal(signal.SIGTERM)
        assert ("slept" in server.stdout.readline()) == busy
