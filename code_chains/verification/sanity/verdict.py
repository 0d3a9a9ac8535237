"""Sanity checks of a program that ran without error: is its output an answer, and did it use the question's values?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from code_chains.analysis.definitions import defines_what_is_asked
from code_chains.analysis.determinism import prints_set_order
from code_chains.inputs import FencedText, without_references
from code_chains.records import Verdict
from code_chains.verification.sanity.failure_reports import empty_output, reported_failure
from code_chains.verification.sanity.invariants import broken_invariant
from code_chains.verification.sanity.options import calls_any, unset_options
from code_chains.verification.sanity.question_values import copied_values, unused_values

_MAX_SOURCE_CHARS = 50_000
_SET_ORDER = "The order of a set is arbitrary: keep the first of each with `dict.fromkeys(…)`, or sort."


def sanity_verdict(values: Mapping[str, Any], code: str) -> Verdict | None:
    """Return the verdict on a program that fails a sanity check; None if it passes.

    A verdict by `output` is certain: the output reports a failure. One by `checks` is a doubt: the output holds no
    value or an impossible one, values of the question are missing in the program, it has those of an example, or it
    does not set an option that the question names.
    In a session there are no doubts, as programs may use what is there already.

    Args:
        values: The state: `query`, `execution`, and if present `translation`, `answer_type`, `variables`, `context`
            and `session`.
        code: The program.
    """
    query, execution = str(values.get("query") or ""), values["execution"]
    has_value, has_session = values.get("answer_type") is not None, values.get("session") is not None
    shows_text = not has_value and not execution.artifacts
    if shows_text and (line := reported_failure(query, execution.output)):
        return Verdict("failed", "output", f"The output reports a failure instead of an answer: {line}")
    if has_session or not query or defines_what_is_asked(code, query):
        return None
    doubts = _doubts_about_values(query, code, values)
    if shows_text and empty_output(query, execution.output):
        doubts.insert(
            0, "The output holds no value. If there is none, the program must say so in a sentence."
        )
    if not has_value and (broken := broken_invariant(query, execution.output)):
        doubts.insert(0, broken)
    if prints_set_order(code):
        doubts.append(_SET_ORDER)
    return Verdict("failed", "checks", " ".join(doubts)) if doubts else None


def _doubts_about_values(query: str, code: str, values: Mapping[str, Any]) -> list[str]:
    variables = str(values.get("variables") or "")[:_MAX_SOURCE_CHARS]
    context = values.get("context") or ""
    has_functions = calls_any(code, str(context))
    unused = unused_values(without_references(query), f"{code}\n{variables!r}", all_numbers=has_functions)
    doubts = [f"The program does not use these values of the question: {_listed(unused)}."] if unused else []
    if unused and has_functions:
        doubts.append("Pass them to the functions that are installed.")
    known = "\n".join([query, variables, str(values.get("history") or "")[:_MAX_SOURCE_CHARS]])
    examples = context.examples if isinstance(context, FencedText) else str(context)
    if copied := copied_values(known, code, examples):
        doubts.append(f"These values come from an example, not from the question: {_listed(copied)}.")
    if unset := unset_options(str(values.get("translation") or query), code, str(context)):
        doubts.append(f"The question names optional arguments that are not set. Pass {', '.join(unset)}.")
    return doubts


def _listed(values: list[str]) -> str:
    return ", ".join(f"`{value}`" for value in values)
