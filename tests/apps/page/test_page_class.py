"""A class at the page in a real browser: thirty pages at once, and connections that are cut (see `page_server.py`)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.support.page_browser import ask, ask_and_wait, needs_browser, open_page, server_address
from tests.support.rewriting_proxy import proxy_before

pytestmark = needs_browser
PEOPLE, LOOPERS, ROUNDS = 30, 4, 2


def test_thirty_people_get_their_own_answers_beside_endless_programs(browser: Browser) -> None:
    with server_address() as address:
        pages = [open_page(browser, address) for _ in range(PEOPLE)]
        looping, others = pages[:LOOPERS], pages[LOOPERS:]
        for page in looping:
            ask(page, "Something endless")
        for asked in range(ROUNDS):
            for number, page in enumerate(others):
                ask(page, f"What is {number}000 + {asked}?")
            for page in others:
                expect(page.locator(".verdict")).to_have_count(asked + 1)
        for number, page in enumerate(others):
            answers = page.locator(".answer").all_inner_texts()
            assert [answer.strip() for answer in answers] == [
                f"It is {number * 1000 + asked}." for asked in range(ROUNDS)
            ]
        for page in pages:
            page.context.close()


@pytest.mark.parametrize("reconnect", [0.5, 60.0], ids=["beyond what is waited for", "for a while"])
def test_a_connection_that_is_cut_loses_neither_a_draft_nor_an_answer(
    browser: Browser, reconnect: float
) -> None:
    with (
        server_address("--allowed-host=localhost", f"--reconnect={reconnect}") as address,
        proxy_before(address) as proxy,
    ):
        page = open_page(
            browser, address.replace("127.0.0.1", "localhost").replace(address.split("?")[0], proxy.address)
        )
        ask_and_wait(page, "What is 1 + 2?")
        ask(page, "Something slow")
        proxy.cut()
        page.get_by_label("Your question").press_sequentially("And then")
        page.wait_for_timeout(4_000)
        proxy.mend()
        expect(page.locator(".verdict")).to_have_count(2)
        expect(page.get_by_label("Your question")).to_have_value("And then")
        page.context.close()
