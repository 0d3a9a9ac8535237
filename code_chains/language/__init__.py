"""Languages: which one a question is in, and what is said in each."""

from code_chains.language.detect import LANGUAGES, UNKNOWN, check_language, detect_language, language_name

__all__ = [
    "LANGUAGES",
    "UNKNOWN",
    "check_language",
    "detect_language",
    "language_name",
]
