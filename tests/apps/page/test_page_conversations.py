"""Stored conversations, models, files and copies of the page, in a real browser (see `page_server.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
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

pytestmark = needs_browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with server_address("--models") as address:
        yield address


@pytest.fixture
def page(profile: BrowserContext, address: str) -> Iterator[Page]:
    with page_of(profile, address) as page:
        yield page


# -- conversations -----------------------------------------------------------------------------------------------------


def test_a_conversation_continues_after_the_server_was_restarted(
    browser: Browser, tmp_path: Path, sales: Path
) -> None:
    with running_server(f"--store={tmp_path}") as (_, address):
        page = open_page(browser, address)
        page.locator("input[type=file]").set_input_files(sales)
        expect(page.locator(".files")).to_contain_text("sales.csv")
        ask_and_wait(page, "What is the total?")
        ask_and_wait(page, "What is six times seven?")
    port = address.rstrip("/").rpartition(":")[2]
    with running_server(f"--store={tmp_path}", f"--port={port}"):
        page.reload()
        expect(page.locator(".turn")).to_have_count(2)
        expect(page.locator(".files")).to_contain_text("sales.csv")
        expect(ask_and_wait(page, "and one more").locator(".outcome")).to_contain_text("43")
        expect(ask_and_wait(page, "What is the total?").locator(".outcome")).to_contain_text("Total: 42")
    page.context.close()


def test_an_earlier_conversation_can_be_opened_and_deleted(page: Page) -> None:
    ask_and_wait(page, "What is six times seven?")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".welcome")).to_be_visible()
    ask_and_wait(page, "Make a plot")
    page.get_by_role("button", name="Conversations").click()
    dialog = page.get_by_role("dialog", name="Conversations")
    dialog.get_by_role("button", name="What is six times seven?").first.click()
    expect(page.locator(".question")).to_have_text("What is six times seven?")
    expect(ask_and_wait(page, "and one more").locator(".outcome")).to_contain_text("43")
    page.get_by_role("button", name="Conversations").click()
    page.get_by_role("button", name="Delete Make a plot").click()
    page.get_by_role("dialog", name="Confirmation").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Conversations").click()
    expect(dialog.locator("li")).to_have_count(1)


def test_another_browser_finds_no_conversation(page: Page, browser: Browser, address: str) -> None:
    ask_and_wait(page, "What is six times seven?")
    other = open_page(browser, address)
    other.get_by_role("button", name="Conversations").click()
    expect(other.get_by_role("dialog")).to_contain_text("There are no earlier conversations.")
    other.context.close()


def test_the_list_leaves_the_page_where_it_was(page: Page) -> None:
    for question in ("What is six times seven?", "Make a plot", "and one more"):
        turn = ask_and_wait(page, question)
    expect(turn.locator(".verdict")).to_be_in_viewport()
    before = page.evaluate("scrollY")
    page.get_by_role("button", name="Conversations").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("scrollY") == before


def test_a_page_that_is_left_with_a_dialog_open_leaves_no_trace_in_the_log(browser: Browser) -> None:
    with running_server("--reconnect=0.1") as (server, address):
        page = open_page(browser, address)
        ask_and_wait(page, "What is six times seven?")
        page.get_by_role("button", name="Conversations").click()
        page.get_by_role("button", name="Delete What is six").click()
        expect(page.get_by_role("dialog", name="Confirmation")).to_be_visible()
        page.close()
        other = page.context.new_page()
        other.goto(address)
        ask_and_wait(other, "slow")  # Meanwhile the server deletes the page that was left.
        page.context.close()
        server.terminate()
        assert server.communicate(timeout=30)[1] == ""


# -- models ------------------------------------------------------------------------------------------------------------


def test_the_selected_model_continues_the_conversation(page: Page) -> None:
    ask_and_wait(page, "What is six times seven?")
    page.get_by_label("Model").select_option("second")
    expect(ask_and_wait(page, "and one more").locator(".answer")).to_have_text(
        "The second model says: That makes 43."
    )
    page.reload()
    expect(page.get_by_label("Model")).to_have_value("second")


def test_a_single_model_is_no_choice(browser: Browser) -> None:
    with server_address() as address:
        page = open_page(browser, address)
        expect(page.get_by_label("Your question")).to_be_visible()
        expect(page.get_by_label("Model")).to_have_count(0)
        page.context.close()


def test_the_owner_reads_what_the_provider_said_without_secrets(page: Page) -> None:
    alert = ask(page, "Something refused by the provider").get_by_role("alert")
    expect(alert).to_contain_text("401 from http://10.0.0.1: key [secret]")


# -- files -------------------------------------------------------------------------------------------------------------


DROP = """names => {
    const data = new DataTransfer();
    for (const name of names) data.items.add(new File(["amount\\n42\\n"], name));
    const options = { dataTransfer: data, bubbles: true, cancelable: true };
    for (const kind of ["dragover", "drop"])
        document.querySelector(".content").dispatchEvent(new DragEvent(kind, options));
}"""


def test_dropped_files_are_uploaded(page: Page) -> None:
    expect(page.get_by_label("Your question")).to_be_visible()
    page.evaluate(DROP, ["sales.csv", "weird name é (1).csv"])
    expect(page.locator(".files li")).to_have_count(2)
    listed = ask_and_wait(page, "What is listed?").locator(".outcome")
    expect(listed).to_contain_text("['sales.csv', 'weird name é (1).csv']")


def test_a_file_can_be_removed_before_it_was_used(page: Page, sales: Path) -> None:
    page.locator("input[type=file]").set_input_files(sales)
    page.get_by_role("button", name="Remove sales.csv").click()
    expect(page.locator(".files")).to_be_hidden()
    expect(ask_and_wait(page, "What is listed?").locator(".outcome")).to_contain_text("[]")


def test_a_name_that_no_file_can_have_is_told(page: Page) -> None:
    expect(page.get_by_label("Your question")).to_be_visible()
    page.evaluate(DROP, ["two\u202elines.csv"])
    expect(page.get_by_role("alert")).to_contain_text("Programs read it as “two-lines.csv”.")


def test_a_hostile_file_name_is_text(page: Page) -> None:
    expect(page.get_by_label("Your question")).to_be_visible()
    page.evaluate(DROP, ["<img src=x onerror=\"document.title='taken'\">.csv"])
    expect(page.locator(".files")).to_contain_text("<img src=x")
    assert page.title() == "code_chains"


# -- copies ------------------------------------------------------------------------------------------------------------


def test_program_and_answer_can_be_copied(page: Page) -> None:
    turn = ask_and_wait(page, "What is six times seven?")
    for name, copied in (
        ("program", "x = 6 * 7\nprint('Product:', x)\n"),
        ("answer", "Six times seven is 42."),
    ):
        turn.get_by_role("button", name=f"Copy the {name}").click()
        expect(page.get_by_text(f"The {name} is copied.")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == copied


def test_a_table_can_be_downloaded_as_csv(page: Page) -> None:
    with page.expect_download() as download:
        ask_and_wait(page, "Make a matrix").get_by_role("link", name="Download as CSV").click()
    assert Path(download.value.path()).read_text("utf-8-sig") == 'name,n\n"ä, b",1\n\'=1+1,2\n'
    url = download.value.url
    assert httpx.get(url).status_code == 404  # Without the cookie of the client.


# -- answers -----------------------------------------------------------------------------------------------------------


def test_output_that_an_answer_quotes_is_not_markdown(page: Page) -> None:
    answer = ask_and_wait(page, "Show the markup").locator(".answer")
    expect(answer.locator("pre")).to_contain_text("**not bold**\n# no heading\n| a | b |")
    expect(answer.locator("strong, h1, table")).to_have_count(0)


def test_question_and_answer_say_their_language(page: Page) -> None:
    turn = ask_and_wait(page, "Was ist die große Summe der Zahlen von eins bis neun?")
    expect(turn.locator(".answer")).to_have_attribute("lang", "de")
    expect(turn.locator(".question")).to_have_attribute("lang", "de")
