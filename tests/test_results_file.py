"""A results file contains complete lines, exactly once each, even if its writer crashes."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from code_chains.batch.results_file import ResultsFile
from code_chains.errors import StoreError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.jsonl"


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def test_a_resumed_file_knows_the_answered_questions(path: Path) -> None:
    with ResultsFile(path) as results_file:
        results_file.add({"id": "a"})
    with ResultsFile(path, resume=True) as results_file:
        assert results_file.done == {"a"}
        results_file.add({"id": "b"})
    assert ids(path) == ["a", "b"]


def test_nothing_is_written_twice(path: Path) -> None:
    with ResultsFile(path) as results_file:
        results_file.add({"id": "a", "n": 1})
        results_file.add({"id": "a", "n": 2})
    assert ids(path) == ["a"]


@pytest.mark.parametrize("torn", ['{"id": "b"', '{"id": "b"}', "\0\0"])
def test_an_incomplete_last_line_is_removed(path: Path, torn: str) -> None:
    path.write_text('{"id": "a"}\n' + torn)
    with ResultsFile(path, resume=True) as results_file:
        assert results_file.done == {"a"}
        results_file.add({"id": "b"})
    assert ids(path) == ["a", "b"]


def test_an_existing_file_is_not_overwritten(path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(StoreError, match="--resume"), ResultsFile(path):
        pass
    assert path.read_text() == "mine"


@pytest.mark.parametrize("content", ["mine\n", "[1]\n", '{"query": "x"}\n'])
def test_a_foreign_file_is_left_unchanged(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(StoreError, match="not an answer"), ResultsFile(path, resume=True):
        pass
    assert path.read_text() == content


def test_only_one_process_writes(path: Path) -> None:
    with (
        ResultsFile(path),
        pytest.raises(StoreError, match="another process"),
        ResultsFile(path, resume=True),
    ):
        pass


def test_a_full_disk_leaves_nothing_half_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with ResultsFile(path) as results_file:
        results_file.add({"id": "a"})
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(StoreError, match="No space"):
                results_file.add({"id": "b"})
        results_file.add({"id": "c"})
    assert ids(path) == ["a", "c"]


def test_failures_are_stored_until_they_are_answered(path: Path) -> None:
    with ResultsFile(path) as results_file:
        results_file.fail({"id": "a", "error": "no model"})
        results_file.write_failures()
        assert results_file.failures == {"a": {"id": "a", "error": "no model"}}
    with ResultsFile(path, resume=True) as results_file:
        results_file.add({"id": "a"})
        results_file.write_failures()
        assert results_file.failures == {}


def test_failures_of_earlier_runs_are_known_until_they_are_answered(path: Path) -> None:
    with ResultsFile(path) as results_file:
        results_file.fail({"id": "a", "is_lost": True})
        results_file.fail({"id": "b"})
        results_file.write_failures()
    with ResultsFile(path, resume=True) as results_file:
        results_file.add({"id": "b"})
        results_file.write_failures()
    with ResultsFile(path, resume=True) as results_file:
        assert list(results_file.failures) == ["a"]


@pytest.mark.parametrize("line", ["[]", "{", "3"])
def test_a_damaged_file_of_failures_is_ignored(path: Path, line: str) -> None:
    Path(f"{path}.failed").write_text(line)
    with ResultsFile(path) as results_file:
        assert results_file.failures == {}


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"), ResultsFile(tmp_path, resume=True):
        pass


def test_any_text_is_preserved(path: Path) -> None:
    record: dict[str, Any] = {"id": "é", "query": "素数\n", "answer": "\u2028"}
    with ResultsFile(path) as results_file:
        results_file.add(record)
    with ResultsFile(path, resume=True) as results_file:
        assert results_file.done == {"é"}
