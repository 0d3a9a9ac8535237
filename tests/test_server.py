"""What the server of the page answers, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from code_chains import create_code_chain
from code_chains.page.guard import Guard
from code_chains.page.server import create_app
from code_chains.page.visits import Entry, Visits
from code_chains.testing import ScriptedExecutor, ScriptedModel

ANN, CLEO = "ann-is-a-visitor-here", "cleo-is-one-too-many-"


@pytest.fixture(scope="module")
def visits() -> Iterator[Visits]:
    with create_code_chain(ScriptedModel(lambda _: "print(1)"), executor=ScriptedExecutor(lambda _: "1")) as chain:
        yield Visits(chain, most=1)


@pytest.fixture(scope="module")
def client(visits: Visits) -> Iterator[TestClient]:
    """One for all tests, as NiceGUI has one application in a process."""
    with TestClient(Guard(create_app(visits), port=80), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def browser(client: TestClient, visits: Visits) -> TestClient:
    """That of Ann, who has asked something."""
    client.cookies["code_chains_visitor_80"] = ANN
    visits.of(ANN).entries = [Entry("A question", answer="</script>" + ">" * 300, running=False)]
    visits.of(ANN).files = {"a.csv": Path("a.csv")}
    return client


def test_a_visitor_too_many_is_told_so_and_others_keep_their_pages(browser: TestClient) -> None:
    assert browser.get("/").status_code == 200
    browser.cookies["code_chains_visitor_80"] = CLEO
    refused = browser.get("/")
    assert (refused.status_code, "too many visitors" in refused.text) == (503, True)


def test_who_comes_back_too_late_reads_that_the_conversation_has_ended(browser: TestClient, visits: Visits) -> None:
    assert "has ended" not in browser.get("/").text
    visits.of(ANN).seen = float("-inf")
    assert browser.portal is not None
    browser.portal.call(visits.forget_idle)
    assert "has ended" in browser.get("/").text
