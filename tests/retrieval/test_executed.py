"""Examples that were run before a model is shown them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import BaseMessage

from code_chains import SnippetStore, create_code_chain
from code_chains.chains import RetrieveChain
from code_chains.executors import Limits, SandboxExecutor
from code_chains.executors.registry import resolve_executor
from code_chains.retrieval import executed
from code_chains.testing import ScriptedModel

FAKE = DeterministicFakeEmbedding(size=32)
SOURCE = '''
def good(n):
    """Double.

    >>> good(2)
    4
    >>> good("a")
    'aa'
    """
    return n * 2

def stale(n):
    """Add one; the documentation is of before.

    >>> stale(1)
    3
    """
    return n + 1

def raises(n):
    """Divide.

    >>> raises(0)
    Traceback (most recent call last):
        ...
    ZeroDivisionError: division by zero
    """
    return 1 / n

def broken():
    """Do nothing.

    >>> 1 + 1
    2
    >>> unknown()
    1
    >>> 2 + 2
    4
    """

def skipped():
    """Read.

    >>> open("/of/nobody")  # doctest: +SKIP
    """

def loud():
    """Print.

    >>> loud()
    1
    <BLANKLINE>
    2
    """
    print("1\\n\\n2")

def ends():
    """End the process.

    >>> ends()
    """
    import os
    os._exit(3)

def sleeps():
    """Wait.

    >>> sleeps()
    """
    while True:
        pass

class Box:
    """A box."""
    @property
    def size(self):
        """The size.

        >>> Box().size
        3
        """
        return 3
'''


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "venv"  # Which others may read.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next((folder / "lib").glob("python*/site-packages"))
    (site / "doubling.py").write_text(SOURCE)
    return site


@pytest.fixture(scope="module")
def executor(packages: Path) -> Iterator[SandboxExecutor]:
    python = str(packages.parents[2] / "bin/python")
    with SandboxExecutor(
        python=python, packages=["doubling"], preload=(), limits=Limits(seconds=0.5)
    ) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def ran(packages: Path, executor: SandboxExecutor) -> tuple[SnippetStore, executed.ExampleRuns]:
    store = SnippetStore.from_package("doubling", FAKE, search_path=[packages])
    programs = {"Double 4.": "from doubling import good\nprint(good(4))", "Fail.": "print(1 / 0)"}
    store.add_texts(list(programs.values()), [{"about": task} for task in programs], ids=list(programs))
    return store, store.run_examples(executor.run)


SHOWN = {
    "good": [">>> good(2)", "4", '>>> good("a")', "'aa'"],
    "stale": [">>> stale(1)", "2"],
    "raises": [
        ">>> raises(0)",
        "Traceback (most recent call last):",
        "    ...",
        "ZeroDivisionError: division by zero",
    ],
    "broken": [">>> 1 + 1", "2"],
    "skipped": [],
    "loud": [">>> loud()", "1", "<BLANKLINE>", "2"],
    "ends": [],
    "sleeps": [],
    "Box.size": [">>> Box().size", "3"],
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_ran_is_shown_with_its_output_and_nothing_that_failed(
    ran: tuple[SnippetStore, executed.ExampleRuns], name: str
) -> None:
    [shown] = ran[0].get_by_ids([f"doubling.{name}#{name.rpartition('.')[2]}"])
    lines = shown.page_content.splitlines()
    first = next((place for place, line in enumerate(lines) if line.startswith(">>>")), len(lines))
    assert lines[first:] == SHOWN[name]
    assert "not run" not in shown.page_content


def test_what_failed_is_counted_with_its_reason(ran: tuple[SnippetStore, executed.ExampleRuns]) -> None:
    """Also what ended the process or the time of a run, after which the others are run."""
    _, report = ran
    assert set(report.failed) == {"doubling.broken", "doubling.ends", "doubling.sleeps", "Fail."}
    assert "unknown" in report.failed["doubling.broken"]
    assert {"doubling.good", "doubling.Box.size", "Double 4."} <= set(report.ran)
    assert report.not_run == []


def test_a_program_is_shown_with_its_output_and_one_that_fails_is_not(
    ran: tuple[SnippetStore, executed.ExampleRuns],
) -> None:
    context = RetrieveChain(ran[0]).invoke({"query": "`good`"})["context"]
    assert "Task: Double 4.\nProgram:\nfrom doubling import good\nprint(good(4))\nIt prints:\n8\n" in context
    assert "Task: Fail." not in context
    assert "8" in context.examples  # It is a value of another task.


def test_nothing_is_run_twice_also_after_saving(
    ran: tuple[SnippetStore, executed.ExampleRuns], executor: SandboxExecutor, tmp_path: Path
) -> None:
    ran[0].save(tmp_path)
    again = SnippetStore.load(tmp_path, FAKE).run_examples(executor.run)
    assert (again.ran, again.failed, again.not_run) == ([], {}, [])


@pytest.mark.parametrize("kind", ["none", "no package"])
def test_without_isolation_or_the_package_examples_are_shown_as_not_run(packages: Path, kind: str) -> None:
    store = SnippetStore.from_package("doubling", FAKE, search_path=[packages])
    with resolve_executor("none" if kind == "none" else "sandbox", None) as other:
        report = store.run_examples(other.run)
    assert (report.ran, "doubling.good" in report.not_run) == ([], True)
    [shown] = store.get_by_ids(["doubling.good#good"])
    assert "# From the documentation, not run:\n>>> good(2)\n" in shown.page_content


def test_more_docstrings_than_the_limit_are_shown_as_not_run(
    packages: Path, executor: SandboxExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executed, "MAX_DOCSTRINGS", 2)
    store = SnippetStore.from_package("doubling", FAKE, search_path=[packages])
    report = store.run_examples(executor.run)
    assert len(report.ran) + len(report.failed) == 2
    assert len(report.not_run) == len(SHOWN) - 2


@pytest.mark.slow  # It embeds the package.
def test_a_chain_for_a_package_runs_its_examples_first() -> None:
    seen: list[str] = []

    def write(messages: list[BaseMessage]) -> str:
        seen.append(str(messages))
        return "```python\nfrom statistics import mean\nprint(mean([1, 2]))\n```"

    with create_code_chain(ScriptedModel(write), snippets="package:statistics", interpret=False) as chain:
        chain.invoke({"query": "What is the `mean` of 1 and 2?"})
    assert ">>> mean(" in seen[0]
    assert "not run" not in seen[0]
