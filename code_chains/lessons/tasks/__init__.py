"""Kinds of steps that no test decides: each is a class in a file of its own, and an entry here."""

from __future__ import annotations

from collections.abc import Mapping

from code_chains.lessons.tasks.base import Task as Task
from code_chains.lessons.tasks.choice import Choice
from code_chains.lessons.tasks.explanation import Explanation
from code_chains.lessons.tasks.gaps import Gaps

TASKS: Mapping[str, type[Task]] = {task.role: task for task in (Choice, Gaps, Explanation)}
"""The kinds by the role of the block that has them."""
