"""The numbers that the README shows come from commands that work."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .conftest import ROOT


@pytest.mark.parametrize("mistake", ["cheats", "wrong_type", "fence_junk"])
def test_no_wrong_answer_is_passed_as_right(mistake: str) -> None:
    command = [sys.executable, "-m", "benchmarks.answers", "replay", "--only", mistake]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, f"| {mistake} |" in done.stdout) == (0, True), done.stdout + done.stderr[-2000:]
