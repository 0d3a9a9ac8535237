"""The curated snippets: each runs, shows something, has a unique first line and passes the checks."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from code_chains.analysis.checks import POLICIES, find_problems
from code_chains.executors import Limits, SandboxExecutor

from .conftest import ROOT

SNIPPETS = sorted((ROOT / "snippets").glob("*/*.py"))
each_snippet = pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: f"{path.parent.name}-{path.stem}")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=30), preload=("numpy", "pandas")) as sandbox:
        yield sandbox


def first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


@each_snippet
def test_it_runs_and_has_output(sandbox: SandboxExecutor, path: Path) -> None:
    execution = sandbox.run(path.read_text(encoding="utf-8"))
    assert execution.ok, execution.summary
    assert execution.output or any(
        artifact.media_type.startswith("image/") for artifact in execution.artifacts
    )


@each_snippet
def test_its_first_line_is_one_short_sentence(path: Path) -> None:
    line = first_line(path)
    assert line.endswith(".")
    assert len(line) <= 100


@each_snippet
def test_it_passes_the_standard_checks(path: Path) -> None:
    problems = find_problems(path.read_text(encoding="utf-8"), POLICIES["standard"])
    assert [problem for problem in problems if problem.severity == "error"] == []


def test_every_topic_has_several() -> None:
    counts = Counter(path.parent.name for path in SNIPPETS)
    assert counts.total() >= 120
    assert {topic: count for topic, count in counts.items() if count < 6} == {}


def test_first_lines_are_unique() -> None:
    lines = Counter(map(first_line, SNIPPETS))
    assert [line for line, count in lines.items() if count > 1] == []
