"""Cases: questions with what is expected of their answers, from files, mappings and datasets of LangSmith."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from code_chains.batch.questions import TABLES, Entry, Item, Question, as_questions, read_items
from code_chains.errors import InputError
from code_chains.evaluation import examples
from code_chains.executors.inputs import is_text
from code_chains.inputs import shortened
from code_chains.records import Record
from code_chains.storage.foreign import parse_json

_WAYS = ("expected", "expected_pattern", "judge")
_MAX_SHOWN_CHARS = 100
_REMEDY = "Give one of expected (a JSON value), expected_pattern (a regular expression) and judge (true)."


@dataclass(frozen=True)
class Expectation(Record):
    """What is expected of an answer.

    Attributes:
        by: How it is decided: by comparison with a `value`, by a `pattern` that is found in the output, or by a `judge`.
        value: The value, None if no answer is expected; or the pattern.
    """

    by: Literal["value", "pattern", "judge"]
    value: JsonValue = None

    def __str__(self) -> str:
        """Return it as text for people."""
        if self.by == "judge":
            return "the judge says yes"
        if self.by == "pattern":
            return f"matches {self.value}"
        return "no answer" if self.value is None else json.dumps(self.value, ensure_ascii=False)


@dataclass(frozen=True)
class Case:
    """A question with what is expected of its answer.

    Attributes:
        question: The question with its inputs; its id does not depend on what is expected.
        expectation: What is expected.
    """

    question: Question
    expectation: Expectation

    @classmethod
    def from_mapping(cls, inputs: Mapping[str, Any]) -> Case:
        """Create a case from a mapping with `query`, the inputs of a chain, and what is expected.

        Raises:
            InputError: It is invalid.

        Example:
            >>> str(Case.from_mapping({"query": "What is 6 times 7?", "expected": 42}).expectation)
            '42'
        """
        (case,) = cases_of([inputs])
        return case

    @property
    def id(self) -> str:
        """The id of the question."""
        return self.question.id


def cases_of(cases: Path | Iterable[Case | Mapping[str, Any]]) -> list[Case]:
    """Validate cases; those of a file are read.

    Raises:
        InputError: There are none, one is invalid, or two have the same id; or they are no collection of cases.
    """
    if isinstance(cases, Path):
        return read_cases(cases)
    if isinstance(cases, str | bytes | Mapping) or not isinstance(cases, Iterable):
        raise InputError(
            "Cases are a list of mappings such as {'query': 'What is 6 times 7?', 'expected': 42}, or the pathlib.Path of"
            f" a file with one in each line, not {shortened(repr(cases), _MAX_SHOWN_CHARS)}."
        )
    return _validated(zip(map("Case {}".format, itertools.count(1)), cases, strict=False))


def read_cases(path: str | Path, *, files: Mapping[str, Path] | None = None) -> list[Case]:
    """Read cases from a file of questions, `.jsonl`, `.json`, `.csv` or `.tsv`, that also says what is expected.

    Each has one of `expected` (a JSON value; in tables JSON or else text), `expected_pattern` (a regular expression)
    and `judge` (true). Datasets that LangSmith exported are read as well: objects with `inputs` and `outputs`,
    tables with columns such as `input_question` and `output_answer`.

    Args:
        path: The file.
        files: Files for all questions, `{name: path}`.

    Raises:
        InputError: The file cannot be read, or a case is invalid; the message says which line.
    """
    items = read_items(path, columns=dict(zip(_WAYS, _WAYS, strict=True)) | examples.COLUMNS)
    if Path(path).suffix.lower() in TABLES:
        items = ((place, _parse_cells(place, row)) for place, row in items)
    return _validated(items, files=files, has_paths=True)


def _parse_cells(place: str, row: Mapping[str, Any]) -> Entry:
    """Read what a table expects: JSON, or else text."""
    parsed = Entry(row)
    parsed.own = getattr(row, "own", {})
    for key in ("expected", "judge"):
        if key in row:
            parsed[key] = _parse_cell(place, row[key])
    return parsed


def _parse_cell(place: str, text: str) -> Any:
    try:
        return parse_json(text, is_strict=True)
    except ValueError as error:
        if text.lstrip()[:1] in ("[", "{", '"'):
            raise InputError(f"{place}: expected is not JSON: {error}.") from error
        return text


def _validated(
    items: Iterable[Item], *, files: Mapping[str, Path] | None = None, has_paths: bool = False
) -> list[Case]:
    """Split what is expected from the questions, so that it can be corrected without asking again."""
    expectations: list[Expectation] = []

    def questions() -> Iterator[Item]:
        for place, item in items:
            if isinstance(item, Case):
                expectations.append(item.expectation)
                yield place, item.question
                continue
            if not isinstance(item, Mapping):
                raise InputError(f"{place} must be an object with a query and what is expected. {_REMEDY}")
            inputs = examples.as_inputs(place, item)
            expectations.append(_expectation(place, inputs))
            rest: dict[str, Any] = {key: value for key, value in inputs.items() if key not in _WAYS}
            if isinstance(item, Entry):
                rest, own = Entry(rest), item.own
                rest.own = own
            yield place, rest

    validated = list(as_questions(questions(), files=files, has_paths=has_paths))
    if not validated:
        raise InputError("There are no cases.")
    for question in validated:
        if not is_text(question.id):
            raise InputError(f"{question.origin}: the id is not text.")
    return list(itertools.starmap(Case, zip(validated, expectations, strict=True)))


def _expectation(place: str, inputs: Mapping[str, Any]) -> Expectation:
    judge = inputs.get("judge", False)
    if not isinstance(judge, bool):
        raise InputError(f"{place}: judge must be true or false.")
    given = [way for way in _WAYS if way in inputs and (way != "judge" or judge)]
    if not given:
        raise InputError(f"{place} says nothing about what is expected. {_REMEDY}")
    if len(given) > 1:
        raise InputError(f"{place} has {' and '.join(given)}. {_REMEDY}")
    if judge:
        return Expectation("judge")
    if given == ["expected"]:
        return Expectation("value", _json_value(place, inputs["expected"]))
    return Expectation("pattern", _pattern(place, inputs["expected_pattern"]))


def _json_value(place: str, value: Any) -> Any:
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{place}: expected is not a JSON value: {error}.") from error


def _pattern(place: str, pattern: object) -> str:
    try:
        if isinstance(pattern, str) and pattern and re.compile(pattern):
            return pattern
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(f"{place}: expected_pattern is not a regular expression: {error}.") from error
    raise InputError(f"{place}: expected_pattern must be a regular expression as text.")
