"""What a program is expected to do: tests and examples, validated once, as source and as text for the model."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from code_chains.analysis.parsing import UNREADABLE, called_names, names_in, nodes, syntax_tree
from code_chains.errors import InputError
from code_chains.inputs import fenced
from code_chains.verification.expectations.assertions import Assertions, free_names
from code_chains.verification.expectations.doctests import has_prompts, without_prompts
from code_chains.verification.expectations.examples import Example, parse_example
from code_chains.verification.expectations.harness import build_harness
from code_chains.verification.expectations.instrumentation import EXACT
from code_chains.verification.expectations.oracles import refuse_dangerous_builtins
from code_chains.verification.expectations.program_names import of_program
from code_chains.verification.expectations.pytest_syntax import without_runner


@dataclass(frozen=True)
class Expectations:
    """Validated tests and examples of a question.

    Attributes:
        tests: Python source, usually `assert` statements, parsed.
        examples: What calls, or runs of the whole program, must give.
    """

    tests: ast.Module = field(default_factory=lambda: ast.Module([], []), repr=False)
    examples: tuple[Example, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tests.body or self.examples)

    @property
    def count(self) -> int:
        """Number of assertions and examples."""
        assertions = sum(not isinstance(node.test, ast.Constant) for node in nodes(self.tests, ast.Assert))
        return len(self.examples) + (assertions or bool(self.tests.body))

    @property
    def are_calls(self) -> bool:
        """Whether they call what the program defines, and need nothing that it prints."""
        has_calls = bool(self.calls or called_names(self.tests).intersection(free_names(self.tests)))
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
        texts = [*free_names(self.tests), ast.unparse(first)]
        return all(map(_letters(query).__contains__, map(_letters, texts)))

    def program(self, code: str, *, query: str = "", output: str = "") -> str:
        """Build the source of a program that runs the tests and tries the examples.

        Functions of the tests whose names begin with `test` are called, and `unittest.TestCase` classes are
        run. Tests that end without having asserted anything fail.

        Args:
            code: The program under test.
            query: The question; examples are tried on the function that it names, or else on the last one.
            output: What the program printed; tests see it as `output`.

        Raises:
            UntestableError: There are examples, but the program defines no function; or the program redefines
                a name of Python's that the tests use in an ambiguous way.
        """
        return build_harness(self.tests, self.calls, code, query=query, output=output)

    def format_for_model(self) -> str:
        """Describe them for the model that writes the program: the first test, or one or two examples, never all."""
        if self.examples:
            samples = self.examples[: max(1, min(2, len(self.examples) - 1))]
            calls = "\n".join(map(str, samples))
            rule = "Define a function; it will be tried on examples. Where it is called f, these are:"
            if self.runs:
                rule = "The program reads its standard input, and is tried on examples, such as:"
            return f"{rule}\n{fenced(calls, 'python')}"
        names = ", ".join(map("`{}`".format, free_names(self.tests)))
        if not names:
            return "The program will be tested."
        first = next((node for node in self.tests.body if isinstance(node, ast.Assert)), None)
        sample = f", for example:\n{fenced(ast.unparse(first), 'python')}" if first else "."
        return f"The program will be tested. The tests use these names of it: {names}{sample}"


def _letters(text: str) -> str:
    """Return a text without spaces and quotes."""
    return re.sub(r"""[\s'"]""", "", text)


def expectations_of(state: Mapping[str, object]) -> Expectations:
    """Return the expectations in a state: those validated at the entrance, or else its `tests` and `examples`.

    Raises:
        InputError: Tests or examples are invalid.
    """
    validated = state.get("expectations")
    if isinstance(validated, Expectations):
        return validated
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
    return Expectations(_parse_tests(tests), tuple(map(parse_example, _sequence(examples))))


def _parse_tests(tests: object) -> ast.Module:
    entries = _entries(tests)
    if not any(entries):
        return ast.Module(body=[], type_ignores=[])
    try:
        source = "\n".join(map(without_prompts, entries))
        tree = syntax_tree(source)
    except UNREADABLE as error:
        raise InputError(f"The tests are not valid Python: {error}.") from error
    _move_expected_failures(tree)
    if tree.body:
        _refuse_empty(tree, source)
    has_imports = any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree))
    _mark_exact(tree, source)
    tree = of_program(without_runner(tree))  # Raises for tests that need more of a test runner.
    # Of names that Python has, a program may define its own; files are what one has written.
    outside = {*free_names(tree), *vars(builtins), "output"}
    if tree.body and not has_imports and not outside & names_in(tree):
        raise InputError('The tests say nothing about the program. Call what it defines: "assert f(2) == 4".')
    refuse_dangerous_builtins(tree, free_names(tree))
    return tree


def _entries(tests: object) -> list[str]:
    """Return the source of tests, one by one: what follows a doctest is none of its output."""
    is_list = isinstance(tests, Sequence) and not isinstance(tests, str | bytes)
    given: list[object] = [*tests] if is_list else ["" if tests is None else tests]  # type: ignore[misc]
    entries = [entry.removeprefix("\ufeff") for entry in given if isinstance(entry, str)]
    if len(entries) < len(given):
        raise InputError(f'tests must be Python source, e.g. "assert f(2) == 4", not {type(tests).__name__}.')
    plain = [entry for entry in entries if not has_prompts(entry)]
    is_session = len(plain) < len(entries) and not any("assert" in entry for entry in plain)
    return ["\n".join(entries)] if is_session else entries


def _refuse_empty(tree: ast.Module, source: str) -> None:
    """Refuse assertions that no program could fail.

    Raises:
        InputError: They assert nothing, or a tuple; or a docstring has tests that nothing runs.
    """
    places = nodes(tree, ast.Expr) if "doctest" in source else tree.body
    docstrings = (
        node.value for node in places if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )
    if any(has_prompts(str(docstring.value)) for docstring in docstrings):
        raise InputError(
            "Doctests beside other tests are not run: pass a list, with each as an entry of its own."
        )
    if not Assertions(tree).are_in(tree):
        raise InputError('The tests assert nothing. Give some, e.g. "assert f(2) == 4".')
    for node in nodes(tree, ast.Assert):
        if isinstance(node.test, ast.Tuple) and node.test.elts:
            raise InputError(f"A tuple is always true: write `assert {ast.unparse(node.test.elts[0])}`.")


def _move_expected_failures(tree: ast.Module) -> None:
    """Have `try: f(-1); assert False` assert that an error is raised, whatever the handlers catch."""
    for node in filter(attrgetter("handlers"), nodes(tree, ast.Try)):
        match node.body:
            case [_, *_, ast.Assert(test=ast.Constant(value=False)) as last]:
                failure: ast.stmt = last
            case [
                _,
                *_,
                ast.Raise(exc=ast.Name("AssertionError") | ast.Call(ast.Name("AssertionError"))) as last,
            ]:
                failure = ast.copy_location(ast.Assert(ast.Constant(value=False)), last)
            case _:
                continue
        node.body, node.orelse = node.body[:-1], [failure]
        for handler in node.handlers:
            asserted = ast.Assert(ast.Constant(value=True))
            handler.body.insert(0, ast.copy_location(asserted, handler.body[0]))
    ast.fix_missing_locations(tree)


def _mark_exact(tree: ast.Module, tests: str) -> None:
    """Mark assertions that end with `# exact`: blanks, capitals and each digit count."""
    lines = tests.splitlines()
    for node in nodes(tree, ast.Assert):
        end = node.end_lineno or node.lineno
        last = lines[end - 1] if end <= len(lines) else ""
        setattr(node, EXACT, bool(re.search(r"#\s*exact\b", last)))


def _sequence(examples: object) -> Iterable[object]:
    if examples is None:
        return ()
    if isinstance(examples, str | bytes) or not isinstance(examples, Sequence):
        raise InputError("examples must be a list of pairs of arguments and result, e.g. [((2, 3), 5)].")
    return examples
