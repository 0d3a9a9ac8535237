"""Cells of an iteration, and what the model is shown of them."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from code_chains.chains.tools import describe_failure
from code_chains.inputs import fenced, shortened
from code_chains.state import Artifact, Execution, Problem

_MAX_CHARS = 6000
"""Characters of one observation: the beginning and the end, where shapes and errors stand."""
_OLD_CHARS = 300
"""Characters of an observation that had to make room."""
_MAX_REPEATS = 2
_MAX_IMAGES, _MAX_IMAGE_BYTES = 2, 1 << 20
_NEXT = "Write the next cell."
_REPEATED = "You have run this cell before, and it shows the same again. Do something else, or call final_answer(value)."


@dataclass(frozen=True)
class Cell:
    """A cell that was written.

    Attributes:
        code: Its source.
        execution: How it ran.
        problems: What the checks found.
    """

    code: str
    execution: Execution
    problems: tuple[Problem, ...] = ()


class Observations:
    """What a model is shown of its cells: the code of all, and their outcomes, of which older ones are shortened.

    Args:
        max_chars: Characters of all outcomes together.
        vision: Whether figures are shown.
    """

    def __init__(self, max_chars: int, *, vision: bool = False) -> None:
        self._max_chars, self._vision = max_chars, vision
        self._cells: list[tuple[Cell, str]] = []
        self._seen: dict[tuple[str, str], int] = {}

    def add(self, cell: Cell) -> bool:
        """Add a cell; return False if it was repeated so often that the model goes round in circles."""
        text = _describe(cell)
        key = ("\n".join(line.rstrip() for line in cell.code.splitlines() if line.strip()), text)
        self._seen[key] = self._seen.get(key, 0) + 1
        self._cells.append((cell, f"{text}\n{_REPEATED}" if self._seen[key] > 1 else text))
        return self._seen[key] <= _MAX_REPEATS

    def reject(self, feedback: str) -> None:
        """Add why the answer of the last cell was not accepted."""
        if self._cells:
            cell, text = self._cells[-1]
            self._cells[-1] = (
                cell,
                f"{text}\nThis answer was not accepted:\n{shortened(feedback, _MAX_CHARS)}",
            )

    def messages(self) -> list[BaseMessage]:
        """Return the cells and their outcomes as messages that follow the question."""
        messages: list[BaseMessage] = []
        for (cell, _), text in zip(self._cells, self._fitted(), strict=True):
            messages.append(AIMessage(fenced(cell.code, "python")))
            messages.append(
                HumanMessage(self._content(cell, f"{text}\n{_NEXT}", is_last=cell is self._cells[-1][0]))
            )
        return messages

    def _fitted(self) -> list[str]:
        """Return the outcomes, of which older ones are shortened until all fit."""
        texts = [text for _, text in self._cells]
        for number in range(len(texts) - 1):
            if sum(map(len, texts)) <= self._max_chars:
                break
            texts[number] = shortened(texts[number], _OLD_CHARS)
        return texts

    def _content(self, cell: Cell, text: str, *, is_last: bool) -> Any:
        """Return the content of a message; figures are shown once, as they take much of the context."""
        images = [artifact for artifact in cell.execution.artifacts if _is_image(artifact)][:_MAX_IMAGES]
        if not (self._vision and is_last and images):
            return text
        return [{"type": "text", "text": text}, *map(_image_block, images)]


def _describe(cell: Cell) -> str:
    execution = cell.execution
    output = shortened(execution.output, _MAX_CHARS)
    parts = [f"The cell showed:\n{fenced(output)}" if output.strip() else "The cell showed nothing."]
    if not execution.ok:
        parts.append(
            f"It failed and changed nothing:\n{describe_failure(execution, cell.code, cell.problems)}"
        )
    if execution.artifacts:
        parts.append(f"It made: {', '.join(artifact.name for artifact in execution.artifacts)}")
    return "\n".join(parts)


def _is_image(artifact: Artifact) -> bool:
    return artifact.media_type in ("image/png", "image/jpeg") and len(artifact.data) <= _MAX_IMAGE_BYTES


def _image_block(artifact: Artifact) -> dict[str, Any]:
    data = base64.b64encode(artifact.data).decode()
    return {"type": "image", "base64": data, "mime_type": artifact.media_type}
