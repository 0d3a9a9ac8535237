"""Questions from files, each with an id that is the same in every run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from code_chains.batch.questions import Question, read_questions, with_ids
from code_chains.errors import InputError


def read_text(path: Path, text: str) -> list[Question]:
    path.write_text(text)
    return list(read_questions(path))


def test_json_lines_are_strings_or_objects(tmp_path: Path) -> None:
    lines = [json.dumps("one?"), json.dumps({"id": 7, "query": "two?", "variables": {"n": 1}})]
    one, two = read_text(tmp_path / "q.jsonl", "\n".join(lines))
    assert (one.query, two.id, two.inputs) == ("one?", "7", {"query": "two?", "variables": {"n": 1}})


def test_a_csv_file_has_a_column_query(tmp_path: Path) -> None:
    questions = read_text(tmp_path / "q.csv", 'id,query,other\na,"one, two?",x\nb,three?,y\n')
    assert [(question.id, question.inputs) for question in questions] == [
        ("a", {"query": "one, two?"}),
        ("b", {"query": "three?"}),
    ]


def test_any_other_file_has_one_question_per_line(tmp_path: Path) -> None:
    assert [question.query for question in read_text(tmp_path / "q.txt", "\ufeffone?\n\n  two?  \r\n")] == [
        "one?",
        "two?",
    ]


def test_ids_are_reproducible_and_unique() -> None:
    first, second = ([question.id for question in with_ids(["a", "b", "a"])] for _ in range(2))
    assert first == second
    assert len(set(first)) == 3


@pytest.mark.parametrize(
    "questions",
    [
        [""],
        [{"question": "x"}],
        [{"query": 3}],
        [{"id": 1, "query": "a"}, {"id": "1", "query": "b"}],
        [{"query": "x", "files": {1: object()}}],
    ],
)
def test_an_invalid_question_is_reported_by_its_number(questions: list[Any]) -> None:
    with pytest.raises(InputError, match=r"uestion [12]"):
        list(with_ids(questions))


@pytest.mark.parametrize(
    ("name", "text"), [("q.jsonl", "{no"), ("q.jsonl", "3"), ("missing/q.txt", None), ("q.csv", "a\n1\n")]
)
def test_an_invalid_file_is_an_error(tmp_path: Path, name: str, text: str | None) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError):
        list(read_questions(path))


def test_questions_are_read_lazily(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('"fine?"\n{broken\n')
    questions = read_questions(path)
    assert next(questions).query == "fine?"
    with pytest.raises(InputError, match="question 2"):
        next(questions)
