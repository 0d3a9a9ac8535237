"""Evaluation on questions with known answers: cases, scoring, accuracy with its interval, comparison, LangSmith."""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
