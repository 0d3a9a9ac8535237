"""A learner's work at a lesson as a notebook that nbgrader can collect and grade."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import nbformat

from code_chains.conversations.export import notebook_of
from code_chains.lessons.lesson import Step
from code_chains.lessons.progress import Progress


def to_notebook(progress: Progress) -> nbformat.NotebookNode:
    """Return a notebook with the exercises of a lesson and the learner's programs.

    Each exercise has the cells of an assignment of nbgrader: its text and setup, which are locked, the learner's program,
    and the examples as tests of one point. Hidden tests and solutions are not in it.

    Args:
        progress: What the learner did.
    """
    lesson = progress.lesson
    cells = [_cell("markdown", "title", f"# {lesson.title}\n\n{lesson.text}", locked=True)]
    if lesson.setup:
        cells.append(_cell("code", "setup", lesson.setup.code, locked=True))
    for step in lesson.steps:
        cells += _cells(step, progress.draft(step))
    return notebook_of(cells)


def _cells(step: Step, program: str) -> Iterator[dict[str, Any]]:
    name = f"step-{step.number}"
    yield _cell("markdown", f"{name}-text", f"## {step.title}\n\n{step.text}", locked=True)
    if step.setup:
        yield _cell("code", f"{name}-setup", step.setup.code, locked=True)
    if step.form != "program":
        yield _cell("markdown", f"{name}-answer", program, solution=True, grade=True, points=step.points)
    elif step.is_exercise:
        yield _cell("code", f"{name}-program", program, solution=True)
    if step.examples and step.examples.expectations.tests.body:
        yield _cell("code", f"{name}-examples", step.examples.code, locked=True, grade=True, points=1)
    elif step.examples:
        yield _cell("markdown", f"{name}-examples", f"```yaml\n{step.examples.code}```", locked=True)


def _cell(kind: str, name: str, source: str, **options: Any) -> dict[str, Any]:
    """Return a cell with the metadata of nbgrader's format, version 3."""
    roles = {"grade": False, "solution": False, "locked": False, "task": False, **options}
    metadata = {"nbgrader": {"schema_version": 3, "grade_id": name, **roles}}
    cell = {"cell_type": kind, "id": name, "metadata": metadata, "source": source.strip("\n")}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}
