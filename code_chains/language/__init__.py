"""Languages: which one a question is in, and what is said in each."""

from code_chains.language.detect import LANGUAGES, check_language, detect_language

__all__ = [
    "LANGUAGES",
    "check_language",
    "detect_language",
]
