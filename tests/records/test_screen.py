"""Output is shown as a terminal would show it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.records.screen import MAX_BLANKS, as_shown

SHOWN = {
    "carriage returns": ("10%\r50%\r100%\nend", "100%\nend"),
    "line ends of Windows": ("a\r\nb\r\n", "a\nb\n"),
    "a shorter line over a longer one": ("loading\rdone", "doneing"),
    "a line that is erased": ("loading\r\x1b[Kdone", "done"),
    "backspaces": ("abc\b\bX", "aXc"),
    "colours": ("\x1b[1;31mred\x1b[0m", "red"),
    "a link": ("\x1b]8;;http://a\x1b\\text\x1b]8;;\x1b\\", "text"),
    "two bars": ("a 1\nb 1\x1b[A\ra 2\n\rb 2", "a 2\nb 2"),
    "a cleared screen": ("old\n\x1b[2J\x1b[Hnew", "new"),
    "a bell": ("\x07a", "a"),
    "far to the right": ("\x1b[999999999Ca", " " * 1000 + "a"),
    "back in a long line": ("x" * 2000 + "\x1b[2Dy", "x" * 1998 + "yx"),
    "a number of many digits": ("\x1b[" + "9" * 5000 + "Ca", " " * 1000 + "a"),
    "far up": ("a\x1b[999999999Ab", "ab"),
}


@pytest.mark.parametrize("case", SHOWN)
def test_what_is_overwritten_is_gone(case: str) -> None:
    text, shown = SHOWN[case]
    assert as_shown(text) == shown


@given(st.text(st.characters(exclude_characters="\x1b\r\b\x07\x7f")))
def test_other_text_stays_as_it_is(text: str) -> None:
    assert as_shown(text) == text


@given(st.text("ab\x1b[;0123AKJm\r\b\n]\\\x07"))
def test_whatever_is_printed_is_shown(text: str) -> None:
    assert "\r" not in as_shown(text)


@pytest.mark.parametrize(
    "text",
    ["\x1b[99999Cx\n" * 10_000, "\x1b[99999Cx" + "\x1b[1K" * 20_000, "\r" * 900_000, "\x1b[1m" * 200_000],
)
def test_a_screen_costs_what_was_printed(text: str) -> None:
    start = time.process_time()
    assert len(as_shown(text)) <= MAX_BLANKS + 5 * len(text)
    assert time.process_time() - start < 1


def test_many_frames_are_shown_quickly() -> None:
    assert as_shown("\r".join(map(str, range(200_000)))) == "199999"
