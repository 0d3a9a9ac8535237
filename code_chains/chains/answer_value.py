"""The value of a program as the type that was asked for."""

from __future__ import annotations

import ast
import json
from contextlib import suppress
from typing import Any

from code_chains.analysis.parsing import parse
from code_chains.analysis.replies.extraction import as_program
from code_chains.chains._drivers import State
from code_chains.executors.values import printed_value, value_of
from code_chains.state import Execution
from code_chains.verification.values.answer_types import AnswerType, AnswerTypeError

_NO_VALUE = "the program ended without a value; end it with an expression, not with print(…)"
_PLAIN = "end the program with plain data and no other objects: numbers, text, dates, lists, dicts, records and tables"


def answer_value(execution: Execution, code: str, answer_type: AnswerType) -> Any:
    """Return the value of a program that ran, validated.

    It is the value of the last expression or of the variable `result`. Of a program that has none, it is what was
    printed, if all of standard output is one JSON document of the type; or None, if the program ends with a
    variable or constant that is None.

    Args:
        execution: The run, which was asked for its value.
        code: The program.
        answer_type: The type.

    Raises:
        AnswerTypeError: There is no value of this type.
    """
    if execution.result is not None:
        try:
            value = value_of(execution)
        except LookupError as error:
            raise AnswerTypeError(f"{error}; {_PLAIN}") from None
        return answer_type.validate(value)
    if _ends_with_none(code):
        return answer_type.validate(None)
    try:
        return answer_type.validate(printed_value(execution))
    except (ValueError, RecursionError):  # An AnswerTypeError is a ValueError, too.
        raise AnswerTypeError(_NO_VALUE) from None


def find_value(state: State) -> Any:
    """Return the value in an outcome; None if its verdict is `failed` or no type was asked for."""
    answer_type, verdict = state.get("answer_type"), state.get("verdict")
    if answer_type is None or (verdict is not None and not verdict.ok):
        return None
    with suppress(AnswerTypeError):
        return answer_value(state["execution"], str(state.get("code") or ""), answer_type)
    return None


def format_value(value: Any, answer_type: AnswerType) -> str:
    """Return a value as JSON text."""
    return json.dumps(answer_type.to_json(value), ensure_ascii=False, default=str)


def _ends_with_none(code: str) -> bool:
    """Return whether the last statement says None by intent; calls such as `print(…)` or `items.sort()` do not."""
    tree = parse(as_program(code))
    last = tree.body[-1] if tree is not None and tree.body else None
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Name | ast.Constant)
