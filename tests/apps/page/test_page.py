"""The page in a real browser, with a scripted model (see `page_server.py`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest
from PIL import Image, ImageStat
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from code_chains.apps.page.guard import redirect_file
from tests.support.page_browser import (
    TIMEOUT_MS,
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


# -- asking ------------------------------------------------------------------------------------------------------------


def test_a_question_shows_its_program_its_output_its_answer_and_its_verdict(page: Page) -> None:
    turn = ask_and_wait(page, "What is six times seven?")
    expect(turn.locator(".code")).to_contain_text("x = 6 * 7")
    expect(turn.locator(".outcome")).to_contain_text("Product: 42")
    expect(turn.locator(".answer strong")).to_have_text("42")
    expect(turn.locator(".verdict")).to_contain_text("Not verified")


def test_examples_given_to_the_model_are_named(page: Page) -> None:
    turn = ask_and_wait(page, "What is six times seven?")
    turn.get_by_text("Examples given to the model (1)").click()
    expect(turn.get_by_text("sums.py: Adds numbers")).to_be_visible()


def test_the_current_stage_is_displayed(page: Page) -> None:
    turn = ask(page, "Something slow")
    expect(turn.locator(".stages .now")).to_have_text("Running the program")
    expect(turn.locator(".stages .done").first).to_have_text("Searching for examples")
    expect(turn.locator(".code")).to_contain_text("time.sleep")
    expect(turn.locator(".verdict")).to_be_visible(timeout=TIMEOUT_MS)
    expect(turn.locator(".stages")).to_have_count(0)


def test_the_next_question_builds_on_the_one_before(page: Page) -> None:
    ask_and_wait(page, "What is six times seven?")
    expect(ask_and_wait(page, "and one more").locator(".outcome")).to_contain_text("43")


def test_an_empty_page_suggests_questions(page: Page) -> None:
    page.get_by_role("button", name="1. First steps").click()
    expect(page.locator(".question")).to_contain_text("the sum of the numbers")
    expect(page.locator(".welcome")).to_be_hidden()


def test_a_failing_program_shows_its_line_and_its_values(page: Page) -> None:
    turn = ask_and_wait(page, "This fails")
    expect(turn.locator(".failure")).to_contain_text("Line 2")
    expect(turn.locator(".failure")).to_contain_text("n = 0")
    expect(turn.locator(".line.wrong")).to_contain_text("1 / n")


def test_an_error_of_the_model_is_displayed(page: Page) -> None:
    turn = ask(page, "Something without weights")
    expect(turn.get_by_role("alert")).to_contain_text("cannot be fetched: there is no network")
    expect(ask_and_wait(page, "six times seven").locator(".outcome")).to_contain_text("42")


def test_a_question_that_was_not_answered_is_in_the_field_again(page: Page) -> None:
    for _ in range(5):  # It fails sooner than the browser reports that the field is empty.
        ask(page, "Something without weights")
        expect(page.get_by_label("Your question")).to_have_value("Something without weights")


def test_what_is_typed_meanwhile_is_kept(page: Page) -> None:
    ask(page, "Something endless")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.get_by_label("Your question").fill("and one more")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()
    expect(page.get_by_label("Your question")).to_have_value("and one more")


def test_programs_connect_once_the_visitor_consents(browser: Browser) -> None:
    with server_address("--consent") as address:
        page = open_page(browser, address)
        turn = ask(page, "What is six times seven?")
        bar = turn.get_by_role("group", name="Approval")
        expect(bar).to_contain_text("It may connect to api.example.org:443.")
        expect(bar).to_contain_text("later programs of this conversation may connect as well")
        turn.get_by_role("button", name="Run").click()
        expect(turn.locator(".outcome")).to_contain_text("Product: 42")
        expect(turn.locator(".verdict")).to_be_visible()
        turn = ask(page, "What is six times seven?")
        expect(turn.locator(".outcome")).to_contain_text("Product: 42")
        page.context.close()


def test_a_program_can_be_approved_with_the_keyboard(browser: Browser) -> None:
    with server_address("--approve") as address:
        page = open_page(browser, address)
        turn = ask(page, "What is six times seven?")
        expect(turn.locator(".code")).to_contain_text("x = 6 * 7")
        expect(page.locator("[role=status]")).to_contain_text("waits for your approval")
        turn.get_by_role("button", name="Refuse").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(turn.locator(".outcome")).to_contain_text("Product: 42")
        expect(turn.locator(".verdict")).to_be_visible()  # Only then it takes the next question.
        turn = ask(page, "and one more")
        turn.get_by_role("button", name="Refuse").click()
        expect(turn.locator(".verdict")).to_contain_text("No answer")
        expect(turn.get_by_role("group", name="Approval")).to_be_hidden()
        page.context.close()


def test_output_is_shown_as_a_terminal_would_show_it(page: Page) -> None:
    printed = ask_and_wait(page, "Show its progress").locator(".outcome .printed")
    expect(printed).to_contain_text(re.compile("^2 of 2\nred\n(a )+"))
    assert printed.evaluate("pre => pre.scrollWidth > pre.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_of_many_lines_the_first_and_the_last_are_shown(page: Page) -> None:
    printed = ask_and_wait(page, "Print many lines").locator(".outcome .printed")
    expect(printed).to_contain_text(re.compile(r"^0\n1\n2\n(.|\n)*shortened(.|\n)*99998\n99999$"))


# -- user programs and undo ------------------------------------------------------------------------------------------


def test_the_next_question_builds_on_an_edited_program(page: Page) -> None:
    ask_and_wait(page, "What is six times seven?").get_by_role("button", name="Edit").click()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.type("x = 100; print('Changed:', x)")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".turn").last.locator(".outcome")).to_contain_text("Changed: 100")
    expect(ask_and_wait(page, "and one more").locator(".outcome")).to_contain_text("101")


def test_undo_removes_the_last_turn(page: Page) -> None:
    ask_and_wait(page, "six times seven")
    ask_and_wait(page, "and one more")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".turn")).to_have_count(1)
    expect(page.get_by_label("Your question")).to_have_value("and one more")


def test_stopping_leaves_the_conversation_unchanged(page: Page) -> None:
    ask_and_wait(page, "six times seven")
    turn = ask(page, "Something endless")
    expect(turn.locator(".stages .now")).to_have_text("Running the program")
    page.get_by_role("button", name="Stop").click()
    expect(turn.locator(".error-message")).to_have_text("Stopped. The conversation is unchanged.")
    expect(turn.locator(".code")).to_contain_text("while True")
    expect(page.get_by_label("Your question")).to_have_value("Something endless")
    expect(ask_and_wait(page, "and one more").locator(".outcome")).to_contain_text("43")


def test_a_new_conversation_is_empty(page: Page) -> None:
    ask_and_wait(page, "six times seven")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator(".welcome")).to_be_visible()


def test_the_notebook_contains_the_programs(page: Page) -> None:
    ask_and_wait(page, "six times seven")
    with page.expect_download() as download:
        page.get_by_role("button", name="Notebook").click()
    cells = json.loads(Path(download.value.path()).read_text())["cells"]
    assert "x = 6 * 7" in "".join(map(str, cells))


# -- files and figures -------------------------------------------------------------------------------------------------


def test_a_row_that_is_left_out_is_named_below_the_answer(page: Page, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("r,n\nN,1\nTotal,1\n")
    page.locator("input[type=file]").set_input_files(tmp_path / "a.csv")
    expect(page.get_by_role("list", name="Files")).to_contain_text("a.csv")
    turn = ask_and_wait(page, "What is six times seven?")
    expect(turn.get_by_text("Note: a.csv: 1 line left out")).to_be_visible()


def test_an_uploaded_file_is_named_and_read(page: Page, sales: Path) -> None:
    page.locator("input[type=file]").set_input_files(sales)
    expect(page.get_by_role("list", name="Files")).to_contain_text("sales.csv")
    expect(ask_and_wait(page, "What is the total?").locator(".outcome")).to_contain_text("Total: 42")


def test_a_plot_is_visible(page: Page) -> None:
    image = ask_and_wait(page, "Make a plot").locator(".outcome img")
    expect(image).to_be_visible()
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_is_as_dark_as_the_page(profile: BrowserContext, address: str, scheme: Any) -> None:
    with page_of(profile, address, scheme=scheme) as page:
        frame = ask_and_wait(page, "Make a table").locator(".outcome iframe")
        frame.content_frame.locator("td").first.wait_for()
        brightness = ImageStat.Stat(Image.open(BytesIO(frame.screenshot())).convert("L")).mean[0]
        assert (brightness < 128) == (scheme == "dark")


def test_a_file_that_a_program_wrote_can_be_downloaded(page: Page) -> None:
    turn = ask_and_wait(page, "Write a report")
    with page.expect_download() as download:
        turn.get_by_role("link", name="report.csv").click()
    assert Path(download.value.path()).read_text() == "a,b\n"


def test_output_of_models_and_programs_never_runs_as_script(page: Page) -> None:
    turn = ask_and_wait(page, "Do something evil")
    expect(turn.frame_locator("iframe").locator("b")).to_have_text("drawn")
    expect(turn.locator(".answer")).to_contain_text("shown")
    page.wait_for_timeout(200)
    assert page.title() == "code_chains"


def test_a_chart_runs_its_scripts_and_reaches_nothing(page: Page, tmp_path: Path) -> None:
    with neighbour("x") as (theirs, requests):
        address = tmp_path / "address.txt"
        address.write_text(theirs)
        page.locator("input[type=file]").set_input_files(address)
        expect(page.get_by_role("list", name="Files")).to_contain_text("address.txt")
        frame = ask_and_wait(page, "Make a hostile chart").frame_locator("iframe")
        expect(frame.locator("#drawn")).to_have_text("yes")
        for attempt in "cookie storage parent top page fetch image script style window socket".split():
            expect(frame.locator(f"#{attempt}")).to_have_text("refused")
        frame.locator("#leave").click()
        page.wait_for_timeout(500)
        assert (page.title(), requests) == ("code_chains", [])


def test_a_chart_that_needs_a_network_is_a_link(page: Page) -> None:
    turn = ask_and_wait(page, "Make a remote chart")
    expect(turn.get_by_role("link", name="chart.html")).to_be_visible()
    expect(turn.locator("iframe")).to_have_count(0)


def test_announcements_never_run_as_script(page: Page) -> None:
    ask_and_wait(page, "Do something sly")
    expect(page.locator("[role=status]")).to_contain_text("<img")
    page.wait_for_timeout(200)
    assert page.title() == "code_chains"


def test_a_view_is_sandboxed_even_if_its_url_is_opened(page: Page) -> None:
    source = ask_and_wait(page, "Do something evil").locator("iframe").get_attribute("src")
    page.goto(urljoin(page.url, str(source)))
    expect(page.locator("b")).to_have_text("drawn")
    assert page.title() != "taken"


# -- isolation --------------------------------------------------------------------------------------------------------


def test_a_reload_keeps_the_conversation(page: Page) -> None:
    ask_and_wait(page, "six times seven")
    page.reload()
    expect(page.locator(".outcome")).to_contain_text("Product: 42")
    expect(ask_and_wait(page, "and one more").locator(".outcome")).to_contain_text("43")


def test_another_browser_sees_nothing_of_it(page: Page, browser: Browser, address: str) -> None:
    source = ask_and_wait(page, "Make a plot").locator(".outcome img").get_attribute("src")
    other = open_page(browser, address)
    expect(other.locator(".welcome")).to_be_visible()
    assert other.request.get(urljoin(address, str(source))).status == 404
    other.context.close()


def test_nothing_is_requested_from_other_origins(browser: Browser, address: str) -> None:
    page = browser.new_context().new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto(address)
    ask_and_wait(page, "six times seven").get_by_role("button", name="Edit").click()
    expect(page.locator(".cm-content")).to_be_visible(timeout=TIMEOUT_MS)
    assert [url for url in requested if not url.startswith((address, "data:", "blob:"))] == []
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


@contextmanager
def neighbour(body: str = "") -> Iterator[tuple[str, list[str]]]:
    """Run another user's server at another port of this host, and yield the cookies that it receives."""
    cookies: list[str] = []

    def answer(request: Request) -> Response:
        cookies.append(request.headers.get("cookie", ""))
        return Response(body, content_type="text/html")

    with HTTPServer(host="127.0.0.1", threaded=True) as server:
        server.expect_request(re.compile(".*")).respond_with_handler(answer)
        yield server.url_for("/"), cookies


def test_with_a_token_only_its_address_grants_access(browser: Browser, sales: Path) -> None:
    with server_address("--token") as address:
        bare = address.partition("?")[0]
        assert httpx.get(bare).status_code == 401
        with redirect_file(address) as url:
            page = open_page(browser, url)
            page.wait_for_url(re.compile(f"{re.escape(bare)}.+/$"))
        expect(ask_and_wait(page, "six times seven").locator(".outcome")).to_contain_text("42")
        page.locator("input[type=file]").set_input_files(sales)
        expect(page.locator(".files")).to_contain_text("sales.csv")
        page.reload()
        expect(page.locator(".turn")).to_have_count(1)
        image = ask_and_wait(page, "Please plot it").locator("img")
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
        with page.expect_download() as download:
            page.get_by_role("button", name="Notebook").click()
        assert Path(download.value.path()).stat().st_size > 0
        assert "token" not in page.url
        page.context.close()


def test_a_server_on_another_port_receives_nothing_that_grants_access(browser: Browser) -> None:
    with server_address("--token") as address, neighbour() as (theirs, cookies):
        page = open_page(browser, address)
        expect(page.get_by_label("Your question")).to_be_visible()
        page.evaluate("address => { open(address) }", theirs)
        page.wait_for_timeout(500)
        page.goto(theirs)
        token = address.partition("token=")[2]
        assert cookies
        assert [cookie for cookie in cookies if "code_chains" in cookie or token in cookie] == []
        page.context.close()


def test_a_page_of_another_port_can_link_to_this_one_and_nothing_else(browser: Browser, address: str) -> None:
    body = f'<img src="{address}"><iframe src="{address}"></iframe><a href="{address}">Open</a>'
    with neighbour(body) as (theirs, _):
        page = browser.new_context().new_page()
        responses: set[tuple[str, int]] = set()
        page.on("response", lambda response: responses.add((response.url, response.status)))
        page.goto(theirs)
        page.wait_for_load_state("networkidle")
        assert responses == {(theirs, 200), (address, 403)}
        page.get_by_text("Open").click()
        expect(page.get_by_label("Your question")).to_be_visible()
        page.context.close()


# -- accessibility -----------------------------------------------------------------------------------------------------


def test_the_page_works_with_the_keyboard_alone(page: Page) -> None:
    page.get_by_label("Your question").focus()
    page.keyboard.type("six times")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("seven, no: six times seven")
    page.keyboard.press("Enter")
    expect(page.locator(".verdict")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.locator(".question")).to_contain_text("six times\nseven", use_inner_text=True)
    page.get_by_role("button", name="Edit").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".cm-content")).to_be_focused(timeout=TIMEOUT_MS)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".turn")).to_have_count(2)


def test_every_control_has_a_name_and_a_visible_focus(page: Page) -> None:
    ask_and_wait(page, "six times seven")
    names = []
    for _ in range(12):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if focused.count() and focused.evaluate("element => element.tagName") == "BUTTON":
            names.append(focused.get_attribute("aria-label") or focused.inner_text())
            assert focused.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
    assert {"Undo", "Notebook", "Conversations", "New conversation", "Theme: system"} <= set(names)
    assert all(names)


def test_answers_are_announced(page: Page) -> None:
    ask_and_wait(page, "six times seven")
    expect(page.locator("[role=status][aria-live=polite]")).to_contain_text("Six times seven is")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1400, "light")])
def test_nothing_overflows(
    profile: BrowserContext, address: str, width: int, scheme: Any, sales: Path
) -> None:
    with page_of(profile, address, width, scheme=scheme) as page:
        page.locator("input[type=file]").set_input_files(sales)
        ask_and_wait(page, "Something wide")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_theme_follows_the_system_until_it_is_switched(browser: Browser, address: str) -> None:
    page = open_page(browser, address, color_scheme="dark")
    dark = page.locator("body.body--dark")
    expect(dark).to_have_count(1)
    page.get_by_role("button", name="Theme: system").click()
    expect(dark).to_have_count(0)
    page.reload()
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
    expect(dark).to_have_count(0)
    page.context.close()


def test_a_terminating_server_finishes_its_answer(browser: Browser) -> None:
    with running_server() as (server, address):
        page = open_page(browser, address)
        turn = ask(page, "Be slow")
        expect(turn).to_contain_text("Running the program", timeout=TIMEOUT_MS)
        server.terminate()
        expect(turn.locator(".answer")).to_contain_text("It took its time.")
        page.context.close()
        server.wait(20)
