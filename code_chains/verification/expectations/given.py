"""What a program is expected to do: tests and examples, validated once, as source and as text for the model."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from code_chains.analysis.parsing import called_names, names_in, nodes
from code_chains.errors import InputError
from code_chains.inputs import fenced
from code_chains.verification.expectations.examples import Example, parse_example


class UntestableError(ValueError):
    """A program cannot be tested: it defines no function, or it redefines a name of Python's that the tests use."""


@dataclass(frozen=True)
class Expectations:
    """Validated tests and examples of a question.

    Attributes:
        tests: Python source, usually `assert` statements, parsed.
        examples: What calls, or runs of the whole program, must give.
        imported: The names that the tests import from the program; see `of_program`.
    """

    tests: ast.Module = field(default_factory=lambda: ast.Module([], []), repr=False)
    examples: tuple[Example, ...] = ()
    imported: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __bool__(self) -> bool:
        return bool(self.tests.body or self.examples)

    @property
    def count(self) -> int:
        """Number of assertions and examples."""
        assertions = sum(not isinstance(node.test, ast.Constant) for node in nodes(self.tests, ast.Assert))
        return len(self.examples) + (assertions or bool(self.tests.body))

    @property
    def free_names(self) -> list[str]:
        """The names that the tests use and do not bind."""
        from code_chains.verification.expectations.assertions import free_names

        return free_names(self.tests)

    @property
    def are_calls(self) -> bool:
        """Whether they call what the program defines, and need nothing that it prints."""
        has_calls = bool(self.calls or called_names(self.tests).intersection(self.free_names))
        return has_calls and "output" not in names_in(self.tests) and not self.runs

    @property
    def calls(self) -> tuple[Example, ...]:
        """The examples of what a function gives."""
        return tuple(example for example in self.examples if not example.is_run)

    @property
    def runs(self) -> tuple[Example, ...]:
        """The examples of what the whole program prints."""
        return tuple(example for example in self.examples if example.is_run)

    def are_shown_in(self, query: str) -> bool:
        """Whether a question names what the tests use and has the first of them, in whatever notation."""
        calls = (call for node in nodes(self.tests, ast.Assert) for call in nodes(node, ast.Call))
        first = next(calls, None)
        if first is None or self.examples:
            return False
        texts = [*self.free_names, ast.unparse(first)]
        return all(map(_letters(query).__contains__, map(_letters, texts)))

    def program(
        self,
        code: str,
        *,
        query: str = "",
        output: str = "",
        given: Collection[str] = (),
        skipped: Collection[str] = (),
    ) -> str:
        """Build the source of a program that runs the tests and tries the examples.

        Functions of the tests whose names begin with `test` are called, and `unittest.TestCase` classes are
        run. A test of which no assertion depends on a value of the program decides nothing.

        Args:
            code: The program under test.
            query: The question; examples are tried on the function that it names, or else on the last one.
            output: What the program printed; tests see it as `output`.
            given: Names that a starter or a solution binds.
            skipped: Tests that are left out, by line and name, as each has ended a run of the program.

        Raises:
            UntestableError: There are examples, but the program defines no function; or the program redefines
                a name of Python's that the tests use in an ambiguous way.
        """
        from code_chains.verification.expectations.harness import build_harness

        return build_harness(
            self.tests,
            self.calls,
            code,
            query=query,
            output=output,
            imported=self.imported,
            given=given,
            skipped=skipped,
        )

    def format_for_model(self) -> str:
        """Describe them for the model that writes the program: the first test, or one or two examples, never all."""
        if self.examples:
            samples = self.examples[: max(1, min(2, len(self.examples) - 1))]
            calls = "\n".join(map(str, samples))
            rule = "Define a function; it will be tried on examples. Where it is called f, these are:"
            if self.runs:
                rule = "The program reads its standard input, and is tried on examples, such as:"
            return f"{rule}\n{fenced(calls, 'python')}"
        names = ", ".join(map("`{}`".format, self.free_names))
        if not names:
            return "The program will be tested."
        first = next((node for node in self.tests.body if isinstance(node, ast.Assert)), None)
        sample = f", for example:\n{fenced(ast.unparse(first), 'python')}" if first else "."
        return f"The program will be tested. The tests use these names of it: {names}{sample}"


def _letters(text: str) -> str:
    """Return a text without spaces and quotes."""
    return re.sub(r"""[\s'"]""", "", text)


def expectations_of(state: Mapping[str, object]) -> Expectations:
    """Return the expectations in a state: its `tests` and `examples`, validated.

    Raises:
        InputError: Tests or examples are invalid.
    """
    return expect(state.get("tests"), state.get("examples"))


def expect(tests: object = None, examples: object = None) -> Expectations:
    """Validate tests and examples.

    Args:
        tests: Python source.
        examples: Pairs of arguments and the expected result of a function. A tuple stands for several
            arguments, anything else for one; a mapping with `args`, `kwargs` and `expected` says the same in
            JSON. The expected result may be a built-in exception.

    Raises:
        InputError: They are invalid.
    """
    given = tuple(map(parse_example, _sequence(examples)))
    if not given and (tests is None or tests == ""):
        return Expectations()
    tree, imported = _tests_of(tests) if isinstance(tests, str) else _read(tests)
    return Expectations(tree, given, imported)


def _read(tests: object) -> tuple[ast.Module, dict[str, str]]:
    from code_chains.verification.expectations.reading import read_tests

    return read_tests(tests)


_tests_of = lru_cache(maxsize=16)(_read)
"""Each stage reads the tests of its question."""


def _sequence(examples: object) -> Iterable[object]:
    if examples is None:
        return ()
    if isinstance(examples, str | bytes) or not isinstance(examples, Sequence):
        raise InputError("examples must be a list of pairs of arguments and result, e.g. [((2, 3), 5)].")
    return examples
