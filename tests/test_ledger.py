"""A file of answers holds each whole and once, whatever happens to whoever writes it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from code_chains.errors import StoreError
from code_chains.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.jsonl"


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def test_it_knows_what_is_done_when_it_goes_on(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.add({"id": "a"})
    with Ledger(path, resume=True) as ledger:
        assert ledger.done == {"a"}
        ledger.add({"id": "b"})
    assert ids(path) == ["a", "b"]


def test_nothing_is_written_twice(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.add({"id": "a", "n": 1})
        ledger.add({"id": "a", "n": 2})
    assert ids(path) == ["a"]


@pytest.mark.parametrize("torn", ['{"id": "b"', '{"id": "b"}', "\0\0"])
def test_a_line_that_was_cut_short_is_taken_away(path: Path, torn: str) -> None:
    path.write_text('{"id": "a"}\n' + torn)
    with Ledger(path, resume=True) as ledger:
        assert ledger.done == {"a"}
        ledger.add({"id": "b"})
    assert ids(path) == ["a", "b"]


def test_a_file_that_is_there_is_not_overwritten(path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(StoreError, match="--resume"), Ledger(path):
        pass
    assert path.read_text() == "mine"


@pytest.mark.parametrize("content", ["mine\n", "[1]\n", '{"query": "x"}\n'])
def test_a_file_of_somebody_else_is_left_as_it_is(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(StoreError, match="no answer"), Ledger(path, resume=True):
        pass
    assert path.read_text() == content


def test_one_at_a_time_writes(path: Path) -> None:
    with Ledger(path), pytest.raises(StoreError, match="somebody else"), Ledger(path, resume=True):
        pass


def test_a_full_disk_leaves_nothing_half_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Ledger(path) as ledger:
        ledger.add({"id": "a"})
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(StoreError, match="No space"):
                ledger.add({"id": "b"})
        ledger.add({"id": "c"})
    assert ids(path) == ["a", "c"]


def test_failures_lie_beside_it_until_they_are_answered(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.fail({"id": "a", "error": "no model"})
        ledger.settle()
        assert ledger.failures == {"a": {"id": "a", "error": "no model"}}
    with Ledger(path, resume=True) as ledger:
        ledger.add({"id": "a"})
        ledger.settle()
        assert ledger.failures == {}


def test_what_failed_in_an_earlier_run_is_known_until_it_is_answered(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.fail({"id": "a", "is_lost": True})
        ledger.fail({"id": "b"})
        ledger.settle()
    with Ledger(path, resume=True) as ledger:
        ledger.add({"id": "b"})
        ledger.settle()
    with Ledger(path, resume=True) as ledger:
        assert list(ledger.failures) == ["a"]


@pytest.mark.parametrize("line", ["[]", "{", "3"])
def test_a_damaged_file_of_failures_is_as_good_as_none(path: Path, line: str) -> None:
    Path(f"{path}.failed").write_text(line)
    with Ledger(path) as ledger:
        assert ledger.failures == {}


def test_what_is_no_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"), Ledger(tmp_path, resume=True):
        pass


def test_text_of_any_script_is_kept(path: Path) -> None:
    record: dict[str, Any] = {"id": "é", "query": "素数\n", "answer": "\u2028"}
    with Ledger(path) as ledger:
        ledger.add(record)
    with Ledger(path, resume=True) as ledger:
        assert ledger.done == {"é"}
