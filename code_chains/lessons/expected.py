"""Tests and examples of a step: what they expect, and how a learner is told of each."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, cast

from code_chains.analysis.parsing import nodes, parse
from code_chains.analysis.replies.syntax import top_level_names
from code_chains.errors import InputError, brief
from code_chains.records import TestResult
from code_chains.storage.foreign_yaml import parse_yaml
from code_chains.verification.expectations import Expectations, expect
from code_chains.verification.expectations.assertions import Assertions, free_names
from code_chains.verification.expectations.instrumentation import SOLUTION

Reveals = Literal["behaviour", "input", "input and expected"]
"""What a learner is told of a hidden test that failed: what it is about, its input too, or also what was expected."""
REVEALS: tuple[Reveals, ...] = ("behaviour", "input", "input and expected")
_COMMENT = re.compile(r"\s*#\s?(.*)")
_HINT = re.compile(r"hint:\s*", re.IGNORECASE)
_REVEALS = re.compile(rf"reveals:\s*({'|'.join(reversed(REVEALS))})\s*", re.IGNORECASE)
_POINTS = re.compile(r"points:\s*(\d{1,4}(?:\.\d{1,2})?)\s*", re.IGNORECASE)
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_NOTES = ("description", "hint")
_MAX_POINTS = 9999


@dataclass(frozen=True)
class Note:
    """How a learner is told of a test.

    Attributes:
        first: The line of the file with the test, or the number of an example in YAML, from 1.
        last: The last line that belongs to it.
        description: The behaviour that it tests.
        hint: What may help whoever fails it.
        inputs: The calls that it makes, or the input that it gives, as text.
        points: What it is worth; 0 for a statement that tests nothing.
        reveals: What a learner is told of it; None for what the lesson says.
    """

    first: int
    last: int
    description: str = ""
    hint: str = ""
    inputs: str = ""
    points: float = 1.0
    reveals: Reveals | None = None


@dataclass(frozen=True)
class Expected:
    """The tests, or the examples, of a step.

    Attributes:
        code: Their source.
        line: The line of the file where it begins.
        expectations: What they expect. Lines in it are those of the file.
        notes: How a learner is told of each.
    """

    code: str
    line: int
    expectations: Expectations = field(repr=False)
    notes: tuple[Note, ...] = ()

    @property
    def points(self) -> float:
        """What all of them are worth."""
        return sum(note.points for note in self.notes)

    def share(self, results: Sequence[TestResult]) -> float:
        """Return the share of the points that the tests that passed are worth, from 0 to 1."""
        failed = {self.note(result) for result in results if result.status != "pass"}
        passed = {self.note(result) for result in results} - failed
        return sum(note.points for note in passed if note in self.notes) / (self.points or 1.0)

    def note(self, result: TestResult) -> Note:
        """Return how a learner is told of a test."""
        return next((note for note in self.notes if note.first <= result.line <= note.last), Note(0, 0))


def read_tests(code: str, line: int, *, is_yaml: bool, solution: Sequence[str] = ()) -> Expected:
    """Read tests or examples.

    Args:
        code: Assertions or test functions in Python, or a list of examples in YAML.
        line: The line of the file where they begin.
        is_yaml: Whether they are in YAML.
        solution: The teacher's programs up to this step, in order, which tests in Python find as `solution`.

    Raises:
        InputError: They are invalid.
    """
    if is_yaml:
        return _read_yaml(code, line)
    source = "\n" * (line - 1) + code  # Invariant: a line that is named is one of the file.
    if not code.strip():
        raise InputError("The block is empty.")
    return Expected(code, line, expect(_oracle(source, solution) + source), tuple(_notes(source)))


def _oracle(tests: str, solution: Sequence[str]) -> str:
    """Return a line that makes the module `solution` for tests that use it; empty if it is a name of the exercise."""
    tree, program = parse(tests), "\n".join(solution)
    if (
        not solution
        or tree is None
        or SOLUTION not in free_names(tree)
        or SOLUTION in top_level_names(program)
    ):
        return ""
    return f"solution = __import__('types').ModuleType('solution'); exec({program!r}, solution.__dict__)"


# -- Python --------------------------------------------------------------------------------------------------


def _notes(source: str) -> Iterator[Note]:
    """Yield the notes of tests in Python: comments above a test, or its docstring; they hold up to a blank line."""
    tree, lines = parse(source), source.split("\n")
    assertions = Assertions(tree or ast.Module([], []))
    description = hint = ""
    points, reveals = 1.0, cast("Reveals | None", None)
    for node in _cases(tree.body if tree else []):
        first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])
        is_function = isinstance(node, _FUNCTIONS)
        docstring = ast.get_docstring(node) if isinstance(node, _FUNCTIONS) else None
        said = _comments(lines, first) + (docstring or "").splitlines()
        if said or is_function or not lines[first - 2].strip():
            hint = " ".join(_HINT.sub("", line) for line in said if _HINT.match(line))
            stated = [match[1] for line in said if (match := _POINTS.fullmatch(line))]
            points = float(stated[0]) if stated else 1.0
            told = [match[1].lower() for line in said if (match := _REVEALS.fullmatch(line))]
            reveals = cast(Reveals, told[0]) if told else None
            notes = (_HINT.match, _POINTS.fullmatch, _REVEALS.fullmatch)
            description = " ".join(line for line in said if line and not any(note(line) for note in notes))
        if isinstance(node, ast.Import | ast.ImportFrom):  # What is said above it is about the test below.
            continue
        worth = points if assertions.are_in(node) and not isinstance(node, ast.ClassDef) else 0.0
        yield Note(
            first, node.end_lineno or first, description, hint, ", ".join(_calls(node)), worth, reveals
        )


def _cases(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _cases(node.body)
        yield node


def _comments(lines: list[str], first: int) -> list[str]:
    """Return the comments directly above a line."""
    found = list[str]()
    for line in reversed(lines[: first - 1]):
        match = _COMMENT.fullmatch(line)
        if not match:
            break
        found.insert(0, match[1].strip())
    return found


def _calls(node: ast.stmt) -> Iterator[str]:
    """Yield the calls that a test makes, as source, without what it compares them with."""
    for test in nodes(node, ast.Assert):
        subject = test.test.left if isinstance(test.test, ast.Compare) else test.test
        yield from map(ast.unparse, islice(nodes(subject, ast.Call), 1))


# -- YAML ----------------------------------------------------------------------------------------------------


def _read_yaml(code: str, line: int) -> Expected:
    try:
        items, _ = parse_yaml(code)
    except ValueError as error:
        raise InputError(f"The block is not valid YAML: {error}") from error
    if not isinstance(items, list) or not items or not all(isinstance(item, dict) for item in items):
        raise InputError("The block must be a list of examples, such as `- {args: [2], expected: 4}`.")
    expectations = expect(None, list(map(_example, items)))
    if expectations.calls and expectations.runs:
        raise InputError("Give either calls (args, expected) or runs (stdin, output), not both.")
    pairs = enumerate(zip(items, expectations.examples, strict=True), 1)
    notes = [_note(number, item, str(example)) for number, (item, example) in pairs]
    return Expected(code, line, expectations, tuple(notes))


def _example(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an example as `expect` reads it."""
    example = {
        key: value for key, value in item.items() if key not in (*_NOTES, "raises", "points", "reveals")
    }
    if "output" in item and not item.keys() & {"compare", "tolerance"}:
        example["compare"] = "lines"  # What learners print is the exercise, not a text about it.
    if "raises" in item:
        kind = getattr(builtins, str(item["raises"]), None)
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise InputError(f"{brief(item['raises'])} is no exception of Python's, as raises: needs one.")
        example["expected"] = kind
    return example


def _note(number: int, item: Mapping[str, Any], example: str) -> Note:
    description, hint = (str(item.get(key) or "") for key in _NOTES)
    # Without what is expected.
    inputs = re.split(r" == | prints ", example, maxsplit=1)[0]
    reveals = item.get("reveals")
    if reveals not in (None, *REVEALS):
        raise InputError(f"reveals must be one of {', '.join(map(repr, REVEALS))}, not {brief(reveals)}.")
    return Note(number, number, description, hint, inputs, read_points(item.get("points", 1)), reveals)


def read_points(value: Any) -> float:
    """Return what a test or a step is worth.

    Raises:
        InputError: It is no such number.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _MAX_POINTS:
        raise InputError(f"points must be a number from 0 to {_MAX_POINTS:,}, not {brief(value)}.")
    return float(value)
