"""The page in a real browser, with a model that knows a few programs (see `page_server.py`)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image, ImageStat
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from code_chains.page.guard import opening

from .conftest import ROOT

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
LONGEST = 20_000
expect.set_options(timeout=LONGEST)
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and the address that it prints."""
    command = [sys.executable, "-m", "tests.page_server", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            yield server, re.findall(r"http\S+", server.stderr.readline())[0]
        finally:
            server.terminate()
            server.communicate(timeout=30)


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """The address of a server."""
    with serving(*arguments) as (_, address):
        yield address


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def opened(browser: Browser, address: str, **options: Any) -> Page:
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(LONGEST)
    page.goto(address)
    return page


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    page = opened(browser, address)
    yield page
    page.context.close()


def ask(page: Page, question: str) -> Locator:
    """Ask and give the turn, without waiting for its end."""
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")
    return page.locator(".turn").last


def answered(page: Page, question: str) -> Locator:
    """Ask and wait for the verdict."""
    before = page.locator(".verdict").count()
    turn = ask(page, question)
    expect(page.locator(".verdict")).to_have_count(before + 1)
    return turn


# -- asking ------------------------------------------------------------------------------------------------------------


def test_a_question_shows_its_program_its_output_its_answer_and_its_verdict(page: Page) -> None:
    turn = answered(page, "What is six times seven?")
    expect(turn.locator(".code")).to_contain_text("x = 6 * 7")
    expect(turn.locator(".outcome")).to_contain_text("Product: 42")
    expect(turn.locator(".answer strong")).to_have_text("42")
    expect(turn.locator(".verdict")).to_contain_text("Not verified")


def test_examples_that_the_model_was_shown_are_named(page: Page) -> None:
    turn = answered(page, "What is six times seven?")
    turn.get_by_text("Examples that the model was shown (1)").click()
    expect(turn.get_by_text("sums.py: Adds numbers")).to_be_visible()


def test_stages_are_shown_while_they_last(page: Page) -> None:
    turn = ask(page, "Something slow")
    expect(turn.locator(".stages .now")).to_have_text("Running it in the sandbox")
    expect(turn.locator(".stages .done").first).to_have_text("Looking for examples")
    expect(turn.locator(".code")).to_contain_text("time.sleep")
    expect(turn.locator(".verdict")).to_be_visible(timeout=LONGEST)
    expect(turn.locator(".stages")).to_have_count(0)


def test_the_next_question_builds_on_the_one_before(page: Page) -> None:
    answered(page, "What is six times seven?")
    expect(answered(page, "and one more").locator(".outcome")).to_contain_text("43")


def test_an_empty_page_invites_with_examples(page: Page) -> None:
    page.get_by_role("button", name="1. First steps").click()
    expect(page.locator(".question")).to_contain_text("the sum of the numbers")
    expect(page.locator(".welcome")).to_be_hidden()


def test_a_failing_program_shows_its_line_and_its_values(page: Page) -> None:
    turn = answered(page, "This fails")
    expect(turn.locator(".failure")).to_contain_text("Line 2")
    expect(turn.locator(".failure")).to_contain_text("n = 0")
    expect(turn.locator(".line.wrong")).to_contain_text("1 / n")


def test_an_error_of_the_model_is_said_in_words(page: Page) -> None:
    turn = ask(page, "Something without weights")
    expect(turn.get_by_role("alert")).to_contain_text("The weights of 'local' cannot be fetched")
    expect(page.get_by_label("Your question")).to_have_value("Something without weights")
    expect(answered(page, "six times seven").locator(".outcome")).to_contain_text("42")


def test_a_program_waits_for_a_yes_that_the_keyboard_can_give(browser: Browser) -> None:
    with served("--approve") as address:
        page = opened(browser, address)
        turn = ask(page, "What is six times seven?")
        expect(turn.locator(".code")).to_contain_text("x = 6 * 7")
        expect(page.locator("[role=status]")).to_contain_text("waits for your yes")
        turn.get_by_role("button", name="Refuse").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(turn.locator(".outcome")).to_contain_text("Product: 42")
        turn = ask(page, "and one more")
        turn.get_by_role("button", name="Refuse").click()
        expect(turn.locator(".verdict")).to_contain_text("No answer")
        expect(turn.get_by_role("group", name="Approval")).to_be_hidden()
        page.context.close()


# -- a program of one's own, and going back ----------------------------------------------------------------------------


def test_a_changed_program_is_a_turn_that_the_next_question_builds_on(page: Page) -> None:
    answered(page, "What is six times seven?").get_by_role("button", name="Edit").click()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.type("x = 100; print('Changed:', x)")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".turn").last.locator(".outcome")).to_contain_text("Changed: 100")
    expect(answered(page, "and one more").locator(".outcome")).to_contain_text("101")


def test_undo_takes_back_the_last_turn(page: Page) -> None:
    answered(page, "six times seven")
    answered(page, "and one more")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".turn")).to_have_count(1)
    expect(page.get_by_label("Your question")).to_have_value("and one more")


def test_stopping_leaves_the_conversation_as_it_was(page: Page) -> None:
    answered(page, "six times seven")
    turn = ask(page, "Something endless")
    expect(turn.locator(".stages .now")).to_have_text("Running it in the sandbox")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".turn")).to_have_count(1)
    expect(page.get_by_label("Your question")).to_have_value("Something endless")
    expect(answered(page, "and one more").locator(".outcome")).to_contain_text("43")


def test_starting_anew_asks_first_and_forgets(page: Page) -> None:
    answered(page, "six times seven")
    page.get_by_role("button", name="Start anew").click()
    page.get_by_role("dialog").get_by_role("button", name="Start anew").click()
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator(".welcome")).to_be_visible()


def test_the_notebook_holds_the_programs(page: Page) -> None:
    answered(page, "six times seven")
    with page.expect_download() as download:
        page.get_by_role("button", name="Notebook").click()
    cells = json.loads(Path(download.value.path()).read_text())["cells"]
    assert "x = 6 * 7" in "".join(map(str, cells))


# -- files and figures -------------------------------------------------------------------------------------------------


def test_an_uploaded_file_is_named_and_read(page: Page, sales: Path) -> None:
    page.locator("input[type=file]").set_input_files(sales)
    expect(page.get_by_role("list", name="Files")).to_have_text("sales.csv")
    expect(answered(page, "What is the total?").locator(".outcome")).to_contain_text("Total: 42")


def test_a_plot_is_visible(page: Page) -> None:
    image = answered(page, "Make a plot").locator(".outcome img")
    expect(image).to_be_visible()
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_is_as_dark_as_the_page(browser: Browser, address: str, scheme: Any) -> None:
    page = opened(browser, address, color_scheme=scheme)
    frame = answered(page, "Make a table").locator(".outcome iframe")
    frame.content_frame.locator("td").first.wait_for()
    brightness = ImageStat.Stat(Image.open(BytesIO(frame.screenshot())).convert("L")).mean[0]
    assert (brightness < 128) == (scheme == "dark")
    page.context.close()


def test_a_file_that_a_program_wrote_can_be_taken(page: Page) -> None:
    turn = answered(page, "Write a report")
    with page.expect_download() as download:
        turn.get_by_role("link", name="report.csv").click()
    assert Path(download.value.path()).read_text() == "a,b\n"


def test_what_a_model_or_program_makes_never_runs_as_script(page: Page) -> None:
    turn = answered(page, "Do something evil")
    expect(turn.frame_locator("iframe").locator("b")).to_have_text("drawn")
    expect(turn.locator(".answer")).to_contain_text("shown")
    page.wait_for_timeout(200)
    assert page.title() == "code_chains"


def test_what_is_told_to_a_screen_reader_never_runs(page: Page) -> None:
    answered(page, "Do something sly")
    expect(page.locator("[role=status]")).to_contain_text("<img")
    page.wait_for_timeout(200)
    assert page.title() == "code_chains"


def test_a_view_is_shut_even_when_it_is_opened_by_its_address(page: Page) -> None:
    source = answered(page, "Do something evil").locator("iframe").get_attribute("src")
    page.goto(str(page.url).rstrip("/") + str(source))
    expect(page.locator("b")).to_have_text("drawn")
    assert page.title() != "taken"


# -- who sees what -----------------------------------------------------------------------------------------------------


def test_a_reload_keeps_the_conversation(page: Page) -> None:
    answered(page, "six times seven")
    page.reload()
    expect(page.locator(".outcome")).to_contain_text("Product: 42")
    expect(answered(page, "and one more").locator(".outcome")).to_contain_text("43")


def test_another_browser_sees_nothing_of_it(page: Page, browser: Browser, address: str) -> None:
    source = answered(page, "Make a plot").locator(".outcome img").get_attribute("src")
    other = opened(browser, address)
    expect(other.locator(".welcome")).to_be_visible()
    assert other.request.get(address.rstrip("/") + str(source)).status == 404
    other.context.close()


def test_nothing_is_asked_of_another_machine(browser: Browser, address: str) -> None:
    page = browser.new_context().new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    answered(page, "six times seven").get_by_role("button", name="Edit").click()
    expect(page.locator(".cm-content")).to_be_visible(timeout=LONGEST)
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    page.context.close()


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "http://evil.example"}])
def test_other_sites_are_refused(address: str, headers: dict[str, str]) -> None:
    assert httpx.get(address, headers=headers).status_code == 403


def test_a_websocket_of_another_site_is_refused(address: str) -> None:
    headers = {
        "origin": "http://evil.example",
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    socket = f"{address}_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    assert httpx.get(socket, headers=headers).status_code == 403
    assert httpx.get(socket, headers={**headers, "origin": address.rstrip("/")}).status_code == 101


def test_with_a_token_only_its_address_opens_the_page(browser: Browser) -> None:
    with served("--token") as address:
        assert httpx.get(address.partition("?")[0]).status_code == 401
        with opening(address) as shown:
            page = opened(browser, shown)
            page.wait_for_url(address.partition("?")[0])
        expect(answered(page, "six times seven").locator(".outcome")).to_contain_text("42")
        assert "token" not in page.url
        page.context.close()


# -- for everybody -----------------------------------------------------------------------------------------------------


def test_the_keyboard_is_enough(page: Page) -> None:
    page.get_by_label("Your question").focus()
    page.keyboard.type("six times")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("seven, no: six times seven")
    page.keyboard.press("Enter")
    expect(page.locator(".verdict")).to_be_visible(timeout=LONGEST)
    expect(page.locator(".question")).to_contain_text("six times\nseven", use_inner_text=True)
    page.get_by_role("button", name="Edit").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".cm-content")).to_be_focused(timeout=LONGEST)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".turn")).to_have_count(2)


def test_every_control_has_a_name_and_the_focus_is_seen(page: Page) -> None:
    answered(page, "six times seven")
    names = []
    for _ in range(12):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if focused.count() and focused.evaluate("one => one.tagName") == "BUTTON":
            names.append(focused.get_attribute("aria-label") or focused.inner_text())
            assert focused.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    assert {"Undo", "Notebook", "Start anew", "Theme: as the system"} <= set(names)
    assert all(names)


def test_what_happens_is_announced(page: Page) -> None:
    answered(page, "six times seven")
    expect(page.locator("[role=status][aria-live=polite]")).to_contain_text("Six times seven is")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1400, "light")])
def test_nothing_overflows(browser: Browser, address: str, width: int, scheme: Any, sales: Path) -> None:
    page = opened(browser, address, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.locator("input[type=file]").set_input_files(sales)
    answered(page, "Something wide")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()


def test_the_theme_follows_the_system_until_it_is_switched(browser: Browser, address: str) -> None:
    page = opened(browser, address, color_scheme="dark")
    dark = page.locator("body.body--dark")
    expect(dark).to_have_count(1)
    page.get_by_role("button", name="Theme: as the system").click()
    expect(dark).to_have_count(0)
    page.reload()
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
    expect(dark).to_have_count(0)
    page.context.close()


def test_a_server_that_is_to_end_lets_the_answer_come(browser: Browser) -> None:
    with serving() as (server, address):
        page = opened(browser, address)
        turn = ask(page, "Be slow")
        expect(turn).to_contain_text("Running it", timeout=LONGEST)
        server.terminate()
        expect(turn.locator(".answer")).to_contain_text("It took its time.")
        page.context.close()
        server.wait(20)
