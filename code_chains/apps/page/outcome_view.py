"""The view of what a program printed, displayed and wrote: plain text, or isolated in a frame of an origin of its own."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from html import escape

from nicegui import ui

from code_chains.apps.answers import text_beside_views
from code_chains.apps.page.elements import text
from code_chains.apps.page.entries import VIEW, ChatEntry
from code_chains.apps.page.tables import has_table, label_of
from code_chains.apps.safe_html import plain
from code_chains.records.printable import strip_control_chars
from code_chains.records.screen import as_shown
from code_chains.state import Artifact, ErrorReport

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml")
"""Media types displayed as images, in which no script runs."""
_MAX_LOCALS = 6
_MAX_SCRIPTS, _MAX_HEAD_BYTES = 1_000, 200


def is_recoloured(html: bytes) -> bool:
    """Return whether a view is a table without images, which may be displayed in dark colours."""
    return has_table(html) and not re.search(rb"<(img|svg)\b", html)


def is_interactive(artifact: Artifact) -> bool:
    """Return whether a file is HTML that may run scripts, as charts do, and no view of a value."""
    return artifact.media_type == "text/html" and artifact.name != VIEW


def needs_network(html: bytes) -> bool:
    """Return whether HTML loads its scripts from elsewhere, which no frame may."""
    tags = itertools.islice(re.finditer(rb"<script\b", html), _MAX_SCRIPTS)
    heads = (html[tag.end() : tag.end() + _MAX_HEAD_BYTES].partition(b">")[0] for tag in tags)
    return any(re.search(rb"\bsrc\s*=", head) for head in heads)


def frame_height(html: bytes) -> int:
    """Estimate the height of a view in a frame, as the frame cannot be measured; a higher view scrolls."""
    if has_table(html):
        return min(420, 20 + 31 * html.count(b"<tr"))
    return 480 if b"<script" in html else 240


class OutcomeView:
    """The panel with the outcome of an entry's program; hidden until there is one.

    Args:
        entry: The entry.
        number: The number of its question.
    """

    def __init__(self, entry: ChatEntry, number: int) -> None:
        self._entry, self._number = entry, number
        self._is_complete = False
        self._printed: ui.html | None = None
        self.element: ui.element = ui.element("section").classes("panel outcome")
        self.element.props(f'aria-label="Outcome {number}"').set_visibility(False)

    def refresh(self) -> None:
        """Display what has changed."""
        printed = self._entry.progress.printed
        if self._is_complete:
            return
        if self._entry.outcome.execution is not None:
            self._show_outcome()
        elif printed:
            self._show_printed(printed)

    def _show_printed(self, printed: str) -> None:
        """Show what a program prints while it runs."""
        if self._printed is None:
            with self.element:
                text("Output so far", "p", "kicker")
                self._printed = printed_text("", f"Output {self._number} so far")
            self.element.set_visibility(True)
        self._printed.set_content(plain(as_shown(printed).rstrip()))

    def _show_outcome(self) -> None:
        self.element.clear()
        execution = self._entry.outcome.execution
        assert execution is not None
        artifacts = list(_visible_artifacts(self._entry))
        output = text_beside_views(execution)
        with self.element:
            text("Outcome", "p", "kicker")
            if output.strip():
                printed_text(output, f"Output {self._number}")
            for index, artifact in artifacts:
                self._show_artifact(index, artifact)
            if execution.error is not None:
                show_error(execution.error)
            if not output.strip() and not artifacts and execution.ok:
                text("The program ran without output.", "p", "hint")
        self.element.set_visibility(True)
        self._is_complete = True

    def _show_artifact(self, index: int, artifact: Artifact) -> None:
        url = f"artifacts/{self._entry.id}/{index}"
        name = strip_control_chars(artifact.name)
        if artifact.media_type in IMAGES:
            alt = f"Figure {name} for: {self._entry.query[:150]}"
            figure(f'<img src="{url}" alt="{escape(alt)}">').classes("paper")
        elif artifact.media_type == "text/html" and not needs_network(artifact.data):
            height, title = frame_height(artifact.data), f"{name} of question {self._number}"
            scripts = '="allow-scripts"' if is_interactive(artifact) else ""
            frame = f'<iframe sandbox{scripts} src="{url}" title="{escape(title)}" style="height: {height}px"></iframe>'
            figure(frame).classes("table" if is_recoloured(artifact.data) else "paper")
        elif artifact in self._entry.outcome.displayed:
            _link(f"tables/{self._entry.id}/{index}", label_of(artifact.data))
        else:
            _link(url, name)


def figure(content: str) -> ui.html:
    """Add what a program drew."""
    return ui.html(content, sanitize=False, tag="figure")


def _link(url: str, label: str) -> None:
    ui.html(f'<a href="{url}" download>{escape(label)}</a>', sanitize=False, tag="p").classes("download")


def printed_text(content: str, label: str) -> ui.html:
    """Add output, which may scroll, so that it takes the focus and has a name."""
    return text(content, "pre", "printed").props(f'tabindex=0 role=group aria-label="{label}"')


def show_error(error: ErrorReport) -> None:
    """Add how a program ended."""
    with ui.element("div").classes("failure"):
        text(f"Line {error.line}" if error.line else "Error", "strong")
        text(str(error), "span")
        if error.hint:
            text(error.hint, "p", "hint")
        if error.locals:
            variables = [f"{name} = {value}" for name, value in list(error.locals.items())[:_MAX_LOCALS]]
            text("Variables:\n" + "\n".join(variables), "pre", "hint")


def _visible_artifacts(entry: ChatEntry) -> Iterator[tuple[int, Artifact]]:
    """Yield the artifacts of a program with their indices, except other forms of what is visible."""
    for index, artifact in enumerate(entry.outcome.artifacts):
        is_result = re.fullmatch(r"(result|figure-\d+)\.(txt|json)", artifact.name)
        if not is_result or artifact.name in entry.outcome.code:
            yield index, artifact
