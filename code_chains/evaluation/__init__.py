"""Evaluation on questions with known answers: cases, scoring, accuracy with its interval, comparison, LangSmith."""

from code_chains.evaluation.cases import Case, Expectation, read_cases
from code_chains.evaluation.comparison import Comparison, compare
from code_chains.evaluation.langsmith import as_target, correct
from code_chains.evaluation.records import Evaluation, Score
from code_chains.evaluation.runner import evaluate

__all__ = [
    "Case",
    "Comparison",
    "Evaluation",
    "Expectation",
    "Score",
    "as_target",
    "compare",
    "correct",
    "evaluate",
    "read_cases",
]
