"""What the tests of the page in a real browser share: servers (see `page_server.py`), pages and questions."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from tests.conftest import ROOT

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
TIMEOUT_MS = 60_000
"""Far longer than anything takes by itself: the machine may be busy with other tests."""
SLOW_CONNECTION = """
    const { set } = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage");
    const later = (handler) => (event) => setTimeout(() => handler(event), 700);
    Object.defineProperty(WebSocket.prototype, "onmessage", { set(handler) { set.call(this, later(handler)); } });
"""
"""A script by which a page receives what its server sends 0.7 seconds later."""
expect.set_options(timeout=TIMEOUT_MS)
needs_browser = [
    pytest.mark.host,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
    pytest.mark.timeout(300),
]


@contextmanager
def running_server(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server as a process, and yield it with the address that it prints."""
    command = [sys.executable, "-m", "tests.support.page_server", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            line = server.stderr.readline()
            if not (addresses := re.findall(r"http\S+", line)):
                pytest.fail(f"The server did not start: {line}{server.stderr.read()}")
            yield server, addresses[0]
        finally:
            server.terminate()
            try:
                server.communicate(timeout=30)
            except subprocess.TimeoutExpired:  # It must not keep the other tests waiting.
                server.kill()


@contextmanager
def server_address(*arguments: str) -> Iterator[str]:
    """Run a server and yield its address."""
    with running_server(*arguments) as (_, address):
        yield address


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Run a browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def open_page(browser: Browser, address: str, **options: Any) -> Page:
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(TIMEOUT_MS)
    page.goto(address)
    return page


@contextmanager
def page_of(
    context: BrowserContext, address: str, width: int = 1280, height: int = 800, scheme: Any = None
) -> Iterator[Page]:
    """Open a page in the context that tests share, and forget its cookies afterwards."""
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme)
    page.goto(address)
    yield page
    for opened_by_test in context.pages[1:]:
        opened_by_test.close()
    context.clear_cookies()


def ask(page: Page, question: str) -> Locator:
    """Ask and return the turn, without waiting for its end."""
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")
    turn = page.locator(".turn").last
    expect(turn.locator(".question")).to_have_text(question)
    return turn


def ask_and_wait(page: Page, question: str) -> Locator:
    """Ask and wait for the verdict."""
    before = page.locator(".verdict").count()
    turn = ask(page, question)
    try:
        expect(page.locator(".verdict")).to_have_count(before + 1)
    except AssertionError as error:
        field = page.get_by_label("Your question").input_value()
        error.add_note(f"Field: {field!r}, page: {page.locator('body').inner_text()[-1000:]!r}")
        raise
    return turn
