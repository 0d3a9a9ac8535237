"""The editor of programs: what a browser says was changed is counted before it is applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from code_chains.executors.inputs import MAX_CODE_CHARS

_MAX_SECTIONS = 20_000


class Editor(ui.codemirror):
    """An editor whose text has at most `MAX_CODE_CHARS` characters.

    Invariant: a change set of a browser keeps no part of the text twice, so that a message cannot multiply it. Lengths that
    are negative would move back in it. A change that is none is left out.
    """

    def _event_args_to_value(self, e: GenericEventArguments) -> str:
        given = e.args if isinstance(e.args, dict) else {}
        sections, inserted = given.get("sections"), given.get("inserted") or []
        if (
            _is_change(sections, inserted)
            and _added_chars(inserted) + len(self.value or "") <= MAX_CODE_CHARS
        ):
            return super()._event_args_to_value(e)
        return self.value or ""


def _is_change(sections: Any, inserted: Any) -> bool:
    """Return whether these are lengths before and after (-1 for what stays), and lists of lines."""
    return (
        isinstance(sections, list)
        and isinstance(inserted, list)
        and len(sections) <= _MAX_SECTIONS
        and len(sections) % 2 == 0
        and all(type(length) is int for length in sections)
        and min(sections[::2], default=0) >= 0
        and min(sections[1::2], default=0) >= -1
        and all(
            isinstance(lines, list) and all(isinstance(line, str) for line in lines) for lines in inserted
        )
    )


def _added_chars(inserted: Sequence[Sequence[str]]) -> int:
    return sum(len(line) + 1 for lines in inserted for line in lines)
