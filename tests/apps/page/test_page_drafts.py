"""What people type survives whatever happens to page, connection and server, in a real browser (see `page_server.py`)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.page_browser import (
    SLOW_CONNECTION,
    ask,
    ask_and_wait,
    needs_browser,
    open_page,
    page_of,
    running_server,
    server_address,
)

pytestmark = needs_browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with server_address() as address:
        yield address


@pytest.fixture
def page(profile: BrowserContext, address: str) -> Iterator[Page]:
    with page_of(profile, address) as page:
        yield page


def type_draft(page: Page, text: str) -> None:
    page.get_by_label("Your question").press_sequentially(text)


def edit(page: Page, text: str) -> None:
    """Open the editor of the last program, and write at its end."""
    page.get_by_role("button", name="Edit").last.click()
    expect(page.locator(".cm-content")).to_be_focused()
    page.keyboard.press("Control+End")
    page.keyboard.type(text)
    expect(page.locator(".cm-content")).to_contain_text(text)


def test_a_draft_and_an_edit_survive_a_reload(page: Page) -> None:
    ask_and_wait(page, "What is six times seven?")
    edit(page, "  # mine")
    type_draft(page, "And then")
    page.reload()
    expect(page.get_by_label("Your question")).to_have_value("And then")
    expect(page.locator(".cm-content")).to_contain_text("# mine")


def test_a_draft_and_an_edit_survive_a_server_that_was_killed(browser: Browser, tmp_path: Path) -> None:
    with running_server(f"--store={tmp_path}", "--reconnect=0.5") as (server, address):
        page = open_page(browser, address)
        ask_and_wait(page, "What is six times seven?")
        edit(page, "  # mine")
        type_draft(page, "And then")
        server.send_signal(signal.SIGKILL)
        server.wait()
        type_draft(page, " what?")
    with running_server(f"--store={tmp_path}", f"--port={urlsplit(address).port}"):
        page.reload()
        expect(page.locator(".turn")).to_have_count(1)
        expect(page.get_by_label("Your question")).to_have_value("And then what?")
        expect(page.locator(".cm-content")).to_contain_text("# mine")
    page.context.close()


def test_a_question_that_ran_when_the_server_was_killed_is_the_draft(
    browser: Browser, tmp_path: Path
) -> None:
    with running_server(f"--store={tmp_path}", "--reconnect=0.5") as (server, address):
        page = open_page(browser, address)
        ask(page, "Something endless")
        server.send_signal(signal.SIGKILL)
        server.wait()
    with running_server(f"--store={tmp_path}", f"--port={urlsplit(address).port}"):
        page.reload()
        expect(page.get_by_label("Your question")).to_have_value("Something endless")
    page.context.close()


def test_a_question_that_was_asked_is_no_draft_any_more(page: Page) -> None:
    ask_and_wait(page, "What is six times seven?")
    page.reload()
    expect(page.locator(".turn")).to_have_count(1)
    expect(page.get_by_label("Your question")).to_have_value("")


def test_what_is_typed_while_a_question_is_on_its_way_is_the_next_one(page: Page) -> None:
    page.add_init_script(SLOW_CONNECTION)
    page.reload()
    page.get_by_label("Your question").fill("What is six times seven?")
    page.keyboard.press("Enter")
    type_draft(page, "And one more?")
    expect(page.locator(".verdict")).to_have_count(1)
    expect(page.get_by_label("Your question")).to_have_value("And one more?")
    page.reload()
    expect(page.get_by_label("Your question")).to_have_value("And one more?")


def test_a_cancelled_edit_is_there_when_the_program_is_edited_again(page: Page) -> None:
    ask_and_wait(page, "What is six times seven?")
    edit(page, "  # mine")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Edit")).to_be_focused()
    page.get_by_role("button", name="Edit").click()
    expect(page.locator(".cm-content")).to_contain_text("# mine")
    page.get_by_role("button", name="Original").click()
    expect(page.locator(".cm-content")).not_to_contain_text("# mine")


def test_an_edit_of_a_turn_that_was_undone_elsewhere_can_be_copied(page: Page, address: str) -> None:
    ask_and_wait(page, "What is six times seven?")
    edit(page, "  # mine")
    other = page.context.new_page()
    other.goto(address)
    other.get_by_role("button", name="Undo").click()
    expect(page.locator(".orphan")).to_contain_text("is kept")
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".orphan")).to_have_count(0)


def test_two_tabs_have_two_conversations(page: Page, address: str) -> None:
    ask_and_wait(page, "What is six times seven?")
    other = page.context.new_page()
    other.goto(address)
    other.get_by_role("button", name="New conversation").click()
    expect(other.locator(".welcome")).to_be_visible()
    ask_and_wait(other, "This is a report")
    expect(ask_and_wait(page, "and one more").locator(".outcome")).to_contain_text("43")
    expect(other.locator(".turn")).to_have_count(1)
    expect(page.locator(".turn")).to_have_count(2)


def test_back_returns_to_the_conversation_before(page: Page) -> None:
    ask_and_wait(page, "What is six times seven?")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".welcome")).to_be_visible()
    type_draft(page, "Not yet")
    page.go_back()
    expect(page.locator(".question")).to_have_text("What is six times seven?")
    page.go_forward()
    expect(page.get_by_label("Your question")).to_have_value("Not yet")


def test_the_address_of_a_conversation_opens_it_in_its_own_browser_only(page: Page, browser: Browser) -> None:
    ask_and_wait(page, "What is six times seven?")
    page.wait_for_url("**/?c=page-*")
    other = open_page(browser, page.url)
    expect(other.locator(".notice")).to_contain_text("no such conversation in this browser")
    expect(other.locator(".turn")).to_have_count(0)
    other.context.close()


def test_the_focus_stays_where_people_go_on(page: Page) -> None:
    ask_and_wait(page, "What is six times seven?")
    edit(page, "  # mine")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".verdict")).to_have_count(2)
    expect(page.get_by_label("Your question")).to_be_focused()
    for count in (1, 0):
        page.get_by_role("button", name="Undo").press("Enter")
        expect(page.locator(".turn")).to_have_count(count)
    expect(page.get_by_label("Your question")).to_be_focused()
