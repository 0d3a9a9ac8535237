"""The view of a turn, without a browser."""

from __future__ import annotations

import re
import time

import pytest
from markdown_it.common.utils import unescapeAll

from code_chains.apps.page.entries import ChatEntry, EntryOutcome, EntryProgress
from code_chains.apps.page.html import listing
from code_chains.apps.page.outcome_view import frame_height, is_recoloured, needs_network
from code_chains.apps.page.view import announcement, stages
from code_chains.apps.safe_html import plain, render_markdown
from code_chains.state import Attempt, DisplayData, Turn, Verdict


def labels(html: str) -> list[str]:
    return [unescapeAll(item) for item in re.findall(r"<li[^>]*>(.*?)</li>", html)]


def test_finished_stages_precede_the_current_one() -> None:
    entry = ChatEntry("?", progress=EntryProgress(stage="execute", finished_stages=["generate", "validate"]))
    assert labels(stages(entry)) == ["Writing a program", "Checking the program", "Running the program"]


def test_a_new_attempt_restarts_the_stages() -> None:
    finished = ["generate", "validate", "execute", "evaluate"]
    entry = ChatEntry("?", progress=EntryProgress(stage="generate", finished_stages=finished))
    assert labels(stages(entry)) == ["Writing a program, attempt 2"]


def test_a_new_attempt_says_why_until_it_ends() -> None:
    verdict = Verdict("failed", "none", "Timeout: it took <too> long.")
    entry = ChatEntry("?", progress=EntryProgress(stage="execute", finished_stages=["generate"]))
    entry.progress.add({"attempts": [Attempt(1, "x", (), "timeout", "Timeout", verdict)]})
    assert labels(stages(entry))[0] == "Attempt 1 failed: Timeout: it took <too> long."
    assert "<too>" not in stages(entry)
    assert announcement([entry]).startswith("Attempt 1 failed: Timeout")
    entry.progress.add({"attempts": [Attempt(2, "x", (), "ok", "", Verdict("unverified", "none", ""))]})
    assert labels(stages(entry)) == ["Writing a program", "Running the program"]


@pytest.mark.parametrize(
    ("position", "label"), [(1, "Waiting: 1 program ahead"), (3, "Waiting: 3 programs ahead")]
)
def test_a_waiting_entry_shows_its_queue_position(position: int, label: str) -> None:
    assert labels(stages(ChatEntry("?", progress=EntryProgress(queue_position=position)))) == [label]


def test_a_program_is_escaped() -> None:
    assert "<script" not in listing("x = '</code><script>alert(1)</script>'")


def test_every_line_of_a_program_is_listed_and_the_failed_one_marked() -> None:
    lines = re.findall(r'<span class="(line[^"]*)">', listing('a = """\none\ntwo"""\n\n1 / 0', line=5))
    assert lines == ["line"] * 4 + ["line wrong"]


def test_a_large_table_scrolls() -> None:
    assert frame_height(b"<table>" + b"<tr>" * 3) < frame_height(b"<table>" + b"<tr>" * 1000) < 500


@pytest.mark.parametrize(
    ("html", "expected"),
    [(b"<table><tr><td>1", True), (b"<table><tr><td><img src=x>", False), (b"<b>1</b>", False)],
)
def test_only_a_table_without_images_is_displayed_dark(html: bytes, expected: bool) -> None:
    assert is_recoloured(html) is expected


def test_the_announcement_is_the_answer_or_the_error() -> None:
    failed = ChatEntry(
        "?", progress=EntryProgress(is_running=False), outcome=EntryOutcome(error="There is no key.")
    )
    assert announcement([]) == ""
    assert announcement([failed]) == "There is no key."


# -- untrusted output --------------------------------------------------------------------------------------------------

PLAIN_TAG = r"</?(p|pre|code|table|thead|tbody|tr|th|td|a|span)>"
LINK_TO_THE_WEB = r'<a href="https://[^"]*" target="_blank" rel="noopener noreferrer nofollow">'


@pytest.mark.parametrize(
    "markdown",
    [
        "<style>.verdict { color: green }</style>",
        '<p class="verdict verified" style="color: green">Verified</p>',
        '<form action="/"><input name=password></form>',
        "<img src=x onerror=alert(1)>",
        "<!-- <script>alert(1)</script> -->",
        "![a picture](https://example.org/seen.png)",
        "[a link](javascript:alert(1))",
        "[a link](//example.org)",
        "<data:text/html,x>",
        '[a link](https://example.org "onclick=alert(1)")',
        '```x"onclick="alert(1)\nfenced\n```',
        "<table><tr><td class=verified>\n\n| a |\n|---|\n| <b>b</b> |",
    ],
)
def test_an_answer_cannot_add_elements_or_attributes(markdown: str) -> None:
    assert re.sub(rf"{PLAIN_TAG}|{LINK_TO_THE_WEB}", "", render_markdown(markdown)).count("<") == 0


def test_a_link_of_an_answer_opens_the_web_without_a_referrer() -> None:
    assert render_markdown("[here](https://example.org)") == (
        '<p><a href="https://example.org" target="_blank" rel="noopener noreferrer nofollow">here</a></p>\n'
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "markdown", [">" * 300, "- " * 3000, "[" * 30_000, "|a" * 1900 + "\n" + "|-" * 1900 + "\n|" * 100]
)
def test_any_answer_is_rendered_quickly(markdown: str) -> None:
    start = time.process_time()
    assert 0 < len(render_markdown(markdown)) < 120_000
    assert time.process_time() - start < 5


def test_very_long_output_is_shortened_with_a_note() -> None:
    for html in (plain("x" * 900_000), render_markdown("x" * 900_000), listing("x = 1\n" * 100_000)):
        assert "(shortened)" in html
        assert len(html) < 200_000


def test_a_program_is_highlighted_only_with_a_language() -> None:
    assert "<span class=k" not in listing("import x", None)
    assert '<span class="kn">' in listing("import x", "python")


def test_a_table_of_a_stored_turn_is_not_repeated_as_text() -> None:
    displayed = (DisplayData("text/html", "<table>"), DisplayData("text/plain", "   x\n0  1"))
    turn = Turn("1", "Show it", code="frame", output="Rows:\n   x\n0  1", display_data=displayed)
    execution = ChatEntry.from_turn(turn).outcome.execution
    assert execution is not None
    assert (execution.stdout, execution.display_data) == ("Rows:\n", displayed[:1])


@pytest.mark.parametrize(
    "hidden", ["\u200b", "\u202e", "\U000e0041", "\ufe0f", "\u2060", "\x1b", "\u00ad", "\u2028"]
)
def test_whoever_approves_a_program_sees_what_fonts_do_not_show(hidden: str) -> None:
    code = f"x = 'a{hidden}b'\r\n\ty = 1"
    assert hidden not in listing(code)
    assert "\\u" in listing(code)
    assert "\ty" in listing(code, None)


def test_scripts_from_elsewhere_are_found_in_time_that_the_length_bounds() -> None:
    assert needs_network(b'<p><script type="module"\n src = "https://x.example/x.js"></script>')
    assert not needs_network(b"<script>const src = 1</script>")
    start = time.process_time()
    assert not needs_network(b"<script " * (2 << 20))
    assert time.process_time() - start < 1


def test_of_a_link_that_does_not_lead_to_the_web_the_text_is_left() -> None:
    html = render_markdown("See [orders.csv](orders.csv) and [this](javascript:alert(1)).")
    assert html == "<p>See <span>orders.csv</span> and <span>this</span>.</p>\n"
