"""How a turn looks, as far as it can be told without a browser."""

from __future__ import annotations

import re

import pytest
from markdown_it.common.utils import unescapeAll

from code_chains.page.view import announced, frame_height, highlighted, stages
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
    assert "<script" not in highlighted("x = '</code><script>alert(1)</script>'")


def test_every_line_of_a_program_is_there_and_the_wrong_one_is_marked() -> None:
    lines = re.findall(r'<span class="(line[^"]*)">', highlighted('a = """\none\ntwo"""\n\n1 / 0', line=5))
    assert lines == ["line"] * 4 + ["line wrong"]


def test_a_large_table_scrolls() -> None:
    assert frame_height(b"<table>" + b"<tr>" * 3) < frame_height(b"<table>" + b"<tr>" * 1000) < 500


def test_what_is_announced_is_the_answer_or_why_there_is_none() -> None:
    assert announced([]) == ""
    assert announced([Entry("?", error="There is no key.", running=False)]) == "There is no key."
