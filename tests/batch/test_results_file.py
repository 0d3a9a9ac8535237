"""A results file contains complete lines, exactly once each, even if its writer crashes."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from code_chains import create_code_chain
from code_chains.batch.results_file import ResultsFile
from code_chains.batch.runner import map_questions
from code_chains.errors import StoreError
from code_chains.testing import ScriptedExecutor, ScriptedModel
from tests.conftest import room


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


def refuse(*arguments: Any) -> None:
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("is_cut_off", [True, False])
def test_wherever_the_disk_is_full_no_answer_is_lost_and_none_is_half_written(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_cut_off: bool
) -> None:
    with ResultsFile(path) as results_file:
        results_file.add({"id": "a"})
        complete = path.read_bytes()
        for size in range(len(complete), len(complete) + 12):
            with monkeypatch.context() as patch, room(size):
                if not is_cut_off:
                    patch.setattr(os, "ftruncate", refuse)
                with pytest.raises(StoreError, match=r"answers are complete.*--resume"):
                    results_file.add({"id": "b", "n": 1})
            copy = path.with_name("copy")
            copy.write_bytes(path.read_bytes())
            with ResultsFile(copy, resume=True) as resumed:
                assert resumed.done == {"a"}
        results_file.add({"id": "c"})
    assert ids(path) == ["a", "c"]


@pytest.mark.parametrize("call", ["fsync", "ftruncate", "both"])
def test_a_disk_that_fails_later_leaves_a_file_that_can_be_resumed(
    path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with ResultsFile(path) as results_file:
        results_file.add({"id": "a"})
        with monkeypatch.context() as patch:
            for name in ("fsync", "ftruncate") if call == "both" else (call,):
                patch.setattr(os, name, refuse)
            with suppress(StoreError):
                results_file.add({"id": "b"})
        results_file.add({"id": "c"})
    with ResultsFile(path, resume=True) as results_file:
        assert {"a", "c"} <= results_file.done


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk")
def test_a_small_disk_of_the_system_keeps_its_answers(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("disks cannot be mounted here")
    try:
        lines = ({"id": str(number), "text": "x" * 3000} for number in range(100))
        with ResultsFile(disk / "a.jsonl") as results_file, pytest.raises(StoreError, match="No space"):
            deque(map(results_file.add, lines))
        count = len(results_file.done)
        subprocess.run(["mount", "-o", "remount,size=1m", str(disk)], check=True)
        with ResultsFile(disk / "a.jsonl", resume=True) as results_file:
            assert len(results_file.done) == count > 10
            results_file.add({"id": "next"})
        assert ids(disk / "a.jsonl") == [*map(str, range(count)), "next"]
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def test_failures_that_cannot_be_written_do_not_hide_what_ended_the_run(
    path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", refuse)
    with (
        create_code_chain(model, executor=ScriptedExecutor(lambda code: "15"), interpret=False) as chain,
        ResultsFile(path) as results_file,
        pytest.raises(StoreError, match=re.escape(f"{path} cannot be written")),
    ):
        list(map_questions(chain, ["one"], results_file=results_file))


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
    with (
        pytest.raises(StoreError, match=r"is a folder\. Name a file in it"),
        ResultsFile(tmp_path, resume=True),
    ):
        pass


def test_any_text_is_preserved(path: Path) -> None:
    record: dict[str, Any] = {"id": "é", "query": "素数\n", "answer": "\u2028"}
    with ResultsFile(path) as results_file:
        results_file.add(record)
    with ResultsFile(path, resume=True) as results_file:
        assert results_file.done == {"é"}
