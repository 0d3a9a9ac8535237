"""The page itself: what is where on it, and what is done when something is pressed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import events, ui

from code_chains.errors import CodeChainsError, InputError
from code_chains.page.looks import plain
from code_chains.page.view import TurnView, announced, text
from code_chains.page.visits import MOST_BYTES, Visit, Visits

__all__ = ["Page"]

EXAMPLES = (
    ("First steps", "What is the sum of the numbers from 1 to 100?"),
    ("A picture", "Plot sine and cosine from 0 to 2π in one chart, with a legend."),
    ("Data", "Make a pandas table of the numbers 1 to 10 with their squares and cubes."),
)
_THEMES = {
    None: ("contrast", "Theme: as the system"),
    False: ("light_mode", "Theme: light"),
    True: ("dark_mode", "Theme: dark"),
}
_KEYS = """(event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    emit(event.target.value);
}"""
_STYLE = Path(__file__).with_name("page.css")


class Page:
    """One open page of a visitor, kept up to date.

    Args:
        visits: The visitors.
        visitor: Whose page it is.

    Raises:
        InputError: There are too many visitors.
    """

    def __init__(self, visits: Visits, visitor: str) -> None:
        self._visits, self._visitor = visits, visitor
        self._views: list[TurnView] = []
        self._version: tuple[int, int] | None = None
        self._shown = self.visit
        ui.add_css(_STYLE)
        self._dark = ui.dark_mode(self._shown.dark)
        self._status = text("", "div", "unseen").props("role=status aria-live=polite")
        with ui.element("div").classes("page"):
            self._head()
            with ui.element("div").classes("lane"):
                self._notice = text("", "p", "notice")
                self._welcome()
                self._turns = ui.element("div").classes("turns")
            self._composer()
        self._refresh()
        ui.timer(0.1, self._keep_up)

    @property
    def visit(self) -> Visit:
        """For something that is done: a new one if it was forgotten since the page was opened."""
        return self._visits.of(self._visitor)

    # -- its parts -----------------------------------------------------------------------------------------------------

    def _head(self) -> None:
        with ui.element("header"):
            text("code_chains", "h1")
            with ui.element("nav").props('aria-label="Conversation"'):
                self._undo = _button("Undo", "undo", self._guarded(lambda: self.visit.undo()))
                self._keep = _button("Notebook", "download", self._guarded(self._download))
                self._anew = _button("Start anew", "restart_alt", self._ask_whether_to_begin_anew)
                self._theme = ui.button(on_click=self._switch, color=None).props("flat dense").classes("quiet")
        self._show_theme()

    def _welcome(self) -> None:
        with ui.element("section").classes("welcome") as self._empty:
            text("Ask a question. See the program that answers it.", "h2")
            text("Change the program and run it again, or ask what comes next.", "p")
            with ui.element("ol").classes("examples"):
                for number, (title, question) in enumerate(EXAMPLES, 1):
                    with ui.element("li"), ui.element("button").props("type=button") as button:
                        text(f"{number}. {title}", "span", "kicker")
                        text(question, "span")
                    button.on("click", partial(self._ask, question), args=[])

    def _composer(self) -> None:
        with ui.element("footer"), ui.element("div").classes("composer"):
            self._files = ui.element("ul").classes("files").props('aria-label="Files"')
            with ui.element("div").classes("line"):
                self._attachment()
                self._question = ui.textarea(placeholder="Ask something …")
                self._question.props('borderless autogrow aria-label="Your question" autofocus')
                self._question.on("keydown", lambda event: self._ask(event.args), js_handler=_KEYS)
                self._go = ui.button("Ask", on_click=lambda: self._ask(self._question.value), color=None)
                self._go.props("unelevated no-caps").classes("main")
                self._halt = ui.button("Stop", on_click=self._guarded(self._stop), color=None)
                self._halt.props("outline no-caps").classes("main")

    def _attachment(self) -> None:
        """A button that opens the browser's choice of files; what receives them is never seen."""
        self._upload = ui.upload(
            multiple=True,
            auto_upload=True,
            max_file_size=MOST_BYTES,
            on_upload=self._take,
            on_rejected=lambda: _complain(InputError(f"A file may have {MOST_BYTES >> 20} MB.")),
        )
        self._upload.classes("unseen").props("aria-hidden=true tabindex=-1")
        choose = ui.button(icon="attach_file", color=None).props('flat dense aria-label="Add a file"').classes("quiet")
        choose.on("click", js_handler=f"() => getElement({self._upload.id}).$refs.qRef.pickFiles()")
        choose.tooltip("Add a CSV or another file")

    # -- what is done --------------------------------------------------------------------------------------------------

    def _guarded(self, action: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        async def act() -> None:
            try:
                await action()
            except CodeChainsError as error:
                _complain(error)

        return act

    def _ask(self, question: str) -> None:
        if not question.strip():
            return
        try:
            self.visit.ask(question)
        except CodeChainsError as error:
            _complain(error)
            return
        self._question.set_value("")
        self._refresh()

    def _run(self, code: str, query: str) -> bool:
        """Run a program that was changed; whether it has begun."""
        try:
            self.visit.run(code, query)
        except CodeChainsError as error:
            _complain(error)
            return False
        self._refresh()
        return True

    async def _stop(self) -> None:
        await self.visit.stop()
        self._say("Stopped. The conversation is as it was before.")

    async def _download(self) -> None:
        name, data = await self.visit.take_home()
        ui.download.content(data, name)

    async def _ask_whether_to_begin_anew(self) -> None:
        with ui.dialog() as dialog, ui.card().classes("asked"):
            text("Forget this conversation and its files?", "p")
            with ui.element("div").classes("choice"):
                ui.button("Cancel", on_click=lambda: dialog.submit(False), color=None).props("flat no-caps").classes(
                    "quiet"
                )
                ui.button("Start anew", on_click=lambda: dialog.submit(True), color=None).props(
                    "unelevated no-caps"
                ).classes("main")
        if await dialog:
            await self._guarded(lambda: self.visit.begin_anew())()
        dialog.delete()

    async def _take(self, event: events.UploadEventArguments) -> None:
        data = await event.file.read()
        try:
            name = await self.visit.add_file(event.file.name, data)
        except CodeChainsError as error:
            _complain(error)
        else:
            self._say(f"{name} comes with the next question.")
        self._upload.reset()

    def _switch(self) -> None:
        order = [None, False, True]
        self._shown.dark = order[(order.index(self._shown.dark) + 1) % 3]
        self._show_theme()

    def _show_theme(self) -> None:
        icon, label = _THEMES[self._shown.dark]
        self._theme.props(f'icon={icon} aria-label="{label}" title="{label}"')
        self._dark.set_value(self._shown.dark)

    # -- keeping up ----------------------------------------------------------------------------------------------------

    async def _keep_up(self) -> None:
        self._refresh()
        for view in list(self._views):
            await view.draw()

    def _say(self, what: str) -> None:
        """Tell it to a screen reader."""
        self._status.set_content(plain(what))

    def _refresh(self) -> None:
        """Show what has changed since the last time."""
        visit = self._shown = self._visits.find(self._visitor) or self._shown  # One that was forgotten is empty.
        if (id(visit), visit.version) == self._version:
            return
        version = (id(visit), visit.version)
        self._show_turns(visit)
        self._show_files(visit)
        self._notice.set_content(plain(visit.notice))
        self._notice.set_visibility(bool(visit.notice))
        self._empty.set_visibility(not visit.entries)
        for button, usable in ((self._undo, visit.entries), (self._keep, visit.entries), (self._anew, True)):
            button.set_enabled(bool(usable) and not visit.busy)
        self._go.set_visibility(not visit.busy)
        self._halt.set_visibility(visit.busy)
        self._say(announced(visit.entries) or visit.notice)
        if visit.draft and not self._question.value:
            self._question.set_value(visit.draft)
        visit.draft = ""
        self._version = version

    def _show_turns(self, visit: Visit) -> None:
        for view in [view for view in self._views if view.entry not in visit.entries]:
            view.element.delete()
            self._views.remove(view)
        known = [view.entry for view in self._views]
        for view in self._views:
            view.refresh()
        for entry in visit.entries:
            if entry not in known:
                with self._turns:
                    view = TurnView(entry, visit.language, partial(self._run, query=entry.query))
                self._views.append(view)
                ui.run_javascript(f"getHtmlElement({view.element.id})?.scrollIntoView({{block: 'start'}})")

    def _show_files(self, visit: Visit) -> None:
        self._files.clear()
        self._files.set_visibility(bool(visit.files))
        with self._files:
            for name in visit.files:
                text(name, "li")


def _button(label: str, icon: str, action: Callable[[], Any]) -> ui.button:
    button = ui.button(label, icon=icon, on_click=action, color=None).props(f'flat dense no-caps aria-label="{label}"')
    return button.classes("quiet")


def _complain(error: CodeChainsError) -> None:
    ui.notify(str(error), type="negative", position="top", close_button="Close", multi_line=True)
