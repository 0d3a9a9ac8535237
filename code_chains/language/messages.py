"""Messages of the library itself to users, in each supported language."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from code_chains.language.detect import LANGUAGES
from code_chains.language.vocabulary import read_data


class Messages(NamedTuple):
    """The messages in one language. Names in braces are filled in.

    Attributes:
        unanswered: No program worked; `{attempts}` were made, the last one failed for `{reason}`, which is in
            English.
        program_output: The program's own `{output}`, as the answer may be unfaithful to it.
        truncated: The model's answer was cut off.
        not_phrased: The output is shown as it is, instead of an answer that a model phrased.
        needs: `{needs}` were not given, in the words of the program; the user may state them.
    """

    unanswered: str
    program_output: str
    truncated: str
    not_phrased: str
    needs: str


@functools.cache
def texts(language: str, section: str) -> Mapping[str, str]:
    """Return what is said in a language, by keys, in English if there is nothing; `data/languages` has a file for each.

    Args:
        language: A code of `LANGUAGES`.
        section: `messages`, `reasons` or `lessons`.
    """
    known: Mapping[str, Mapping[str, str]] = {}
    if language in LANGUAGES:
        path = f"languages/{language}.json"
        known = read_data(path)
    return known.get(section) or texts("en", section)


def messages_in(language: str | None) -> Messages:
    """Return the messages in a language, or in English if there are none."""
    return Messages(**texts(language or "en", "messages"))
