"""The view of whoever runs the page for a class: who runs a program, who waits, and a button to stop each."""

from __future__ import annotations

import time

from nicegui import ui

from code_chains.apps.page.elements import quiet_button, text
from code_chains.apps.page.registry import SessionRegistry
from code_chains.apps.page.sessions import PageSession
from code_chains.apps.page.view import announcement
from code_chains.apps.safe_html import plain

_INTERVAL_S = 1.0
_MAX_QUESTION_CHARS = 120


class ClassView:
    """A table of the questions that are being answered, which follows them.

    Args:
        sessions: All sessions.
    """

    def __init__(self, sessions: SessionRegistry) -> None:
        self._sessions = sessions
        self._rows: dict[str, _Row] = {}
        with ui.element("div").classes("content class"):
            text("Class", "h1")
            self._summary = text("", "p", "hint")
            scrolling = ui.element("div").classes("listed")
            scrolling.props('tabindex=0 role=group aria-label="Questions"')
            with scrolling, ui.element("table"):
                with ui.element("thead"), ui.element("tr"):
                    for title in ("Learner", "Question", "State", "Time", "Action"):
                        text(title, "th").props("scope=col")
                self._body = ui.element("tbody")
        self._update()
        ui.timer(_INTERVAL_S, self._update)

    def _update(self) -> None:
        busy = {
            session.entries[-1].id: session for session in self._sessions.sessions() if _is_at_work(session)
        }
        for entry_id in self._rows.keys() - busy.keys():
            self._rows.pop(entry_id).delete()
        for entry_id, session in busy.items():
            if entry_id not in self._rows:
                with self._body:
                    self._rows[entry_id] = _Row(session, self._sessions.number(session.client_id))
            self._rows[entry_id].refresh()
        waiting = sum(session.entries[-1].progress.queue_position > 0 for session in busy.values())
        running = sum(session.entries[-1].progress.is_executing for session in busy.values())
        learners = len({session.client_id for session in self._sessions.sessions()})
        self._summary.set_content(f"Learners: {learners} · running: {running} · waiting: {waiting}")


class _Row:
    """The row of a question; its button keeps the focus while the rest changes."""

    def __init__(self, session: PageSession, number: int) -> None:
        self._entry = session.entries[-1]
        with ui.element("tr") as self._element:
            text(str(number), "td")
            text(self._entry.query[:_MAX_QUESTION_CHARS], "td").props("dir=auto")
            self._state, self._time = text("", "td"), text("", "td")
            with ui.element("td"):
                stop = quiet_button("Stop", "stop", session.stop)
                stop.props(f'aria-label="Stop learner {number}"')

    def refresh(self) -> None:
        self._state.set_content(plain(announcement([self._entry])))
        self._time.set_content(f"{time.monotonic() - self._entry.progress.started:.0f} s")

    def delete(self) -> None:
        self._element.delete()


def _is_at_work(session: PageSession) -> bool:
    return session.is_busy and bool(session.entries) and session.entries[-1].progress.is_running
