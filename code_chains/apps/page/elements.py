"""Elements that several parts of the page consist of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import ui

from code_chains.apps.safe_html import plain


def text(content: str, tag: str = "div", classes: str = "") -> ui.html:
    """Add an element with plain text."""
    return ui.html(plain(content), sanitize=False, tag=tag).classes(classes)


def quiet_button(label: str, icon: str, action: Callable[[], Any] | None = None) -> ui.button:
    """Add a button without a background."""
    button = ui.button(label, icon=icon, on_click=action, color=None)
    return button.props(f'flat dense no-caps aria-label="{label}"').classes("quiet")


def copy_button(source: ui.element, name: str) -> ui.button:
    """Add a button that copies the text of an element.

    Args:
        source: The element.
        name: What it is, e.g. `program`.
    """
    button = quiet_button("Copy", "content_copy").props(f'aria-label="Copy the {name}"')
    # In the browser: it allows access to the clipboard only while it handles the click.
    handler = f"async () => emit(await copyText(getHtmlElement({source.id})))"
    button.on("click", lambda event: _notify_copied(name, is_copied=event.args), js_handler=handler)
    return button


def _notify_copied(name: str, *, is_copied: bool) -> None:
    if is_copied:
        ui.notify(f"The {name} is copied.", position="top", timeout=2000, classes="told")
    else:
        notify_error(f"The browser refused to copy the {name}.")


def notify_error(message: str) -> None:
    """Show a message about something that did not work."""
    ui.notify(message, type="negative", position="top", close_button="Close", multi_line=True)
