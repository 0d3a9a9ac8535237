"""Whether an output has the format that its question states."""

from __future__ import annotations

import json
import re

from code_chains.analysis.autofix import LABELLED

_TAG = re.compile(r"@(\w{1,60})\[([^\]\n]{0,80})\]")
_ASKING = (
    r"\b(?:print|output|return|give|answer|reply|respond|report|show|state|format)\w*\b"
    r"[^.;\n]{0,60}?\b(?:as|in|using)\b"
)
_JSON = re.compile(rf"{_ASKING} (?:a |an |one |single |valid )*JSON\b(?! file)", re.IGNORECASE)
# Not within a sentence: "The file has the format DD.MM.YYYY" describes the input.
_ORDER = r"(?:^|[.;:!?\n]) *(?:please )?(?:use (?:the )?format|format) *:?"
_PICTURE = re.compile(
    rf"(?i:{_ASKING}(?: the| a)?(?: format| form)?|{_ORDER}) [\"'`]?([YMDHS]{{2,4}}(?:[-./:][YMDHS]{{2,4}})+)\b"
)

_ALONE = re.compile(
    r"\b(?:print|output|return|give|answer|reply|respond|show|write|state)\w*\b[^.;\n]{0,40}?"
    r"\b(?:only|just|nothing but) (?:with )?(?:the|a|one|your) (?:\w+ )?(?:answer|number|value|name|result|word|year|date)\b"
    r"|\band nothing else\b|\bwithout (?:a |any )?(?:label|explanation|other text)"
    r"|\bnur (?:die|den|das) (?:Antwort|Zahl|Wert|Ergebnis|Namen?)\b"
    r"|\b(?:solo|sólo|únicamente) (?:el|la) (?:respuesta|número|valor|resultado|nombre)\b"
    r"|\b(?:seulement|uniquement|juste) l(?:e |a |['’])(?:réponse|nombre|valeur|résultat|nom)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\blists?\b|\ball\b|\bany\b|\[\]", re.IGNORECASE)
_WITH_TYPE = re.compile(r"\bdtype: \w+(?:\[.*\])?\s*$")
_LABELLED = re.compile(r"([^\W\d][^:\n]{0,60}:) \S.*")


def broken_format(query: str, output: str, code: str = "") -> str:
    """Return what an output lacks of the format that a question states, as one sentence; empty if nothing is known.

    Told are tags such as `@mean[value]`, JSON, pictures of dates and times such as `YYYY-MM-DD`, and, where the answer alone
    is asked for, a label or the type of an array.

    Args:
        query: The question.
        output: What the program printed.
        code: The program, whose text a label is.

    Example:
        >>> broken_format("What is the mean? Format: @mean[value]", "@average[3]")
        'The output does not have the format that the question states: print @mean[…].'
    """
    wrong = [f"@{name}[…]" for name in _missing_tags(query, output)]
    if _JSON.search(query) and not _is_json(output):
        wrong.append("JSON and nothing else")
    wrong += [picture for picture in _PICTURE.findall(query) if not _like(picture).search(output)]
    if _ALONE.search(query):
        label = _LABELLED.fullmatch(output.strip())
        if label and label[1] in code:
            return LABELLED
        if _WITH_TYPE.search(output):
            return (
                "The output shows the index or the type of an array: print each value on a line of its own."
            )
    if not wrong:
        return ""
    return f"The output does not have the format that the question states: print {' and '.join(wrong)}."


def _missing_tags(query: str, output: str) -> list[str]:
    """Return the tags of a question without a value in the output; a placeholder is none."""
    placeholders = set(_TAG.findall(query))
    stated = {
        name for name, text in set(_TAG.findall(output)) if text.strip() and (name, text) not in placeholders
    }
    # A choice is stated as such: "@answer[yes] or @answer[no]".
    names = [name for name, _ in _TAG.findall(query)]
    stated |= {name for name, text in _TAG.findall(output) if names.count(name) > 1 and text.strip()}
    if _LISTED.search(query):  # A list may be empty.
        stated |= {name for name, text in _TAG.findall(output) if not text.strip()}
    return [name for name in dict.fromkeys(names) if name not in stated]


def _is_json(output: str) -> bool:
    try:
        json.loads(output)
    except ValueError:
        return False
    return True


def _like(picture: str) -> re.Pattern[str]:
    """Return a pattern for what a picture such as `DD.MM.YYYY` stands for."""
    return re.compile(re.sub(r"[A-Z]", r"\\d", re.escape(picture)))
