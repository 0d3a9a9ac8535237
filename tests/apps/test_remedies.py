"""What stops any program is said in a sentence, with what the reader can do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.tools import tool

from code_chains import Repair, create_code_chain
from code_chains.apps.remedies import Host, remedy
from code_chains.apps.terminal import cli_options
from code_chains.errors import IsolationError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.testing import ScriptedModel

pytestmark = pytest.mark.kernel_sandbox
PROGRAMS = {
    "network": "import urllib.request\nprint(urllib.request.urlopen('https://example.org').read())",
    "name": "import socket\nprint(socket.gethostbyname('example.org'))",
    "memory": "print(len(bytearray(2_000_000_000)))",
    "time": "while True: pass",
    "module": "import prophet\nprint(1)",
    "module in a function": "def draw():\n    import prophet\ndraw()",
    "input": "print(int(input('n? ')) * 2)",
    "its own error": "print(1 / 0)",
}
SENTENCES = {
    "network": "Programs have no network",
    "name": "Programs have no network",
    "memory": "more memory than it may use",
    "time": "did not end within 1 seconds",
    "module": "needs the library prophet, which is not installed",
    "module in a function": "needs the library prophet, which is not installed",
    "input": "nobody can type",
    "its own error": "ZeroDivisionError",
}
REMEDIES: dict[str, dict[Host, str]] = {
    "network": {"terminal": "-f FILE", "notebook": "-f FILE", "page": "Upload a file", "mcp": "as a file"},
    "memory": {"terminal": "--memory 4G", "page": "serve --memory 4G", "mcp": "mcp --memory 4G"},
    "time": {"terminal": "--seconds 60", "page": "serve --seconds 60", "mcp": "mcp --seconds 60"},
    "module": {"terminal": "pip install prophet", "page": "Whoever started this page", "mcp": "this server"},
    "input": {"terminal": "into the question", "page": "into the question"},
}


@pytest.fixture(scope="module")
def executor() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=1), preload=()) as executor:
        yield executor


def ask(executor: SandboxExecutor, code: str, **options: Any) -> Any:
    model = ScriptedModel(lambda messages: f"```python\n{code}\n```")
    with create_code_chain(model, executor=executor, **options) as chain:
        return chain.invoke({"query": "What is it?"})


@pytest.mark.slow
@pytest.mark.parametrize("obstacle", SENTENCES)
def test_what_stops_any_program_is_a_sentence_above_its_error(
    executor: SandboxExecutor, obstacle: str
) -> None:
    answer = ask(executor, PROGRAMS[obstacle], solve=Repair(1))["answer"]
    first_line, *_ = answer.splitlines()
    assert SENTENCES[obstacle] in first_line


@pytest.mark.slow
@pytest.mark.parametrize("obstacle", REMEDIES)
def test_each_host_says_what_its_reader_can_do(executor: SandboxExecutor, obstacle: str) -> None:
    result = ask(executor, PROGRAMS[obstacle], solve=Repair(1))
    for host, words in REMEDIES[obstacle].items():
        assert words in remedy(result, host)


@pytest.mark.parametrize("code", ["print(1 / 0)", "print(1)"])
def test_errors_of_a_program_and_answers_have_no_remedy(executor: SandboxExecutor, code: str) -> None:
    assert remedy(ask(executor, code, solve=Repair(1)), "terminal") == ""


def test_a_misspelt_module_is_no_missing_library(executor: SandboxExecutor) -> None:
    answer = ask(executor, "import jsn", solve=Repair(1))["answer"]
    assert "did you mean 'json'?" in answer
    assert "needs the library" not in answer


@pytest.mark.parametrize("code", ["x = y + 1", "import prophet", "print(", ""])
def test_no_word_for_developers_reaches_the_reader(executor: SandboxExecutor, code: str) -> None:
    assert not re.search(r"\(\w+_\w+\)|\(parses\)|imports_available", ask(executor, code)["answer"])


@pytest.mark.slow
@pytest.mark.parametrize("obstacle", ["time", "memory", "its own error"])
def test_a_program_that_failed_is_not_run_again(executor: SandboxExecutor, obstacle: str) -> None:
    result = ask(executor, PROGRAMS[obstacle])
    assert [attempt.status for attempt in result["attempts"]][1:] == ["refused"] * 2
    assert result["execution"].status == result["attempts"][0].status
    assert SENTENCES[obstacle] in result["answer"]


def test_a_program_that_calls_a_tool_is_run_again(executor: SandboxExecutor) -> None:
    calls: list[int] = []

    @tool
    def fetch() -> int:
        """Return a number."""
        calls.append(1)
        if len(calls) < 2:
            raise ConnectionError("try again")
        return 42

    fetch.metadata = {"read_only": True}
    result = ask(executor, "print(fetch())", tools=[fetch])
    assert (result["output"], len(calls)) == ("42", 2)


def test_the_terminal_names_executors_by_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    cli_options._report(IsolationError("It cannot be built; use executor='wasm'."))
    assert capsys.readouterr().err == "Error: It cannot be built; use --executor wasm.\n"
