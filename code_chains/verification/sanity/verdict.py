"""Sanity checks of a program that ran without error: is its output an answer, and did it use the question's values?"""

from __future__ import annotations

import ast
import re
import reprlib
from collections.abc import Iterator, Mapping
from typing import Any

from code_chains.analysis.definitions import defines_what_is_asked
from code_chains.analysis.determinism import prints_set_order
from code_chains.analysis.parsing import has_vast_numbers, nodes, tree_of
from code_chains.inputs import FencedText, without_references
from code_chains.records import Verdict
from code_chains.verification.provenance import (
    Given,
    find_invention,
    may_reach,
    shown_of,
    unanswered_subject,
    unnamed_selection,
    unread_column,
)
from code_chains.verification.provenance.assumptions import assumed_values
from code_chains.verification.provenance.needs import doubted_inputs
from code_chains.verification.sanity.days import misread_days
from code_chains.verification.sanity.failure_reports import (
    empty_output,
    found_nothing,
    reported_failure,
    sums_nothing,
)
from code_chains.verification.sanity.formats import broken_format
from code_chains.verification.sanity.invariants import broken_invariant
from code_chains.verification.sanity.options import calls_any, unset_options
from code_chains.verification.sanity.question_values import unused_values

_MAX_SOURCE_CHARS = 50_000
_MAX_ITEMS = 10_000
_MAX_INTEGER_BITS = 14_000
"""Of an integer that has a text in any case, which one of more than 4300 digits has not."""
_GIVEN_KEYS = ("translation", "history", "previous_steps", "tests", "examples", "stdin")
"""Keys besides the question whose text a program may take values from."""
_NOT_FOUND = (
    "The program found nothing. Compare a part of the text, without upper and lower case,"
    " and in each column that may hold it."
)
_NO_ROWS = (
    "The result is zero, as if no row was selected. If that is so, the program must say so in a sentence."
)
_LOOKING_UP = re.compile(r"\.query\(|\.get\(\s*['\"][^'\"]*['\"],\s*0\)")
_SET_ORDER = "The order of a set is arbitrary: keep the first of each with `dict.fromkeys(…)`, or sort."


def sanity_verdict(values: Mapping[str, Any], code: str) -> Verdict | None:
    """Return the verdict on a program that fails a sanity check; None if it passes.

    A verdict by `output` is certain: the output reports a failure. One by `checks` is a doubt: the output holds no
    value or an impossible one, values of the question are missing in the program, or it does not set an option that the
    question names. One by `provenance` says what was made up; if that is a single number, it is accepted as it is.
    In a session there are no doubts about a program that may use what is there already.

    Args:
        values: The state: `query`, `execution`, and if present `translation`, `answer_type`, `variables`, `context`,
            `session` and `session_variables`.
        code: The program.
    """
    try:
        return _verdict(values, code)
    except RecursionError:  # Expressions that are nested very deeply.
        return None


def _verdict(values: Mapping[str, Any], code: str) -> Verdict | None:
    query, execution = str(values.get("query") or ""), values["execution"]
    has_value = values.get("answer_type") is not None
    shows_text = not has_value and not execution.artifacts
    if shows_text and (line := reported_failure(query, execution.output)):
        return Verdict("failed", "output", f"The output reports a failure instead of an answer: {line}")
    if _may_use_state(code, values) or not query or defines_what_is_asked(code, query):
        return None
    doubts = _doubts_about_values(query, code, values)
    if shows_text:
        doubts = [*_doubts_about_nothing(query, code, values), *doubts]
    if not has_value and (broken := broken_invariant(query, execution.output)):
        doubts.insert(0, broken)
    if shows_text and (wrong := broken_format(query, execution.output, code)):
        doubts.insert(0, wrong)
    if prints_set_order(code):
        doubts.append(_SET_ORDER)
    if misread := misread_days(code, shown_of(values.get("profiles"))):
        doubts.append(misread)
    if doubts:
        return Verdict("failed", "checks", " ".join(doubts))
    return _verdict_on_origins(query, code, values)


def _may_use_state(code: str, values: Mapping[str, Any]) -> bool:
    """Return whether a program may use what earlier ones left in its session: anything, if that is not described."""
    left = values.get("session_variables")
    if values.get("session") is None or left == "":
        return False
    return left is None or may_reach(code, str(left))


def _doubts_about_nothing(query: str, code: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield in which ways an output shows nothing that was found."""
    output = values["execution"].output
    has_data = bool(values.get("files") or values.get("variables"))
    if has_data and sums_nothing(query, output) and _selects(code):
        yield _NO_ROWS
    if has_data and found_nothing(query, output):
        yield _NOT_FOUND
    if empty_output(query, output):
        yield "The output holds no value. If there is none, the program must say so in a sentence."


def _selects(code: str) -> bool:
    """Return whether a program may leave out rows."""
    return _LOOKING_UP.search(code) is not None or any(nodes(tree_of(code), ast.Compare))


def _verdict_on_origins(query: str, code: str, values: Mapping[str, Any]) -> Verdict | None:
    """Return the verdict on a program that makes up what it shows; None if it is not known to."""
    if has_vast_numbers(tree_of(code)):
        return None
    variables, context = values.get("variables") or {}, values.get("context") or ""
    examples = context.examples if isinstance(context, FencedText) else str(context)
    texts = [str(values.get(key) or "") for key in _GIVEN_KEYS]
    references = [line for line in str(context).splitlines() if line not in examples]
    texts.append("\n".join(references))
    held = _held(dict(variables))
    given = Given(without_references(query), *texts, held, examples=examples)
    files = list(values.get("files") or ())
    is_first = not (values.get("history") or values.get("previous_steps"))
    invention = find_invention(query, code, given, files=files, names=list(variables), is_first=is_first)
    if invention is not None:
        is_final = invention.kind == "assumption"
        return Verdict("unverified" if is_final else "failed", "provenance", invention.reason)
    has_input = bool(files or variables)
    if lacking := (*doubted_inputs(code, query), *assumed_values(code, given, has_input=has_input)):
        assumed = f"The program assumes {' and '.join(lacking)}, which was not given."
        return Verdict("unverified", "provenance", assumed)
    shown = shown_of(values.get("profiles"))
    named = [value for value in variables.values() if isinstance(value, str)]
    numbers = [_held(value) for value in variables.values() if isinstance(value, int | float)]
    asked = "\n".join([query, *named, *numbers, *texts])
    is_english = bool(_in_english(query, values))
    if has_input and (reason := unnamed_selection(asked, code, given, shown, is_english=is_english)):
        return Verdict("failed", "provenance", reason)
    return _verdict_on_columns(query, code, values, shown)


def _in_english(query: str, values: Mapping[str, Any]) -> str:
    """Return the question in English; empty if it is in another language and has no translation."""
    return query if values.get("language") in (None, "en") else str(values.get("translation") or "")


def _verdict_on_columns(query: str, code: str, values: Mapping[str, Any], shown: str) -> Verdict | None:
    if not shown:
        return None
    if reason := unread_column(query, code, shown):
        return Verdict("failed", "provenance", reason)
    asked = _in_english(query, values)
    reason = unanswered_subject(asked or query, code, shown, is_english=bool(asked))
    # Other words for columns are known less well in other languages, too little to ask again.
    return Verdict("failed" if asked else "unverified", "provenance", reason) if reason else None


class _Held(reprlib.Repr):
    """Texts of values, without integers that have none."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = _MAX_ITEMS
        self.maxstring = self.maxother = self.maxlong = _MAX_SOURCE_CHARS

    def repr_int(self, value: int, level: int) -> str:
        return "…" if value.bit_length() > _MAX_INTEGER_BITS else repr(value)


def _held(value: object) -> str:
    """Return the text of a value, as far as others are looked for in it."""
    return _Held().repr(value)[:_MAX_SOURCE_CHARS]


def _doubts_about_values(query: str, code: str, values: Mapping[str, Any]) -> list[str]:
    variables = _held(dict(values.get("variables") or {}))
    context = values.get("context") or ""
    has_functions = calls_any(code, str(context))
    unused = unused_values(without_references(query), f"{code}\n{variables!r}", all_numbers=has_functions)
    doubts = [f"The program does not use these values of the question: {_listed(unused)}."] if unused else []
    if unused and has_functions:
        doubts.append("Pass them to the functions that are installed.")
    if unset := unset_options(str(values.get("translation") or query), code, str(context)):
        doubts.append(f"The question names optional arguments that are not set. Pass {', '.join(unset)}.")
    return doubts


def _listed(values: list[str]) -> str:
    return ", ".join(f"`{value}`" for value in values)
