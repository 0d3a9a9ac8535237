"""How a turn looks. What a model or a program wrote is text, or shut in a frame in which nothing runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html import escape
from typing import Any

from nicegui import ui

from code_chains.page.approval import PATIENCE, Approval
from code_chains.page.looks import listing, plain, typeset
from code_chains.page.visits import Entry
from code_chains.progress import DOING, harmless
from code_chains.state import Artifact, ErrorReport

__all__ = ["IMAGES", "TurnView", "announced", "frame_height", "is_table", "stages", "text"]

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml")
"""What is shown as an image, in which nothing runs."""
_TITLES = {
    "verified": "Verified",
    "plausible": "Plausible",
    "unverified": "Not verified",
    "failed": "No answer",
}


def text(content: str, tag: str = "div", classes: str = "") -> ui.html:
    """An element that holds plain text."""
    return ui.html(plain(content), sanitize=False, tag=tag).classes(classes)


def stages(entry: Entry) -> str:
    """What was done for an entry so far and what is being done, as a list in HTML."""
    if entry.ahead:
        count = "One question comes" if entry.ahead == 1 else f"{entry.ahead} questions come"
        return f'<ol class="stages"><li class="now">{count} first</li></ol>'
    if not entry.stage:
        return '<ol class="stages"><li class="now">Starting</li></ol>'
    order = list(DOING)
    before = [name for name in order[: order.index(entry.stage)] if name in entry.done]
    attempt = entry.done.count("generate") + 1
    again = f", attempt {attempt}" if entry.stage == "generate" and attempt > 1 else ""
    done = "".join(f'<li class="done">{DOING[name]}</li>' for name in before)
    now = "Waiting for your yes" if entry.approval else f"{DOING[entry.stage]}{again}"
    return f'<ol class="stages">{done}<li class="now">{now}</li></ol>'


def is_table(html: bytes) -> bool:
    """Whether a view is a table without pictures, which may be shown light on dark."""
    return b"<tr" in html and not re.search(rb"<(img|svg)\b", html)


def frame_height(html: bytes) -> int:
    """About how high a view is that is shown in a frame, which cannot be asked; at most so high that it scrolls."""
    return min(420, 20 + 31 * html.count(b"<tr")) if b"<tr" in html else 240


class TurnView:
    """Shows an entry, and what comes to it.

    Args:
        entry: The entry.
        language: What its program is written in.
        on_run: Is called with a program that was changed.
    """

    def __init__(self, entry: Entry, language: str, on_run: Callable[[str], Any]) -> None:
        self.entry, self._language, self._on_run = entry, language, on_run
        self._settled, self._stale, self._is_new = False, True, entry.running
        self._approval: Approval | None = None
        with ui.element("article").classes("turn") as self.element:
            if entry.by_hand:
                text("Changed by you", "p", "kicker")
            text(entry.query, "h2", "question")
            self._stages = ui.html(sanitize=False)
            self._above = ui.element("div")
            with ui.element("div").classes("work"):
                with ui.element("section").classes("panel program").props('aria-label="Program"') as self._program:
                    self._bar = ui.element("div").classes("bar")
                    self._code = ui.html(sanitize=False).classes("code")
                    self._asking = ui.element("div").classes("asking below").props('role=group aria-label="Approval"')
                    self._editing = ui.element("div").classes("editing")
                self._outcome = ui.element("section").classes("panel outcome").props('aria-label="Outcome"')
            self._answer = ui.html(sanitize=False).classes("answer nicegui-markdown")
            self._below = ui.element("div").classes("below")
        for part in (self._program, self._outcome, self._asking, self._editing, self._answer):
            part.set_visibility(False)
        with self._bar:
            text("Program", "p", "kicker")
        self.refresh()

    def refresh(self) -> None:
        """Show what has changed; the program and the answer are left to `draw`."""
        if self._settled:
            return
        self._stale, entry = True, self.entry
        self._stages.set_content(stages(entry) if entry.running else "")
        self._stages.set_visibility(entry.running)
        if entry.execution is not None and not self._outcome.visible:
            self._show_outcome()
        if not entry.running:
            self._settle()

    async def draw(self) -> None:
        """Show the program and the answer. They are made in a thread, as the pages of others must not wait for them."""
        if not self._stale:
            return
        self._stale = False
        approval = self.entry.approval
        program, answer = await asyncio.to_thread(self._drawn)
        for shown, element, content in ((self._program, self._code, program), (self._answer, self._answer, answer)):
            shown.set_visibility(bool(content))
            element.set_content(content)
        if approval is self.entry.approval is not self._approval:  # That is the program which is shown.
            self._approval = approval
            self._show_approval(approval)

    def _drawn(self) -> tuple[str, str]:
        """The program, with its colours once it is whole, and the answer, in HTML; empty where there is none yet."""
        entry = self.entry
        code, error = entry.written(self._language), entry.execution.error if entry.execution else None
        is_whole = entry.approval or not entry.running
        program = listing(code, self._language if is_whole else None, error.line if error else None)
        return program if code.strip() else "", typeset(entry.answer) if entry.answer else ""

    def _settle(self) -> None:
        """Show what is known at the end."""
        self._settled = True
        entry = self.entry
        with self._above:
            for message in filter(None, (entry.error, entry.limit)):
                text(message, "p", "trouble").props("role=alert")
        if entry.code.strip() and (entry.told or entry.by_hand):
            with self._bar:
                ui.button("Edit", icon="edit", on_click=self._edit, color=None).props("flat dense no-caps").classes(
                    "quiet"
                )
        with self._below:
            self._show_verdict()
        if self._is_new:
            ui.run_javascript(f"getHtmlElement({self._below.id})?.scrollIntoView({{block: 'nearest'}})")

    def _show_approval(self, approval: Approval | None) -> None:
        """Ask whether a program may run, or no longer."""
        self._asking.clear()
        self._asking.set_visibility(approval is not None)
        if approval is None:
            return
        named = [f"It may read {name}." for name in approval.request.files]
        bound = f"Without a word within {PATIENCE / 60:.0f} minutes it counts as refused."
        with self._asking:
            text("This program is about to run.", "p")
            for hint in (*map(str, approval.request.problems), *named, bound):
                text(hint, "p", "hint")
            with ui.element("div").classes("choice"):
                for label, yes, look in (("Refuse", False, "outline"), ("Run", True, "unelevated")):
                    button = ui.button(label, on_click=partial(approval.say, yes), color=None)
                    button.props(f"{look} no-caps").classes("main")
        ui.run_javascript(f"getHtmlElement({self._asking.id})?.scrollIntoView({{block: 'nearest'}})")

    # -- changing the program ------------------------------------------------------------------------------------------

    async def _edit(self) -> None:
        dark = await ui.run_javascript("document.body.classList.contains('body--dark')")
        self._code.set_visibility(False)
        self._bar.set_visibility(False)
        self._editing.set_visibility(True)
        with self._editing:
            bar = ui.element("div").classes("bar")
            editor = ui.codemirror(
                self.entry.code.strip("\n"),
                language="Python" if self._language == "python" else "SQL",
                theme="githubDark" if dark else "githubLight",
                line_wrapping=True,
            ).props('aria-label="Program to change"')
        editor.map_key("Mod-Enter", lambda: self._run(editor.value))
        with bar:
            text("Change it and run it", "p", "kicker")
            ui.button("Cancel", on_click=self._put_away, color=None).props("flat dense no-caps").classes("quiet")
            run = ui.button("Run", icon="play_arrow", on_click=lambda: self._run(editor.value), color=None)
            run.props('unelevated dense no-caps title="Ctrl+Enter"').classes("main")
        ui.run_javascript(f"setTimeout(() => getHtmlElement({editor.id})?.querySelector('.cm-content')?.focus(), 150)")

    def _put_away(self) -> None:
        self._editing.clear()
        self._editing.set_visibility(False)
        self._code.set_visibility(True)
        self._bar.set_visibility(True)

    def _run(self, code: str) -> None:
        if self._on_run(code):
            self._put_away()

    # -- what came of it -----------------------------------------------------------------------------------------------

    def _show_outcome(self) -> None:
        entry, execution = self.entry, self.entry.execution
        assert execution is not None
        views = list(_shown(entry))
        table = any(artifact.media_type == "text/html" for _, artifact in views)
        printed = execution.stdout.rstrip() if table else execution.output
        with self._outcome:
            text("Outcome", "p", "kicker")
            if printed.strip():
                text(printed, "pre", "printed").props("tabindex=0")
            for number, artifact in views:
                self._show_artifact(f"/made/{entry.id}/{number}", artifact)
            if execution.error is not None:
                _show_error(execution.error)
            if not printed.strip() and not views and execution.ok:
                text("It ran and showed nothing.", "p", "hint")
        self._outcome.set_visibility(True)

    def _show_artifact(self, address: str, artifact: Artifact) -> None:
        name = harmless(artifact.name)
        if artifact.media_type in IMAGES:
            alt = f"Figure {name}, made for: {self.entry.query[:150]}"
            ui.html(f'<img src="{address}" alt="{escape(alt)}">', sanitize=False, tag="figure").classes("paper")
        elif artifact.media_type == "text/html":
            height = frame_height(artifact.data)
            ui.html(
                f'<iframe sandbox src="{address}" title="{escape(name)}" style="height: {height}px"></iframe>',
                sanitize=False,
                tag="figure",
            ).classes("table" if is_table(artifact.data) else "paper")
        else:
            ui.html(f'<a href="{address}" download>{escape(name)}</a>', sanitize=False, tag="p").classes("made")

    def _show_verdict(self) -> None:
        verdict, entry = self.entry.verdict, self.entry
        if verdict is not None:
            with ui.element("p").classes(f"verdict {verdict.status}"):
                text(_TITLES[verdict.status], "strong")
                if verdict.reason not in entry.answer:
                    text(verdict.reason, "span")
        for note in dict.fromkeys(entry.notes) if verdict is not None and verdict.ok else ():
            text(f"On the way: {note}", "p", "hint")
        if entry.sources:
            with ui.element("details").classes("hint"):
                text(f"Examples that the model was shown ({len(entry.sources)})", "summary")
                with ui.element("ul"):
                    for source in entry.sources:
                        text(f"{source.name}: {source.about}" if source.about else source.name, "li")


def _show_error(error: ErrorReport) -> None:
    with ui.element("div").classes("failure"):
        text(f"Line {error.line}" if error.line else "Error", "strong")
        text(str(error), "span")
        if error.hint:
            text(error.hint, "p", "hint")
        if error.locals:
            named = ", ".join(f"{name} = {value}" for name, value in list(error.locals.items())[:6])
            text(f"At that moment: {named}", "p", "hint")


def _shown(entry: Entry) -> Iterator[tuple[int, Artifact]]:
    """What a program made, but for files that it was given back unchanged and views that its output already tells."""
    for number, artifact in enumerate(entry.artifacts):
        is_view = re.fullmatch(r"result\.(md|tex|txt|json)", artifact.name) and artifact.name not in entry.code
        if not is_view:
            yield number, artifact


def announced(entries: Sequence[Entry]) -> str:
    """What a screen reader says of the latest entry."""
    if not entries:
        return ""
    entry = entries[-1]
    if entry.approval:
        return "A program waits for your yes: run it or refuse it."
    if entry.running:
        return f"Waiting, {entry.ahead} first" if entry.ahead else DOING.get(entry.stage, "Starting")
    return entry.error or (entry.answer or f"Done: {entry.verdict.reason}" if entry.verdict else "Done")
