"""Graceful shutdown: running work finishes, nothing new starts, and nothing is left behind."""

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

from code_chains import CodeChain, ConversationMemory, Repair, SandboxExecutor, SqliteStore, create_code_chain
from code_chains.errors import ExecutorError
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import ROOT, OpenAI, soon

SLOW = "import time; time.sleep(1.5); print('slept')"
ENDLESS = "import time; time.sleep(60)"


@pytest.fixture
def chain(sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    def script(messages: list[Any]) -> str:
        question = str(messages[-1].text)
        return (ENDLESS if "endless" in question else SLOW) if asks_for_code(messages) else "It slept."

    with create_code_chain(ScriptedModel(script), executor=sandbox, solve=Repair(1)) as chain:
        yield chain


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def is_busy(chain: CodeChain) -> Callable[[], bool]:
    return lambda: chain._limiter._running > 0


@pytest.mark.host
def test_a_running_question_is_answered(chain: CodeChain, threads: ThreadPoolExecutor) -> None:
    answer = threads.submit(chain.invoke, {"query": "Sleep", "session_id": "ann"})
    assert soon(is_busy(chain))
    assert chain.drain(10)
    assert answer.result(1)["answer"] == "It slept."


@pytest.mark.slow
def test_a_running_user_program_finishes(chain: CodeChain, threads: ThreadPoolExecutor) -> None:
    running = threads.submit(chain.execute, SLOW)
    assert soon(is_busy(chain))
    assert chain.drain(10)
    assert running.result(1)["output"] == "slept"


def test_no_further_question_starts(chain: CodeChain) -> None:
    assert chain.drain()
    with pytest.raises(ExecutorError, match="closed"):
        chain.invoke("Sleep")


def test_a_question_that_takes_too_long_is_cancelled(threads: ThreadPoolExecutor) -> None:
    with create_code_chain(ScriptedModel(lambda _: ENDLESS), interpret=False, solve=Repair(1)) as chain:
        answer, start = threads.submit(chain.invoke, "Sleep"), time.monotonic()
        assert soon(is_busy(chain))
        assert not chain.drain(0.5)
        with pytest.raises(ExecutorError):
            answer.result(5)
        assert time.monotonic() - start < 6


# -- SIGTERM -------------------------------------------------------------------------------------------------------------


@contextmanager
def running(folder: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command, which must end and leave no temporary file and no process behind."""
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
    marker = "Output of the program:"
    openai_server.script = lambda messages: "It slept." if marker in str(messages[-1]["content"]) else SLOW
    return openai_server


@pytest.mark.host
def test_a_chat_finishes_its_turn_and_stores_it(slow_model: OpenAI, tmp_path: Path) -> None:
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


@pytest.mark.host
def test_a_chat_without_a_turn_ends_at_once(slow_model: OpenAI, tmp_path: Path) -> None:
    with running(tmp_path, "chat", "-m", "x", "--base-url", slow_model.base_url) as chat:
        assert chat.stdin
        chat.stdin.write("/help\n")
        chat.stdin.flush()
        assert chat.stderr
        assert "show this help" in chat.stderr.readline()
        time.sleep(0.3)
        chat.send_signal(signal.SIGTERM)


def send(server: subprocess.Popen[str], method: str, number: int | None = None, **parameters: Any) -> None:
    assert server.stdin
    message = {"jsonrpc": "2.0", "method": method, "params": parameters}
    server.stdin.write(json.dumps(message if number is None else {**message, "id": number}) + "\n")
    server.stdin.flush()


@pytest.mark.host
@pytest.mark.parametrize("busy", [False, True])
def test_an_mcp_server_finishes_its_calls_while_its_client_stays(tmp_path: Path, busy: bool) -> None:
    with running(tmp_path, "mcp") as server:
        assert server.stdout
        client = {"name": "test", "version": "1"}
        send(server, "initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        assert '"id":1' in server.stdout.readline()
        send(server, "notifications/initialized")
        if busy:
            send(server, "tools/call", 2, name="run_python", arguments={"code": SLOW})
            time.sleep(0.7)
        server.send_signal(signal.SIGTERM)
        assert ("slept" in server.stdout.readline()) == busy
