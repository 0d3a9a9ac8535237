"""What a browser says was changed in an editor is counted before it is applied."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from nicegui import Client, ui
from nicegui.page import page

from code_chains.apps.page.editor import Editor
from code_chains.executors.inputs import MAX_CODE_CHARS


@pytest.fixture
def editor() -> Any:
    with Client(page("/editor")):
        yield Editor("print(1)")


def changed(editor: Editor, sections: Any, inserted: Any) -> str:
    return editor._event_args_to_value(SimpleNamespace(args={"sections": sections, "inserted": inserted}))  # type: ignore[arg-type]


def test_what_is_typed_is_inserted(editor: Editor) -> None:
    assert isinstance(editor, ui.codemirror)
    assert changed(editor, [6, -1, 1, 2, 1, -1], [[], ["42"]]) == "print(42)"


@pytest.mark.parametrize(
    ("sections", "inserted"),
    [
        ([8, -1, -8, -1] * 1000, []),
        ([8, -2], []),
        ([True, -1], []),
        ([8], []),
        ("8", []),
        ([8, 5], [["x" * (MAX_CODE_CHARS + 1)]]),
        ([8, 5], [[5]]),
        ([0, 0] * 20_000, []),
        (None, None),
    ],
)
def test_what_is_no_change_or_too_long_is_left_out(editor: Editor, sections: Any, inserted: Any) -> None:
    assert changed(editor, sections, inserted) == "print(1)"
