"""The page itself: its layout, and the actions of its controls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

from code_chains.apps.page.composer import Composer, ComposerActions
from code_chains.apps.page.confirmation import Confirmation
from code_chains.apps.page.conversation_list import ConversationList
from code_chains.apps.page.elements import notify_error, quiet_button, text
from code_chains.apps.page.failures import report_error
from code_chains.apps.page.history import StoredConversation
from code_chains.apps.page.registry import SessionRegistry
from code_chains.apps.page.sessions import PageSession
from code_chains.apps.page.view import TurnView, announcement
from code_chains.apps.safe_html import plain
from code_chains.errors import CodeChainsError

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
STYLE, SCRIPT = Path(__file__).with_name("page.css"), Path(__file__).with_name("page.js")
_REFRESH_INTERVAL_S = 0.1
CONVERSATION = "c"
"""The name of the query parameter with the conversation."""


class Page:
    """An open page of a client, which follows a session.

    Args:
        sessions: All sessions.
        session: The session.
    """

    def __init__(self, sessions: SessionRegistry, session: PageSession) -> None:
        self._sessions, self._client_id = sessions, session.client_id
        self._views: list[TurnView] = []
        self._version: tuple[int, int] | None = None
        self._displayed = session
        ui.add_css(STYLE)
        ui.add_body_html(f"<script>{SCRIPT.read_text(encoding='utf-8')}</script>")
        self._dark = ui.dark_mode(self._displayed.is_dark)
        self._status = text("", "div", "visually-hidden").props("role=status aria-live=polite")
        with ui.element("div").classes("page") as self._page:
            self._head()
            with ui.element("div").classes("content"):
                self._notice = text("", "p", "notice")
                self._welcome()
                self._turns = ui.element("div").classes("turns")
            self._composer = Composer(sessions.models, self._composer_actions())
        self._confirmation = Confirmation()
        self._list = ConversationList(self._open_conversation, self._confirm_delete, self._confirm_forget)
        self._refresh()
        ui.timer(_REFRESH_INTERVAL_S, self._update)

    # -- layout ----------------------------------------------------------------------------------------------

    def _head(self) -> None:
        with ui.element("header"):
            text("code_chains", "h1")
            with ui.element("nav").props('aria-label="Conversation"'):
                self._undo = quiet_button("Undo", "undo", self._action(self._undo_turn))
                self._export = quiet_button("Notebook", "download", self._action(self._download))
                self._earlier = quiet_button("Conversations", "history", self._action(self._show_list))
                self._earlier.set_visibility(self._displayed.history.is_listable)
                self._new = quiet_button("New conversation", "add", self._action(self._begin_new))
                self._theme = ui.button(on_click=self._switch_theme, color=None)
                self._theme.props("flat dense").classes("quiet")
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

    def _composer_actions(self) -> ComposerActions:
        return ComposerActions(
            ask=self._ask,
            stop=self._action(self._stop),
            handle_upload=self._handle_upload,
            remove_file=lambda name: self._perform(partial(_remove_file, name=name)),
            select_model=lambda name: self._perform(partial(_select_model, name=name)),
        )

    # -- actions ---------------------------------------------------------------------------------------------

    def _action(self, action: Callable[[PageSession], Awaitable[None]]) -> Callable[[], Awaitable[bool]]:
        return partial(self._perform, action)

    async def _perform(self, action: Callable[[PageSession], Awaitable[None]]) -> bool:
        """Act on the session, and return whether it worked.

        It is another session than the one on display if that was closed since.
        """
        try:
            await action(await self._sessions.resume(self._client_id, self._displayed.session_id))
        except CodeChainsError as error:
            notify_error(report_error(error))
            return False
        self._refresh()
        return True

    async def _ask(self, question: str) -> None:
        async def ask(session: PageSession) -> None:
            session.ask(question)
            self._composer.clear(question)

        if question.strip():
            await self._perform(ask)

    async def _run(self, code: str, query: str) -> bool:
        """Run an edited program, and return whether it was started."""

        async def run(session: PageSession) -> None:
            session.run(code, query)

        return await self._perform(run)

    async def _undo_turn(self, session: PageSession) -> None:
        await session.undo()
        if not session.entries:  # The button cannot keep the focus.
            self._composer.question.run_method("focus")

    async def _stop(self, session: PageSession) -> None:
        await session.stop()
        self._announce("Stopped. The conversation is unchanged.")

    async def _download(self, session: PageSession) -> None:
        name, data = await session.export_notebook()
        ui.download.content(data, name)

    async def _show_list(self, session: PageSession) -> None:
        stored = await asyncio.to_thread(session.history.conversations, self._client_id)
        self._list.show(stored, session.session_id)

    def _open_conversation(self, session_id: str) -> None:
        # An address of its own: with Back, bookmarks, and other conversations in other tabs.
        ui.navigate.to(f"?{CONVERSATION}={session_id}")

    async def _begin_new(self, session: PageSession) -> None:
        if session.is_stored or session.is_blank or session.is_busy:
            self._open_conversation(session.history.new_id(self._client_id))
        else:
            self._confirm("Delete this conversation and its files?", "Delete", PageSession.reset)

    def _confirm_delete(self, conversation: StoredConversation) -> None:
        message = f"Delete “{conversation.title[:100]}” and its files?"
        self._confirm(message, "Delete", lambda session: session.delete(conversation.session_id))

    def _confirm_forget(self) -> None:
        async def forget() -> None:
            ui.run_javascript("forget()")

        message = "Delete all conversations, files and drafts of this browser?"
        self._confirmation.ask(message, "Forget me", forget)

    def _confirm(self, message: str, label: str, action: Callable[[PageSession], Awaitable[None]]) -> None:
        self._confirmation.ask(message, label, self._action(action))

    def _handle_upload(self, result: dict[str, Any]) -> None:
        """Report the server's response to the upload of a file."""
        name, message = str(result.get("name")), str(result.get("message"))
        if not result.get("ok"):
            notify_error(message)
            return
        self._announce(f"{message} will be available to the next program.")
        if name != message:
            notify_error(f"No file can be called “{name[:100]}”. Programs read it as “{message}”.")

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
        # A closed session can still be displayed.
        displayed = self._displayed
        if displayed not in self._sessions.sessions(self._client_id):
            displayed = self._sessions.get(self._client_id, displayed.session_id) or displayed
        session = self._displayed = displayed
        if (id(session), session.version) == self._version:
            return
        version = (id(session), session.version)
        if self._page.props.get("data-conversation") != session.session_id:
            self._page.props(f"data-conversation={session.session_id}")
        self._show_turns(session)
        self._composer.show(session)
        self._notice.set_content(plain(session.notice))
        self._notice.set_visibility(bool(session.notice))
        self._empty.set_visibility(not session.entries)
        for button in (self._undo, self._export):
            button.set_enabled(bool(session.entries) and not session.is_busy)
        self._announce(announcement(session.entries) or session.notice)
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


async def _remove_file(session: PageSession, name: str) -> None:
    session.remove_file(name)


async def _select_model(session: PageSession, name: str) -> None:
    session.select_model(name)
