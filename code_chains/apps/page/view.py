"""The elements of a turn on the page: its question, its stages, its program and its answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from html import escape

from nicegui import ui

from code_chains.apps.answers import render_answer
from code_chains.apps.page.approval import TIMEOUT_S, Approval
from code_chains.apps.page.editor import Editor
from code_chains.apps.page.elements import copy_button, quiet_button, text
from code_chains.apps.page.entries import ChatEntry
from code_chains.apps.page.html import listing
from code_chains.apps.page.outcome_view import OutcomeView
from code_chains.apps.remedies import CHECKS, remedy
from code_chains.apps.run_view import STAGE_LABELS, file_notes
from code_chains.apps.safe_html import MAX_CHARS, plain
from code_chains.language import detect_language
from code_chains.language.reasons import how_to_check, translate_reason, verdict_title

_PARTS = {"execute": "outcome", "evaluate": "outcome", "interpret": "answer"}
"""The part of a turn on which work goes on in a stage; in the others it is the program."""
_EDITOR_KEYS = "Ctrl+Enter runs the program. Tab indents; to leave the editor, press Esc and then Tab."


def stages(entry: ChatEntry) -> str:
    """Return the finished stages of an entry and the current one as an HTML list."""
    progress = entry.progress
    waiting = f"Waiting: {_queue_text(progress.queue_position)}" if progress.queue_position else ""
    if not progress.stage:
        return _stage_list([], waiting or "Starting")
    order = list(STAGE_LABELS)
    earlier = order[: order.index(progress.stage)]
    finished = [STAGE_LABELS[name] for name in earlier if name in progress.finished_stages]
    current = waiting or STAGE_LABELS[progress.stage]
    attempt = progress.finished_stages.count("generate") + 1
    if progress.approval:
        current = "Waiting for your approval"
    elif progress.stage == "generate" and attempt > 1:
        current += f", attempt {attempt}"
    why = f'<li class="failed">{plain(progress.failure)}</li>' if progress.failure else ""
    return _stage_list(finished, current, why)


def _stage_list(finished: Sequence[str], current: str, why: str = "") -> str:
    items = "".join(f'<li class="done">{label}</li>' for label in finished)
    return f'<ol class="stages">{why}{items}<li class="now">{current}</li></ol>'


def _queue_text(position: int) -> str:
    return f"{position} program{'' if position == 1 else 's'} ahead"


class TurnView:
    """The view of an entry, which follows its progress.

    Args:
        entry: The entry.
        language: The language of its program.
        on_run: Called with an edited program; returns whether it was started.
    """

    element: ui.element
    entry: ChatEntry

    def __init__(
        self, entry: ChatEntry, number: int, language: str, on_run: Callable[[str], Awaitable[bool]]
    ) -> None:
        self.entry, self._number, self._language, self._on_run = entry, number, language, on_run
        self._is_final, self._is_stale = False, True
        self._approval: Approval | None = None
        with ui.element("article").classes("turn").props(f'aria-label="Question {number}"') as self.element:
            if entry.is_user_code:
                text("Edited by you", "p", "kicker")
            text(entry.query, "h2", "question").props(f"lang={detect_language(entry.query)} dir=auto")
            self._stages = ui.html(sanitize=False)
            self._above = ui.element("div").classes("above")
            with ui.element("div").classes("work"):
                with (
                    ui.element("section")
                    .classes("panel program")
                    .props(f'aria-label="Program {number}"') as self._program
                ):
                    self._bar = ui.element("div").classes("bar")
                    self._code = ui.html(sanitize=False).classes("code")
                    self._approval_bar = ui.element("div").classes("approval below")
                    self._approval_bar.props('role=group aria-label="Approval"')
                    self._editing = ui.element("div").classes("editing")
                self._outcome = OutcomeView(entry, number)
            self._answer = ui.html(sanitize=False).classes("answer nicegui-markdown").props("dir=auto")
            self._below = ui.element("div").classes("below")
        for part in (self._program, self._approval_bar, self._editing, self._answer):
            part.set_visibility(False)
        with self._bar:
            text("Program", "p", "kicker")
        self.refresh()

    def refresh(self) -> None:
        """Display what has changed, except the program and the answer, which `draw` displays."""
        if self._is_final:
            return
        self._is_stale, entry = True, self.entry
        is_running = entry.progress.is_running
        self._stages.set_content(stages(entry) if is_running else "")
        self._stages.set_visibility(is_running)
        self._outcome.refresh()
        if not is_running:
            self._finish()
        self.element.props(f"data-part={self._active_part()}")

    def _active_part(self) -> str:
        """Return the part on which work goes on, which the browser keeps in view."""
        progress = self.entry.progress
        if not progress.is_running:
            return "end"
        if progress.approval:
            return "approval"
        return _PARTS.get(progress.stage, "program" if progress.stage else "question")

    async def draw(self) -> None:
        """Display the program and the answer.

        They are rendered in a thread, which does not delay other pages.
        """
        if not self._is_stale:
            return
        self._is_stale = False
        approval = self.entry.progress.approval
        program, answer = await asyncio.to_thread(self._render)
        if self.element.is_deleted:  # Meanwhile, with its turn.
            return
        self._program.set_visibility(bool(program))
        self._code.set_content(program)
        self._answer.set_visibility(bool(answer))
        self._answer.set_content(answer)
        if language := self.entry.outcome.answer_language:
            self._answer.props(f'lang="{escape(language)}"')
        # Approval is requested only for the program on display.
        if approval is self.entry.progress.approval is not self._approval:
            self._approval = approval
            self._show_approval(approval)

    def _render(self) -> tuple[str, str]:
        """Return program and answer as HTML; empty if there is none yet. A complete program is highlighted."""
        progress, outcome = self.entry.progress, self.entry.outcome
        code = self.entry.visible_code(self._language)
        error = outcome.execution.error if outcome.execution else None
        is_complete = progress.approval or not progress.is_running
        program = listing(code, self._language if is_complete else None, error.line if error else None)
        answer = render_answer(
            outcome.answer, output=outcome.output, execution=outcome.execution, verdict=outcome.verdict
        )
        return program if code.strip() else "", answer

    def _finish(self) -> None:
        """Display what is known at the end."""
        self._is_final = True
        outcome = self.entry.outcome
        with self._above:
            for message in filter(None, (outcome.error, outcome.limit_message)):
                text(message, "p", "error-message").props("role=alert")
        if outcome.code.strip():
            with self._bar:
                if len(outcome.code) <= MAX_CHARS:
                    copy_button(self._code, "program")
                quiet_button("Edit", "edit", self._edit).props(f"data-edit={self._edit_key}")
        with self._below:
            self._show_verdict()
            if outcome.answer and len(outcome.answer) <= MAX_CHARS:
                copy_button(self._answer, "answer")

    def _show_approval(self, approval: Approval | None) -> None:
        """Display a request for approval, or hide it if there is none."""
        self._approval_bar.clear()
        self._approval_bar.set_visibility(approval is not None)
        if approval is None:
            return
        files = [f"It may read {name}." for name in approval.request.files]
        addresses = [f"It may connect to {address}." for address in approval.approver.addresses]
        scope = (
            ["If you run it, later programs of this conversation may connect as well."]
            if approval.approver.is_once
            else []
        )
        timeout = f"Without a decision within {TIMEOUT_S / 60:.0f} minutes it counts as refused."
        with self._approval_bar:
            text("This program is about to run.", "p")
            for hint in (*map(str, approval.request.problems), *files, *addresses, *scope, timeout):
                text(hint, "p", "hint")
            with ui.element("div").classes("choice"):
                for label, is_approved, style in (("Refuse", False, "outline"), ("Run", True, "unelevated")):
                    button = ui.button(label, on_click=partial(approval.decide, is_approved), color=None)
                    button.props(f"{style} no-caps").classes("main")

    # -- editing the program ---------------------------------------------------------------------------------

    async def _edit(self) -> None:
        program = self.entry.outcome.code.strip("\n")
        kept = await ui.run_javascript(f"drafts.openEdit({json.dumps(self._edit_key)})", timeout=5.0)
        self._code.set_visibility(False)
        self._bar.set_visibility(False)
        self._editing.set_visibility(True)
        with self._editing:
            bar = ui.element("div").classes("bar")
            editor = Editor(
                kept or program,
                language="Python" if self._language == "python" else "SQL",
                line_wrapping=True,
            )
            keys = text(_EDITOR_KEYS, "p", "hint")
        editor.map_key("Mod-Enter", lambda: self._run(editor.value))
        with bar:
            text("Edit and run", "p", "kicker")
            if kept and kept != program:
                reset = quiet_button("Original", "restart_alt", partial(editor.set_value, program))
                reset.tooltip("Your edit was kept. Put the original program in its place.")
            cancel = ui.button("Cancel", on_click=partial(self._close_editor, "cancelled"), color=None)
            cancel.props("flat dense no-caps").classes("quiet")
            run = ui.button("Run", icon="play_arrow", on_click=lambda: self._run(editor.value), color=None)
            run.props('unelevated dense no-caps title="Ctrl+Enter"').classes("main")
        label = f"Edit program {self._number}"
        ui.run_javascript(
            f"focusEditor(getHtmlElement({editor.id}), '{label}', getHtmlElement({keys.id}).id, "
            f"{json.dumps(self._edit_key)})"
        )

    @property
    def _edit_key(self) -> str:
        """What the browser keeps an edit by: the same after a restart of the server."""
        return f"{self._number}-{hashlib.sha256(self.entry.outcome.code.encode()).hexdigest()[:16]}"

    def _close_editor(self, how: str) -> None:
        ui.run_javascript(f"drafts.closeEdit({json.dumps(self._edit_key)}, {json.dumps(how)})")
        self._editing.clear()
        self._editing.set_visibility(False)
        self._code.set_visibility(True)
        self._bar.set_visibility(True)

    async def _run(self, code: str) -> None:
        if await self._on_run(code):
            self._close_editor("run")

    # -- verdict ---------------------------------------------------------------------------------------------

    def _show_verdict(self) -> None:
        outcome = self.entry.outcome
        verdict = outcome.verdict
        if verdict is not None:
            with ui.element("p").classes(f"verdict {verdict.status}"):
                text(verdict_title(verdict, outcome.answer_language), "strong")
                if verdict.reason not in outcome.answer:
                    text(translate_reason(verdict.reason, outcome.answer_language), "span")
                if checks := how_to_check(verdict, CHECKS["page"], outcome.answer_language):
                    ui.tooltip(checks)
            if advice := remedy(vars(outcome), "page"):
                text(advice, "p", "hint")
        self._show_notes()
        if outcome.sources:
            with ui.element("details").classes("hint"):
                text(f"Examples given to the model ({len(outcome.sources)})", "summary")
                with ui.element("ul"):
                    for source in outcome.sources:
                        text(f"{source.name}: {source.about}" if source.about else source.name, "li")

    def _show_notes(self) -> None:
        outcome = self.entry.outcome
        for note in file_notes(vars(outcome)):
            text(note, "p", "hint")
        if outcome.verdict is not None and outcome.verdict.ok:
            for note in dict.fromkeys(self.entry.progress.notes):
                text(f"Along the way: {note}", "p", "hint")
        if outcome.receipt is not None:
            content = json.dumps(outcome.receipt, ensure_ascii=False, indent=2)
            save = partial(ui.download.content, content, "receipt.json")
            button = quiet_button("Receipt", "receipt_long", save)
            button.tooltip("Save what this was computed from: code-chains verify computes it again.")


def announcement(entries: Sequence[ChatEntry]) -> str:
    """Return what screen readers announce of the latest entry."""
    if not entries:
        return ""
    progress, outcome = entries[-1].progress, entries[-1].outcome
    if progress.approval:
        return "A program waits for your approval: run or refuse it."
    if progress.is_running and progress.queue_position:
        return f"Waiting: {_queue_text(progress.queue_position)}"
    if progress.is_running:
        return f"{progress.failure} {STAGE_LABELS.get(progress.stage, 'Starting')}".lstrip()
    if outcome.error:
        return outcome.error
    if outcome.verdict is None:
        return "Done"
    return outcome.answer or f"Done: {outcome.verdict.reason}"
