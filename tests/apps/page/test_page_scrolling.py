"""What is inside the viewport while a question is worked on, in a real browser (see `page_server.py`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.support.page_browser import TIMEOUT_MS, ask, ask_and_wait, needs_browser, page_of, server_address

pytestmark = needs_browser
SIZES = [(1280, 800), (800, 600), (375, 667)]
IN_VIEW = """element => {
    const { top, bottom } = element.getBoundingClientRect();
    const above = document.querySelector("header").getBoundingClientRect().bottom;
    const below = document.querySelector("footer").getBoundingClientRect().top;
    return { height: bottom - top, top: top - above, bottom: below - bottom, room: below - above };
}"""


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gate") / "pauses"
    path.write_text("0")
    return path


@pytest.fixture(scope="module")
def resume(gate: Path) -> Callable[[], None]:
    """Let the model go on after a pause."""

    def resume() -> None:
        count = int(gate.read_text()) + 1
        gate.with_suffix(".new").write_text(str(count))
        gate.with_suffix(".new").replace(gate)

    return resume


@pytest.fixture(scope="module")
def address(gate: Path) -> Iterator[str]:
    with server_address(f"--pauses={gate}") as address:
        yield address


def expect_end_in_view(page: Page, element: Locator) -> None:
    """Wait until the end of an element is between head and composer, and all of it where there is room."""
    expect(element).to_be_visible()
    end = time.monotonic() + TIMEOUT_MS / 1000
    while True:
        # Asked of the locator each time, as the page may replace an element.
        height, top, bottom, room = element.evaluate(
            f"element => {{ const m = ({IN_VIEW})(element); return [m.height, m.top, m.bottom, m.room]; }}"
        )
        if height > 0 and bottom >= 0 and top + height > 0 and (top >= -1 or height > room - 30):
            return
        assert time.monotonic() < end, f"height {height}, top {top}, bottom {bottom}, room {room}"
        page.wait_for_timeout(100)


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def page(request: pytest.FixtureRequest, profile: BrowserContext, address: str) -> Iterator[Page]:
    """A page on which one question was answered."""
    with page_of(profile, address, *request.param) as page:
        ask_and_wait(page, "What is six times seven?")
        yield page


def test_program_and_answer_of_later_questions_are_in_view(page: Page, resume: Callable[[], None]) -> None:
    for _ in range(2):
        turn = ask(page, "Something lengthy")
        expect(turn.locator(".code")).to_contain_text("total_57 =")
        expect_end_in_view(page, turn.locator(".program"))
        resume()
        expect(turn.locator(".answer")).to_contain_text("pause")
        expect_end_in_view(page, turn.locator(".answer"))
        resume()
        expect(turn.locator(".verdict")).to_be_visible()
        expect_end_in_view(page, turn.locator(".verdict"))


def test_output_of_later_questions_is_in_view_while_it_arrives(page: Page) -> None:
    for _ in range(2):
        ask_and_wait(page, "and one more")
        turn = ask(page, "Something chatty")
        expect(turn.locator(".printed")).to_contain_text("Line 79")
        expect_end_in_view(page, turn.locator(".outcome"))
        page.wait_for_function(
            "pre => pre.scrollHeight - pre.scrollTop - pre.clientHeight < 2",
            arg=turn.locator(".printed").element_handle(),
        )
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()


def test_the_error_of_a_later_question_is_in_view(page: Page) -> None:
    turn = ask_and_wait(page, "This fails")
    expect_end_in_view(page, turn.locator(".failure"))
    expect_end_in_view(page, turn.locator(".verdict"))


def test_a_late_figure_does_not_push_the_answer_out_of_view(page: Page) -> None:
    turn = ask_and_wait(page, "Make a plot")
    turn.locator("img").evaluate("image => image.decode()")
    expect_end_in_view(page, turn.locator(".verdict"))


def test_whoever_scrolls_back_stays_there(page: Page, resume: Callable[[], None]) -> None:
    turn = ask(page, "Something lengthy")
    expect(turn.locator(".code")).to_contain_text("total_57 =")
    expect_end_in_view(page, turn.locator(".program"))
    page.mouse.move(100, 300)
    page.mouse.wheel(0, -5000)
    page.wait_for_function("scrollY === 0")
    resume()
    expect(turn.locator(".answer")).to_contain_text("pause")
    resume()
    expect(turn.locator(".verdict")).to_have_count(1)
    assert page.evaluate("scrollY") == 0


def test_a_reload_shows_the_latest_question(page: Page) -> None:
    ask_and_wait(page, "Make a plot")
    page.reload()
    expect_end_in_view(page, page.locator(".turn").last.locator(".verdict"))


def test_a_reload_follows_the_running_question(page: Page, resume: Callable[[], None]) -> None:
    expect(ask(page, "Something lengthy").locator(".code")).to_contain_text("total_57 =")
    page.reload()
    turn = page.locator(".turn").last
    expect(turn.locator(".code")).to_contain_text("total_57 =")
    expect_end_in_view(page, turn.locator(".program"))
    resume()
    expect(turn.locator(".answer")).to_contain_text("pause")
    resume()
    expect(turn.locator(".verdict")).to_be_visible()
    expect_end_in_view(page, turn.locator(".verdict"))


def test_opening_the_editor_of_an_earlier_program_does_not_move_to_the_latest(page: Page) -> None:
    ask_and_wait(page, "Make a plot")
    ask_and_wait(page, "and one more")
    page.locator(".turn").first.get_by_role("button", name="Edit").click()
    expect(page.locator(".cm-content")).to_be_focused()
    expect_end_in_view(page, page.locator(".cm-content"))


def test_the_buttons_of_an_approval_are_in_view(profile: BrowserContext) -> None:
    with server_address("--approve") as address:
        for size in SIZES:
            with page_of(profile, address, *size) as page:
                for _ in range(2):
                    turn = ask(page, "Something lengthy")
                    group = turn.get_by_role("group", name="Approval")
                    expect_end_in_view(page, group)
                    group.get_by_role("button", name="Refuse").click()
                    expect(turn.locator(".verdict")).to_be_visible()
                    expect_end_in_view(page, turn.locator(".verdict"))
