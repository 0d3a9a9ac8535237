"""The page itself: its layout, and the actions of its controls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

from code_chains.apps.page.confirmation import Confirmation
from code_chains.apps.page.html import plain
from code_chains.apps.page.registry import SessionRegistry
from code_chains.apps.page.sessions import MAX_UPLOAD_BYTES, PageSession
from code_chains.apps.page.view import TurnView, announcement, text
from code_chains.errors import CodeChainsError, InputError

__all__ = ["Page"]

EXAMPLES = (
    ("First steps", "What is the sum of the numbers from 1 to 100?"),
    ("A figure", "Plot sine and cosine from 0 to 2π in one chart, with a legend."),
    ("Data", "Make a pandas table of the numbers 1 to 10 with their squares and cubes."),
)
_THEMES = {
    None: ("contrast", "Theme: system"),
    False: ("light_mode", "Theme: light"),
    True: ("dark_mode", "Theme: dark"),
}
_KEYS = """(event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    emit(event.target.value);
}"""
_UPLOADS = f"""async (event) => {{
    const upload = async (file) => {{
        if (file.size > {MAX_UPLOAD_BYTES})
            return {{ ok: false, message: "A file may have at most {MAX_UPLOAD_BYTES >> 20} MB." }};
        const address = "upload?name=" + encodeURIComponent(file.name);
        const response = await fetch(address, {{ method: "POST", body: file }});
        return {{ ok: response.ok, message: await response.text() }};
    }};
    for (const file of [...event.target.files])
        emit(await upload(file).catch(() => ({{ ok: false, message: "The file could not be uploaded." }})));
    event.target.value = "";
}}"""
_STYLE, _SCRIPT = Path(__file__).with_name("page.css"), Path(__file__).with_name("page.js")
_REFRESH_INTERVAL_S = 0.1


class Page:
    """An open page of a client, which follows the client's session.

    Args:
        sessions: All sessions.
        client_id: The client.

    Raises:
        InputError: Too many sessions are open.
    """

    def __init__(self, sessions: SessionRegistry, client_id: str) -> None:
        self._sessions, self._client_id = sessions, client_id
        self._views: list[TurnView] = []
        self._version: tuple[int, int] | None = None
        self._displayed = self.session
        ui.add_css(_STYLE)
        ui.add_body_html(f"<script>{_SCRIPT.read_text(encoding='utf-8')}</script>")
        self._dark = ui.dark_mode(self._displayed.is_dark)
        self._status = text("", "div", "visually-hidden").props("role=status aria-live=polite")
        with ui.element("div").classes("page"):
            self._head()
            with ui.element("div").classes("content"):
                self._notice = text("", "p", "notice")
                self._welcome()
                self._turns = ui.element("div").classes("turns")
            self._composer()
        self._confirmation = Confirmation()
        self._refresh()
        ui.timer(_REFRESH_INTERVAL_S, self._update)

    @property
    def session(self) -> PageSession:
        """The session for an action; a new one if it was closed since the page was opened."""
        return self._sessions.open(self._client_id)

    # -- layout ----------------------------------------------------------------------------------------------

    def _head(self) -> None:
        with ui.element("header"):
            text("code_chains", "h1")
            with ui.element("nav").props('aria-label="Conversation"'):
                self._undo = _button("Undo", "undo", self._guarded(lambda: self.session.undo()))
                self._export = _button("Notebook", "download", self._guarded(self._download))
                self._reset = _button("New conversation", "restart_alt", self._confirm_reset)
                self._theme = (
                    ui.button(on_click=self._switch_theme, color=None).props("flat dense").classes("quiet")
                )
        self._show_theme()

    def _welcome(self) -> None:
        with ui.element("section").classes("welcome") as self._empty:
            text("Ask a question. See the program that answers it.", "h2")
            text("Edit the program and run it again, or ask a follow-up question.", "p")
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
                self._submit = ui.button("Ask", on_click=lambda: self._ask(self._question.value), color=None)
                self._submit.props("unelevated no-caps").classes("main")
                self._cancel = ui.button("Stop", on_click=self._guarded(self._stop), color=None)
                self._cancel.props("outline no-caps").classes("main")

    def _attachment(self) -> None:
        """Add a button that opens the browser's file dialog; the input element itself is hidden."""
        # `ui.upload` registers a route for each page, and FastAPI's caches hold thousands of routes with
        # their pages.
        upload = (
            ui.element("input")
            .props("type=file multiple aria-hidden=true tabindex=-1")
            .classes("visually-hidden")
        )
        upload.on("change", lambda event: self._handle_upload(event.args), js_handler=_UPLOADS)
        choose = (
            ui.button(icon="attach_file", color=None)
            .props('flat dense aria-label="Add a file"')
            .classes("quiet")
        )
        choose.on("click", js_handler=f"() => getHtmlElement({upload.id}).click()")
        choose.tooltip("Add a CSV or another file")

    # -- actions ---------------------------------------------------------------------------------------------

    def _guarded(self, action: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        async def act() -> None:
            try:
                await action()
            except CodeChainsError as error:
                _show_error(error)

        return act

    def _ask(self, question: str) -> None:
        if not question.strip():
            return
        try:
            self.session.ask(question)
        except CodeChainsError as error:
            _show_error(error)
            return
        self._question.set_value("")
        self._refresh()

    def _run(self, code: str, query: str) -> bool:
        """Run an edited program, and return whether it was started."""
        try:
            self.session.run(code, query)
        except CodeChainsError as error:
            _show_error(error)
            return False
        self._refresh()
        return True

    async def _stop(self) -> None:
        await self.session.stop()
        self._announce("Stopped. The conversation is unchanged.")

    async def _download(self) -> None:
        name, data = await self.session.export_notebook()
        ui.download.content(data, name)

    def _confirm_reset(self) -> None:
        reset = self._guarded(lambda: self.session.reset())
        self._confirmation.ask("Delete this conversation and its files?", "New conversation", reset)

    def _handle_upload(self, result: dict[str, Any]) -> None:
        """Report the server's response to the upload of a file."""
        message = str(result.get("message"))
        if result.get("ok"):
            self._announce(f"{message} will be available to the next program.")
        else:
            _show_error(InputError(message))

    def _switch_theme(self) -> None:
        order = [None, False, True]
        self._displayed.is_dark = order[(order.index(self._displayed.is_dark) + 1) % 3]
        self._show_theme()

    def _show_theme(self) -> None:
        icon, label = _THEMES[self._displayed.is_dark]
        self._theme.props(f'icon={icon} aria-label="{label}" title="{label}"')
        self._dark.set_value(self._displayed.is_dark)

    # -- refreshing ------------------------------------------------------------------------------------------

    async def _update(self) -> None:
        self._refresh()
        for view in list(self._views):
            await view.draw()

    def _announce(self, message: str) -> None:
        """Announce a message to screen readers."""
        self._status.set_content(plain(message))

    def _refresh(self) -> None:
        """Display what has changed since the last refresh."""
        # A closed session is empty, so it can still be displayed.
        session = self._displayed = self._sessions.get(self._client_id) or self._displayed
        if (id(session), session.version) == self._version:
            return
        version = (id(session), session.version)
        self._show_turns(session)
        self._show_files(session)
        self._notice.set_content(plain(session.notice))
        self._notice.set_visibility(bool(session.notice))
        self._empty.set_visibility(not session.entries)
        for button in (self._undo, self._export):
            button.set_enabled(bool(session.entries) and not session.is_busy)
        self._reset.set_enabled(not session.is_busy)
        self._submit.set_visibility(not session.is_busy)
        self._cancel.set_visibility(session.is_busy)
        self._announce(announcement(session.entries) or session.notice)
        if session.draft and not self._question.value:
            self._question.set_value(session.draft)
        session.draft = ""
        self._version = version

    def _show_turns(self, session: PageSession) -> None:
        for view in [view for view in self._views if view.entry not in session.entries]:
            view.element.delete()
            self._views.remove(view)
        displayed = [view.entry for view in self._views]
        for view in self._views:
            view.refresh()
        for number, entry in enumerate(session.entries, 1):
            if entry not in displayed:
                with self._turns:
                    view = TurnView(entry, number, session.language, partial(self._run, query=entry.query))
                self._views.append(view)

    def _show_files(self, session: PageSession) -> None:
        self._files.clear()
        self._files.set_visibility(bool(session.files))
        with self._files:
            for name in session.files:
                text(name, "li")


def _button(label: str, icon: str, action: Callable[[], Any]) -> ui.button:
    button = ui.button(label, icon=icon, on_click=action, color=None).props(
        f'flat dense no-caps aria-label="{label}"'
    )
    return button.classes("quiet")


def _show_error(error: CodeChainsError) -> None:
    ui.notify(str(error), type="negative", position="top", close_button="Close", multi_line=True)
