"""Doctests as tests: what an interactive session would show."""

from __future__ import annotations

import ast
import doctest
import re

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
