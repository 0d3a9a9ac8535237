"""The dialog with the earlier conversations of a client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from code_chains.apps.page.elements import quiet_button, text
from code_chains.apps.page.history import StoredConversation

_MAX_TITLE_CHARS = 150


class ConversationList:
    """A dialog from which a conversation can be opened or deleted.

    Args:
        on_open: Called with the name of a conversation to open.
        on_delete: Called with a conversation to delete.
        on_forget: Called to forget whoever uses this browser.
    """

    def __init__(
        self,
        on_open: Callable[[str], Any],
        on_delete: Callable[[StoredConversation], Any],
        on_forget: Callable[[], Any],
    ) -> None:
        self._on_open, self._on_delete = on_open, on_delete
        self._dialog = ui.dialog().props('aria-label="Conversations" transition-duration=0')
        with self._dialog, ui.card().classes("confirmation conversations"):
            with ui.element("div").classes("bar"):
                text("Conversations", "h2", "kicker")
                quiet_button("Close", "close", self._dialog.close)
            self._items = ui.element("ul")
            forget = quiet_button("Forget me on this computer", "logout", on_forget)
            forget.on("click", self._dialog.close)

    def show(self, conversations: Sequence[StoredConversation], current: str) -> None:
        """Open the dialog.

        Args:
            conversations: What to list.
            current: The name of the conversation on the page.
        """
        self._items.clear()
        with self._items:
            if not conversations:
                text("There are no earlier conversations.", "li", "hint")
            for conversation in conversations:
                self._add_item(conversation, is_current=conversation.session_id == current)
        self._dialog.open()

    def _add_item(self, conversation: StoredConversation, *, is_current: bool) -> None:
        title = conversation.title[:_MAX_TITLE_CHARS]
        with ui.element("li"):
            with ui.element("button").props("type=button").classes("title") as button:
                text(title, "span").props("dir=auto")
                time = conversation.time.isoformat(timespec="seconds")
                # The browser knows the time zone of the client.
                ui.html(time, sanitize=False, tag="time").props(f"datetime={time}").classes("hint")
            if is_current:
                button.props("aria-current=true")
            button.on("click", partial(self._open, conversation.session_id), args=[])
            delete = ui.button(icon="delete", color=None).props("flat dense").classes("quiet")
            delete.props["aria-label"] = f"Delete {title}"
            delete.on("click", partial(self._delete, conversation), args=[])

    def _open(self, session_id: str) -> Any:
        self._dialog.close()
        return self._on_open(session_id)

    def _delete(self, conversation: StoredConversation) -> Any:
        self._dialog.close()
        return self._on_delete(conversation)
