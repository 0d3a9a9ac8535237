"""What a program may send never takes more memory of the host, or time of its event loop, than its length explains."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.executors.guest.untrusted import count_items, parse
from tests.conftest import ROOT
from tests.support.hostile_values import ENTRANCES

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda parts: st.lists(parts, max_size=5) | st.dictionaries(st.text(), parts, max_size=5),
)


def items_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(items_of, value.values()))
    return 1 + (sum(map(items_of, value)) if isinstance(value, list) else 0)


@given(JSON, st.booleans(), st.integers(0, 20))
def test_no_item_escapes_the_count(value: object, is_ascii: bool, stop: int) -> None:
    data = json.dumps(value, ensure_ascii=is_ascii).encode("utf-8", "replace")
    count = count_items(data, stop)
    assert count > stop or items_of(value) <= 2 * count + 1


@given(st.binary(max_size=200), st.integers(0, 5))
def test_anything_can_be_counted(data: bytes, stop: int) -> None:
    assert count_items(data * 50, stop) >= 0


def test_marks_within_texts_are_no_items() -> None:
    text = 'a,[{"\\,' * 1000
    assert parse(json.dumps([text, {"k": text}]).encode(), 3) == [text, {"k": text}]


@pytest.mark.parametrize("end", [b'"', b'\\"', b"\\", b'"\\'])
def test_a_text_without_an_end_is_counted_in_linear_time(end: bytes) -> None:
    assert count_items(b"[" + end * 4_000_000, 0) <= 2


def test_more_items_than_allowed_are_refused_before_they_are_made() -> None:
    with pytest.raises(ValueError, match="more than 10 items"):
        parse(b"[" + b"[]," * 10 + b"[]]", 10)


REFUSED = ("LookupError: ", "AnswerTypeError: ", "refused", "killed", "answered")
READ = {"printed: for any"}
"""What is read, as it is within the limits."""


@pytest.mark.rows(2)
@pytest.mark.attack
@pytest.mark.parametrize("name", ENTRANCES)
def test_a_forged_value_costs_the_host_little(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.hostile_values", name],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    measured = json.loads(run.stdout)
    assert name in READ or measured["ending"].startswith(REFUSED)
    assert measured["megabytes"] < 300
    assert measured["seconds"] < 3
