"""Questions about a private library, which no model can know, put to a real model.

    python -m benchmarks.own_library [--library tidewater_ops] [--model local:1.5b] [--ways none,docstrings] [--log FILE]
    python -m benchmarks.own_library --recall

`orchard_billing` served for development. `tidewater_ops` is held out: library, examples and questions were written without
sight of the code, and nothing was changed for them. With `--log`, what was asked is kept and not asked again.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import click

from benchmarks.answers import Outcome, ask, grouped, interval, logged, note, table
from code_chains import SandboxExecutor, SnippetStore, create_code_chain
from code_chains.chains import RetrieveChain
from code_chains.models import resolve_model

LIBRARIES = Path(__file__).parent / "libraries"
HEAD = ("way", "questions", "right, 95 %", "says it failed", "model calls", "seconds")
WAYS = ("none", "examples-only", "docstrings", "examples")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)")
DEFAULT_TOLERANCE = 1e-6


@dataclass(frozen=True)
class LibraryQuestion:
    """A question that the library answers, what is right, and a program that finds it."""

    id: str
    query: str
    expected: Any
    tolerance: float
    program: str

    def right(self, output: str) -> bool:
        """Return whether the last lines of an output state the expected value."""
        wanted = self.expected if isinstance(self.expected, list) else [self.expected]
        if isinstance(self.expected, bool):
            return bool(_truths(output)) and _truths(output)[-1] == self.expected
        if all(isinstance(one, int | float) for one in wanted):
            return self._has_numbers(output, wanted)
        return re.search(r".*?".join(re.escape(str(one)) for one in wanted), output, re.DOTALL) is not None

    def _has_numbers(self, output: str, wanted: list[Any]) -> bool:
        """Return whether an output has these numbers; its last line may have those of the question around a single one."""
        if len(wanted) > 1:
            return self._has_in_order(output, wanted)
        found = _numbers((output.strip().splitlines() or [""])[-1])
        if len(found) > 1:
            given = _numbers(self.query)
            found = [number for number in found if number not in given] or found
        return bool(found) and abs(found[-1] - wanted[0]) <= self.tolerance

    def _has_in_order(self, output: str, wanted: list[Any]) -> bool:
        """Return whether an output has these numbers in this order; they may be numbered."""
        numbers = _numbers(output)
        found = iter(numbers if len(numbers) <= 2 * len(wanted) else [])
        return all(any(abs(one - other) <= self.tolerance for other in found) for one in wanted)


def _numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text.replace(",", ""))]


def _truths(text: str) -> list[bool]:
    return [word in ("true", "yes") for word in re.findall(r"\b(?:true|false|yes|no)\b", text.lower())]


def questions(library: str) -> list[LibraryQuestion]:
    """Read the questions about a library."""
    lines = (LIBRARIES / f"{library}_questions.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines if line.strip()]
    return [
        LibraryQuestion(
            one["id"],
            one["question"],
            one["expected"],
            one.get("tolerance") or DEFAULT_TOLERANCE,
            one["program"],
        )
        for one in records
    ]


def store(library: str, way: str, packages: Path, sandbox: SandboxExecutor) -> SnippetStore | Literal[False]:
    """Return what the model is shown of the library."""
    if way == "none":
        return False
    found = (
        SnippetStore()
        if way == "examples-only"
        else SnippetStore.from_package(library, search_path=[packages])
    )
    if way != "docstrings":
        found.add_texts(*_examples(library))
    found.run_examples(sandbox.run)
    return found


def _examples(library: str) -> tuple[list[str], list[dict[str, str]]]:
    """Return the programs of the examples, each with the task in its first line."""
    files = sorted((LIBRARIES / f"{library}_examples").glob("*.py"))
    parts = [file.read_text(encoding="utf-8").partition("\n") for file in files]
    return [program for _, _, program in parts], [{"about": task.lstrip("# ")} for task, _, _ in parts]


def environment(library: str, folder: Path) -> tuple[str, Path]:
    """Install the library in a new virtual environment; return its interpreter and its packages.

    The folder must be readable for everybody, as the sandbox's user is another one than root.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = next((folder / "lib").glob("python*/site-packages"))
    shutil.copytree(LIBRARIES / library, packages / library)
    return str(folder / "bin/python"), packages


def recall(library: str) -> str:
    """Return how many names of the right programs a model is shown, if the package is not shown as a whole."""
    chain = RetrieveChain(SnippetStore.from_package(library, search_path=[LIBRARIES]))
    shown, wanted, programs, chars = 0, 0, 0, 0
    asked = questions(library)
    with patch("code_chains.chains.retrieve.MAX_PACKAGE_CHARS", 0):
        for one in asked:
            context = str(chain.invoke({"query": one.query})["context"])
            names = set(_names_used(one.program))
            found = names & set(re.findall(r"\w+", context))
            shown, wanted, programs = shown + len(found), wanted + len(names), programs + (found == names)
            chars += len(context)
    return (
        f"{library}: {shown} of {wanted} names, all of those of {programs} of {len(asked)} programs,"
        f" in {chars // len(asked):,} characters"
    )


def _names_used(program: str) -> Iterator[str]:
    """Yield the names that a program imports, its attributes and its keyword arguments."""
    for node in ast.walk(ast.parse(program)):
        match node:
            case ast.ImportFrom(names=names):
                yield from (name.name for name in names)
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name


def rows(outcomes: list[Outcome]) -> Iterator[tuple[object, ...]]:
    """A line for each way."""
    for way, ones in grouped(outcomes).items():
        right = sum(one.right for one in ones)
        told = sum(one.status in ("failed", "error") for one in ones)
        seconds = f"{sum(one.seconds for one in ones):.0f}"
        yield (
            way,
            len(ones),
            f"{right}: {interval(right, len(ones))}",
            told,
            sum(one.calls for one in ones),
            seconds,
        )


@click.command()
@click.option("--library", default="tidewater_ops", help="The private library.")
@click.option("--model", default="local:1.5b", help="Whatever create_code_chain takes.")
@click.option("--ways", default="none,docstrings,examples", help=f"Some of {', '.join(WAYS)}.")
@click.option("--seed", default=7, help="The seed of the model.")
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), help="A file to go on from.")
@click.option("--recall", "is_recall", is_flag=True, help="Ask no model: count the names that it is shown.")
def main(library: str, model: str, ways: str, seed: int, log: Path | None, is_recall: bool) -> None:
    """Ask all questions in each way, and print the table."""
    if is_recall:
        click.echo(recall(library))
        return
    chosen, name, asked = ways.split(","), f"{library} {model} seed={seed}", questions(library)
    known = {(one.group, one.task): one for one in logged(log, name)}
    with tempfile.TemporaryDirectory() as folder:
        python, packages = environment(library, Path(folder, "venv"))
        for way in chosen:
            with (
                SandboxExecutor(python=python, packages=[library], preload=()) as sandbox,
                create_code_chain(
                    resolve_model(model, seed=seed),
                    executor=sandbox,
                    interpret=False,
                    snippets=store(library, way, packages, sandbox),
                ) as chain,
            ):
                for question in asked:
                    if (way, question.id) not in known:
                        one = known[way, question.id] = ask(chain, way, question)
                        note(one, name, log)
    table(HEAD, rows([known[way, question.id] for way in chosen for question in asked]))


if __name__ == "__main__":
    main()
