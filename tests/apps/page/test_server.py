"""Responses of the page's server, without a browser."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from nicegui import app
from starlette.testclient import TestClient

from code_chains import create_code_chain
from code_chains.apps.page.app import Page
from code_chains.apps.page.entries import ChatEntry, EntryOutcome, EntryProgress
from code_chains.apps.page.guard import Guard
from code_chains.apps.page.hosting import MAX_PAGES
from code_chains.apps.page.registry import SessionRegistry
from code_chains.apps.page.server import create_app
from code_chains.apps.page.uploads import MAX_UPLOAD_BYTES
from code_chains.testing import ScriptedExecutor, ScriptedModel

ANN, CLEO = "ann-is-a-client-here-", "cleo-is-one-too-many-"


@pytest.fixture(scope="module")
def sessions() -> Iterator[SessionRegistry]:
    with create_code_chain(
        ScriptedModel(lambda _: "print(1)"), executor=ScriptedExecutor(lambda _: "1")
    ) as chain:
        yield SessionRegistry(chain, max_sessions=1)


@pytest.fixture(scope="module")
def client(sessions: SessionRegistry) -> Iterator[TestClient]:
    """A client for all tests, as NiceGUI has one application per process."""
    with TestClient(Guard(create_app(sessions), port=80), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def browser(client: TestClient, sessions: SessionRegistry) -> TestClient:
    """The browser of Ann, whose session is not blank."""
    client.cookies["code_chains_client_80"] = ANN
    outcome = EntryOutcome(answer="</script>" + ">" * 300)
    sessions.open(ANN).entries = [
        ChatEntry("A question", progress=EntryProgress(is_running=False), outcome=outcome)
    ]
    sessions.open(ANN).uploads.pending = {"a.csv": Path("a.csv")}
    return client


def test_a_session_beyond_the_limit_is_refused_and_others_keep_their_pages(browser: TestClient) -> None:
    assert browser.get("/").status_code == 200
    browser.cookies["code_chains_client_80"] = CLEO
    refused = browser.get("/")
    assert (refused.status_code, "Too many people" in refused.text) == (503, True)


@pytest.mark.host
def test_pages_without_a_connection_do_not_accumulate(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_chains.apps.page.hosting.CONNECT_TIMEOUT_S", 0.0)
    routes = len(app.routes)
    for _ in range(MAX_PAGES + 40):
        browser.get("/")
    gc.collect()
    pages = sum(type(instance) is Page for instance in gc.get_objects())
    assert (pages <= MAX_PAGES + 1, len(app.routes) - routes) == (True, 0)


def test_a_file_is_uploaded_to_its_session(browser: TestClient, sessions: SessionRegistry) -> None:
    response = browser.post("/upload", params={"name": "../b.csv"}, content=b"x,y\n")
    assert (response.status_code, response.text, sessions.open(ANN).files["b.csv"].read_bytes()) == (
        200,
        "b.csv",
        b"x,y\n",
    )


def test_a_file_that_is_too_large_is_refused_with_a_reason(browser: TestClient) -> None:
    response = browser.post("/upload", params={"name": "b.csv"}, content=b"x" * (MAX_UPLOAD_BYTES + 1))
    assert (response.status_code, "is too large" in response.text) == (400, True)


def test_a_client_of_an_expired_session_sees_a_notice(browser: TestClient, sessions: SessionRegistry) -> None:
    assert "have expired" not in browser.get("/").text
    sessions.open(ANN).entries = []
    sessions.open(ANN).last_active = float("-inf")
    assert browser.portal is not None
    browser.portal.call(sessions.close_idle)
    assert "have expired" in browser.get("/").text
