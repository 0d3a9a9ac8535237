"""How many bad answers are caught before a user sees them alone, and how many good ones are, over 25 languages.

    python -m benchmarks.faithful

No model is asked: the answers are scripted. A caught answer is shown with the program's output beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.answers import table
from code_chains.chains.interpret import is_faithful

NUMBER, TEXT = "12.345678", "kestrel"
"""The outputs of the programs: the mean of a list, and the longest word of a list."""


class Language(NamedTuple):
    """Questions for both outputs, and an answer to each; where rounding is understood, the question with it."""

    mean: str
    mean_is: str
    word: str
    word_is: str
    comma: bool
    rounded: str


def languages() -> Iterator[tuple[str, Language]]:
    """Yield the languages of `data/faithful.txt`, by their codes."""
    path = Path(__file__).with_name("data") / "faithful.txt"
    for line in path.read_text(encoding="utf-8").splitlines():
        code, mean, mean_is, word, word_is, separator, rounded = line.split("|")
        yield code, Language(mean, mean_is, word, word_is, separator == "comma", rounded)


LANGUAGES = dict(languages())


class Answer(NamedTuple):
    """An answer to a question about an output."""

    kind: str
    query: str
    output: str
    text: str


def local(number: str, language: Language) -> str:
    """A number as it is written in a language."""
    return number.replace(".", ",") if language.comma else number


def good(language: Language) -> Iterator[Answer]:
    """Yield answers that state what was computed."""
    for kind, number in (("in full", NUMBER), ("to two decimals", "12.35"), ("to three decimals", "12.346")):
        yield Answer(kind, language.mean, f"Mean: {NUMBER}", language.mean_is.format(local(number, language)))
    if language.rounded:
        text = language.mean_is.format(local("12.35", language))
        yield Answer("as asked", language.rounded, f"Mean: {NUMBER}", text)
    yield Answer("the word", language.word, TEXT, language.word_is.format(TEXT))
    yield Answer(
        "the word, quoted", language.word, f"Longest: {TEXT}", language.word_is.format(f"'{TEXT.title()}'")
    )


def bad(language: Language) -> Iterator[Answer]:
    """Yield answers that do not."""
    stem, word_stem = (text.format("…") for text in (language.mean_is, language.word_is))
    output = f"Mean: {NUMBER}"
    yield Answer("repeats the question", language.mean, output, language.mean)
    yield Answer("repeats the question about a word", language.word, TEXT, language.word)
    yield Answer("leaves the number out", language.mean, output, stem)
    yield Answer("leaves the word out", language.word, TEXT, word_stem)
    for kind, number in (
        ("another number", "13.345678"),
        ("digits swapped", "12.435678"),
        ("another sign", f"-{NUMBER}"),
        ("a power of ten more", "123.45678"),
        ("rounded to an integer", "12"),
        ("rounded wrongly", "12.34"),
    ):
        yield Answer(kind, language.mean, output, language.mean_is.format(local(number, language)))
    if language.rounded:
        yield Answer(
            "coarser than asked", language.rounded, output, language.mean_is.format(local("12.3", language))
        )
    yield Answer("another word", language.word, TEXT, language.word_is.format("falcon"))


def main() -> None:
    """Print how many answers of each kind are caught."""
    for title, make in (("good answers", good), ("bad answers", bad)):
        answers = [(code, answer) for code, language in LANGUAGES.items() for answer in make(language)]
        rows = []
        for kind in dict.fromkeys(answer.kind for _, answer in answers):
            caught = {
                code: not is_faithful({"answer": answer.text, "query": answer.query, "output": answer.output})
                for code, answer in answers
                if answer.kind == kind
            }
            missed = [code for code, is_caught in caught.items() if is_caught == (make is good)]
            rows.append((kind, len(caught), sum(caught.values()), " ".join(missed)))
        table((title, "languages", "caught", "wrongly in" if make is good else "missed in"), rows)
        print()


if __name__ == "__main__":
    main()
