"""Sanity checks of a program that ran without error: is its output an answer, and did it use the question's values?"""

from __future__ import annotations

import ast
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from code_chains.analysis.definitions import defines_what_is_asked
from code_chains.analysis.parsing import has_vast_numbers, nodes, tree_of
from code_chains.analysis.references import makes_code
from code_chains.inputs import FencedText, without_references
from code_chains.records import NOT_ANALYSED, Verdict
from code_chains.verification import provenance
from code_chains.verification.provenance.assumptions import assumed_values
from code_chains.verification.provenance.given import Given, shown_of
from code_chains.verification.provenance.needs import doubted_inputs
from code_chains.verification.sanity.failure_reports import (
    empty_output,
    found_nothing,
    reported_failure,
    sums_nothing,
)
from code_chains.verification.sanity.formats import broken_format

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


def sanity_verdict(values: Mapping[str, Any], code: str, language: str = "python") -> Verdict | None:
    """Return the verdict on a program that fails a sanity check; None if it passes.

    A verdict by `output` is certain: the output reports a failure. One by `checks` is a doubt: the output holds no
    value, or lacks the tags that the question states. One by `provenance` says what was made up; if that is a single
    number, it is accepted as it is. Nothing is known of a program that makes code from text. In a session there are no
    doubts about a program that may use what is there already.

    Args:
        values: The state: `query`, `execution`, and if present `translation`, `answer_type`, `variables`, `context`,
            `session` and `session_variables`.
        code: The program.
        language: Its language, `python` or `sql`.
    """
    try:
        if language == "sql":
            from code_chains.verification.sanity.statements import statement_verdict

            return statement_verdict(Outcome(values, code))
        return _verdict(values, code)
    except RecursionError:  # Expressions that are nested very deeply.
        return NOT_ANALYSED


def _verdict(values: Mapping[str, Any], code: str) -> Verdict | None:
    outcome = Outcome(values, code)
    if outcome.shows_text and (line := reported_failure(outcome.query, outcome.output)):
        return Verdict("failed", "output", f"The output reports a failure instead of an answer: {line}")
    if makes_code(code):
        return NOT_ANALYSED
    if _may_use_state(code, values) or not outcome.query or defines_what_is_asked(code, outcome.query):
        return None
    if doubts := [doubt for check in CHECKS for doubt in check(outcome)]:
        return Verdict("failed", "checks", " ".join(doubts))
    if has_vast_numbers(tree_of(code)):
        return None
    return next(filter(None, (rule(outcome) for rule in ORIGINS)), None)


def _may_use_state(code: str, values: Mapping[str, Any]) -> bool:
    """Return whether a program may use what earlier ones left in its session: anything, if that is not described."""
    left = values.get("session_variables")
    if values.get("session") is None or left == "":
        return False
    return left is None or provenance.may_reach(code, str(left))


@dataclass(frozen=True)
class Outcome:
    """A program that ran without error, as rules see it.

    Attributes:
        values: The state.
        code: The program.
    """

    values: Mapping[str, Any]
    code: str

    @property
    def query(self) -> str:
        """The question."""
        return str(self.values.get("query") or "")

    @property
    def output(self) -> str:
        """What it showed."""
        return str(self.values["execution"].output)

    @property
    def shows_text(self) -> bool:
        """Whether the answer is text: no value was asked for, and no file or figure made."""
        return self.values.get("answer_type") is None and not self.values["execution"].artifacts

    @property
    def files(self) -> list[str]:
        """The names of its files."""
        return list(self.values.get("files") or ())

    @property
    def variables(self) -> dict[str, Any]:
        """Its variables."""
        return dict(self.values.get("variables") or {})

    @property
    def has_data(self) -> bool:
        """Whether it had files or variables."""
        return bool(self.values.get("files") or self.values.get("variables"))

    @property
    def shown(self) -> str:
        """What the model was shown of the data."""
        return shown_of(self.values.get("profiles"))

    @property
    def asked_in_english(self) -> str:
        """The question in English; empty if it is in another language and has no translation."""
        is_english = self.values.get("language") in (None, "en")
        return self.query if is_english else str(self.values.get("translation") or "")

    @property
    def texts(self) -> list[str]:
        """What was given besides question and data."""
        return [str(self.values.get(key) or "") for key in _GIVEN_KEYS]

    @cached_property
    def given(self) -> Given:
        """The numbers and words that the program may use."""
        context = self.values.get("context") or ""
        examples = context.examples if isinstance(context, FencedText) else str(context)
        references = "\n".join(line for line in str(context).splitlines() if line not in examples)
        query = without_references(self.query)
        return Given(query, *self.texts, references, _held(self.variables), examples=examples)


# -- checks: what the output lacks, or the program leaves out ----------------------------------------------------


def _wrong_format(outcome: Outcome) -> Iterator[str]:
    if outcome.shows_text and (wrong := broken_format(outcome.query, outcome.output)):
        yield wrong


def _nothing_found(outcome: Outcome) -> Iterator[str]:
    """Yield in which ways an output shows nothing that was found."""
    if not outcome.shows_text:
        return
    query, output = outcome.query, outcome.output
    if outcome.has_data and sums_nothing(query, output) and _selects(outcome.code):
        yield _NO_ROWS
    if outcome.has_data and found_nothing(query, output):
        yield _NOT_FOUND
    if empty_output(query, output):
        yield "The output holds no value. If there is none, the program must say so in a sentence."


def _selects(code: str) -> bool:
    """Return whether a program may leave out rows."""
    return _LOOKING_UP.search(code) is not None or any(nodes(tree_of(code), ast.Compare))


CHECKS: tuple[Callable[[Outcome], Iterable[str]], ...] = (
    _wrong_format,
    _nothing_found,
)
"""Each yields sentences, which are told together."""

# -- origins: what the program makes up --------------------------------------------------------------------------


def _invention(outcome: Outcome) -> Verdict | None:
    is_first = not (outcome.values.get("history") or outcome.values.get("previous_steps"))
    invention = provenance.find_invention(
        outcome.query,
        outcome.code,
        outcome.given,
        files=outcome.files,
        names=list(outcome.variables),
        is_first=is_first,
    )
    if invention is None:
        return None
    is_final = invention.kind == "assumption"
    return Verdict("unverified" if is_final else "failed", "provenance", invention.reason)


def _assumption(outcome: Outcome) -> Verdict | None:
    code = outcome.code
    assumed = assumed_values(code, outcome.given, has_input=outcome.has_data)
    if lacking := (*doubted_inputs(code, outcome.query), *assumed):
        reason = f"The program assumes {' and '.join(lacking)}, which was not given."
        return Verdict("unverified", "provenance", reason)
    return None


def _selection(outcome: Outcome) -> Verdict | None:
    if not outcome.has_data:
        return None
    variables = outcome.variables.values()
    named = [value for value in variables if isinstance(value, str)]
    numbers = [_held(value) for value in variables if isinstance(value, int | float)]
    asked = "\n".join([outcome.query, *named, *numbers, *outcome.texts])
    reason = provenance.unnamed_selection(
        asked, outcome.code, outcome.given, outcome.shown, is_english=bool(outcome.asked_in_english)
    )
    return Verdict("failed", "provenance", reason) if reason else None


def _subject(outcome: Outcome) -> Verdict | None:
    if not outcome.shown:
        return None
    asked = outcome.asked_in_english
    reason = provenance.unanswered_subject(
        asked or outcome.query, outcome.code, outcome.shown, is_english=bool(asked)
    )
    # Other words for columns are known less well in other languages, too little to ask again.
    return Verdict("failed" if asked else "unverified", "provenance", reason) if reason else None


ORIGINS: tuple[Callable[[Outcome], Verdict | None], ...] = (
    _invention,
    _assumption,
    _selection,
    _subject,
)
"""The surest first; the first that says something decides."""


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
