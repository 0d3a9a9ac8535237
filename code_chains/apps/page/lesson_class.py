"""The teacher's view of a class at lessons: which exercise stops how many, at which test, and who runs a program."""

from __future__ import annotations

import asyncio

from nicegui import ui

from code_chains.apps.page.app import STYLE
from code_chains.apps.page.elements import quiet_button, text
from code_chains.apps.page.lessons import Desk, LessonShelf
from code_chains.apps.safe_html import plain

_INTERVAL_S = 3.0
_SHOWN = ("title", "learners", "solved", "attempts", "failed_most")
_TITLES = ("Exercise", "Learners", "Solved", "Attempts", "Failed most often")


class LessonClass:
    """Tables that follow a class: of each lesson its exercises, and of all lessons the programs that run or wait.

    Args:
        shelf: The lessons.
    """

    def __init__(self, shelf: LessonShelf) -> None:
        self._shelf, self._rows = shelf, dict[Desk, ui.element]()
        ui.add_css(STYLE)
        with ui.element("div").classes("content class"):
            text("Class", "h1")
            self._lessons = ui.element("div")
            text("Programs", "h2")
            self._summary = text("", "p", "hint")
            self._programs = ui.element("ul").props('aria-label="Programs"')
        ui.timer(_INTERVAL_S, self._update, immediate=True)

    async def _update(self) -> None:
        self._show_programs()
        tables = await asyncio.to_thread(self._shelf.reports)
        self._lessons.clear()
        with self._lessons:
            for lesson, rows in tables:
                text(lesson.title, "h2").props(f"lang={lesson.language}")
                scrolling = ui.element("div").classes("listed")
                scrolling.props(f'tabindex=0 role=group aria-label="{plain(lesson.name)}"')
                with scrolling, ui.element("table"):
                    with ui.element("thead"), ui.element("tr"):
                        for title in _TITLES:
                            text(title, "th").props("scope=col")
                    with ui.element("tbody"):
                        for row in rows:
                            with ui.element("tr"):
                                for name in _SHOWN:
                                    text(str(row[name]), "td").props("dir=auto")

    def _show_programs(self) -> None:
        """Show who runs a program; a button keeps the focus while the rest changes."""
        busy = {desk: number for number, desk in self._shelf.desks() if desk.is_busy}
        for desk in self._rows.keys() - busy.keys():
            self._rows.pop(desk).delete()
        for desk, number in busy.items():
            if desk not in self._rows:
                with self._programs, ui.element("li") as self._rows[desk]:
                    text(f"Learner {number}: {desk.work.lesson.title}, {desk.work.step.title}", "span")
                    quiet_button("Stop", "stop", desk.stop).props(f'aria-label="Stop learner {number}"')
        waiting = sum(desk.position > 0 for desk in busy)
        self._summary.set_content(f"Running: {len(busy) - waiting} · waiting: {waiting}")
