"""What a SQL statement makes up is flagged, and what it reads or was given is not."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from code_chains.records import Execution
from code_chains.verification.sanity import sanity_verdict

SHOWN = "a\n-\n1"


def verdict_of(query: str, statement: str, output: str = SHOWN, **given: Any) -> tuple[str, str]:
    """Return status and verifier of a statement over a file, `none` if nothing speaks against it."""
    values = {
        "query": query,
        "files": {"sales.csv": b""},
        "execution": Execution("ok", result=output),
        **given,
    }
    verdict = sanity_verdict(values, statement, "sql")
    return ("", "none") if verdict is None else (verdict.status, verdict.by)


@pytest.mark.parametrize(
    ("query", "statement"),
    [
        ("Total?", "SELECT sum(amount) AS total FROM sales"),
        (
            "Amount of the north?",
            "SELECT 'north' AS region, sum(amount) AS total FROM sales WHERE region = 'north'",
        ),
        ("What is 6 * 7?", "SELECT 6 * 7 AS n"),
        ("Sum of 1 to 100?", "SELECT sum(range) FROM range(1, 101)"),
        (
            "Share in percent?",
            "SELECT 100.0 * sum(amount) FILTER (region = 'north') / sum(amount) FROM sales",
        ),
        ("Above 15?", "SELECT product FROM sales WHERE amount > 15"),
        ("With 19 % tax?", "SELECT sum(amount) * 1.19 FROM sales"),
        ("In February?", "SELECT count(*) FROM sales WHERE month(day) = 2"),
        ("Small below 12?", "SELECT CASE WHEN amount < 12 THEN 'small' ELSE 'large' END FROM sales"),
        ("By region?", "PIVOT sales ON region USING sum(amount)"),
        ("What is there?", "SUMMARIZE sales"),
        ("Mean?", "WITH t AS (SELECT amount FROM sales) SELECT round(avg(amount), 2) FROM t"),
        ("The three largest?", "FROM sales ORDER BY amount DESC LIMIT 3"),
        ("Mean?", "SELECT avg(`amount`) FROM `sales`"),
    ],
)
def test_what_is_read_computed_or_given_is_not_flagged(query: str, statement: str) -> None:
    assert verdict_of(query, statement) == ("", "none")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 160000 AS revenue",
        "SELECT 160000 AS revenue FROM sales",
        "SELECT product, 5000 AS revenue FROM sales",
        "SELECT 'Alice' AS name FROM sales LIMIT 1",
        "WITH a(v) AS (VALUES (31), (45)) SELECT avg(v) FROM a",
        "SELECT sum(v) FROM (SELECT 1200 AS v UNION ALL SELECT 1300)",
        "WITH r AS (SELECT 160000 AS revenue) SELECT revenue FROM r, sales",
        "SELECT CASE region WHEN 'north' THEN 83000 WHEN 'south' THEN 67000 END FROM sales",
        "SELECT CAST('160000' AS INT) FROM sales",
        """SELECT json_extract('{"a": 160000}', '$.a')""",
        "SELECT unnest([100, 2500])",
    ],
)
def test_what_is_written_down_is_flagged_and_asked_again(statement: str) -> None:
    assert verdict_of("What was the revenue?", statement) == ("failed", "provenance")


@pytest.mark.parametrize(
    "part", ["sum(amount) * 0.92", "max(amount) * 0 + 160000", "count(*) FILTER (amount > 45)"]
)
def test_a_number_that_nobody_gave_is_an_assumption(part: str) -> None:
    assert verdict_of("What was the revenue?", f"SELECT {part} FROM sales") == ("unverified", "provenance")


@pytest.mark.parametrize("output", ["a\n-\n(0 rows)", "a\n----\nNULL", "a    | b\n---- | ----\nNULL | NULL"])
def test_a_result_without_a_value_is_asked_again(output: str) -> None:
    assert verdict_of("Sales of Bob?", "SELECT sum(a) FROM sales", output) == ("failed", "checks")


@pytest.mark.parametrize("statement", ["SELECT 1 FROM", "SELECT 1 -- " + "x" * 20_000, "(" * 5000])
def test_what_cannot_be_read_is_not_analysed(statement: str) -> None:
    assert verdict_of("?", statement) == ("unverified", "provenance")


@pytest.mark.parametrize(
    "statement", ["SELECT a" + " + 55.5" * 900 + " FROM t", "SELECT a" + " * 1.5" * 900 + " FROM t"]
)
def test_a_long_expression_is_read_in_linear_time(statement: str) -> None:
    started = time.process_time()
    verdict_of("?", statement)
    assert time.process_time() - started < 2


def test_without_sqlglot_nothing_is_analysed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    assert verdict_of("?", "SELECT 1 FROM sales") == ("unverified", "provenance")
