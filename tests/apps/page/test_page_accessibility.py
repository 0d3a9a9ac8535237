"""What axe-core finds on the page, and the keyboard, in a real browser (see `page_server.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect

from tests.support.page_browser import ask, ask_and_wait, needs_browser, page_of, server_address

pytestmark = needs_browser
AXE = Axe()
WIDTHS = [375, 1280]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with server_address("--models") as address:
        yield address


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, profile: BrowserContext, address: str) -> Iterator[Page]:
    with page_of(profile, address, scheme=request.param) as page:
        expect(page.get_by_label("Your question")).to_be_visible()
        yield page


def findings(page: Page) -> list[str]:
    """Return what axe-core finds wrong at any width, by the rule and the element."""
    found = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        found += [
            f"{width}: {violation['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
            for violation in AXE.run(page).response["violations"]
            for node in violation["nodes"]
        ]
    return found


def test_an_empty_page_is_accessible(page: Page) -> None:
    assert not findings(page)


def test_answers_with_tables_figures_and_files_are_accessible(page: Page, sales: Path) -> None:
    page.locator("input[type=file]").set_input_files(sales)
    ask_and_wait(page, "Make a table")
    ask_and_wait(page, "Make a plot").get_by_role("button", name="Edit").click()
    expect(page.locator(".cm-content")).to_be_focused()
    assert not findings(page)


def test_a_failure_is_accessible(page: Page) -> None:
    ask_and_wait(page, "This fails")
    ask_and_wait(page, "This fails")
    assert not findings(page)


def test_a_running_question_is_accessible(page: Page, sales: Path) -> None:
    page.locator("input[type=file]").set_input_files(sales)
    ask_and_wait(page, "and one more")
    turn = ask(page, "Something chatty")
    expect(turn.locator(".printed")).to_contain_text("Line 79")
    assert not findings(page)
    page.get_by_role("button", name="Stop").click()


def test_dialogs_are_accessible(page: Page) -> None:
    ask_and_wait(page, "What is six times seven?")
    page.get_by_role("button", name="Conversations").click()
    expect(page.get_by_role("dialog", name="Conversations")).to_be_visible()
    assert not findings(page)
    page.get_by_role("button", name="Delete What is six times seven?").click()
    expect(page.get_by_role("dialog", name="Confirmation")).to_be_visible()
    assert not findings(page)


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_the_keyboard_leaves_the_editor(page: Page) -> None:
    ask_and_wait(page, "What is six times seven?").get_by_role("button", name="Edit").click()
    editor = page.get_by_role("textbox", name="Edit program 1")
    expect(editor).to_be_focused()
    expect(editor).to_have_accessible_description(re.compile("press Esc and then Tab"))
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(editor).not_to_be_focused()
