"""Verdicts and reasons of this library in each supported language; errors of programs and tests stay as they are."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

from code_chains.language.detect import LANGUAGES
from code_chains.language.messages import texts
from code_chains.records import Verdict

_PATTERNS = {
    "silent": r"The program ran but printed nothing\.",
    "late": r"Timeout: The program did not end within ([\d.e+]+) seconds\.",
    "missing": r"Refused: The reply held no \w+ program\.( It was: .*)?",
    "unchecked": r"The program ran; nothing checked its output\.",
    "read": r"It read: (.*)\.",
    "defines": r"The program defines what was asked for; nothing checked it\.",
    "zero_vote": r"(\d+) of (\d+) programs gave zero, which is also what mistakes give\.",
    "judge_unsure": r"The judge said neither a clear yes nor a clear no\.",
    "own_words": r"Nothing was computed: these are the model's own words\.",
    "tests": r"The program gives what (\d+|the) (?:tests?|examples?) expects?\.",
    "vote": r"(\d+) of (\d+) programs gave the same outcome\.",
    "nothing": r"Nothing was computed: the program prints what the model wrote: (.*)\.",
    "made_up": r"The program made up its data: (.*) (?:was|were) not given\.",
    "assumed": r"The program assumes (.*), which was not given\.",
    "lacking": r"The model says that this is not given: (.*)\.",
    "replaced": r"(.*) was given but does not reach the output; the program used (.*) of its own\.",
    "ignored": r"(.*) was given but does not reach the output\.",
    "selects": r"The program selects (.*), which the question does not name\.",
    "no_column": r"Nothing in the data is called (.*); the program used the columns? (.*)\. There are: (.*)\.",
    "network": r"Programs have no network, except for addresses that the application allows\.",
    "found_nothing": r"The program found nothing\..*",
    "absent": r"`([^`]*)` stands in no file\.",
    "absent_like": r"`([^`]*)` stands in no file; there is ((?:`[^`]*`(?:, )?)+)\.",
    "adds": r"The program takes a sum or mean of (.*), which the question does not name\. There are: (.*)\.",
    "reads": r"The program reads (.+), and the question asks for (.+)\.",
    "zero": r"The result is zero, as if no row was selected\. If that is so, the program must say so in a sentence\.",
    "no_value": r"The output holds no value\. If there is none, the program must say so in a sentence\.",
    "format": r"The output does not have the format that the question states: print (.*)\.",
    "reports_failure": r"The output reports a failure instead of an answer: (.*)",
}
"""The reasons in English, by the keys of their translations in `data/words.json`."""
_STEP = re.compile(r"Step (\d+) of (\d+): (.*)", re.DOTALL)
_QUOTE = " It was: "
"""What introduces a reply of the model, which is quoted as it is."""
_END = re.compile(r"[.!?] ")
_MAX_REASONS, _MAX_SENTENCES = 4, 3
"""How many reasons are in a row, and of how many sentences one is."""


def everywhere(key: str) -> set[str]:
    """Return what is said for a key in any language."""
    return {texts(language, "reasons")[key] for language in LANGUAGES}


def translate_reason(reason: str, language: str | None) -> str:
    """Return a reason in a language, if it is one of this library's."""
    if language is None or language == "en" or language not in LANGUAGES:
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


def _of_pattern(reason: str, words: Mapping[str, str]) -> str:
    """Return a single reason in the words of a language; empty if it is unknown."""
    for key, pattern in _PATTERNS.items():
        if match := re.fullmatch(pattern, reason, re.DOTALL):
            values = [_number(value) for value in match.groups()]
            quoted = (value.removeprefix(_QUOTE) for value in values if value.startswith(_QUOTE))
            return " ".join([words[key].format(*values), *quoted])
    return ""


def _number(value: str | None) -> str:
    return "1" if value == "the" else value or ""


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
