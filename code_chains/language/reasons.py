"""Verdicts and reasons of this library in each supported language; errors of programs and tests stay as they are."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping

from code_chains.language.detect import LANGUAGES
from code_chains.language.messages import texts
from code_chains.records import Verdict

_OTHER_FORMS = {
    "missing": r"Refused: The reply held no \w+ program\.",
    "tests": r"The program gives what (\d+|the) (?:tests?|examples?) expects?\.",
    "made_up": r"The program made up its data: (.*) (?:was|were) not given\.",
    "no_column": r"Nothing in the data is called (.*); the program used the columns? (.*)\. There are: (.*)\.",
    "found_nothing": r"The program found nothing\..*",
}
"""Reasons of which English has several forms, or names what no translation does."""
_VALUE = re.compile(r"\\\{\d*\\\}")
"""A value within a sentence, once that is escaped."""
_STEP = re.compile(r"Step (\d+) of (\d+): (.*)", re.DOTALL)
_QUOTE = " It was: "
"""What introduces a reply of the model, which is quoted as it is."""
_END = re.compile(r"[.!?] ")
_MAX_CHARS = 4_000
"""A longer reason is mostly what a program printed, and costs expressions more than it is worth."""
_MAX_REASONS, _MAX_SENTENCES = 4, 3
"""How many reasons are in a row, and of how many sentences one is."""


def everywhere(key: str) -> set[str]:
    """Return what is said for a key in any language."""
    return {texts(language, "reasons")[key] for language in LANGUAGES}


def translate_reason(reason: str, language: str | None) -> str:
    """Return a reason in a language, if it is one of this library's."""
    if language is None or language == "en" or language not in LANGUAGES or len(reason) > _MAX_CHARS:
        return reason
    words = texts(language, "reasons")
    if step := _STEP.fullmatch(reason):
        return words["step"].format(step[1], step[2], translate_reason(step[3], language))
    return _translated(reason, words) or reason


def _translated(reason: str, words: Mapping[str, str]) -> str:
    """Return a reason, or a few in a row, in the words of a language; empty if one of them is unknown."""
    said, rest = list[str](), reason
    for _ in range(_MAX_REASONS):
        if whole := _of_pattern(rest, words):
            return " ".join([*said, whole])
        ends = itertools.islice(_END.finditer(rest), _MAX_SENTENCES)
        parts = ((end.end(), _of_pattern(rest[: end.end() - 1], words)) for end in ends)
        place, first = next(((place, part) for place, part in parts if part), (0, ""))
        if not first:
            return ""
        said.append(first)
        rest = rest[place:]
    return ""


@functools.cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """Return what matches each reason in English, by the keys of its translations."""
    sentences = {key: said for key, said in texts("en", "reasons").items() if "." in said or "{" in said}
    sources = {key: _VALUE.sub("(.*)", re.escape(said)) for key, said in sentences.items()} | _OTHER_FORMS
    return {key: re.compile(source, re.DOTALL) for key, source in sources.items()}


def _of_pattern(reason: str, words: Mapping[str, str]) -> str:
    """Return a single reason in the words of a language; empty if it is unknown."""
    sentence, _, quoted = reason.partition(_QUOTE)
    for key, pattern in _patterns().items():
        if match := pattern.fullmatch(sentence):
            said = words[key].format(*map(_number, match.groups()))
            return f"{said} {quoted}" if quoted else said
    return ""


def _number(value: str) -> str:
    return "1" if value == "the" else value


def verdict_title(verdict: Verdict, language: str | None = None) -> str:
    """Return a verdict in a word or two, such as "Not verified", in a language."""
    words = texts(language or "en", "reasons")
    return words["needs" if verdict.needs else verdict.status]


def verdict_words(verdict: Verdict, language: str | None = None) -> tuple[str, str]:
    """Return a verdict and its reason for people: in English its status, as programs see it, else its title."""
    worth = f" ({verdict.worth})" if verdict.worth else ""
    if language in (None, "en") or language not in LANGUAGES:
        return verdict.status, f"{verdict.reason}{worth}"
    return verdict_title(verdict, language), f"{translate_reason(verdict.reason, language)}{worth}"


def how_to_check(verdict: Verdict, how: str, language: str | None = None) -> str:
    """Return what would have an answer checked that nothing has checked; empty for others.

    Args:
        verdict: Its verdict.
        how: How examples or tests are given, such as an option of the command line.
        language: The language of the sentence.
    """
    if verdict.status != "unverified" or verdict.by != "none":
        return ""
    words = texts(language or "en", "reasons")
    return words["advice"].format(how)
