"""The curated snippets: each runs, shows something, has a unique first line and passes the checks."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from code_chains.analysis.checks import POLICIES, find_problems
from code_chains.executors import Limits, SandboxExecutor
from code_chains.retrieval.curated import CuratedEmbeddings, curated_folder, known_vectors, text_key
from code_chains.retrieval.embeddings import OfflineEmbeddings
from code_chains.retrieval.loaders import read_folder
from code_chains.retrieval.persistence import searched_text
from tests.conftest import ROOT

SNIPPETS = sorted((ROOT / "snippets").glob("*/*.py"))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=30), preload=("numpy", "pandas")) as sandbox:
        yield sandbox


def first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def is_shown(sandbox: SandboxExecutor, path: Path) -> bool:
    """Whether a snippet runs, and prints or draws something."""
    done = sandbox.run(path.read_text(encoding="utf-8"))
    is_drawn = any(artifact.media_type.startswith("image/") for artifact in done.artifacts)
    return done.ok and (bool(done.output) or is_drawn)


@pytest.mark.smoke
@pytest.mark.slow
def test_one_of_each_topic_runs_and_has_output(sandbox: SandboxExecutor) -> None:
    one_of_each = {path.parent: path for path in SNIPPETS}.values()
    assert [path.name for path in one_of_each if not is_shown(sandbox, path)] == []


@pytest.mark.slow
def test_all_run_and_have_output(sandbox: SandboxExecutor) -> None:
    assert [path.name for path in SNIPPETS if not is_shown(sandbox, path)] == []


def test_first_lines_are_one_short_sentence() -> None:
    lines = map(first_line, SNIPPETS)
    assert [line for line in lines if not line.endswith(".") or len(line) > 100] == []


@pytest.mark.slow
def test_all_pass_the_standard_checks() -> None:
    problems = {
        path.name: find_problems(path.read_text(encoding="utf-8"), POLICIES["standard"]) for path in SNIPPETS
    }
    assert [name for name, found in problems.items() if any(one.severity == "error" for one in found)] == []


def test_every_topic_has_several() -> None:
    counts = Counter(path.parent.name for path in SNIPPETS)
    assert counts.total() >= 120
    assert {topic: count for topic, count in counts.items() if count < 6} == {}


def test_first_lines_are_unique() -> None:
    lines = Counter(map(first_line, SNIPPETS))
    assert [line for line, count in lines.items() if count > 1] == []


def test_the_vector_of_each_snippet_comes_with_the_package() -> None:
    texts = map(searched_text, read_folder(curated_folder()))
    assert {text_key(text) for text in texts} == set(known_vectors()), "Run docs/generate.py."


@pytest.mark.slow
def test_the_vectors_in_the_package_are_those_that_the_models_compute() -> None:
    texts = [searched_text(snippet) for snippet in read_folder(curated_folder())[::60]]
    computed = OfflineEmbeddings(multilingual=True).documents(texts)
    assert np.allclose([known_vectors()[text_key(text)] for text in texts], computed, atol=0.002)


def test_a_text_without_a_vector_is_embedded() -> None:
    embedding, known = CuratedEmbeddings(), next(iter(read_folder(curated_folder())))
    both = embedding.documents([searched_text(known), "Draw a fern."])
    assert np.allclose(both[1], OfflineEmbeddings().documents(["Draw a fern."])[0], atol=0.001)
    assert not np.allclose(both[0], both[1], atol=0.1)
