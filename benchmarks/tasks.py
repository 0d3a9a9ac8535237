"""Thirty everyday questions of our own for a real model, with checkers, and a small library of programs to retrieve from.

They are in `data/tasks.jsonl`: the question, a reference program, and what is wanted, a number (the output has it, however
it is written) or a regular expression. The library is `data/library.jsonl`. `python -m benchmarks.tasks` runs all programs
and checks the checkers.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.corpora import read_corpus

FILES: dict[str, str] = {entry["name"]: entry["text"] for entry in read_corpus("files")}
"""What the questions and the library name; `example.csv` is for the library."""

_NUMBER = re.compile(r"-?\d+(?:[,.'\u00a0\u202f]\d+)*")
_IGNORED = frozenset(
    ("the", "and", "are", "for", "how", "what", "which", "many", "have", "has", "with", "there", "does")
)


@dataclass(frozen=True)
class Task:
    """A question for a real model.

    Attributes:
        query: The question.
        reference: A program that answers it.
        wanted: What the output must have: a number, or a regular expression.
    """

    query: str
    reference: str
    wanted: str

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that the question needs."""
        return tuple(name for name in FILES if name in self.query)

    def right(self, output: str) -> bool:
        """Whether an output answers the question."""
        if not re.fullmatch(r"-?[\d.]+", self.wanted):
            return bool(re.search(self.wanted, output))
        return any(math.isclose(number, float(self.wanted), rel_tol=1e-6) for number in _numbers(output))


def _numbers(text: str) -> Iterator[float]:
    """The numbers of a text, with and without separators of thousands, with decimal points and commas."""
    for found in _NUMBER.findall(text):
        bare = re.sub(r"['\u00a0\u202f]", "", found)
        for reading in {bare.replace(",", ""), bare.replace(".", "").replace(",", ".")}:
            if reading.count(".") <= 1:
                yield float(reading)


TASKS: tuple[Task, ...] = tuple(
    Task(entry["query"], entry["program"], entry["wanted"]) for entry in read_corpus("tasks")
)
SNIPPETS: tuple[str, ...] = tuple(entry["program"] for entry in read_corpus("library"))


def _words(text: str) -> set[str]:
    """The words of a text, cut to their first letters so that forms of a word are one, without what it quotes."""
    plain = re.sub(r"(?<!\w)'[^']*'", "", text.lower())
    return {word[:5] for word in re.findall(r"[^\W\d_]{3,}", plain) if word not in _IGNORED}


@cache
def _spread() -> Counter[str]:
    return Counter(word for snippet in SNIPPETS for word in _words(snippet))


def retrieve(query: str) -> str:
    """The program of the library that shares most words with a question; words that few programs have count more."""
    asked = _words(query)
    return max(SNIPPETS, key=lambda snippet: sum(1 / _spread()[word] for word in asked & _words(snippet)))


def put_files(folder: Path) -> None:
    """Write all files into a folder."""
    for name, text in FILES.items():
        (folder / name).write_text(text)


def complaints() -> Iterator[str]:
    """What is wrong with the tasks and the library."""
    with tempfile.TemporaryDirectory() as folder:
        put_files(Path(folder))
        outputs = {
            program: _run(program, folder) for program in (*SNIPPETS, *(task.reference for task in TASKS))
        }
    for program, output in outputs.items():
        if not output.strip():
            yield f"this prints nothing: {program}"
    for task in TASKS:
        if not task.right(outputs[task.reference]):
            yield f"{task.query} {outputs[task.reference].strip()} is not {task.wanted}"
        if task.right(task.query):
            yield f"the question alone is taken for an answer: {task.query}"
        if task.right(outputs[retrieve(task.query)]):
            yield f"the hint is taken for an answer: {task.query}"


def _run(program: str, folder: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20, check=False).stdout


def main() -> int:
    """Print each question with what is retrieved for it, and what is wrong."""
    print(f"{len(TASKS)} tasks, {len(SNIPPETS)} programs to retrieve from\n")
    for task in TASKS:
        print(f"{task.query}\n    {retrieve(task.query).splitlines()[0]}")
    found = list(complaints())
    print("\n" + ("\n".join(found) or "All references pass their checkers."))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
