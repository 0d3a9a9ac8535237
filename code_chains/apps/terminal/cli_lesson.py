"""`code-chains lesson`: begin a lesson, check it, and make the copy that learners get."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from code_chains.apps.terminal.cli_options import echo, handle_errors
from code_chains.errors import InputError
from code_chains.records.printable import strip_control_chars

if TYPE_CHECKING:
    from code_chains.lessons.lesson import Step

_FILE = click.Path(dir_okay=False, path_type=Path)
_EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def lesson() -> None:
    """Write lessons: coding exercises that check themselves.

    A lesson is one Markdown file; `docs/lessons.md` says what it may hold.
    """


@lesson.command()
@click.argument("file", type=_FILE)
@handle_errors
def new(file: Path) -> None:
    """Write a small lesson to FILE, to begin with.

    Example: code-chains lesson new loops.md
    """
    from code_chains.lessons.release import TEMPLATE

    _write(file, TEMPLATE, force=False)
    echo(f"Wrote {file}. Edit it, then: code-chains lesson check {file}", err=True)


@lesson.command()
@click.argument("file", type=_EXISTING)
@click.option("--strict", is_flag=True, help="Fail on warnings, too.")
@handle_errors
def check(file: Path, strict: bool) -> None:
    """Check the lesson in FILE as learners would find it.

    Its tests must accept the solution, and reject the starter, each wrong program and mutants of the solution. The programs
    of its text run, its links lead somewhere, and the modules that it needs are installed. Exit code 1 if there are errors.

    Example: code-chains lesson check loops.md
    """
    from code_chains.executors.registry import resolve_executor
    from code_chains.lessons import read_lesson
    from code_chains.lessons.check import LessonCheck

    found = read_lesson(file)
    if found.is_released:
        raise InputError(f"{file.name} is the learner's copy. Check the lesson that it was made of.")
    counts = {"error": 0, "warning": 0}
    with resolve_executor("strongest", found.limits) as executor:
        for finding in LessonCheck(found, executor).findings(_say_step):
            counts[finding.severity] += 1
            echo(str(finding))
    errors, warnings = counts["error"], counts["warning"]
    verdict = "is not ready" if errors else "is ready"
    echo(
        f"{found.title} {verdict}. Exercises: {len(found.exercises)}, errors: {errors}, warnings: {warnings}."
    )
    sys.exit(1 if errors or (strict and warnings) else 0)


def _say_step(step: Step) -> None:
    echo(f"Step {step.number}: {step.title}", err=True)


@lesson.command()
@click.argument("file", type=_EXISTING)
@click.option("-o", "--out", type=_FILE, help="The learner's copy. [default: FILE-learner.md]")
@click.option("--force", is_flag=True, help="Replace the copy if it exists.")
@handle_errors
def release(file: Path, out: Path | None, force: bool) -> None:
    """Write the learner's copy of the lesson in FILE: without hidden tests, solutions and hints.

    Example: code-chains lesson release loops.md -o learner/loops.md
    """
    from code_chains.lessons import read_lesson
    from code_chains.lessons.reading import read_text
    from code_chains.lessons.release import release as release_text

    text = read_text(file)
    read_lesson(file)
    target = out or file.with_name(f"{file.stem}-learner.md")
    _write(target, release_text(text), force=force)
    echo(f"Wrote {target}. Give it to learners with the files that the lesson names.", err=True)


@lesson.command()
@click.argument("file", type=_EXISTING)
@click.option("--store", type=_EXISTING, help="Where the work is kept.  [default: that of the page]")
@click.option(
    "--grades",
    type=click.Choice(["moodle", "canvas"]),
    help="A row for each learner with the points of each exercise, as this system imports them.",
)
@handle_errors
def report(file: Path, store: Path | None, grades: str | None) -> None:
    """Print a CSV of what learners did at the lesson in FILE on the page, with a row for each exercise.

    Example: code-chains lesson report loops.md --grades moodle > grades.csv
    """
    import csv

    from code_chains.apps.terminal.question_log import data_folder
    from code_chains.batch.export import without_formula
    from code_chains.lessons import read_lesson
    from code_chains.lessons import report as reports
    from code_chains.storage.sqlite import SqliteStore

    kept = store or data_folder() / "page" / "lessons.sqlite"
    if not kept.exists():
        raise InputError(
            f"Nobody has worked at a lesson yet: there is no {str(kept)!r}. See serve --lessons."
        )
    with SqliteStore(kept) as opened:
        if grades:
            rows = reports.grades(read_lesson(file), opened, grades)
        else:
            exercises = reports.report(read_lesson(file), opened)
            rows = [list(reports.COLUMNS), *([row[name] for name in reports.COLUMNS] for row in exercises)]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerows([without_formula(_plain(cell)) for cell in row] for row in rows)


def _plain(cell: object) -> object:
    """Return a cell without what steers a terminal: learners say how they are called."""
    return strip_control_chars(cell) if isinstance(cell, str) else cell


def _write(file: Path, text: str, *, force: bool) -> None:
    if file.exists() and not force:
        raise InputError(f"{str(file)!r} exists. Choose another name.")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{str(file)!r} cannot be written: {error.strerror}.") from error


@click.command()
@click.argument("file", type=_EXISTING)
@click.option("-m", "--model", help="Answers questions and gives hints, e.g. local or openai:gpt-5-mini.")
@click.option("--base-url", help="Base URL of an OpenAI-compatible server.")
@click.option("--learner", default="me", show_default=True, help="Whose work it is, on a shared machine.")
@handle_errors
def learn(file: Path, model: str | None, base_url: str | None, learner: str) -> None:
    """Work at the lesson in FILE: write, run, submit, ask.

    Your work is kept in the folder of your data; /forget deletes it.

    Example: code-chains learn loops.md
    """
    from code_chains.apps.terminal.chat import LineReader
    from code_chains.apps.terminal.learn import opened
    from code_chains.apps.terminal.question_log import data_folder

    with opened(file, model=model, base_url=base_url, learner=learner) as work:
        work.run(LineReader(data_folder() / "learn-history"))
