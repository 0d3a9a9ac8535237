"""What language short questions are told to be in: of two to six words, in 94 languages. No model is asked.

Who wrote them knew the words that detection knows, but they served for none of these. What counts as wrong is another
language; the language of the conversation, or an unknown one, is not.

Usage: python -m benchmarks.languages
"""

from __future__ import annotations

from collections import Counter

from benchmarks.answers import table
from benchmarks.corpora import read_corpus
from code_chains.language import LANGUAGES, detect_language

CONVERSATION = "xx"
"""What is returned in doubt: no language."""


def outcome(query: str, languages: list[str]) -> str:
    """Return what came of a question: its own language, another one, an unknown one, or doubt."""
    told = detect_language(query, default=CONVERSATION)
    return {CONVERSATION: "in doubt", "und": "unknown"}.get(told, "right" if told in languages else "wrong")


def main() -> None:
    """Count the questions of supported languages and of others."""
    counts = {"supported": Counter[str](), "others": Counter[str]()}
    for entry in read_corpus("short_questions"):
        group = "supported" if entry["languages"][0] in LANGUAGES else "others"
        counts[group][outcome(entry["query"], entry["languages"])] += 1
    outcomes = ("right", "in doubt", "unknown", "wrong")
    rows = [(group, count.total(), *map(count.__getitem__, outcomes)) for group, count in counts.items()]
    table(("languages", "questions", *outcomes), rows)


if __name__ == "__main__":
    main()
