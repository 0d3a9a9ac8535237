"""Questions of our own whose program prints the answer.

They are in `data/scripts.jsonl`: the question, the variables that are given, the program, which ends in one `print`, and a
regular expression for its output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.corpora import read_corpus


@dataclass(frozen=True)
class Script:
    """A question that a program answers by printing.

    Attributes:
        task: The question.
        variables: What is given to the program.
        source: A right program.
        pattern: What its output must match.
    """

    task: str
    variables: dict[str, Any]
    source: str
    pattern: str


SCRIPTS: tuple[Script, ...] = tuple(
    Script(entry["task"], entry["variables"], entry["program"], entry["pattern"])
    for entry in read_corpus("scripts")
)
