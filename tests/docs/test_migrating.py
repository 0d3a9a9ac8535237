"""The migration guide: old lines fail, current ones work, and its programs run."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import langchain
import pytest
from langchain_classic.chains import TransformChain
from langchain_core.caches import InMemoryCache
from langchain_core.globals import get_llm_cache
from markdown_it import MarkdownIt

from code_chains.testing import ScriptedModel
from tests.conftest import ROOT, SUM_ANSWER, OpenAI

PAGE = (ROOT / "docs" / "MIGRATING.md").read_text()
ROWS = [re.split(r"(?<!\\)\|", line)[1:-1] for line in PAGE.splitlines() if line.startswith("| `")]
PROGRAMS = [
    token.content for token in MarkdownIt().parse(PAGE) if token.type == "fence" and token.info == "python"
]
BEFORE = [
    token.content for token in MarkdownIt().parse(PAGE) if token.type == "fence" and token.info == "text"
]


def lines(cells: list[str], prefix: str) -> list[str]:
    """Return the code spans that begin with a prefix."""
    return sorted(
        {line for cell in cells for line in re.findall(r"`([^`]+)`", cell) if line.startswith(prefix)}
    )


IMPORTS = [row for row in ROWS if row[0].strip().startswith("`from ")]
CALLS = [row for row in ROWS if row[0].strip().startswith("`model")]


@pytest.fixture
def names(openai_server: OpenAI, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The namespace that the programs of the page share; OpenAI's base URL is a local server."""
    openai_server.script = reply
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return {}


def reply(messages: list[dict[str, Any]]) -> str:
    """Reply with a sum; resolve "that" only if the prompt contains the sum."""
    prompt = str(messages[-1]["content"])
    if "Tell the answer" in prompt or "Output of the program:" in prompt:
        return "Twice that is 30." if "twice" in prompt else SUM_ANSWER
    if "twice" in prompt:
        return "result = 2 * 15" if SUM_ANSWER in prompt else "result = 'twice what?'"
    return "result = sum(range(1, 6))"


@pytest.mark.parametrize("line", lines([row[0] for row in IMPORTS], "from "))
def test_an_old_import_fails(line: str) -> None:
    with pytest.raises((ImportError, AssertionError)):
        exec(line)


@pytest.mark.parametrize("line", lines([cell for row in IMPORTS for cell in row[1:]], "from "))
def test_a_current_import_works(line: str) -> None:
    exec(line)


@pytest.mark.parametrize(("then", "today"), [[cell.strip(" `") for cell in row] for row in CALLS])
def test_an_old_call_fails_and_the_current_one_works(then: str, today: str) -> None:
    names = {"model": ScriptedModel(lambda messages: messages[-1].text)}
    with pytest.raises((TypeError, AttributeError)):
        eval(then, names)
    assert "Hello" in str(eval(today, names))


def test_the_old_program_fails() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"langchain\.chains"):
        exec(BEFORE[0], {})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
def test_the_steps_give_the_same_answers(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    for program in PROGRAMS:
        exec(program, names)
    both, sure = [SUM_ANSWER, "Twice that is 30."], "(unverified)"
    assert capsys.readouterr().out.splitlines() == [
        *both,
        *both,
        "FileNotFoundError: [Errno 2] No such file or directory: '/etc/shadow'",
        *(f"{answer} {sure}" for answer in both),
        both[1],
        "4 messages",
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("names")
def test_changing_the_imports_gives_three_deprecation_warnings() -> None:
    # They come once in a process.
    process = subprocess.run([sys.executable, "-c", PROGRAMS[0]], capture_output=True, text=True, check=True)
    classes = re.findall(r"LangChainDeprecationWarning: The class `(\w+)`", process.stderr)
    assert sorted(classes) == ["ConversationBufferMemory", "InMemoryChatMessageHistory", "LLMChain"]


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
@pytest.mark.parametrize(
    "call", ["chain({'n': '1'})['m']", "chain.run('1')", "chain.apply([{'n': '1'}])[0]['m']"]
)
def test_classic_calls_still_work(call: str) -> None:
    chain = TransformChain(
        input_variables=["n"], output_variables=["m"], transform=lambda state: {"m": state["n"]}
    )
    assert eval(call, {"chain": chain}) == "1"


def test_the_old_cache_is_accepted_and_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langchain, "llm_cache", InMemoryCache(), raising=False)
    assert get_llm_cache() is None


def test_the_whole_table_is_tested() -> None:
    table = [line for line in PAGE.splitlines() if line.startswith("| `from ")]
    assert (len(IMPORTS), len(CALLS), {len(row) for row in IMPORTS}) == (len(table), 3, {3})
