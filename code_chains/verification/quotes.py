"""What a program printed, as answers show it: alone, or quoted below words that may not be faithful to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from code_chains.inputs import shortened
from code_chains.language.messages import Messages
from code_chains.state import Execution

MAX_QUOTE_CHARS = 500
_FIGURE = re.compile(r"figure-\d+\.")
"""What the names of all forms of a figure begin with."""
_SCALAR = re.compile(r"\bnp\.(bool|str|u?int|float|longdouble)\w*\(([^()\n]*)\)")
"""How NumPy 2 shows a number within a list or a dict."""


def format_outcome(values: Mapping[str, Any]) -> str:
    """Return the output, and the names of figures, each in its first form, and of files."""
    execution: Execution | None = values.get("execution")
    figures: dict[str, str] = {}
    files = []
    for artifact in execution.artifacts if execution else ():
        number = _FIGURE.match(artifact.name)
        if number or artifact.media_type.startswith("image/"):
            figures.setdefault(number[0] if number else artifact.name, artifact.name)
        else:
            files.append(artifact.name)
    # In words a number is a number, whatever type of NumPy it has.
    lines = [_SCALAR.sub(r"\2", str(values["output"]))]
    if figures:
        lines.append(f"Figure: {', '.join(figures.values())}")
    if files:
        lines.append(f"File: {', '.join(files)}")
    return "\n".join(filter(None, lines))


def quotation(outcome: str, texts: Messages) -> str:
    """Return an outcome as it stands below an answer that may not be faithful to it."""
    return f"\n\n({texts.program_output.format(output=shortened(outcome, MAX_QUOTE_CHARS))})"
