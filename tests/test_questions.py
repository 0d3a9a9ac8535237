"""Questions from files, each with an id that is the same in every run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from code_chains.errors import InputError
from code_chains.questions import Question, identified, read_questions


def written(path: Path, text: str) -> list[Question]:
    path.write_text(text)
    return list(read_questions(path))


def test_lines_of_json_are_texts_or_objects(tmp_path: Path) -> None:
    lines = [json.dumps("one?"), json.dumps({"id": 7, "query": "two?", "variables": {"n": 1}})]
    one, two = written(tmp_path / "q.jsonl", "\n".join(lines))
    assert (one.query, two.id, two.inputs) == ("one?", "7", {"query": "two?", "variables": {"n": 1}})


def test_a_table_has_a_column_of_questions(tmp_path: Path) -> None:
    found = written(tmp_path / "q.csv", 'id,query,other\na,"one, two?",x\nb,three?,y\n')
    assert [(one.id, one.inputs) for one in found] == [("a", {"query": "one, two?"}), ("b", {"query": "three?"})]


def test_any_other_file_is_a_question_a_line(tmp_path: Path) -> None:
    assert [one.query for one in written(tmp_path / "q.txt", "\ufeffone?\n\n  two?  \r\n")] == ["one?", "two?"]


def test_ids_are_the_same_in_every_run_and_differ_within_one() -> None:
    first, second = ([one.id for one in identified(["a", "b", "a"])] for _ in range(2))
    assert first == second
    assert len(set(first)) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        [""],
        [{"question": "x"}],
        [{"query": 3}],
        [{"id": 1, "query": "a"}, {"id": "1", "query": "b"}],
        [{"query": "x", "files": {1: object()}}],
    ],
)
def test_what_is_no_question_is_named_by_its_number(wrong: list[Any]) -> None:
    with pytest.raises(InputError, match=r"uestion [12]"):
        list(identified(wrong))


@pytest.mark.parametrize(
    ("name", "text"), [("q.jsonl", "{no"), ("q.jsonl", "3"), ("missing/q.txt", None), ("q.csv", "a\n1\n")]
)
def test_a_file_that_is_no_list_of_questions_is_a_clear_error(tmp_path: Path, name: str, text: str | None) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError):
        list(read_questions(path))


def test_questions_are_read_as_they_are_wanted(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('"fine?"\n{broken\n')
    questions = read_questions(path)
    assert next(questions).query == "fine?"
    with pytest.raises(InputError, match="question 2"):
        next(questions)
