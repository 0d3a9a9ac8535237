"""The numbers that the README shows come from commands that work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import main, put, section
from benchmarks.own_library import environment, questions
from benchmarks.published import renumbered
from benchmarks.queries import QUERIES
from code_chains.retrieval.curated import curated_snippets
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    "mistake",
    ["cheats", *(pytest.param(name, marks=pytest.mark.soak) for name in ("wrong_type", "fence_junk"))],
)
def test_no_wrong_answer_is_passed_as_right(mistake: str) -> None:
    command = [sys.executable, "-m", "benchmarks.answers", "replay", "--only", mistake]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, f"| {mistake} |" in done.stdout) == (0, True), done.stdout + done.stderr[-2000:]


def test_what_queries_ask_for_is_there() -> None:
    paths = [path for *_, right in QUERIES for path in ([right] if isinstance(right, str) else right)]
    assert [path for path in paths if not (ROOT / "snippets" / f"{path}.py").is_file()] == []


def test_most_of_what_queries_ask_for_is_among_the_first_three() -> None:
    store = curated_snippets()
    hits = 0
    for _, query, right in QUERIES:
        first_three = {document.metadata["source"] for document in store.similarity_search(query, k=3)}
        hits += not first_three.isdisjoint(
            f"{path}.py" for path in ([right] if isinstance(right, str) else right)
        )
    assert hits / len(QUERIES) >= 0.87  # 0.90 was measured.


QUICK = {
    "overhead": "of the LangGraph graph",
    "capacity": "p99 / p50",
    "tool_calls": "from a program in the sandbox",
    "growth": "slope at the end",
    "caching": "| median ms |",
    "throughput": "of the ideal",
    "start": "`code-chains --help`",
}
"""What each part of the benchmarks prints."""


@pytest.mark.parametrize(
    "parts",
    [("overhead", "growth"), pytest.param(tuple(QUICK), marks=pytest.mark.soak)],
    ids=["the fastest", "all"],
)
def test_parts_run_and_say_what_they_measured(parts: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "benchmarks", "--quick", *parts]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert [part for part in parts if QUICK[part] not in done.stdout] == []


def test_a_part_without_a_quick_form_is_refused() -> None:
    result = CliRunner().invoke(main, ["--quick", "answers"])
    assert (result.exit_code, "answers has no quick form" in result.stderr) == (2, True)


def test_a_section_is_replaced_and_the_others_stay() -> None:
    one = put("", "start", section("start", "old", 1.0))
    two = put(put(one, "overhead", section("overhead", "mine", 1.0)), "start", section("start", "new", 1.0))
    assert [word for word in ("mine", "new", "old") if word in two] == ["mine", "new"]
    assert two.index("mine") < two.index("new")


@pytest.mark.soak
def test_nothing_is_left_after_many_questions_at_twice_the_capacity() -> None:
    """Some seconds of what `python -m benchmarks.soak` does for half an hour."""
    command = [sys.executable, "-m", "benchmarks.soak", "--minutes", "0.15"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "nothing grew"), (
        done.stdout + done.stderr[-2000:]
    )


@pytest.mark.parametrize("library", ["orchard_billing", "tidewater_ops"])
def test_the_programs_of_questions_about_a_library_answer_them(library: str, tmp_path: Path) -> None:
    python, _ = environment(library, tmp_path / "venv")
    asked = questions(library)
    for question in asked:
        (tmp_path / f"{question.id}.py").write_text(question.program, encoding="utf-8")
    run = "import pathlib, runpy, sys\nfor name in sys.argv[1:]:\n  runpy.run_path(name)\n  print('\\0')"
    paths = [str(tmp_path / f"{question.id}.py") for question in asked]
    done = subprocess.run([python, "-c", run, *paths], capture_output=True, text=True, check=True)
    outputs = done.stdout.split("\0")
    assert [one.id for one, output in zip(asked, outputs, strict=False) if not one.right(output)] == []
    assert [one.id for one in asked if one.right("0.123")] == []


def test_a_question_gets_other_numbers_and_the_answer_of_those() -> None:
    twin = renumbered(
        "twin-1", "A box holds 45 nails. How many do 16 boxes hold?", "<<45*16=720>>720\n#### 720"
    )
    assert twin is not None
    assert twin.query == "A box holds 46 nails. How many do 17 boxes hold?"
    assert twin.is_right("They hold 782 nails.")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Sue has 24 books and gets twice as many. How many?", "2*24 = 48\n<<24+48=72>>72\n#### 72"),
        ("Ann has four cats per 15 mice, of 60 mice. How many eyes?", "<<60/15=4>>4, <<4*4=16>>16\n#### 16"),
        (
            "A job pays 15 for 800 hours; tax is 12,000. What is left?",
            "<<15*800=12000>>, <<12000-12000=0>>#### 0",
        ),
        ("He eats 5 on weekdays. How many a week?", "<<5*5=25>>25\n#### 25"),
    ],
    ids=["a step in words", "a result like a word", "a result like a number", "a number from a word"],
)
def test_a_question_whose_numbers_cannot_be_told_apart_keeps_them(question: str, answer: str) -> None:
    assert renumbered("twin-1", question, answer) is None
