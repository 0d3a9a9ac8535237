"""The page behind proxies, without scripts, on paper, and forgotten, in a real browser (see `page_server.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.page_browser import (
    ask,
    ask_and_wait,
    needs_browser,
    open_page,
    page_of,
    running_server,
    server_address,
)
from tests.support.rewriting_proxy import proxy_before

pytestmark = needs_browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with server_address() as address:
        yield address


@pytest.fixture
def page(profile: BrowserContext, address: str) -> Iterator[Page]:
    with page_of(profile, address) as page:
        yield page


def test_a_proxy_that_replaces_the_host_is_told_apart_from_a_blank_page(
    browser: Browser, address: str
) -> None:
    with proxy_before(address) as proxied:
        page = open_page(browser, proxied.address)
        expect(page.locator("body")).to_contain_text("--allowed-host localhost")
        page.context.close()


@pytest.mark.parametrize("prefix", ["", "/learn"])
def test_behind_a_proxy_whose_name_is_allowed_questions_are_answered(browser: Browser, prefix: str) -> None:
    with (
        server_address("--allowed-host=localhost") as address,
        proxy_before(address, prefix=prefix) as proxied,
    ):
        page = open_page(browser, f"{proxied.address}?{urlsplit(address).query}")
        expect(ask_and_wait(page, "This is a report").locator(".outcome")).to_contain_text("written")
        with page.expect_download():
            page.get_by_role("link", name="report.csv").click()
        page.reload()
        expect(page.locator(".turn")).to_have_count(1)
        page.context.close()


def test_a_browser_without_scripts_is_told(browser: Browser, address: str) -> None:
    page = open_page(browser, address, java_script_enabled=False)
    assert "needs JavaScript" in page.content()
    page.context.close()


def test_whoever_is_forgotten_leaves_nothing_in_the_browser(page: Page, address: str) -> None:
    ask_and_wait(page, "What is six times seven?")
    page.get_by_label("Your question").press_sequentially("A secret")
    page.get_by_role("button", name="Conversations").click()
    page.get_by_role("button", name="Forget me on this computer").click()
    page.get_by_role("dialog", name="Confirmation").get_by_role("button", name="Forget me").click()
    expect(page.locator(".welcome")).to_be_visible()
    expect(page.get_by_label("Your question")).to_have_value("")
    assert "secret" not in page.evaluate("JSON.stringify(localStorage)")
    page.get_by_role("button", name="Conversations").click()
    expect(page.get_by_role("dialog")).to_contain_text("There are no earlier conversations.")


def test_on_paper_there_is_the_conversation_only(page: Page) -> None:
    ask_and_wait(page, "What is six times seven?")
    page.emulate_media(media="print")
    expect(page.locator(".outcome")).to_be_visible()
    for selector in ("header", "footer", ".q-btn >> nth=0"):
        expect(page.locator(selector)).to_be_hidden()
    page.emulate_media(media="screen")


def test_a_teacher_sees_who_runs_and_who_waits_and_stops_one(page: Page, browser: Browser) -> None:
    with running_server("--token", "--concurrency=1") as (server, address):
        assert server.stderr is not None
        class_address = re.findall(r"http\S+", server.stderr.readline())[0]
        ann, bob = open_page(browser, address), open_page(browser, address)
        ask(ann, "Something endless")
        expect(ann.locator(".stages .now")).to_have_text("Running the program")
        ask(bob, "What is six times seven?")
        expect(bob.locator(".stages .now")).to_have_text("Waiting: 1 program ahead")
        page.goto(class_address)
        rows = page.locator("tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("Running the program")
        expect(rows.last).to_contain_text("Waiting: 1 program ahead")
        assert Axe().run(page).response["violations"] == []
        page.get_by_role("button", name="Stop learner 1").click()
        expect(ann.locator(".error-message")).to_contain_text("Stopped.")
        expect(bob.locator(".outcome")).to_contain_text("42")
        expect(rows).to_have_count(0)
        ann.goto(urljoin(ann.url, "class"))
        expect(ann.locator("body")).to_contain_text("Open the address of the class")
        ann.context.close()
        bob.context.close()


def test_a_file_keeps_its_name_in_any_script(page: Page, address: str) -> None:
    with page.expect_download() as download:
        ask_and_wait(page, "Write in Arabic").get_by_role("link", name="نتيجة").click()
    assert download.value.suggested_filename == "نتيجة 😀.txt"
    assert httpx.get(address).status_code == 200
