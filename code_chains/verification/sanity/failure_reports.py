"""Outputs that report a failure, or hold nothing, where an answer was asked for. No model is asked."""

from __future__ import annotations

import re

from code_chains.language.vocabulary import pattern, vocabulary

_MAX_CHARS = 4000
_MAX_LINES = 6
"""Lines of an output that may as a whole be the report of a failure."""
_WORDS = vocabulary("failure_reports")
_FAILURE = re.compile("\n".join(_WORDS["failure"]), re.IGNORECASE | re.VERBOSE)
"""How a line begins that reports a failure of a program."""
_PLACEHOLDER = pattern(_WORDS["placeholder"])
_NOTHING = re.compile(
    r"(?:[^\W\d][\w ()'’./:-]{0,60}[:=]\s*)?"
    r"(?:None|nan|NaN|NaT|<NA>|inf|-inf|null|undefined|\[\]|\{\}|\(\)|set\(\)|Series\(\[\].*\)"
    r"|Empty DataFrame\s+Columns:.*Index: \[\]|<[\w. ]+ at 0x[0-9a-f]+>|<(?:function|class|module|generator)\b.*>)\.?",
    re.DOTALL,
)
"""Outputs that hold no value, with a word about what they are or without."""
_LABELLED_NAN = re.compile(r"[^\W\d][\w ()'’./-]{0,60}[:=]\s*(?:nan|NaN|NaT|<NA>|Empty DataFrame)")
_FIGURE = re.compile(r"(?<![\w.,])-?\d+(?:[.,]\d+)*")
_ZERO = re.compile(r"-?0[.,]0+")
_NAN = re.compile(r"(?:np\.)?(?:float(?:64)?\(['\"]?)?(?:nan|NaN|NaT|<NA>)(?:['\"]?\))?")
_ABOUT_FAILURE = pattern(_WORDS["about_failure"])
"""Questions about failures, whose answers may look like one."""
_NOT_FOUND = pattern(_WORDS["not_found"])
"""Outputs that say that nothing was found, in one sentence."""
_ABOUT_NOTHING = pattern(_WORDS["about_nothing"])
_WHETHER = pattern(_WORDS["whether"])
"""Questions that ask whether something is there, in several languages."""


def reported_failure(query: str, output: str) -> str:
    """Return the line in which an output reports a failure of the program; empty if it does not.

    Only short outputs are looked at that end with the report, or consist of it. If the question itself is about errors or
    messages, nothing is found.

    Example:
        >>> reported_failure("How many rows has data.csv?", "Error: the file does not exist")
        'Error: the file does not exist'
        >>> reported_failure("Which error does 1/0 raise?", "ZeroDivisionError: division by zero")
        ''
    """
    lines = list(filter(None, map(str.strip, output[:_MAX_CHARS].splitlines())))
    if not lines or len(lines) > _MAX_LINES or _ABOUT_FAILURE.search(query):
        return ""
    is_traceback = lines[0].startswith("Traceback (most recent call last)")
    if is_traceback or _FAILURE.match(lines[-1]) or all(map(_FAILURE.match, lines)):
        return lines[-1]
    return "" if _PLACEHOLDER.search(query) else next(filter(_PLACEHOLDER.search, lines), "")


def empty_output(query: str, output: str) -> bool:
    """Return whether an output holds no value, such as `None`, NaN or an empty frame, and the question mentions none.

    Example:
        >>> empty_output("What is the mean price?", "Mean price: nan")
        True
    """
    text = output.strip()
    is_short = 0 < len(text) <= _MAX_CHARS
    is_nothing = is_short and (bool(_NOTHING.fullmatch(text)) or _holds_only_nan(text) or _ends_without(text))
    return is_nothing and not _ABOUT_NOTHING.search(query)


def found_nothing(query: str, output: str) -> bool:
    """Return whether an output says no more than that nothing was found, which the question does not ask about.

    Example:
        >>> found_nothing("When did the University of Essex gain its status?", "No row found for location 'Essex'")
        True
        >>> found_nothing("Is there an order of Okoye?", "No order of Okoye was found.")
        False
    """
    is_asked = _ABOUT_NOTHING.search(query) or _WHETHER.search(query)
    return not is_asked and says_not_found(output)


def sums_nothing(query: str, output: str) -> bool:
    """Return whether an output has no other figure than 0.0, as the sum of no rows has; a count is 0 without decimals.

    Example:
        >>> sums_nothing("What did I spend in April?", "Spent: 0.0")
        True
    """
    known = set(_FIGURE.findall(query))
    figures = [figure for figure in _FIGURE.findall(output[:_MAX_CHARS]) if figure not in known]
    return bool(figures) and all(map(_ZERO.fullmatch, figures)) and not _ABOUT_NOTHING.search(query)


def says_not_found(output: str) -> bool:
    """Return whether an output says no more than that nothing was found."""
    return _NOT_FOUND.fullmatch(output.strip()) is not None


def _ends_without(text: str) -> bool:
    """Return whether one of a few lines has a label and no value."""
    lines = text.splitlines()
    return len(lines) <= _MAX_LINES and any(map(_LABELLED_NAN.fullmatch, map(str.strip, lines)))


def _holds_only_nan(text: str) -> bool:
    """Return whether a list, a dictionary or a series has no other values than NaN."""
    if text[0] in "[({" and text[-1] in "])}":
        items = [item.rpartition(":")[2].strip() for item in text[1:-1].split(",") if item.strip()]
    else:
        *rows, last = text.splitlines()
        if "dtype: " not in last:
            return False
        items = [row.rpartition(" ")[2] for row in rows]
    return bool(items) and all(map(_NAN.fullmatch, items))
