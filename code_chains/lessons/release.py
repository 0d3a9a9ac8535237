"""Begin a lesson, and make the copy of it that learners get."""

from __future__ import annotations

import re
from importlib.resources import files

from code_chains.errors import InputError
from code_chains.lessons.reading import (
    SECRET_ROLES,
    as_fence,
    read_fences,
    split_front_matter,
    without_comments,
)
from code_chains.lessons.tasks import TASKS

TEMPLATE = files("code_chains.data").joinpath("first_lesson.md").read_text(encoding="utf-8")
"""What `lesson new` writes: a lesson that passes its check."""


def release(text: str) -> str:
    """Return the learner's copy of a lesson: without hidden tests, solutions, wrong programs, hints and comments.

    Raises:
        InputError: The text is no lesson, or is released already.
    """
    front, skipped = split_front_matter(text)
    if re.search(r"^released:", front, re.MULTILINE):
        raise InputError("This is the learner's copy of a lesson already.")
    lines: list[str | None] = [*text.split("\n")]  # None for what learners do not get.
    body = "\n" * skipped + "\n".join(text.split("\n")[skipped:])
    for fence in (as_fence(token) for token in read_fences(body) if token.type == "fence"):
        first, end = fence.lines
        if fence.role in SECRET_ROLES:
            lines[first:end] = [None] * (end - first)
        elif fence.role in TASKS:
            shown = TASKS[fence.role].released(fence.code).splitlines()
            count = fence.code.count("\n")
            lines[first + 1 : first + 1 + count] = [*shown, *[None] * (count - len(shown))]
    kept = "\n".join(line for line in lines[skipped:] if line is not None)
    kept = re.sub(r"\n{3,}", "\n\n", without_comments(kept)).strip("\n")
    return f"---\n{front.rstrip()}\nreleased: true\n---\n\n{kept}\n"
