"""The dialog that asks before something is deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui

from code_chains.apps.safe_html import plain


class Confirmation:
    """A dialog that asks whether an action is meant; nothing waits for it, so that a page may be left with it open."""

    def __init__(self) -> None:
        self._action: Callable[[], Awaitable[object]] | None = None
        self._dialog = ui.dialog().props('aria-label="Confirmation" transition-duration=0')
        with self._dialog, ui.card().classes("confirmation"):
            self._message = ui.html(sanitize=False, tag="p")
            with ui.element("div").classes("choice"):
                cancel = ui.button("Cancel", on_click=self._dialog.close, color=None)
                cancel.props("flat no-caps").classes("quiet")
                self._confirm = ui.button(on_click=self._act, color=None)
                self._confirm.props("unelevated no-caps").classes("main")

    def ask(self, message: str, label: str, action: Callable[[], Awaitable[object]]) -> None:
        """Open the dialog.

        Args:
            message: The question.
            label: The label of the button that confirms.
            action: What to do then.
        """
        self._message.set_content(plain(message))
        self._confirm.set_text(label)
        self._action = action
        self._dialog.open()

    async def _act(self) -> None:
        self._dialog.close()
        if self._action is not None:
            action, self._action = self._action, None
            await action()
