"""The numbers that the README shows come from commands that work."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.__main__ import put, section
from benchmarks.queries import QUERIES
from benchmarks.retrieval import recall_of_ours

from .conftest import ROOT

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("mistake", ["cheats", "wrong_type", "fence_junk"])
def test_no_wrong_answer_is_passed_as_right(mistake: str) -> None:
    command = [sys.executable, "-m", "benchmarks.answers", "replay", "--only", mistake]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, f"| {mistake} |" in done.stdout) == (0, True), done.stdout + done.stderr[-2000:]


def test_what_queries_ask_for_is_there() -> None:
    paths = [path for *_, right in QUERIES for path in ([right] if isinstance(right, str) else right)]
    assert [path for path in paths if not (ROOT / "snippets" / f"{path}.py").is_file()] == []


def test_most_of_what_queries_ask_for_is_among_the_first_three() -> None:
    assert recall_of_ours(3) >= 0.79  # 0.84 was measured.


def test_all_parts_run_and_say_what_they_found() -> None:
    command = [sys.executable, "-m", "benchmarks", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    shown = (
        "of the LangGraph graph",
        "of the ideal",
        "`code-chains --help`",
        "slope at the end",
        "| median ms |",
    )
    assert [part for part in shown if part not in done.stdout] == []


def test_a_section_is_replaced_and_the_others_stay() -> None:
    one = put("", "start", section("start", "old", 1.0))
    two = put(put(one, "overhead", section("overhead", "mine", 1.0)), "start", section("start", "new", 1.0))
    assert [word for word in ("mine", "new", "old") if word in two] == ["mine", "new"]
    assert two.index("mine") < two.index("new")


def test_nothing_is_left_after_many_questions_at_twice_the_capacity() -> None:
    """Some seconds of what `python -m benchmarks.soak` does for half an hour."""
    command = [sys.executable, "-m", "benchmarks.soak", "--minutes", "0.15"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "nothing grew"), (
        done.stdout + done.stderr[-2000:]
    )
