"""The field for the next question, with its files and the choice of a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from nicegui import ui

from code_chains.apps.page.elements import text
from code_chains.apps.page.sessions import PageSession
from code_chains.apps.page.uploads import MAX_UPLOAD_BYTES

_KEYS = """(event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    emit(event.target.value);
}"""
_UPLOADS = f"""async (event) => {{
    const upload = async (file) => {{
        if (file.size > {MAX_UPLOAD_BYTES})
            return {{ ok: false, message: `${{file.name}} is larger than {MAX_UPLOAD_BYTES >> 20} MB.` }};
        const address = "upload?" + new URLSearchParams({{ name: file.name, c: drafts.conversation() }});
        const response = await fetch(address, {{ method: "POST", body: file }});
        return {{ ok: response.ok, name: file.name, message: await response.text() }};
    }};
    const failure = (file) => ({{ ok: false, message: `${{file.name}} could not be uploaded.` }});
    for (const file of [...event.target.files])
        emit(await upload(file).catch(() => failure(file)));
    event.target.value = "";
}}"""


_FILL = """(([id, draft]) => {
    const field = getElement(id);
    if (field?.inputValue === "") { field.inputValue = draft; drafts.keep(draft); }
})"""
_CLEAR = """(([id, question]) => {
    const field = getElement(id), value = field?.inputValue;
    if (!value?.startsWith(question)) return;
    // What follows was typed while the question was on its way, unless it goes on with a word.
    const rest = value.slice(question.length);
    if (/\\w$/.test(question) && /^\\w/.test(rest)) return;
    field.inputValue = rest;
    drafts.moveOn(question, rest);
})"""


@dataclass(frozen=True)
class ComposerActions:
    """What the controls of the composer do.

    Attributes:
        ask: Ask a question.
        stop: Stop the question that is being answered.
        handle_upload: Report the server's response to the upload of a file.
        remove_file: Remove a file by its name.
        select_model: Select a model by its name.
    """

    ask: Callable[[str], Any]
    stop: Callable[[], Any]
    handle_upload: Callable[[dict[str, Any]], Any]
    remove_file: Callable[[str], Any]
    select_model: Callable[[str], Any]


class Composer:
    """The field for the next question. It also receives files that are dropped on the page.

    Args:
        models: Names of the models; there is a choice if there are several.
        actions: What its controls do.

    Attributes:
        question: The text field.
    """

    def __init__(self, models: list[str], actions: ComposerActions) -> None:
        self._actions = actions
        self._displayed_files: list[tuple[str, bool]] = []
        with ui.element("footer"), ui.element("div").classes("composer"):
            self._files = ui.element("ul").classes("files").props('aria-label="Files"')
            self._files.set_visibility(False)
            with ui.element("div").classes("line"):
                self._add_attachment()
                self.question: ui.textarea = ui.textarea(placeholder="Ask something …")
                self.question.props('borderless autogrow aria-label="Your question" autofocus')
                self.question.on("keydown", lambda event: actions.ask(event.args), js_handler=_KEYS)
                self._model = self._add_models(models) if len(models) > 1 else None
                self._submit = ui.button("Ask", color=None).props("unelevated no-caps").classes("main")
                typed = f"() => emit(getElement({self.question.id}).inputValue ?? '')"
                self._submit.on("click", lambda event: actions.ask(event.args), js_handler=typed)
                self._cancel = ui.button("Stop", on_click=actions.stop, color=None)
                self._cancel.props("outline no-caps").classes("main")

    def _add_attachment(self) -> None:
        """Add a button that opens the browser's file dialog; the input element itself is hidden."""
        # `ui.upload` registers a route for each page, and FastAPI's caches hold thousands of routes with
        # their pages.
        upload = ui.element("input").props("type=file multiple aria-hidden=true tabindex=-1")
        upload.classes("visually-hidden")
        upload.on("change", lambda event: self._actions.handle_upload(event.args), js_handler=_UPLOADS)
        choose = ui.button(icon="attach_file", color=None).props('flat dense aria-label="Add a file"')
        choose.classes("quiet").on("click", js_handler=f"() => getHtmlElement({upload.id}).click()")
        choose.tooltip("Add a CSV or another file, or drop it on the page")

    def _add_models(self, models: list[str]) -> ui.element:
        # The browser's own element: usable with any keyboard and on any phone.
        with ui.element("select").classes("models").props('aria-label="Model"') as select:
            for name in models:
                option = text(name, "option")
                option.props["value"] = name
        select.on(
            "change",
            lambda event: self._actions.select_model(event.args),
            js_handler="(event) => emit(event.target.value)",
        )
        return select

    def show(self, session: PageSession) -> None:
        """Display the state of a session."""
        self._submit.set_visibility(not session.is_busy)
        self._cancel.set_visibility(session.is_busy)
        self._show_files(session)
        if self._model is not None:
            self._model.props["value"] = session.model
            self._model.props.set_bool("disabled", session.is_busy)
            self._model.update()
        if session.draft:
            self._change(_FILL, session.draft)
        session.draft = ""

    def clear(self, question: str) -> None:
        """Empty the field unless it contains another question by now."""
        self._change(_CLEAR, question)

    def _change(self, how: str, text: str) -> None:
        # Invariant: the browser decides. A value set here is lost if an older one is on its way from the browser, which the
        # field reports after each change.
        self.question.client.run_javascript(f"{how}({json.dumps([self.question.id, text])})")

    def _show_files(self, session: PageSession) -> None:
        files = [(name, name in session.uploads.pending) for name in session.files]
        if files == self._displayed_files:  # A focused button stays.
            return
        self._displayed_files = files
        self._files.clear()
        self._files.set_visibility(bool(files))
        with self._files:
            for name, is_pending in files:
                with ui.element("li"):
                    text(name, "span")
                    if is_pending:
                        remove = (
                            ui.button(icon="close", color=None).props("flat dense round").classes("quiet")
                        )
                        remove.props["aria-label"] = f"Remove {name}"
                        remove.on("click", partial(self._actions.remove_file, name), args=[])
