"""Examples of what a function returns or prints, or of what a program prints for an input."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from code_chains.errors import InputError

Compare = Literal["words", "lines", "exact"]
"""How an output is compared: `words` without regard to blanks and capitals, with numbers up to rounding; `lines` one by one,
without blanks at their ends and empty ones after the last; `exact` character by character."""
_OF_CALLS, _OF_RUNS = {"args", "kwargs", "expected", "raises"}, {"stdin", "output", "compare", "tolerance"}


@dataclass(frozen=True)
class Example:
    """What one call, or one run, must give.

    Attributes:
        arguments: The arguments of the call, as source.
        expected: What it returns or which exception it raises, as source; empty if only its output counts.
        stdin: What can be read from the standard input; None for nothing.
        output: What is printed; None if that does not matter.
        compare: How the output is compared.
        tolerance: By how much each number of the output may differ; None for rounding. For `words` only.
        is_run: Whether the whole program runs with this input, instead of a function being called.
    """

    arguments: str = ""
    expected: str = ""
    stdin: str | None = None
    output: str | None = None
    compare: Compare = "words"
    tolerance: float | None = None
    is_run: bool = False

    def outcome(self) -> str:
        """Return the arguments of the harness that say what is expected."""
        options = {"stdin": self.stdin, "printed": self.output, "tolerance": self.tolerance}
        options["how"] = None if self.compare == "words" else self.compare
        given = [f"{name}={value!r}" for name, value in options.items() if value is not None]
        return ", ".join([self.expected or "None", *given])

    def __str__(self) -> str:
        if self.is_run:
            return f"input {self.stdin or ''!r} prints {self.output!r}"
        what = f" == {self.expected}" if self.expected else f" prints {self.output!r}"
        given = "" if self.stdin is None else f" with the input {self.stdin!r}"
        return f"f({self.arguments}){given}{what}"


def parse_example(example: object) -> Example:
    """Validate an example; see `expect`.

    Raises:
        InputError: It is invalid.
    """
    if isinstance(example, Example):
        return example
    if (
        isinstance(example, Mapping)
        and example.keys() <= _OF_CALLS | _OF_RUNS
        and example.keys() & {"expected", "output", "raises"}
    ):
        return _from_mapping(example)
    if isinstance(example, Sequence) and not isinstance(example, str) and len(example) == 2:
        args, expected = example
        args = args if isinstance(args, tuple) else (args,)
        return Example(_arguments(args, {}), _expected(expected))
    raise InputError(
        f"{example!r:.80} is not an example. Give a pair of arguments and result, e.g. ((2, 3), 5), or what a program"
        ' prints for an input, e.g. {"stdin": "2 3", "output": "5"}.'
    )


def _from_mapping(example: Mapping[object, object]) -> Example:
    args, kwargs = example.get("args") or [], example.get("kwargs") or {}
    if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping):
        raise InputError(f"{example!r:.80} is not an example: args must be a list, and kwargs a mapping.")
    expected = _expected(example["expected"]) if "expected" in example else ""
    if (raised := _text(example, "raises")) is not None:
        expected = _exception(raised, example)
    is_run = not example.keys() & _OF_CALLS
    stdin, output = _text(example, "stdin"), _text(example, "output")
    compare, tolerance = _comparison(example)
    if output is None and example.keys() & {"compare", "tolerance"}:
        raise InputError(f"{example!r:.80} is not an example: compare and tolerance are about the output.")
    return Example(_arguments(args, kwargs), expected, stdin, output, compare, tolerance, is_run)


def _comparison(example: Mapping[object, object]) -> tuple[Compare, float | None]:
    compare, tolerance = example.get("compare", "words"), example.get("tolerance")
    if compare not in get_args(Compare):
        raise InputError(f"{example!r:.80} is not an example: compare is words, lines or exact.")
    if tolerance is None:
        return cast(Compare, compare), None
    is_number = isinstance(tolerance, int | float) and not isinstance(tolerance, bool)
    if not is_number or not 0 <= float(cast(float, tolerance)) < math.inf or compare != "words":
        raise InputError(f"{example!r:.80} is not an example: tolerance is a number, and compares words.")
    return "words", float(cast(float, tolerance))


def _exception(name: str, example: Mapping[object, object]) -> str:
    kind = vars(builtins).get(name)
    if isinstance(kind, type) and issubclass(kind, Exception):
        return name
    raise InputError(f"{example!r:.80} is not an example: raises must be the name of a built-in exception.")


def _text(example: Mapping[object, object], key: str) -> str | None:
    value = example.get(key)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{example!r:.80} is not an example: {key} must be text.")
    return value


def _arguments(args: Sequence[object], kwargs: Mapping[object, object]) -> str:
    arguments = list(map(_literal, args))
    for name, value in kwargs.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"An argument of an example cannot be called {name!r}.")
        arguments.append(f"{name}={_literal(value)}")
    return ", ".join(arguments)


def _expected(value: object) -> str:
    is_exception = isinstance(value, type) and issubclass(value, Exception)
    name = getattr(value, "__name__", "") if is_exception else ""
    return name if name and getattr(builtins, name, None) is value else _literal(value)


def _literal(value: object) -> str:
    text = repr(value)
    try:
        if ast.literal_eval(text) == value:
            return text
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        pass
    raise InputError(
        f"{text:.80} cannot be part of an example: give numbers, text, lists, tuples, dicts or sets. Use tests."
    )
