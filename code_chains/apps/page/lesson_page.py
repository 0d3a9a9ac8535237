"""The pages of lessons: which there are, and one on which a learner reads, writes, runs, checks, submits and asks."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from urllib.parse import quote

from nicegui import ui

from code_chains.apps.page.app import SCRIPT, STYLE
from code_chains.apps.page.confirmation import Confirmation
from code_chains.apps.page.editor import Editor
from code_chains.apps.page.elements import notify_error, quiet_button, text
from code_chains.apps.page.failures import report_error
from code_chains.apps.page.html import listing
from code_chains.apps.page.lessons import Desk, LessonShelf
from code_chains.apps.page.outcome_view import IMAGES, figure, printed_text, show_error
from code_chains.apps.safe_html import plain, render_markdown
from code_chains.errors import CodeChainsError
from code_chains.lessons import Lesson, Step
from code_chains.lessons.tasks.choice import Choice
from code_chains.lessons.work import LOST_STATE
from code_chains.state import Execution

_REFRESH_INTERVAL_S = 0.3
_KEYS = "Ctrl+Enter runs the program. Tab indents; to leave the editor, press Esc and then Tab."
Action = Callable[[], Awaitable[None]]


def show_lessons(shelf: LessonShelf, lessons: Sequence[Lesson], client_id: str) -> None:
    """Show the lessons, with what a client has done of each."""
    ui.add_css(STYLE)
    ui.add_body_html(f"<script>{SCRIPT.read_text(encoding='utf-8')}</script>")
    ui.dark_mode(None)
    confirmation = Confirmation()

    async def forget() -> None:
        ui.run_javascript("forget()")

    with ui.element("div").classes("page"), ui.element("div").classes("content lessons"):
        text("Lessons", "h1")
        message = "Delete your programs, attempts and hints of all lessons, and your name?"
        ask = partial(confirmation.ask, message, "Forget me", forget)
        quiet_button("Forget me on this computer", "logout", ask)
        with ui.element("ol").classes("examples"):
            for lesson in lessons:
                progress = shelf.progress(client_id, lesson)
                done = sum(map(progress.is_done, lesson.exercises))
                about = [lesson.level, f"{done} of {len(lesson.exercises)} exercises done"]
                with ui.element("li"), ui.element("a").props(f'href="lessons/{quote(lesson.name)}"'):
                    text(lesson.title, "h2").props(f"lang={lesson.language}")
                    text(" · ".join(filter(None, about)), "span", "hint")


class LessonPage:
    """An open page of a lesson.

    Args:
        shelf: All lessons.
        desk: The client's work at this one.
    """

    def __init__(self, shelf: LessonShelf, desk: Desk) -> None:
        self._shelf, self._desk, self._work = shelf, desk, desk.work
        self._version = desk.version
        lesson = self._work.lesson
        ui.add_css(STYLE)
        ui.add_body_html(f"<script>{SCRIPT.read_text(encoding='utf-8')}</script>")
        ui.dark_mode(None)
        self._status = text("", "div", "visually-hidden").props("role=status aria-live=polite")
        with ui.element("div").classes("page") as page:
            page.props["data-conversation"] = f"lesson {lesson.name}"
            with ui.element("header"):
                text(lesson.title, "h1").props(f"lang={lesson.language}")
                with ui.element("nav").props('aria-label="Lesson"'):
                    self._name = ui.input(value=self._work.progress.name).props(
                        'dense outlined aria-label="Your name, for your teacher" placeholder="Your name, for your teacher"'
                    )
                    self._name.on("change", self._action(self._introduce), args=[])
                    quiet_button("All lessons", "list", partial(ui.navigate.to, "../lessons"))
                    quiet_button("Delete my work", "delete", self._confirm_forget)
            with ui.element("div").classes("content lesson"):
                self._steps = ui.element("nav").props('aria-label="Steps"')
                self._body = ui.element("div").classes("work")
        self._written: Callable[[], str] = str
        self._confirmation = Confirmation()
        self._show_step()
        ui.timer(_REFRESH_INTERVAL_S, self._refresh)

    # -- what a step consists of -----------------------------------------------------------------------------

    def _show_step(self) -> None:
        step = self._step = self._work.step
        self._show_steps()
        self._body.clear()
        with self._body:
            with ui.element("section").classes("reading").props(f"lang={self._work.lesson.language}"):
                if step.number == 1 and self._work.lesson.text:
                    _markdown(self._work.lesson.text)
                text(step.title, "h2")
                _markdown(step.text)
                if step.examples:
                    text("Examples", "p", "kicker")
                    ui.html(listing(step.examples.code, "python"), sanitize=False).classes("panel code")
            with ui.element("section").classes("writing"):
                self._show_program(step)
                with ui.element("div").classes("bar") as self._stage:
                    self._state = text("", "p", "hint")
                    quiet_button("Stop", "stop", self._desk.stop)
                self._stage.set_visibility(False)
                self._result = ui.element("section").classes("panel outcome").props("aria-label=Outcome")
                self._result.set_visibility(False)
                self._hints = ui.element("ol").classes("hints").props("aria-label=Hints")
        self._show_hints()

    def _show_steps(self) -> None:
        self._steps.clear()
        with self._steps, ui.element("ol").classes("steps"):
            for step in self._work.lesson.steps:
                is_done = step.is_exercise and self._work.progress.is_done(step)
                with ui.element("li"), ui.element("button").props("type=button") as button:
                    text(f"{step.number}. {step.title}", "span")
                    text(" ✓ done" if is_done else "", "span", "done")
                if step == self._step:
                    button.props("aria-current=step")
                button.on("click", self._action(partial(self._go, step.number)), args=[])

    def _show_program(self, step: Step) -> None:
        with ui.element("div").classes("panel editing"):
            if step.form == "program":
                self._show_editor()
            else:
                self._show_answer(step)
            self._add_buttons(step)
            if self._shelf.has_model:
                self._question = ui.input().props('dense outlined aria-label="Ask about this exercise"')
                self._question.props('placeholder="Ask about this exercise …"')
                self._question.on("keydown.enter", self._action(self._ask), args=[])

    def _show_editor(self) -> None:
        text("Your program", "p", "kicker")
        editor = self._editor = Editor(self._work.code, language="Python", line_wrapping=True)
        editor.map_key("Mod-Enter", self._action(self._run))
        keys = text(_KEYS, "p", "hint")
        self._input = ui.textarea(value=self._work.example_input)
        self._input.props('autogrow outlined dense aria-label="Input of the program" placeholder="Input"')
        self._show_input()
        editor.on_value_change(self._show_input)
        ui.run_javascript(
            f"focusEditor(getHtmlElement({editor.id}), 'Your program', getHtmlElement({keys.id}).id, "
            f"{json.dumps(self._key)})"
        )

    def _show_answer(self, step: Step) -> None:
        """Show where a choice is made, or where words are written."""
        text("Your answer", "p", "kicker")
        keep = self._action(self._stay)
        if isinstance(step.task, Choice):
            chosen = step.task.chosen(self._work.code) or ""
            with ui.element("div").classes("bar").props('role=group aria-label="Your answer"'):
                boxes = [
                    ui.checkbox(letter, value=letter in chosen, on_change=keep)
                    for letter in step.task.letters
                ]
            self._written = lambda: " ".join(box.text for box in boxes if box.value)
        else:
            area = ui.textarea(value=self._work.code).props('autogrow outlined aria-label="Your answer"')
            area.on("blur", keep, args=[])
            self._written = lambda: str(area.value or "")

    async def _stay(self) -> None:
        """Keep what is answered so far, as each action does."""

    def _show_input(self) -> None:
        reads = re.search(r"\b(input|stdin)\b", self._editor.value or "")
        self._input.set_visibility(bool(reads or self._work.example_input))

    def _add_buttons(self, step: Step) -> None:
        with ui.element("div").classes("bar"):
            if step.is_exercise:
                self._add_main_button("Submit", self._submit)
            else:
                self._add_main_button("Next step", self._next)
            if step.form == "program":
                quiet_button("Run", "play_arrow", self._action(self._run))
            if step.examples:
                quiet_button("Check examples", "rule", self._action(self._check))
            quiet_button("Hint", "lightbulb", self._action(self._hint))
            if step.form == "program":
                undo = quiet_button("Undo", "undo", self._action(self._undo))
                undo.tooltip("Take back the effects of the last run")
            quiet_button("Start again", "restart_alt", self._action(self._restart))

    def _show_hints(self) -> None:
        hints = self._work.given_hints
        self._hints.clear()
        self._hints.set_visibility(bool(hints))
        with self._hints:
            for hint in hints:
                with ui.element("li"):
                    _markdown(hint)

    # -- drafts ----------------------------------------------------------------------------------------------

    @property
    def _key(self) -> str:
        """What the browser keeps the program of this step by."""
        return f"step-{self._step.number}"

    async def _save(self) -> None:
        # What is typed before the page is connected arrives in any order, and after a button that was pressed next.
        if self._step.form != "program":
            await asyncio.to_thread(self._work.write, self._written())
            return
        code = self._editor.value or ""
        with suppress(TimeoutError):  # The page is closed or has lost its connection.
            shown = await ui.run_javascript(f"readEditor(getHtmlElement({self._editor.id}))", timeout=5.0)
            code = shown if isinstance(shown, str) else code
        await asyncio.to_thread(self._work.write, code)
        ui.run_javascript(f"drafts.send({json.dumps(self._key)}, {json.dumps(code)})")

    # -- actions ---------------------------------------------------------------------------------------------

    def _action(self, action: Action) -> Action:
        return partial(self._perform, action)

    async def _perform(self, action: Action) -> None:
        """Do something with the program as it is now, and show why it cannot be done."""
        try:
            if self._work.step != self._step:  # Another tab is at another step.
                await self._do(partial(self._work.go, self._step.number))
            await self._save()
            await action()
        except CodeChainsError as error:
            notify_error(report_error(error))
        self._show_hints()
        self._show_steps()
        self._version = self._desk.version

    async def _do(self, change: Callable[[], None]) -> None:
        """Change the work, unless a program of another tab runs in it."""
        await self._desk.perform(change, runs_program=False)

    async def _run(self) -> None:
        self._show_execution(await self._shelf.run(self._desk, self._input.value or ""))

    async def _check(self) -> None:
        verdict = await self._desk.perform(self._work.check)
        self._tell(verdict.reason, is_right=verdict.status == "verified")

    async def _submit(self) -> None:
        is_accepted = await self._desk.perform(self._work.submit)
        self._tell(self._work.reason, is_right=is_accepted)
        if is_accepted:
            with self._result:
                self._add_way_on()

    def _add_way_on(self) -> None:
        if self._step.number == len(self._work.lesson.steps):
            text("That was the last step.", "p", "hint")
        else:
            self._add_main_button("Next step", self._next)

    def _add_main_button(self, label: str, action: Action) -> None:
        button = ui.button(label, on_click=self._action(action), color=None)
        button.props("unelevated no-caps").classes("main")

    async def _hint(self) -> None:
        await self._show_hint("")

    async def _ask(self) -> None:
        if question := (self._question.value or "").strip():
            await self._show_hint(question)
            self._question.set_value("")

    async def _show_hint(self, question: str) -> None:
        hint = await self._desk.perform(partial(self._work.ask, question), runs_program=False)
        if not hint.is_new:
            notify_error(hint.text)
        self._status.set_content(plain(hint.text))

    async def _undo(self) -> None:
        await self._do(self._work.undo)
        self._tell("The effects of the last run are undone.", is_right=None)

    async def _restart(self) -> None:
        await self._do(self._work.restart)
        self._show_step()

    async def _next(self) -> None:
        await self._do(self._work.next)
        self._show_step()

    async def _go(self, number: int) -> None:
        await self._do(partial(self._work.go, number))
        self._show_step()

    async def _introduce(self) -> None:
        await self._do(partial(self._work.progress.introduce, self._name.value or ""))

    async def _forget(self) -> None:
        await self._do(self._work.forget)
        await self._go(1)

    def _confirm_forget(self) -> None:
        message = "Delete your programs, attempts and hints of this lesson?"
        self._confirmation.ask(message, "Delete", self._action(self._forget))

    # -- outcomes --------------------------------------------------------------------------------------------

    def _show_execution(self, execution: Execution) -> None:
        self._result.clear()
        with self._result:
            text("Outcome", "p", "kicker")
            if self._work.has_lost_state:
                text(LOST_STATE, "p", "hint")
            if execution.output.strip():
                printed_text(execution.output, "Output")
            for artifact in execution.artifacts:
                if artifact.media_type in IMAGES:
                    data = base64.b64encode(artifact.data).decode()
                    figure(
                        f'<img src="data:{artifact.media_type};base64,{data}" alt="{escape(artifact.name)}">'
                    )
            if execution.error is not None:
                show_error(execution.error)
            elif not execution.ok:
                text(execution.summary, "p", "failure")
            elif not execution.output.strip() and not execution.artifacts:
                text("The program ran without output.", "p", "hint")
        self._result.set_visibility(True)
        self._status.set_content(plain(execution.summary))

    def _tell(self, reason: str, *, is_right: bool | None) -> None:
        self._result.clear()
        classes = {True: "told right", False: "told failure", None: "told"}
        with self._result:
            text(reason, "p", classes[is_right])
        self._result.set_visibility(True)
        self._status.set_content(plain(reason))

    def _refresh(self) -> None:
        """Show what waits, and what was done in another tab."""
        ahead = self._desk.position
        waiting = f"Waiting: {ahead} program{'' if ahead == 1 else 's'} ahead" if ahead else "Running …"
        self._state.set_content(waiting)
        self._stage.set_visibility(self._desk.is_busy)
        if self._version != self._desk.version and not self._desk.is_busy:
            self._version = self._desk.version
            self._show_steps()
            self._show_hints()


def _markdown(content: str) -> None:
    ui.html(render_markdown(content), sanitize=False).classes("nicegui-markdown")
