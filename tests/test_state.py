from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.state import (
    Artifact,
    Attempt,
    CodeFailedError,
    ErrorReport,
    Execution,
    Isolation,
    Problem,
    Record,
    Usage,
    Verdict,
    as_json,
    from_json,
)

VERDICT = Verdict("failed", "none", "why")
RECORDS: list[Record] = [
    Problem("parses", "bad", 3),
    VERDICT,
    Attempt(1, "x", (Problem("parses", "bad"),), "refused", "no", VERDICT),
    Usage(1, 2, 3, {"m": {"input_tokens": 2, "output_tokens": 3}}),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_survives_json(record: Record) -> None:
    assert type(record).from_json(record.to_json()) == record


@given(stdout=st.text(), result=st.none() | st.text(), data=st.binary())
def test_an_execution_survives_json(stdout: str, result: str | None, data: bytes) -> None:
    error = ErrorReport("E", "m", 1, "t", {"x": "1"})
    isolation = Isolation("kernel", "bubblewrap", filesystem=True, layers=("seccomp",))
    artifacts = (Artifact.of("a.png", "image/png", data),)
    done = Execution("error", stdout, "", result, error, artifacts, isolation=isolation)
    assert Execution.from_json(done.to_json()) == done


def test_a_record_is_read_that_holds_records_already() -> None:
    attempt = RECORDS[2]
    half_read = {
        **attempt.to_dict(),
        "verdict": VERDICT,
    }  # As a checkpoint that knows some of the types has it.
    assert from_json({"attempts": [half_read]})["attempts"] == [attempt]


def test_a_forged_record_is_refused() -> None:
    with pytest.raises(ValueError, match="status"):
        Execution.from_dict({"status": "splendid"})


def test_a_failure_can_be_raised_with_its_record() -> None:
    done = Execution("timeout", error=ErrorReport("Timeout", "too long"))
    with pytest.raises(CodeFailedError, match="too long") as raised:
        done.raise_for_failure()
    assert raised.value.execution is done


@pytest.mark.parametrize(
    ("stdout", "result", "output"),
    [("a\n", None, "a"), ("", "5", "5"), ("a\n", "5", "a\n5"), ("5\n", "5", "5"), ("", None, "")],
)
def test_output_is_what_a_person_would_have_seen(stdout: str, result: str | None, output: str) -> None:
    assert Execution("ok", stdout=stdout, result=result).output == output


def test_a_whole_result_is_json() -> None:
    state = {"query": "q", "verdict": VERDICT, "attempts": [RECORDS[2]], "files": {"a": object()}}
    assert json.loads(json.dumps(as_json(state)))["verdict"]["reason"] == "why"


@pytest.mark.parametrize(
    ("stdout", "result", "output"),
    [
        ("abc\n", "'abc'", "abc"),
        ("first\nabc\n", "'abc'", "first\nabc"),
        ("it's\n", '"it\'s"', "it's"),
        ("a\nb\n", "'a\\nb'", "a\nb"),
        ("   n\n0  1\n1  2\n", "   n\n0  1\n1  2", "   n\n0  1\n1  2"),
        ("x\n   n\n0  1\n", "   n\n0  1", "x\n   n\n0  1"),
        ("15\n", "15", "15"),
        ("115\n", "15", "115\n15"),
        ("abc\n", "'ab'", "abc\n'ab'"),
        ("", "'abc'", "'abc'"),
        ("abc\n", "''", "abc\n''"),
        ("\n", None, ""),
    ],
)
def test_what_was_printed_last_is_not_shown_again(stdout: str, result: str | None, output: str) -> None:
    assert Execution("ok", stdout=stdout, result=result).output == output


def test_bytes_that_are_no_text_become_the_text_of_their_literal() -> None:
    assert as_json({"files": {"a.bin": b"\xff"}}) == {"files": {"a.bin": "b'\\xff'"}}
