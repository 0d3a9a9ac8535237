"""What the server of the page answers, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient

from code_chains import create_code_chain
from code_chains.page.guard import Guard
from code_chains.page.server import create_app
from code_chains.page.visits import Entry, Visits
from code_chains.testing import ScriptedExecutor, ScriptedModel


@contextmanager
def served(visits: Visits, visitor: str) -> Iterator[TestClient]:
    cookies = {"code_chains_visitor_80": visitor}
    with TestClient(Guard(create_app(visits), port=80), base_url="http://127.0.0.1", cookies=cookies) as browser:
        yield browser


def test_a_visitor_too_many_is_told_so_and_others_keep_their_pages() -> None:
    ann, cleo = "ann-is-a-visitor-here", "cleo-is-one-too-many-"
    model, place = ScriptedModel(lambda _: "print(1)"), ScriptedExecutor(lambda _: "1")
    with create_code_chain(model, executor=place) as chain:
        visits = Visits(chain, most=1)
        visits.of(ann).entries = [Entry("A question", answer="</script>" + ">" * 300, running=False)]
        visits.of(ann).files = {"a.csv": Path("a.csv")}
        with served(visits, ann) as browser:
            assert browser.get("/").status_code == 200
            browser.cookies["code_chains_visitor_80"] = cleo
            refused = browser.get("/")
    assert (refused.status_code, "too many visitors" in refused.text) == (503, True)
