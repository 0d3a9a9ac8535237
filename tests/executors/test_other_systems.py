"""macOS and Windows as far as they can be imitated: their name, and modules and functions that they lack."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support import other_systems

ANSWER = """
import sys
from pathlib import Path
import code_chains, code_chains.apps.terminal.cli, code_chains.batch.runner, code_chains.evaluation
from code_chains import create_code_chain
from code_chains.testing import ScriptedModel

model = ScriptedModel(lambda _: "```python\\nprint(6 * 7)\\n```")
with create_code_chain(model, interpret=False, cache=sys.argv[1]) as chain:
    result = chain.invoke({"query": "six times seven", "session_id": "one"})
    print(result["output"], result["execution"].isolation.level)
    print(chain.invoke({"query": "six times seven, again", "files": [Path(sys.argv[2])]})["output"])
"""
EXECUTORS = """
from code_chains.errors import CodeChainsError
from code_chains.executors import ProcessExecutor, SandboxExecutor

for make in (SandboxExecutor, lambda: SandboxExecutor(min_isolation="landlock"), ProcessExecutor):
    try:
        make()
    except CodeChainsError as error:
        print(type(error).__name__, "executor='wasm'" in str(error))
"""


def run(system: str, code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        env=os.environ | other_systems.environment(system),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_a_chain_answers_in_webassembly(system: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("eryx")
    folder = tmp_path_factory.mktemp("data")
    (folder / "rows.csv").write_text("a,b\n1,2\n")
    assert run(system, ANSWER, str(folder / "answers.sqlite"), str(folder / "rows.csv")) == "42 wasm\n42\n"


@pytest.mark.slow
@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_what_needs_linux_says_so(system: str) -> None:
    assert run(system, EXECUTORS) == "IsolationError True\n" * 3
