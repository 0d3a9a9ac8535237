"""What the documentation shows is true: its programs run, its commands exist, its links lead somewhere."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from markdown_it import MarkdownIt

from code_chains.apps.terminal.cli import cli
from tests.conftest import ROOT, SUM_ANSWER, SUM_CODE, OpenAI

DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name != "MIGRATING.md")
"""That one is run by test_migrating.py, beside what it replaces."""
REPLIES = {
    "harmonic_mean of": "from statistics import harmonic_mean\nprint('Harmonic mean:', harmonic_mean([40, 60]))",
    "number of rows": "import pandas\nsales = pandas.read_csv('sales.csv')\nprint(len(sales))",
    "bar chart": "import matplotlib.pyplot as plt\nplt.bar(sales['region'], sales['amount'])",
    "total amount": "import pandas\nprint(pandas.read_csv('sales.csv')['amount'].sum())",
    "sales by region": "import pandas\npandas.read_csv('sales.csv')",
    "n squared": "print(n * n)",
    "total of the open orders": "print('Total:', sum(sum(open_orders(customer)) for customer in (1, 2, 3)))",
    "orders are still open": "final_answer(sum('open' in line.lower() for line in open('stock.txt')))",
    "double(x)": "def double(x):\n    return x + x",
}


def blocks(path: Path, language: str) -> list[str]:
    return [token.content for token in MarkdownIt().parse(path.read_text()) if token.info == language]


def reply(messages: list[dict[str, Any]]) -> str:
    asked = str(messages[-1]["content"])
    if "Output of the program:" in asked:
        return SUM_ANSWER
    code = next((code for words, code in REPLIES.items() if words in asked), SUM_CODE)
    return f"```python\n{code}\n```"


WITH_PROGRAMS = [path for path in PAGES if blocks(path, "python")]


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_PROGRAMS, ids=lambda path: path.stem)
def test_the_code_blocks_of_a_page_run(
    path: Path,
    openai_server: OpenAI,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    openai_server.script = reply
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "of the tests")
    monkeypatch.chdir(tmp_path)
    program = "\n".join(blocks(path, "python"))
    # In this process: importing takes seconds.
    exec(compile(program, path.name, "exec"), {"__name__": "__main__"})
    printed = capfd.readouterr().out
    for line in program.splitlines():  # What a comment beside print says is what is printed.
        if line.lstrip().startswith("print(") and "  # " in line:
            assert line.rpartition("  # ")[2] in printed


def commands() -> list[str]:
    lines = [line for path in PAGES for block in blocks(path, "bash") for line in block.splitlines()]
    return sorted({line for line in lines if line.startswith("code-chains")})


@pytest.mark.parametrize("line", commands())
def test_a_command_that_is_shown_exists(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("questions.jsonl", "cases.jsonl", "first.json", "loops.md"):
        (tmp_path / file).touch()
    words = shlex.split(line)[1:]
    context = click.Context(cli, info_name="code-chains", **cli.context_settings)
    name, command, rest = cli.resolve_command(context, words)
    assert command is not None
    assert command.make_context(name, list(rest), parent=context, resilient_parsing=False)


def test_the_generated_pages_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stale = [path.name for path, text in module.pages().items() if path.read_text() != text]
    assert stale == [], "run `python docs/generate.py`"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_site_builds_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    build = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    done = subprocess.run(build, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "create_code_chain" in (tmp_path / "site" / "api.html").read_text()
