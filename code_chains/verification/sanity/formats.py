"""Whether an output has the tags that its question states, such as `@mean[value]`."""

from __future__ import annotations

import re

_TAG = re.compile(r"@(\w{1,60})\[([^\]\n]{0,80})\]")
_BLANKS = re.compile(r"\s.*|.*\s|\{\w+\}")
"""A value that `print` has set apart, or that was never filled in."""
_NO_VALUE = re.compile(r"\s*(?:nan|NaN|NaT|<NA>|None|inf|-inf)\s*")
_UNROUNDED = re.compile(r"[-+]?\d*\.\d{9,}")
"""A number with all the decimals that a computer has, which no form asks for."""


def broken_format(query: str, output: str) -> str:
    """Return what an output lacks of the tags that a question states, as one sentence; empty if nothing is known.

    Example:
        >>> broken_format("What is the mean? Format: @mean[value]", "@average[3]")
        'The output does not have the format that the question states: print @mean[…].'
    """
    problems = {
        "print {}": _missing_tags(query, output),
        "find a value for {}, which has none": _named(_NO_VALUE, query, output),
        "print only the value within {}": _named(_BLANKS, query, output),
        "round {} as the question says": _named(_UNROUNDED, query, output),
    }
    for remedy, names in problems.items():
        if names:
            tags = " and ".join(f"@{name}[…]" for name in names)
            return f"The output does not have the format that the question states: {remedy.format(tags)}."
    return ""


def _named(form: re.Pattern[str], query: str, output: str) -> list[str]:
    """Return the tags of a question whose value in the output has a form."""
    asked = {name for name, _ in _TAG.findall(query)}
    return [name for name, value in _TAG.findall(output) if name in asked and form.fullmatch(value)]


def _missing_tags(query: str, output: str) -> list[str]:
    """Return the tags of a question that the output lacks, or has with their placeholder for a value."""
    asked, stated = _TAG.findall(query), set(_TAG.findall(output))
    names = [name for name, _ in asked]
    # A choice is stated as such, "@answer[yes] or @answer[no]": each is a value. A list may be empty.
    placeholders = {(name, text) for name, text in asked if names.count(name) == 1 and text.strip()}
    return [name for name in dict.fromkeys(names) if name not in {tag for tag, _ in stated - placeholders}]
