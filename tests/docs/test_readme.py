"""What the README and the examples show is true."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.conftest import ROOT

BLOCKS = [token for token in MarkdownIt().parse((ROOT / "README.md").read_text()) if token.type == "fence"]
COMMANDS = [token.content.strip() for token in BLOCKS if token.info == "bash"]
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "examples/README.md",
    "docs/MIGRATING.md",
]
PROGRAMS = "\n".join(token.content for token in BLOCKS if token.info == "python")


def run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_holds_two_commands() -> None:
    assert [command.split(" && ")[0] for command in COMMANDS] == [
        'pip install -e ".[local]"',
        'pip install -e ".[dev]"',
    ]


def test_the_second_command_is_the_one_that_ci_runs() -> None:
    install, test = COMMANDS[1].split(" && ")
    script = (ROOT / ".ci" / "run").read_text()
    assert install.replace("pip install", "pip install -q") in script
    assert re.search(rf"^ *{test} ", script, re.MULTILINE)


@pytest.mark.local_model
@pytest.mark.timeout(900)
def test_the_first_command_answers_the_first_question(tmp_path: Path) -> None:
    command = shlex.split(COMMANDS[0].split(" && ")[1])
    assert "15" in run(command, tmp_path)


@pytest.mark.kernel_sandbox
@pytest.mark.local_model
@pytest.mark.timeout(900)
def test_its_programs_run(tmp_path: Path) -> None:
    printed = run([sys.executable, "-c", PROGRAMS], tmp_path)
    assert all(part in printed for part in ("42", "unverified", "\nverified"))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_inside_the_repository_lead_somewhere(document: str) -> None:
    path = ROOT / document
    links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_every_folder_and_module_says_what_it_is_for() -> None:
    lines = (ROOT / "docs" / "map.md").read_text().splitlines()
    assert [line for line in lines if line.endswith("`:")] == []
    assert sum(line.startswith("- `") for line in lines) > 200


def test_each_extra_is_in_the_table_of_extras() -> None:
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")
    lines = (ROOT / "docs" / "getting-started.md").read_text().splitlines()
    shown = {name for line in lines if line.startswith("| `") for name in re.findall(r"`(\w+)`", line)}
    assert set(settings["options.extras_require"]) - shown == set()


def test_the_readmes_models_are_the_ones_there_are() -> None:
    from code_chains.models.weights import CATALOGUE

    text = (ROOT / "README.md").read_text()
    assert [name for name in CATALOGUE if name != "local:0.5b" and f'"{name}"' not in text] == []


def test_its_figures_were_measured() -> None:
    """Parts of the time in which Python starts, rounded as they stand there."""
    measured = [
        float(number)
        for number in re.findall(r"\d+(?:\.\d+)?", (ROOT / "benchmarks" / "RESULTS.md").read_text())
    ]
    shown = re.findall(r"(\d\.\d+) of (?:the time|it)\b", (ROOT / "README.md").read_text())
    decimals = {number: len(number.partition(".")[2]) for number in shown}
    assert shown
    assert [
        n for n, places in decimals.items() if float(n) not in {round(one, places) for one in measured}
    ] == []
