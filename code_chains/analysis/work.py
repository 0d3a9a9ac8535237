"""One budget of work for all that analyses a program, a reply or a question on the host, in nodes and not in seconds.

Invariant: whoever meets the end of the budget has not analysed anything, and says so; see `chains._drivers.Analyse`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

INLINE_STEPS = 40_000
"""Steps that are taken on an event loop; they take some 20 milliseconds."""
MAX_STEPS = 4_000_000
"""Steps that are taken in a thread."""
_MAX_PARSED = 30_000
"""Words and signs of a source that is parsed: the parser blocks other threads, and takes 0.1 s for so many."""
_CHARS_OF_STEP = 4
"""Characters of source that are parsed in a step."""
_PART = re.compile(r"\w+|[^\w\s]")
_STEPS_OF_CHAR, _STEPS_OF_TEXT = 20, 4
"""Steps that a character takes where all of an analysis are expressions, and besides what else it does."""
_CHUNK = 64


class TooMuchWorkError(BaseException):
    """The budget of work is spent; nothing was analysed. No handler of other errors takes it for one of them."""


class Work:
    """A budget of work.

    Args:
        limit: Its number of steps.

    Attributes:
        spent: Steps that were taken.
    """

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.spent: int = 0


_WORK: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def limited_to(steps: int) -> Iterator[Work]:
    """Let what follows take so many steps; outside of this there is no limit.

    Raises:
        TooMuchWorkError: It takes more.
    """
    work = Work(steps)
    token = _WORK.set(work)
    try:
        yield work
    finally:
        _WORK.reset(token)


def is_limited() -> bool:
    """Return whether there is a budget."""
    return _WORK.get() is not None


def spend(steps: int = 1) -> None:
    """Take steps of the current budget, if there is one."""
    work = _WORK.get()
    if work is not None:
        work.spent += steps
        if work.spent > work.limit:
            raise TooMuchWorkError


def is_too_large(code: str) -> bool:
    """Return whether a source is too large for Python's own parser, which lets nothing else run."""
    return len(code) > _MAX_PARSED and sum(1 for _ in _PART.finditer(code)) > _MAX_PARSED


def spend_on_source(code: str) -> None:
    """Take the steps that Python's own parser or compiler needs for a source, before it reads the source."""
    if _WORK.get() is not None and is_too_large(code):
        raise TooMuchWorkError
    spend(len(code) // _CHARS_OF_STEP)


def is_brief(text: str) -> bool:
    """Return whether a text can be read on an event loop, where expressions and splitting take the time."""
    return len(text) * _STEPS_OF_CHAR <= INLINE_STEPS


def spend_on_texts(values: object) -> None:
    """Take the steps that expressions need for texts: those of a state, or one text."""
    texts = values.values() if isinstance(values, Mapping) else (values,)
    # Of a run, what it printed.
    spend(_STEPS_OF_TEXT * sum(len(text) for text in _texts_in(texts)))


def _texts_in(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        text = getattr(value, "stdout", value)
        if isinstance(text, str):
            yield text


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a tree, each for one step."""
    count = 0
    for node in ast.walk(tree):
        count += 1
        if count == _CHUNK:
            spend(_CHUNK)
            count = 0
        yield node
    spend(count)


def source_of(node: ast.AST) -> str:
    """Return the source of a part of a tree, for a step a node."""
    spend(sum(1 for _ in ast.walk(node)))
    return ast.unparse(node)
