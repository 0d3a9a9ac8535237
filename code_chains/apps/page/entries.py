"""The data of a turn on the page: its input, its progress and its outcome."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from code_chains.analysis.replies.extraction import extract_code, extract_fenced
from code_chains.apps.page.approval import Approval
from code_chains.apps.run_view import STAGE_LABELS, RunView, stage_note
from code_chains.language import detect_language
from code_chains.state import Artifact, Execution, Source, Status, StopReason, Turn, Verdict

_LIMIT_MESSAGES: Mapping[str, str] = {
    "usd": "The budget is spent: its limit of dollars is reached.",
    "tokens": "The budget is spent: its limit of tokens is reached.",
    "model_calls": "The budget is spent: its limit of model calls is reached.",
    "tool_calls": "The budget is spent: its limit of tool calls is reached.",
    "effects": "The program called a tool that may have changed something, and failed; it was not repeated.",
    "refused": "The model's provider refused to reply, so it was not asked again.",
    "seconds": "The budget is spent: its limit of seconds is reached.",
}
VIEW = "result.html"
"""The name of the view of a value."""
_DISPLAYED = {"text/html": VIEW, "text/csv": "result.csv"}
"""The names of what a program displayed, by media type."""
_MIN_GROWTH = 32
"""A reply is parsed again when it has grown by this fraction of itself."""


@dataclass
class EntryProgress(RunView):
    """How far the work on an entry is.

    Attributes:
        queue_position: Position in the queue, from 1; 0 once work begins.
        stage: Name of the current stage, as in `run_view.STAGE_LABELS`; empty before and after.
        finished_stages: Names of the stages before, in order.
        notes: Problems on the way.
        approval: The program that waits for approval, if there is one.
        reply: What the model has written of a program so far.
        is_running: Whether work has not ended.
        started: When it began, by the monotonic clock.
    """

    queue_position: int = 0
    stage: str = ""
    finished_stages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    approval: Approval | None = None
    reply: str = ""
    is_running: bool = True
    started: float = field(default_factory=time.monotonic)
    _model_run: str = field(default="", init=False)
    _extracted: tuple[int, str] = field(default=(0, ""), init=False)

    @property
    def is_executing(self) -> bool:
        """Whether a program runs, rather than waits for its turn."""
        return self.stage == "execute" and not self.queue_position

    def handle_event(self, event: Mapping[str, Any]) -> None:
        """Advance by an event of `astream_events`."""
        kind, name, data = event["event"], event["name"], event["data"]
        if kind == "on_chain_start" and name in STAGE_LABELS:
            self.stage = name
        elif kind == "on_chain_end" and name in STAGE_LABELS:
            self.finished_stages.append(name)
            if note := stage_note(name, data.get("output")):
                self.notes.append(note)
        elif kind == "on_chat_model_start" and self.stage == "generate":
            self._model_run, self.reply, self._extracted = event["run_id"], "", (0, "")
        elif kind == "on_chat_model_stream" and event["run_id"] == self._model_run:
            self.reply += str(data["chunk"].text)

    def code_in_reply(self, language: str) -> str:
        """Return the program in the reply so far.

        While the model writes, the reply is parsed only when it has grown by a fraction of itself: parsing
        each chunk would be quadratic.
        """
        length, code = self._extracted
        slack = length // _MIN_GROWTH if self.stage == "generate" else 0
        if not length <= len(self.reply) <= length + slack:
            reply = self.reply
            code = extract_code(reply) if language == "python" else extract_fenced(reply, language)
            self._extracted = len(reply), code
        return code


_KEYS = ("code", "execution", "output", "verdict", "sources", "answer_language", "stop_reason", "receipt")
"""The keys of a result that an entry holds as they are, besides the answer and the notes, which come in parts."""


@dataclass
class EntryOutcome:
    """What a chain returned for an entry, as far as it has arrived.

    Attributes:
        code: The program that was selected.
        execution: How its run ended.
        output: Its output.
        verdict: Whether the output is an answer.
        sources: Examples that the model saw.
        answer: The answer so far.
        answer_language: Code of the language of the answer; empty if it is unknown.
        stop_reason: Why the work ended.
        notes: What reading the files left out or changed.
        receipt: What it was computed from; None for turns of before.
        error: Why there is no outcome at all; then the conversation is unchanged.
    """

    code: str = ""
    execution: Execution | None = None
    output: str = ""
    verdict: Verdict | None = None
    sources: tuple[Source, ...] = ()
    answer: str = ""
    answer_language: str = ""
    stop_reason: StopReason | None = None
    notes: Sequence[str] = ()
    receipt: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """What the program wrote or displayed."""
        return () if self.execution is None else (*self.execution.artifacts, *self.displayed)

    @property
    def displayed(self) -> list[Artifact]:
        """What the program displayed, as files of the page's: a view, and the rows of a table."""
        data = self.execution.display_data if self.execution else ()
        return [
            Artifact.of(_DISPLAYED[one.media_type], one.media_type, one.data.encode())
            for one in data
            if one.media_type in _DISPLAYED
        ]

    @property
    def limit_message(self) -> str:
        """The limit of the budget that ended the work; empty if none did."""
        return _LIMIT_MESSAGES.get(self.stop_reason or "", "")

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Add a chunk of the chain's result."""
        for key in _KEYS:
            if key in chunk:
                setattr(self, key, chunk[key])
        if self.execution is not None:  # The rest would count for no limit.
            shown = tuple(data for data in self.execution.display_data if data.media_type in _DISPLAYED)
            self.execution = replace(self.execution, display_data=shown)
        self.answer += chunk.get("answer") or ""
        self.notes = (*self.notes, *chunk.get("notes", ()))

    def drop_artifacts(self) -> None:
        """Discard what the program wrote or displayed."""
        if self.execution is not None:
            self.execution = replace(self.execution, artifacts=(), display_data=())


@dataclass(eq=False)
class ChatEntry:
    """A turn as the page shows it, from its question on.

    Attributes:
        query: The question.
        is_user_code: Whether the program was written by the user.
        progress: How far the work is.
        outcome: What it produced.
        id: Identifies the entry in URLs.
    """

    query: str
    is_user_code: bool = False
    progress: EntryProgress = field(default_factory=EntryProgress)
    outcome: EntryOutcome = field(default_factory=EntryOutcome)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @classmethod
    def from_turn(cls, turn: Turn) -> ChatEntry:
        """Return the entry of a stored turn, which has no record of its run but its output and artifacts."""
        status: Status = "ok" if turn.status != "failed" else "error"
        has_run = turn.code and (status == "ok" or turn.output or turn.artifacts)
        execution = _stored_execution(turn, status) if has_run else None
        verdict = Verdict.from_dict({"status": turn.status, "by": "none", "reason": ""})
        outcome = EntryOutcome(turn.code, execution, turn.output, verdict, (), turn.answer)
        outcome.answer_language = detect_language(turn.query)
        return cls(turn.query, progress=EntryProgress(is_running=False), outcome=outcome)

    @property
    def is_turn(self) -> bool:
        """Whether it became a turn of the conversation."""
        return not self.progress.is_running and not self.outcome.error

    def visible_code(self, language: str) -> str:
        """Return the program that waits for approval, the selected one, or that in the model's reply so far."""
        if approval := self.progress.approval:
            return approval.request.code
        if self.outcome.code or not self.progress.reply:
            return self.outcome.code
        return self.progress.code_in_reply(language)

    def handle_event(self, event: Mapping[str, Any]) -> None:
        """Update progress and outcome by an event of `astream_events`."""
        if event["event"] == "on_chain_stream" and not event["parent_ids"]:
            self.outcome.add(event["data"]["chunk"])
            self.progress.add(event["data"]["chunk"])
        else:
            self.progress.handle_event(event)


def _stored_execution(turn: Turn, status: Status) -> Execution:
    """Return what is known of the run of a stored turn: a table that it displayed is not repeated as text."""
    texts = [data.data for data in turn.display_data if data.media_type == "text/plain"]
    printed = turn.output.removesuffix(texts[0]) if texts else turn.output
    shown = tuple(data for data in turn.display_data if data.media_type != "text/plain")
    return Execution(status, stdout=printed, artifacts=turn.artifacts, display_data=shown)
