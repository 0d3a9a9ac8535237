"""Small functions of our own: what is asked for, a right program, and calls with what they return.

They are in `data/functions.jsonl`, by topic; an example there is `call == value`. `scripts.py` has questions whose program
prints.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from benchmarks.corpora import read_corpus

Example = tuple[tuple[Any, ...], Any]


@dataclass(frozen=True)
class Function:
    """A function that is asked for.

    Attributes:
        name: What it is called.
        task: The question.
        source: A right program.
        examples: Arguments, and what the function returns for them.
    """

    name: str
    task: str
    source: str
    examples: tuple[Example, ...]


def _function(entry: dict[str, Any]) -> Function:
    examples = (ast.parse(example, mode="eval").body for example in entry["examples"])
    return Function(entry["name"], entry["task"], entry["program"], tuple(map(_example, examples)))


def _example(call: ast.expr) -> Example:
    match call:
        case ast.Compare(left=ast.Call(args=args), ops=[ast.Eq()], comparators=[expected]):
            return tuple(ast.literal_eval(arg) for arg in args), ast.literal_eval(expected)
    raise ValueError(f"An example is `call == value`, not {ast.unparse(call)}")


FUNCTIONS: tuple[Function, ...] = tuple(map(_function, read_corpus("functions")))
