"""How a turn looks, as far as it can be told without a browser."""

from __future__ import annotations

import re
import time

import pytest
from markdown_it.common.utils import unescapeAll

from code_chains.page.looks import listing, plain, typeset
from code_chains.page.view import announced, frame_height, is_table, stages
from code_chains.page.visits import Entry


def words(html: str) -> list[str]:
    return [unescapeAll(item) for item in re.findall(r"<li[^>]*>(.*?)</li>", html)]


def test_stages_that_are_done_stand_before_the_one_that_lasts() -> None:
    entry = Entry("?", stage="execute", done=["generate", "validate"])
    assert words(stages(entry)) == ["Writing a program", "Checking it", "Running it in the sandbox"]


def test_a_new_attempt_begins_the_stages_again() -> None:
    entry = Entry("?", stage="generate", done=["generate", "validate", "execute", "evaluate"])
    assert words(stages(entry)) == ["Writing a program, attempt 2"]


@pytest.mark.parametrize(("ahead", "said"), [(1, "One question comes first"), (3, "3 questions come first")])
def test_who_waits_is_told_how_many_come_first(ahead: int, said: str) -> None:
    assert words(stages(Entry("?", ahead=ahead))) == [said]


def test_a_program_is_text_whatever_it_holds() -> None:
    assert "<script" not in listing("x = '</code><script>alert(1)</script>'")


def test_every_line_of_a_program_is_there_and_the_wrong_one_is_marked() -> None:
    lines = re.findall(r'<span class="(line[^"]*)">', listing('a = """\none\ntwo"""\n\n1 / 0', line=5))
    assert lines == ["line"] * 4 + ["line wrong"]


def test_a_large_table_scrolls() -> None:
    assert frame_height(b"<table>" + b"<tr>" * 3) < frame_height(b"<table>" + b"<tr>" * 1000) < 500


@pytest.mark.parametrize(
    ("html", "turns"), [(b"<table><tr><td>1", True), (b"<table><tr><td><img src=x>", False), (b"<b>1</b>", False)]
)
def test_only_a_table_without_pictures_turns_dark(html: bytes, turns: bool) -> None:
    assert is_table(html) is turns


def test_what_is_announced_is_the_answer_or_why_there_is_none() -> None:
    assert announced([]) == ""
    assert announced([Entry("?", error="There is no key.", running=False)]) == "There is no key."


# -- what a model or a program may write -------------------------------------------------------------------------------

PLAIN_TAG = r"</?(p|pre|code|table|thead|tbody|tr|th|td|a)>"
LINK_TO_THE_WEB = r'<a href="https://[^"]*" target="_blank" rel="noopener noreferrer nofollow">'


@pytest.mark.parametrize(
    "written",
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
def test_an_answer_has_no_elements_and_attributes_of_its_own(written: str) -> None:
    assert re.sub(rf"{PLAIN_TAG}|{LINK_TO_THE_WEB}", "", typeset(written)).count("<") == 0


def test_a_link_of_an_answer_leads_to_the_web_and_gives_it_nothing() -> None:
    assert typeset("[here](https://example.org)") == (
        '<p><a href="https://example.org" target="_blank" rel="noopener noreferrer nofollow">here</a></p>\n'
    )


@pytest.mark.parametrize(
    "written", [">" * 300, "- " * 3000, "[" * 30_000, "|a" * 1900 + "\n" + "|-" * 1900 + "\n|" * 100]
)
def test_an_answer_of_any_shape_is_shown_soon(written: str) -> None:
    began = time.monotonic()
    assert 0 < len(typeset(written)) < 120_000
    assert time.monotonic() - began < 5


def test_what_is_very_long_is_shortened_and_says_so() -> None:
    for html in (plain("x" * 900_000), typeset("x" * 900_000), listing("x = 1\n" * 100_000)):
        assert "(shortened)" in html
        assert len(html) < 200_000


def test_a_program_has_colours_only_where_it_has_a_language() -> None:
    assert "<span class=k" not in listing("import x", None)
    assert '<span class="kn">' in listing("import x", "python")
