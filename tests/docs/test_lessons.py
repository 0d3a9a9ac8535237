"""What the documentation shows of a lesson is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from code_chains.apps.terminal import question_log
from code_chains.apps.terminal.cli import cli
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.kernel_sandbox]


def test_a_lesson_is_played_as_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_log, "data_folder", lambda: tmp_path)
    page = (ROOT / "docs/lessons.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```text played\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    typed = "".join(f"{line[2:]}\n" for line in block.splitlines() if line.startswith("> "))
    played = CliRunner().invoke(cli, ["learn", str(ROOT / "examples/lessons/loops.md")], input=typed).output
    place = 0
    for line in block.splitlines():
        if not line.startswith("> "):
            assert (place := played.find(line, place)) >= 0, line
