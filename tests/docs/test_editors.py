"""What editors and type checkers find: the package, its files, and what a chain returns."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

QUESTION = """
from code_chains import create_code_chain

chain = create_code_chain("openai:test")
reveal_type(chain.invoke("How many?")["verdict"].status)
reveal_type(chain.invoke({"query": "How many?"})["attempts"][0].code)
for chunk in chain.stream("How many?"):
    reveal_type(chunk["execution"])

async def ask() -> None:
    reveal_type((await chain.ainvoke("How many?"))["usage"])
    async for part in chain.astream("How many?"):
        reveal_type(part["sources"])
"""


def test_an_editable_install_is_a_path_that_editors_follow() -> None:
    code = "import sys, code_chains; print(code_chains.__file__); print(*map(str, sys.meta_path))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert str(ROOT / "code_chains" / "__init__.py") in done.stdout
    assert "editable" not in done.stdout


@pytest.mark.slow
def test_a_wheel_has_all_modules_and_snippets_and_nothing_else(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True)
    [wheel] = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    snippets = {path.relative_to(ROOT / "snippets").as_posix() for path in (ROOT / "snippets").glob("*/*.py")}
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "code_chains").rglob("*.py")}
    assert {name.removeprefix("code_chains/curated/") for name in names if "/curated/" in name} == snippets
    assert {name for name in names if name.endswith(".py") and "/curated/" not in name} == modules


@pytest.mark.slow
def test_an_editor_knows_what_is_in_the_result_of_a_question(tmp_path: Path) -> None:
    program = tmp_path / "question.py"
    program.write_text(QUESTION)
    check = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(program)]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False)
    types = re.findall(r'Type of ".*" is "(.*)"', done.stdout)
    status = "Literal['verified', 'plausible', 'unverified', 'failed']"
    assert types == [status, "str", "Execution", "Usage", "tuple[Source, ...]"], done.stdout
