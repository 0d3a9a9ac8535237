"""The table of values says what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import ROOT
from tests.support.value_matrix import KINDS, Borders, open_borders

PAGE = (ROOT / "docs" / "values.md").read_text()


@pytest.fixture(scope="module")
def borders() -> Iterator[Borders]:
    with open_borders() as opened:
        yield opened


@pytest.mark.rows(6)
@pytest.mark.parametrize("name", KINDS)
def test_what_becomes_of_a_value_is_what_the_page_says(borders: Borders, name: str) -> None:
    assert borders.row(name) in PAGE.splitlines(), "run `python docs/generate.py`"


def test_no_value_is_silently_changed() -> None:
    assert "changed |" not in PAGE
    assert "without a reason" not in PAGE
