"""What terminal, notebook, page and MCP show of a running question: stages, programs, what they print, how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from code_chains.inputs import shortened
from code_chains.state import Attempt

STAGE_LABELS = {
    "condense": "Reading the question in its conversation",
    "translate": "Translating the question",
    "retrieve": "Searching for examples",
    "profile": "Looking at the files",
    "plan": "Planning",
    "write_tests": "Writing tests",
    "generate": "Writing a program",
    "validate": "Checking the program",
    "execute": "Running the program",
    "evaluate": "Evaluating the outcome",
    "interpret": "Phrasing the answer",
}
MAX_FILE_NOTES = 12
Change = tuple[Literal["program", "printed", "selected", "outcome"], Any]
"""What happened: a program begins, it has printed so much, an earlier one was selected, or a run ended in this way."""


@dataclass
class RunView:
    """A question as far as its chain has come, from the chunks of the chain's stream.

    Attributes:
        program: The latest program, and in the end the one that was selected.
        printed: What it has printed so far.
        failure: Why the attempt before the current one failed; empty during the first.
    """

    program: str = ""
    printed: str = ""
    failure: str = ""

    def add(self, chunk: Mapping[str, Any]) -> list[Change]:
        """Advance by a chunk of the chain's stream; return what changed, in order."""
        # Cached outcomes come all at once.
        return list(self._finish(chunk) if "code" in chunk else self._continue(chunk))

    def _continue(self, chunk: Mapping[str, Any]) -> Iterator[Change]:
        for program in chunk.get("programs") or ():
            self.program, self.printed = program, ""
            yield "program", program
        if chunk.get("stdout"):
            self.printed += chunk["stdout"]
            yield "printed", self.printed
        if chunk.get("attempts"):
            self.failure = retry_note(chunk["attempts"])

    def _finish(self, chunk: Mapping[str, Any]) -> Iterator[Change]:
        if chunk["code"] != self.program:  # An earlier program was the best.
            self.program, self.printed = chunk["code"], ""
            yield "selected", chunk["code"]
        # Invariant: it is not kept here, as the page limits what its turns hold.
        if execution := chunk.get("execution"):
            yield "outcome", execution


def did_work(name: str, outputs: Any) -> bool:
    """Return whether a stage did anything: a program that is refused does not run."""
    execution = outputs.get("execution") if name == "execute" and isinstance(outputs, Mapping) else None
    return execution is None or bool(execution.status != "refused")


def retry_note(attempts: Iterable[Attempt]) -> str:
    """Return why the latest of the attempts so far is followed by another; empty if it succeeded."""
    latest = list(attempts)[-1:]
    failed = [attempt for attempt in latest if not attempt.verdict.ok]
    return shortened(f"Attempt {failed[0].number} failed: {failed[0].verdict.reason}", 200) if failed else ""


def file_notes(result: Mapping[str, Any]) -> list[str]:
    """Return what people are told under an answer about the files that were read."""
    notes = result.get("notes") or []
    shown = [f"Note: {note}" for note in notes[:MAX_FILE_NOTES]]
    if len(notes) > len(shown):
        shown.append(f"… and {len(notes) - len(shown)} more notes about files")
    return shown


def stage_note(name: str, outputs: Any) -> str:
    """Return the problem of a stage that did not succeed; empty if it did."""
    if not isinstance(outputs, Mapping):
        return ""
    if name == "validate" and outputs.get("problems"):
        return str(outputs["problems"][0])
    execution = outputs.get("execution") if name == "execute" else None
    return execution.summary if execution and execution.status not in ("ok", "refused") else ""
