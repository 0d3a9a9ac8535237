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
    lines = text.split("\n")
    body = "\n" * skipped + "\n".join(lines[skipped:])
    hidden = set[int]()
    for token in read_fences(body):
        if token.type == "fence" and as_fence(token).role in SECRET_ROLES:
            hidden.update(range(*(token.map or (0, 0))))
    numbered = enumerate(lines)
    kept = "\n".join(line for number, line in numbered if number >= skipped and number not in hidden)
    kept = re.sub(r"\n{3,}", "\n\n", without_comments(kept)).strip("\n")
    return f"---\n{front.rstrip()}\nreleased: true\n---\n\n{kept}\n"
