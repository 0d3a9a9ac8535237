"""Coding lessons that check themselves: a Markdown file, grades by hidden tests, and hints that give no answer away."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from code_chains.lessons.gate import HintGate
    from code_chains.lessons.grade import GradeChain
    from code_chains.lessons.lesson import Lesson, Step
    from code_chains.lessons.progress import Progress
    from code_chains.lessons.reading import read_lesson
    from code_chains.lessons.tutor import TutorChain
    from code_chains.lessons.work import LearnerWork

_MODULE_OF = {
    "GradeChain": "grade",
    "HintGate": "gate",
    "LearnerWork": "work",
    "Lesson": "lesson",
    "Progress": "progress",
    "Step": "lesson",
    "TutorChain": "tutor",
    "read_lesson": "reading",
}

__all__ = ["GradeChain", "HintGate", "LearnerWork", "Lesson", "Progress", "Step", "TutorChain", "read_lesson"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the command line starts fast."""
    if name in _MODULE_OF:
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
