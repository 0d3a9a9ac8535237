"""Whether an output has the tags that its question states, such as `@mean[value]`."""

from __future__ import annotations

import re

_TAG = re.compile(r"@(\w{1,60})\[([^\]\n]{0,80})\]")


def broken_format(query: str, output: str) -> str:
    """Return what an output lacks of the tags that a question states, as one sentence; empty if nothing is known.

    Example:
        >>> broken_format("What is the mean? Format: @mean[value]", "@average[3]")
        'The output does not have the format that the question states: print @mean[…].'
    """
    if not (missing := _missing_tags(query, output)):
        return ""
    tags = " and ".join(f"@{name}[…]" for name in missing)
    return f"The output does not have the format that the question states: print {tags}."


def _missing_tags(query: str, output: str) -> list[str]:
    """Return the tags of a question that the output lacks, or has with their placeholder for a value."""
    asked, stated = _TAG.findall(query), set(_TAG.findall(output))
    names = [name for name, _ in asked]
    # A choice is stated as such, "@answer[yes] or @answer[no]": each is a value. A list may be empty.
    placeholders = {(name, text) for name, text in asked if names.count(name) == 1 and text.strip()}
    return [name for name in dict.fromkeys(names) if name not in {tag for tag, _ in stated - placeholders}]
