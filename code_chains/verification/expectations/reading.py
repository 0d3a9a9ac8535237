"""Tests as they are given: parsed, refused if no program could fail them, and brought into the form that is run."""

from __future__ import annotations

import ast
import builtins
import doctest
import re
from collections.abc import Sequence
from operator import attrgetter

from code_chains.analysis.parsing import UNREADABLE, names_in, nodes, syntax_tree
from code_chains.analysis.work import walk
from code_chains.errors import InputError
from code_chains.verification.expectations.assertions import Assertions, free_names
from code_chains.verification.expectations.instrumentation import CAUGHT, EXACT
from code_chains.verification.expectations.oracles import refuse_dangerous_builtins
from code_chains.verification.expectations.program_names import of_program
from code_chains.verification.expectations.pytest_syntax import without_runner

_PROMPT = re.compile(r"^[ \t]*>>> ", re.MULTILINE)


def has_prompts(text: str) -> bool:
    """Return whether a text has steps of an interactive session."""
    return _PROMPT.search(text) is not None


def without_prompts(tests: str) -> str:
    """Return doctests as source that asserts what they show; other tests as they are.

    Raises:
        ValueError: The prompts are not those of a session.
        SyntaxError: What they hold is not Python.
    """
    text = _session(tests) if has_prompts(tests) else ""
    return "\n".join(map(_assertion, doctest.DocTestParser().get_examples(text))) if text else tests


def _session(tests: str) -> str:
    """Return the text of a session: all of it, or that of a docstring that is all of it; empty for statements."""
    try:
        body = ast.parse(tests).body
    except (SyntaxError, ValueError):
        return tests
    match body:
        case [ast.Expr(value=ast.Constant(value=str(text)))]:
            return text
    return ""


def _assertion(example: doctest.Example) -> str:
    """Return one step of a session as source."""
    source = example.source.rstrip("\n")
    body = ast.parse(source).body
    if not example.want and not example.exc_msg:
        return source
    if len(body) == 1 and isinstance(body[0], ast.Expr):
        run = f"lambda: {ast.unparse(body[0])}"
        named = repr(ast.unparse(body[0]))
        if example.exc_msg:
            kind, _, message = example.exc_msg.strip().partition(": ")
            return f"_raised({named}, {run}, {kind!r}, {message!r})"
        return f"_shown({named}, {run}, {example.want!r})"
    step = ast.parse(f"def _step(): pass\n_shown({source!r}, _step, {example.want!r})")
    function = step.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = body
    return ast.unparse(ast.fix_missing_locations(step))


_MAX_ASSERTIONS, _MAX_CHARS, _MAX_NODES = 600, 40_000, 15_000
"""Of tests: the program that runs them is several times as long, and each of their parts is looked at ten times."""


def read_tests(tests: object) -> tuple[ast.Module, dict[str, str]]:
    """Return tests as a syntax tree, and the names that they import from the program.

    Raises:
        InputError: They are invalid, or no program could fail them.
    """
    entries = _entries(tests)
    if not any(entries):
        return ast.Module(body=[], type_ignores=[]), {}
    _refuse_too_long(sum(map(len, entries)))
    try:
        source = "\n".join(map(without_prompts, entries))
        tree = syntax_tree(source)
    except UNREADABLE as error:
        raise InputError(f"The tests are not valid Python: {error}.") from error
    _refuse_too_many(tree)
    tree = _Raised().visit(tree)
    _move_expected_failures(tree)
    _refuse_too_long(len(source))
    if tree.body:
        _refuse_empty(tree, source)
    has_imports = any(isinstance(node, ast.Import | ast.ImportFrom) for node in walk(tree))
    _mark_exact(tree, source)
    tree, imported = of_program(without_runner(tree))  # Raises for tests that need more of a test runner.
    # Of names that Python has, a program may define its own; files are what one has written.
    outside = {*free_names(tree), *vars(builtins), "output"}
    if tree.body and not has_imports and not outside & names_in(tree):
        raise InputError('The tests say nothing about the program. Call what it defines: "assert f(2) == 4".')
    refuse_dangerous_builtins(tree, free_names(tree))
    return tree, imported


def _refuse_too_long(chars: int) -> None:
    """Refuse tests that would be several times as long in the form in which they run.

    Raises:
        InputError: They are too long.
    """
    if chars > _MAX_CHARS:
        raise InputError(f"The tests have {chars:,} characters; {_MAX_CHARS:,} are allowed.")


def _refuse_too_many(tree: ast.Module) -> None:
    """Refuse tests of too many parts.

    Raises:
        InputError: They are.
    """
    parts = sum(1 for _ in walk(tree))
    if parts > _MAX_NODES:
        remedy = "Read large data from a file, or make it in a loop."
        raise InputError(
            f"The tests have {parts:,} names, numbers and signs; {_MAX_NODES:,} are allowed. {remedy}"
        )
    assertions = sum(isinstance(node, ast.Assert) for node in walk(tree))
    if assertions > _MAX_ASSERTIONS:
        remedy = "Loop over the cases: `for x, y in CASES: assert f(x) == y`."
        raise InputError(f"There are {assertions:,} assertions; {_MAX_ASSERTIONS} are allowed. {remedy}")


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


class _Raised(ast.NodeTransformer):
    """Turn `if f(2) != 4: raise AssertionError` into an assertion."""

    def visit_If(self, node: ast.If) -> ast.stmt:
        self.generic_visit(node)
        match node:
            case ast.If(
                body=[ast.Raise(exc=ast.Name("AssertionError") | ast.Call(ast.Name("AssertionError")))],
                orelse=[],
            ):
                asserted = ast.Assert(ast.UnaryOp(ast.Not(), node.test))
                return ast.fix_missing_locations(ast.copy_location(asserted, node))
        return node


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
            setattr(asserted, CAUGHT, True)
            handler.body.insert(0, ast.copy_location(asserted, handler.body[0]))
    ast.fix_missing_locations(tree)


def _mark_exact(tree: ast.Module, tests: str) -> None:
    """Mark assertions that end with `# exact`: blanks, capitals and each digit count."""
    lines = tests.splitlines()
    for node in nodes(tree, ast.Assert):
        end = node.end_lineno or node.lineno
        last = lines[end - 1] if end <= len(lines) else ""
        setattr(node, EXACT, bool(re.search(r"#\s*exact\b", last)))
