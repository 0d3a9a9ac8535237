"""Evaluation: cases, scores, statistics, comparison, what survives an interruption, and LangSmith's side of it."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel

from code_chains import (
    Budget,
    CodeChain,
    ConfigurationError,
    Data,
    InputError,
    Repair,
    SandboxExecutor,
    create_code_chain,
)
from code_chains.apps.terminal.evaluation_report import render_report, write_report
from code_chains.batch.records import Answer
from code_chains.batch.results_file import ResultsFile
from code_chains.chains.judge import JudgeChain
from code_chains.errors import StoreError
from code_chains.evaluation import (
    Case,
    Evaluation,
    Expectation,
    Score,
    as_target,
    compare,
    correct,
    evaluate,
    read_cases,
)
from code_chains.evaluation.scorers import scorer_named
from code_chains.evaluation.scoring import Stated, is_right
from code_chains.evaluation.statistics import mcnemar, percentile, wilson
from code_chains.state import Usage, Verdict
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code
from tests.conftest import HOSTILE


def script(messages: list[Any]) -> str:
    """Reply with a program that prints twice the number in the question; to one about a fault with a program that fails."""
    prompt = str(messages[-1].text)
    if not asks_for_code(messages):
        return "Done."
    number = next((word for word in re.findall(r"Double (\d+)", prompt)), None)
    return "1 / 0" if number is None else f"print({number} * 2)"


@pytest.fixture
def chain(sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    with create_code_chain(ScriptedModel(script), executor=sandbox, solve=Repair(1)) as chain:
        yield chain


def doubles(count: int) -> list[dict[str, Any]]:
    return [{"id": str(n), "query": f"Double {n} ?", "expected": 2 * n} for n in range(count)]


def saved(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


# -- cases ---------------------------------------------------------------------------------------------------------------


def test_a_file_of_lines_holds_each_kind_of_expectation(tmp_path: Path) -> None:
    lines = [
        {"query": "one?", "expected": [1, {"a": None}], "variables": {"n": 1}},
        {"query": "two?", "expected_pattern": r"\b2\b"},
        {"query": "three?", "judge": True, "id": "c"},
        {"query": "four?", "expected": None},
    ]
    cases = read_cases(saved(tmp_path, "c.jsonl", "\n".join(map(json.dumps, lines))))
    assert [case.expectation for case in cases] == [
        Expectation("value", [1, {"a": None}]),
        Expectation("pattern", r"\b2\b"),
        Expectation("judge"),
        Expectation("value", None),
    ]
    assert (cases[0].question.inputs, cases[2].id) == ({"query": "one?", "variables": {"n": 1}}, "c")


def test_a_cell_of_a_table_is_json_or_text(tmp_path: Path) -> None:
    rows = 'query,expected,expected_pattern\na?,"[1, 2]",\nb?,north,\nc?,15,\nd?,,^x\ne?,null,\nf?,06,\n'
    cases = read_cases(saved(tmp_path, "c.csv", rows))
    assert [case.expectation.value for case in cases] == [[1, 2], "north", 15, "^x", None, "06"]


def test_what_is_expected_does_not_change_the_id() -> None:
    first, second = (Case.from_mapping({"query": "one?", "expected": value}) for value in (1, 2))
    assert first.id == second.id


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"query": "b?"}, "says nothing about what is expected"),
        ({"expected": 1}, "line 2 has no query"),
        ({"query": "b?", "id": "a", "expected": 1}, "the id 'a' of an earlier"),
        ({"query": "b?", "expected": 1, "expected_pattern": "1"}, "has expected and expected_pattern"),
        ({"query": "b?", "expected_pattern": "(1"}, "not a regular expression"),
        ({"query": "b?", "expected_pattern": 1}, "regular expression as text"),
        ({"query": "b?", "expected": float("nan")}, "not a JSON value"),
        ({"query": "b?", "judge": "yes"}, "judge must be true or false"),
        ({"inputs": {"question": "b?"}, "outputs": None}, "has no outputs"),
        (
            {"inputs": {"text": "b?"}, "outputs": {"answer": 1}},
            "inputs must have one of query, question, input",
        ),
        ("b?", "must be an object"),
    ],
)
def test_a_broken_line_names_its_place(tmp_path: Path, item: object, message: str) -> None:
    first = json.dumps({"query": "a?", "expected": 1, "id": "a"})
    path = saved(tmp_path, "c.jsonl", f"{first}\n{json.dumps(item)}\n")
    with pytest.raises(InputError, match=message) as error:
        read_cases(path)
    assert "c.jsonl, line 2" in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.jsonl", '{"query": "a?", "expected": 1}\n{"query"', "line 2, is not JSON"),
        ("c.csv", 'query,expected\na?,"[1,"\n', "line 2: expected is not JSON"),
        ("c.csv", "query,input_question,expected\na?,b?,1\n", "input_question and query are the same"),
        ("c.csv", "text,expected\na?,1\n", "no column query"),
        ("c.jsonl", "", "no cases"),
    ],
)
def test_a_broken_file_says_where(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_cases(saved(tmp_path, name, text))


def test_datasets_that_langsmith_exported_are_read(tmp_path: Path) -> None:
    example = {
        "id": "e1",
        "inputs": {"question": "a?", "note": "-"},
        "outputs": {"answer": "15"},
        "metadata": {},
    }
    (line,) = read_cases(saved(tmp_path, "d.jsonl", json.dumps(example)))
    (entry,) = read_cases(saved(tmp_path, "d.json", json.dumps([example])))
    (row,) = read_cases(saved(tmp_path, "d.csv", "id,input_question,output_answer,split\ne1,a?,15,base\n"))
    assert line == entry
    assert [case.question.inputs for case in (line, row)] == [{"query": "a?"}] * 2
    assert [(case.id, case.expectation.value) for case in (line, row)] == [("e1", "15"), ("e1", 15)]


def test_cases_that_were_read_are_evaluated_and_keep_their_place(chain: CodeChain, tmp_path: Path) -> None:
    cases = read_cases(saved(tmp_path, "c.csv", "query,expected\nDouble 4 ?,8\n"))
    assert cases[0].question.origin.endswith("c.csv, line 2")
    assert evaluate(chain, [*cases, {"query": "Double 5 ?", "expected": 10}]).accuracy.value == 1
    with pytest.raises(InputError, match="the id"):
        evaluate(chain, [*cases, *cases])


# -- scoring -------------------------------------------------------------------------------------------------------------


def states(expected: Any, output: str, result: str | None = None, **details: Any) -> bool:
    stated = Stated(details.pop("query", "How many?"), output, ok=True, result=result, **details)
    return is_right(stated, Expectation("value", expected))


LONG = [
    ({"a": 1}, "a  b" + " " * 60_000 + "c"),
    (["a", "b"], "x" + "\t" * 60_000 + "y"),
    ([1, 2, 3], "1" + ",111" * 15_000 + "x"),
    (42, "1" + " 111" * 15_000 + "x"),
    ("Paris", "# " * 30_000 + "Rome"),
]


@pytest.mark.parametrize(("expected", "output"), LONG, ids=["pairs", "items", "numbers", "groups", "marks"])
def test_a_long_answer_is_scored_at_once(expected: Any, output: str) -> None:
    start = time.process_time()
    assert not states(expected, output)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        (1234.5, "1,234.50"),
        (15, "Sum: 15"),
        (15, "15.0"),
        ("15", "15"),
        (2.6666667, "2.67"),
        (-3, "\N{MINUS SIGN}3"),
        ("north west", "north  west\n"),
        ("north", "'north'"),
        ("15 km", "15.0 km"),
        (1234.5, "1.234,50"),
        (1234.5, "Summe: 1 234,5"),
        ("cba", "Reversed 'abc': cba"),
        ("cba", "Reversed = 'cba'"),
        ([3, 5], "Negative numbers: [3, 5]"),
        ("12:30", "It ends at 9:05: 12:30"),
        ([1, 2.5], "(1, 2.50)"),
        ({"a": [1]}, "{'a': [1.0]}"),
        ({"1": "x"}, "{1: 'x'}"),
        (True, "True"),
        (True, "Yes."),
        (False, "nein"),
        (33.3, "33.3%"),
        (1 / 3, "33.33 %"),
        (0.125, "12.5 percent"),
        (12.5, "$12.50"),
        (1234.5, "1.234,50 €"),
        (1234.5, "€ 1 234,50"),
        (1234.5, "CHF 1'234.50"),
        ("33.3%", "33.3 %"),
        ("33.3%", "33.3"),
        ("$12.50", "The result is $12.50"),
        ("$12.50", "12.5"),
        ("12.50", "12.5"),
        ("The mean is 12.50", "The mean is 12.5"),
        ("1.234,50 €", "1234.5"),
        ("1.234,50 €", "1,234.50 EUR"),
        ("5%", "0.05"),
        ("5 %", "5 percent"),
        ("3000 m", "3000"),
        ("5 km", "5 kilometers"),
        ("100 °C", "100°C"),
        ("yes", "True"),
        ("Yes", "yes."),
        (True, "Yes, 7 is prime."),
        (False, "No, 8 is not prime"),
        ("north", "The region is north."),
        ("Zürich", "Zu\u0308rich"),
        ([1, 2, 3], "1 2 3"),
        ([1, 2, 3], "1\n2\n3"),
        ([1, 2, 3], "[1 2 3]"),
        ([1, 2, 3], "The numbers are [1, 2, 3]"),
        ([1, 2, 3], "1, 2 and 3"),
        (["a", "b"], "a, b"),
        (["a", "b"], "- a\n- b"),
        ({"a": 1, "b": 2}, "a    1\nb    2\ndtype: int64"),
        ({"a": 1, "b": 2}, "a: 1\nb: 2"),
        ("2024-01-06", "2024-01-06 00:00:00"),
        ("2024-01-06", "The date is 2024-01-06"),
        ("2024-01-06", "06.01.2024"),
        ("2024-01-06", "January 6, 2024"),
        ("14:30", "14:30:00"),
        (-5, "minus 5"),
        (-5, "-$5.00"),
        (15, "fifteen"),
        (0.5, "1/2"),
        (0.5, "½"),
        (1_500_000, "1.5 million"),
        (2000, "2k"),
        (6.02e23, "6.02 x 10^23"),
        (1_234_567, "12,34,567"),
        (None, "nan"),
        (-5, "-5 °C"),
        (15, "There are 15 items."),
        (None, "None"),
        (2000, "2 thousand"),
        (24, "2 dozen"),
        (1_500_000, "$1.5m"),
        ("$1.5 million", "1500000"),
        (0.0333, "33.3‰"),
        (300, "300 K"),
        (-15, "minus fifteen"),
        (-15, "negative 15"),
        (-5, "–5"),
        (1.5, "1½"),
        (1.5, "1 1/2"),
        (-0.5, "-1/2"),
        (5, "Result -> 5"),
        (5, "**5**"),
        (5, "<b>5</b>"),
        (5, "np.int64(5)"),
        (2**64, "18,446,744,073,709,551,616 units"),
        (1.23e-7, "1.23e-07"),
        ("007", "The code is 007."),
        ("1.10", "It is 1.10"),
        ("0.50", "0.5"),
        ("2024-03-01", "2024-3-1"),
        ("09:05", "9:05"),
        ("9:05", "09:05:00"),
        ("5 m/s", "5 meters per second"),
        ("5 m/s", "5 m s⁻¹"),
        ("5 m²", "5 square meters"),
        ("5 m²", "5 m^2"),
        ("5 m/s²", "5 meters per second squared"),
        ("5 in", "5 inches"),
        ("5 ft", "5 feet"),
        ("5 lb", "5 pounds"),
        ("£5", "5 pounds"),
        ("5 °C", "5 degrees Celsius"),
        ("5 MB", "5 megabytes"),
        ("5 km", "5 KM"),
        ("CA$12.50", "12.50 CAD"),
        ("$12.50", "12.50 US dollars"),
        (2 / 3, "66.67%"),
        (0.66667, "66.67%"),
        ([1, 2, 3], "- 1\n- 2\n- 3"),
        ([1, 2, 3], "1. 1\n2. 2\n3. 3"),
        (21, "twenty-one"),
        (21, "einundzwanzig"),
        (100, "one hundred"),
        (1234, "one thousand two hundred and thirty-four"),
        (15_000_000, "fifteen million"),
        (95, "quatre-vingt-quinze"),
        ("2024-03-01", "1. März 2024"),
        ("2024-03-01", "1 de marzo de 2024"),
        ("2024-03-01", "1er mars 2024"),
        ("2024-03-01", "1st of March 2024"),
        ("2024-03-01", "March 1st, 2024"),
        ("1/2", "0.5"),
        ("1 1/2", "1.5"),
        ("5 pm", "5 PM"),
        ("16 GB", "16 gb"),
        ("100 MB", "100 mb"),
        ("50 Hz", "50 hz"),
        ("5 kw", "5 kW"),
        ("12 pcs", "12 Pcs"),
        ("5 Std", "5 std"),
        ("50 Mbps", "50 mbps"),
        ("March 1, 2024", "March 01, 2024"),
        ("1 March 2024", "01 March 2024"),
        ("5 Jan 2024", "05 Jan 2024"),
        ("Week 09", "Week 9"),
        ("2024-3", "2024-03"),
        ("Growth: +5%", "Growth: 5%"),
        ("Q1 2024: +12.5%", "Q1 2024: 12.5%"),
        ("Temperature: +3 °C", "Temperature: 3 °C"),
        ("Press release: 12.50", "Press release: 12.5"),
        ("2024-03-01", "on Friday, March 1, 2024"),
        ("2024-03-01", "am 1. März 2024"),
        ("2024-03-01", "vendredi 1er mars 2024"),
        (5, "5bar"),
        ("5 bar", "5bar"),
        ("5 beds", "5beds"),
        ("2 bedrooms", "2bedrooms"),
        (3.2, "3.2bar"),
    ],
)
def test_numbers_may_have_any_notation_and_data_that_of_json_or_python(expected: Any, output: str) -> None:
    assert states(expected, output)


def test_numbers_of_the_question_are_no_answer_beside_another() -> None:
    assert states(15, "The sum of 1 to 5 is 15.", query="What is the sum of 1 to 5?")
    assert states(12, "12 of 20", query="How many of 20?")
    assert not states(5, "The sum of 1 to 5 is 15.", query="What is the sum of 1 to 5?")


def test_words_that_make_a_number_a_bound_count_where_the_question_has_them_not() -> None:
    for output in ("You need at least 15 coins.", "At least fifteen"):
        assert states(15, output, query="How many coins do you need at least?")
        assert not states(15, output, query="How many coins do you need at most?")


@pytest.mark.parametrize("part", ["1,", " ", "1 ", "a", "-", "½", "5 km/", "一"])
@pytest.mark.parametrize("expected", [15, "15 km", "A-007"])
def test_a_long_output_is_scored_at_once(expected: Any, part: str) -> None:
    start = time.process_time()
    for output in (part * (20_000 // len(part)), f"5 km{part * 10_000} per hour百"):
        assert not states(expected, output)
    assert time.process_time() - start < 2


def test_a_comma_stands_before_the_decimals_of_a_list_where_it_does_in_the_language_of_the_question() -> None:
    assert states([1.5, 2.5], "1,5; 2,5", query="Wie lauten die beiden Werte?")
    assert not states([15, 25], "1,5; 2,5", query="Wie lauten die beiden Werte?")
    assert not states([1.5, 2.5], "1,5; 2,5", query="What are the two values?")


def test_a_point_stands_between_thousands_where_it_does_in_the_language_of_the_question() -> None:
    assert states(1200, "1.200", query="Wie viele Einwohner hat das Dorf?")
    for expected, output in ((1234, "1.234"), (1.234, "1,234")):
        assert not states(expected, output, query="How many metres are there in total?")


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        (15, "14"),
        (125, "$12.5"),
        (33.3, "33%"),
        (15, "15 apples and 14 pears"),
        (15, "15 of 20"),
        (15, "not 15"),
        (15, "Team 7: 15 points"),
        (15, "15\n16"),
        (5, "x: int = 5; y = 6"),
        (2.7, "2.67"),
        (1, "True"),
        (True, "1"),
        ("north", "south"),
        ("north", "North"),
        ("15 km", "15 m"),
        ([1, 2], "[2, 1]"),
        ([1, 2], "[1, 2, 3]"),
        ({"a": 1}, "{'a': 1, 'b': 2}"),
        (None, "0"),
        (0, "None"),
        ("1", ""),
        ("33.3%", "33.3 km"),
        ("5 km", "5 m"),
        ("$12.50", "12.50 €"),
        ("5 km", "5 of 8 km"),
        ("yes", "No"),
        (True, "No, it is yes"),
        ("north", "It is not north."),
        ([3, 5], "Row 3: 5"),
        ([1, 2], "1 2 3"),
        (["a", "b"], "b, a"),
        ({"a": 1}, "a: 1\nb: 2"),
        ("2024-01-06", "2024-01-07 00:00:00"),
        ("2024-06-01", "06.01.2024"),
        (0.5, "1/3"),
        (15, "fifteen of sixteen"),
        (1_500_000, "1.5 m apart"),
        (7, "(" * 5000),
        (15, "15 million"),
        (15, "15k"),
        (12.5, "$12.50 million"),
        (2, "2 dozen"),
        (2, "2 Mio."),
        (1.5, "$1.5m"),
        ("1.5 million", "1.5"),
        (15, "fifteen million"),
        (15, "minus 15"),
        (15, "minus fifteen"),
        (15, "-fifteen"),
        (15, "–15"),
        (0.5, "-½"),
        (1, "1½"),
        (5, "0x5"),
        (0, "0x5"),
        (3, "3x4"),
        (5, "5²"),
        (5, "√5"),
        (5, "log(5)"),
        (5, "≠ 5"),
        (5, "x != 5"),
        (5, ">= 5"),
        (5, "< 5"),
        (5, "at least 5"),
        (5, "at least five"),
        (5, "5+"),
        (5, "5j"),
        (1, "no one"),
        (4, "a quarter"),
        (3, "three quarters"),
        (5, "up to 5"),
        (20, "twenty-one"),
        (31, "fifteen and sixteen"),
        (33.3, "33.3‰"),
        (0.004, "1.23e-7"),
        (2**64, "18446744073709551617"),
        (2**64, "18,446,744,073,709,551,617 units"),
        (12_345_678_901, "Sum: 12345678902.0"),
        ("01067", "1067"),
        ("007", "7"),
        ("007", "7 agents"),
        ("A-007", "A-7"),
        ("A-7", "A-007"),
        ("ISBN 0306406152", "ISBN 306406152"),
        ("+49 30 1234", "49 30 1234"),
        ("version 1.10", "version 1.1"),
        (["007", "008"], "['7', '8']"),
        ("5 km", "5 km/h"),
        ("5 km", "5 km per hour"),
        ("5 km", "5 kilometers per hour"),
        ("5 km", "5 km²"),
        ("5 m", "5 m^2"),
        ("5 m", "5 m s⁻¹"),
        ("5 kg", "5 kg/m³"),
        ("5 mW", "5 MW"),
        ("5 Pa", "5 pA"),
        ("5 MB", "5 Mb"),
        ("5 kg", "5 pounds"),
        ("5 °C", "5 degrees Fahrenheit"),
        ("$12.50", "CA$12.50"),
        ("$12.50", "12.50 CAD"),
        ("$12.50", "$12.50/h"),
        ([1, 2, 3], "- 1\n- 3\n- 2"),
        ("2024-03-01", "2. März 2024"),
        ("1/2", "1.2"),
        ("5 mV", "5 MV"),
        ("5 mm²", "5 Mm²"),
        ("5 MB/s", "5 Mb/s"),
        ("2024-03-01: Room 007", "2024-03-01: Room 7"),
        ("10:30 code 0042", "10:30 code 42"),
        ("Call +4930123456", "Call 4930123456"),
        ("2024-03-01", "after 1 March 2024"),
        ("2024-03-01", "before March 1, 2024"),
        ("2024-03-01", "not March 1, 2024"),
        (1, "0b1"),
        (0, "0b1"),
        (0, "0o7"),
        (7, "Question 7: unknown"),
        (7, "Total (7): n/a"),
        (8, "#### 7"),
        ("B", "(C)"),
        ("B", "Both"),
        ("B", "B movies"),
        (["Ana", "Bo"], "Ana or Bo"),
        (["Ana", "Bo"], "Bo and Ana"),
    ],
)
def test_everything_else_is_wrong(expected: Any, output: str) -> None:
    assert not states(expected, output)


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        (1200, "#### 1,200"),
        (7, "$\\boxed{7}$"),
        ("Paris, Texas", "Paris, Texas."),
        ("Paris", "**Paris**"),
        ("B", "(B)"),
        ("B", "B) Rome"),
        ("B", "Answer: (B)"),
        ({"a": 1}, '```json\n{"a": 1}\n```'),
        (["Ana", "Bo", "Cy"], "Ana, Bo, and Cy"),
        (["Ana", "Bo"], "Ana und Bo"),
        (["Rock and Roll", "Jazz"], "Rock and Roll, Jazz"),
        (["甲", "乙"], "甲、乙"),
    ],
)
def test_marks_around_a_value_and_words_between_items_do_not_count(expected: Any, output: str) -> None:
    assert states(expected, output)


def test_the_last_value_counts_beside_what_was_printed() -> None:
    assert states(15, "4 rows read\n15", result="15")
    assert not states(15, "4 rows read\n15")


def test_with_an_answer_type_the_value_alone_decides() -> None:
    assert states([1, 2.0], "printed", has_value=True, value=[1.0, 2])
    assert not states(15, "15", has_value=True, value=16)
    assert states(None, "", has_value=True, value=None)


@pytest.mark.parametrize(
    ("expected", "shown"),
    [
        ("2024-02-29", "datetime.date(2024, 2, 29)"),
        ("2024-02-29", "Timestamp('2024-02-29 00:00:00')"),
        ("2024-02-29 08:30:00", "datetime.datetime(2024, 2, 29, 8, 30)"),
        (0.5, "Fraction(1, 2)"),
        (True, "np.True_"),
        ([0, 1, 2], "range(0, 3)"),
    ],
)
def test_the_last_value_counts_in_its_own_type(expected: Any, shown: str) -> None:
    assert states(expected, "", shown)


@pytest.mark.parametrize(
    "shown", ["datetime.date(2024, 2, 30)", "range(0, 0, 0)", "Fraction(1, 0)", "date(1)"]
)
def test_what_no_value_looks_like_is_wrong(shown: str) -> None:
    assert not states("2024-02-29", "", shown)


@pytest.mark.parametrize("by", ["value", "pattern"])
def test_a_failed_verdict_is_never_right(by: Any) -> None:
    assert not is_right(Stated("?", "15", ok=False), Expectation(by, "15"))


def test_a_failed_verdict_is_right_if_no_answer_is_expected() -> None:
    assert is_right(Stated("?", "15", ok=False), Expectation("value", None))


def test_a_pattern_is_found_anywhere_in_the_output() -> None:
    assert is_right(Stated("?", "a\nSum: 15", ok=True), Expectation("pattern", r"(?m)^Sum: \d+$"))
    assert not is_right(Stated("?", "a", ok=True), Expectation("pattern", "b"))


@given(st.integers(-(10**12), 10**12) | st.floats(-1e9, 1e9) | st.lists(st.integers()) | st.booleans())
def test_what_a_program_prints_as_is_states_itself(value: Any) -> None:
    assert states(value, repr(value))
    assert states(value, json.dumps(value))


# -- statistics ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "total", "interval"),
    [(0, 10, (0.0, 0.2775)), (10, 10, (0.7225, 1.0)), (8, 10, (0.4902, 0.9433)), (81, 263, (0.2553, 0.3662))],
)
def test_the_interval_is_that_of_wilson(right: int, total: int, interval: tuple[float, float]) -> None:
    assert wilson(right, total) == pytest.approx(interval, abs=1e-4)


@given(st.integers(0, 10**6).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_the_interval_contains_the_share(counts: tuple[int, int]) -> None:
    right, total = counts
    low, high = wilson(right, total)
    assert 0 <= low <= right / (total or 1) <= high <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [(0, 0, 1.0), (1, 5, 0.21875), (0, 6, 0.03125), (10, 10, 1.0), (59, 6, 4.9647e-12), (2000, 2000, 1.0)],
)
def test_the_p_value_is_that_of_the_exact_test(only_first: int, only_second: int, p: float) -> None:
    assert mcnemar(only_first, only_second) == pytest.approx(p, rel=1e-4, abs=0)
    assert mcnemar(only_second, only_first) == mcnemar(only_first, only_second)


def test_percentiles_are_values_that_occurred() -> None:
    values = list(range(1, 101))
    assert [percentile(values, share) for share in (0.5, 0.95, 0, 1)] == [50, 95, 1, 100]
    assert percentile([], 0.5) == 0


# -- evaluations ---------------------------------------------------------------------------------------------------------


def test_accuracy_is_told_for_all_and_for_each_status(chain: CodeChain) -> None:
    wrong = {"query": "Double 5 ?", "expected": 11}
    evaluation = evaluate(chain, [*doubles(3), wrong, {"query": "Fault?", "expected": 1}])
    assert [score.right for score in evaluation.scores] == [True] * 3 + [False] * 2
    assert {name: (share.right, share.total) for name, share in evaluation.by_status.items()} == {
        "unverified": (3, 4),
        "failed": (0, 1),
    }
    assert (evaluation.accuracy.value, evaluation.is_complete, evaluation.usage.usd) == (0.6, True, None)
    assert (evaluation.usage.model_calls, evaluation.usage.tokens > 0, evaluation.latency() > 0) == (
        9,
        True,
        True,
    )
    assert re.search(r"right +3/5  60\.0%  \[23\.1%, 88\.2%\]", str(evaluation))


def test_where_no_answer_is_expected_a_failure_is_right(chain: CodeChain) -> None:
    assert evaluate(chain, [{"query": "Fault?", "expected": None}]).accuracy.value == 1


def test_a_typed_value_is_compared(sandbox: SandboxExecutor) -> None:
    model = ScriptedModel(lambda messages: "print('working')\n{'a': (1, 2)}")
    with create_code_chain(model, executor=sandbox, answer_type=dict[str, list[int]]) as chain:
        evaluation = evaluate(chain, [{"query": "Which?", "expected": {"a": [1, 2]}}])
    assert evaluation.accuracy.value == 1


def test_an_exception_is_an_error_and_does_not_affect_other_cases(sandbox: SandboxExecutor) -> None:
    def reply(messages: list[Any]) -> str:
        if "Double 1 " in str(messages[-1].text):
            raise RuntimeError("no connection")
        return script(messages)

    with create_code_chain(ScriptedModel(reply), executor=sandbox) as chain:
        evaluation = evaluate(chain, doubles(2))
    assert [(score.right, score.status) for score in evaluation.scores] == [
        (True, "unverified"),
        (False, "error"),
    ]
    assert "no connection" in evaluation.errors[0].reason
    assert (evaluation.accuracy.total, evaluation.wrong) == (1, ())
    assert not evaluation.is_complete


def test_a_resumed_evaluation_asks_only_what_is_missing(chain: CodeChain, tmp_path: Path) -> None:
    def dies(answers: Iterator[Answer]) -> Iterator[Answer]:
        yield next(answers)
        yield next(answers)
        raise KeyboardInterrupt

    asked: list[str] = []

    def watch(answers: Iterator[Answer]) -> Iterator[Answer]:
        for answer in answers:
            asked.append(answer.id)
            yield answer

    path = tmp_path / "answers.jsonl"
    with pytest.raises(KeyboardInterrupt), ResultsFile(path) as results_file:
        evaluate(chain, doubles(6), results_file=results_file, concurrency=1, watch=dies)
    with ResultsFile(path, resume=True) as results_file:
        resumed = evaluate(chain, doubles(6), results_file=results_file, watch=watch)
    assert sorted(asked) == ["2", "3", "4", "5"]
    assert [(score.id, score.right) for score in resumed.scores] == [(str(n), True) for n in range(6)]


def test_a_corrected_expectation_is_scored_without_asking_again(
    chain: CodeChain, sandbox: SandboxExecutor, tmp_path: Path
) -> None:
    path = tmp_path / "answers.jsonl"
    with ResultsFile(path) as results_file:
        before = evaluate(chain, [{"query": "Double 4 ?", "expected": 9}], results_file=results_file)
    with (
        ResultsFile(path, resume=True) as results_file,
        create_code_chain(
            ScriptedModel(lambda messages: pytest.fail("asked")), executor=sandbox, solve=Repair(1)
        ) as silent,
    ):
        after = evaluate(silent, [{"query": "Double 4 ?", "expected": 8}], results_file=results_file)
    assert (before.accuracy.value, after.accuracy.value) == (0, 1)
    assert after.scores[0].code == before.scores[0].code == "print(4 * 2)\n"


def test_a_question_that_changed_is_asked_again(chain: CodeChain, tmp_path: Path) -> None:
    with ResultsFile(tmp_path / "answers.jsonl") as results_file:
        for number in (4, 5):
            cases = [{"id": "a", "query": f"Double {number} ?", "expected": 2 * number}]
            assert evaluate(chain, cases, results_file=results_file).accuracy.value == 1
        assert [record["given"]["query"] for record in results_file.records()] == ["Double 5 ?"]


def test_answers_of_another_model_are_refused(chain: CodeChain, tmp_path: Path) -> None:
    path, case = tmp_path / "answers.jsonl", {"query": "Double 4 ?", "expected": 8}
    with ResultsFile(path) as results_file:
        evaluate(chain, [case], results_file=results_file)
    with (
        create_code_chain(FakeListChatModel(responses=["print(8)"]), executor=ScriptedExecutor(str)) as other,
        ResultsFile(path, resume=True) as results_file,
        pytest.raises(StoreError, match=r"another run.*--anew"),
    ):
        evaluate(other, [case], results_file=results_file)


SCORERS = {
    "tolerance=0.01": ("about 42.1 m", 42),
    "set": ("['b', 'a']", ["a", "b"]),
}


@pytest.mark.parametrize("name", SCORERS)
def test_a_scorer_decides_on_expected_values(name: str) -> None:
    output, expected = SCORERS[name]
    with create_code_chain(
        ScriptedModel(lambda messages: "print(1)"), executor=ScriptedExecutor(lambda code: output)
    ) as chain:
        cases = [{"query": "What?", "expected": expected}]
        assert evaluate(chain, cases, scorer=scorer_named(name)).accuracy.value == 1
        assert evaluate(chain, cases).accuracy.value == 0


@pytest.mark.parametrize(
    ("name", "expected", "output", "is_right"),
    [
        ("tolerance=0.01", 15, "\N{MINUS SIGN}15", False),
        ("tolerance=0.01", -15, "\N{MINUS SIGN}15", True),
        ("tolerance=0.01", 1_500_000, "1.5 million", True),
        ("tolerance=0.01", 1.5, "1.5 million", False),
        ("tolerance=0.01", 1_500_000, "1.5×10^6", True),
        ("tolerance=0.01", 1234.5, "1.234,50 €", True),
        ("tolerance=0.01", 0.333, "33.3%", True),
        ("tolerance=0.01", 15, "fifteen", True),
        ("tolerance=0.01", 15, "14 of 15", True),
        ("tolerance=0.01", 15, "14", False),
        ("tolerance=0.01", 15, "none", False),
        ("set", ["a", "b"], "{'b', 'a'}", True),
        ("set", [1, 2, 3], "{3, 1, 2}", True),
        ("set", [1, 2], "The set: {2, 1}", True),
        ("set", [[1, 2]], "frozenset({(1, 2)})", True),
        ("set", [1, 2, 2], "{1, 2}", False),
    ],
)
def test_a_scorer_reads_what_programs_print(name: str, expected: Any, output: str, is_right: bool) -> None:
    verdict = Verdict(status="unverified", by="none", reason="It ran.")
    result = {"query": "Wie viel ist es zusammen?", "output": output, "verdict": verdict}
    assert scorer_named(name)(expected, result) is is_right


@pytest.mark.parametrize(
    "name",
    [
        "nowhere:f",
        "tolerance=x",
        "tolerance=-1",
        "tolerance=nan",
        "tolerance=inf",
        "sets",
        "os:getcwd",
        "os:sep",
        ".os:f",
    ],
)
def test_an_unknown_scorer_is_an_error(name: str) -> None:
    with pytest.raises(ConfigurationError, match="module:function"):
        scorer_named(name)


def test_cases_that_the_budget_prevents_are_missing_and_not_wrong(chain: CodeChain) -> None:
    evaluation = evaluate(chain, doubles(20), budget=Budget(model_calls=4), concurrency=1)
    assert (evaluation.accuracy.value, len(evaluation.scores) + len(evaluation.missing)) == (1, 20)
    assert 0 < len(evaluation.scores) <= 2
    assert "not asked" in str(evaluation)


def test_a_judge_decides_once_for_each_answer(chain: CodeChain, tmp_path: Path) -> None:
    calls: list[str] = []

    def judge(messages: list[Any]) -> str:
        calls.append(str(messages[-1].text))
        return "YES: It doubles." if "Double 1 " in calls[-1] else "NO: It does not."

    cases = [{"query": f"Double {n} ?", "judge": True} for n in (1, 2)]
    for _ in range(2):
        with ResultsFile(tmp_path / "a.jsonl", resume=True) as results_file:
            judged = evaluate(
                chain, cases, results_file=results_file, judge=JudgeChain(model=ScriptedModel(judge))
            )
        assert [(score.right, score.reason) for score in judged.scores] == [
            (True, "It doubles."),
            (False, "It does not."),
        ]
    assert len(calls) == 2


def test_a_case_that_asks_for_a_judge_without_one_is_an_error_before_a_model_is_asked() -> None:
    model = ScriptedModel(lambda messages: pytest.fail("asked"))
    with create_code_chain(model, executor=ScriptedExecutor(str)) as chain, pytest.raises(ConfigurationError):
        evaluate(chain, [{"query": "one?", "judge": True}])


def test_no_judge_sees_the_output_of_a_chain_that_sends_schemas_alone() -> None:
    model = ScriptedModel(lambda messages: pytest.fail("asked"))
    cases, judge = [{"query": "one?", "judge": True}], JudgeChain(model=model)
    with (
        create_code_chain(model, executor=ScriptedExecutor(str), data=Data(schema_only=True)) as chain,
        pytest.raises(ConfigurationError, match="it sees the output"),
    ):
        evaluate(chain, cases, judge=judge)
    with pytest.raises(ConfigurationError, match="it sees the output"):
        evaluate({"model": "local", "data": {"type": "Data", "schema_only": True}}, cases, judge=judge)


# -- records -------------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=5,
)
EXPECTATIONS = st.builds(Expectation, st.just("value"), JSON) | st.builds(
    Expectation, st.just("pattern"), st.text()
)
USAGES = st.builds(Usage, st.integers(0), st.integers(0), st.integers(0), usd=st.none() | st.floats(0, 1e6))
SCORES = st.builds(
    Score,
    id=st.text(),
    query=st.text(),
    expectation=EXPECTATIONS,
    right=st.booleans(),
    status=st.sampled_from(["verified", "plausible", "unverified", "failed", "error"]),
    output=st.text(),
    seconds=st.floats(0, 1e6),
    usage=USAGES,
)
EVALUATIONS = st.builds(
    Evaluation, st.lists(SCORES, max_size=5).map(tuple), st.lists(st.text(), max_size=3).map(tuple)
)


@given(EVALUATIONS)
def test_an_evaluation_survives_json(evaluation: Evaluation) -> None:
    assert Evaluation.from_dict(json.loads(json.dumps(evaluation.to_dict()))) == evaluation
    assert Evaluation.from_json(evaluation.to_json()) == evaluation


@pytest.mark.slow
@given(EVALUATIONS)
def test_every_evaluation_can_be_shown(evaluation: Evaluation) -> None:
    assert str(evaluation).startswith("right")
    assert "<script" not in render_report(evaluation)


def test_a_saved_evaluation_is_the_same(tmp_path: Path) -> None:
    evaluation = Evaluation((score_of("a", right=True),))
    evaluation.save(tmp_path / "e.json")
    assert Evaluation.load(tmp_path / "e.json") == evaluation
    assert json.loads((tmp_path / "e.json").read_text())["summary"]["accuracy"]["share"] == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"scores": [1]}'])
def test_what_is_no_evaluation_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="is not an evaluation"):
        Evaluation.load(saved(tmp_path, "e.json", text))


# -- comparison ----------------------------------------------------------------------------------------------------------


def score_of(case_id: str, *, right: bool, **details: Any) -> Score:
    parts: dict[str, Any] = {"query": "one?", "expectation": Expectation("value", 1), "status": "unverified"}
    return Score(id=case_id, right=right, **{**parts, **details})


def evaluation_of(rights: str) -> Evaluation:
    return Evaluation(tuple(score_of(str(n), right=right == "1") for n, right in enumerate(rights)))


def test_a_comparison_lists_the_cases_that_differ() -> None:
    comparison = compare(evaluation_of("110000000"), evaluation_of("101111110"))
    assert (comparison.both, comparison.neither) == (1, 1)
    assert (comparison.only_first, comparison.only_second) == (("1",), tuple("234567"))
    assert comparison.p_value == pytest.approx(0.125)
    assert "may be chance" in str(comparison)
    assert compare(evaluation_of("0" * 6), evaluation_of("1" * 6)).is_significant


def test_only_evaluations_of_the_same_cases_are_compared() -> None:
    with pytest.raises(InputError, match="the case '2'"):
        compare(evaluation_of("11"), evaluation_of("111"))
    other = Evaluation((score_of("0", right=True, expectation=Expectation("value", 2)),))
    with pytest.raises(InputError, match="expects something else"):
        compare(evaluation_of("1"), other)


# -- the report ----------------------------------------------------------------------------------------------------------


def test_what_a_program_wrote_is_inert_in_the_report(tmp_path: Path) -> None:
    attack = f"</pre></details><script>alert(1)</script><img src=x onerror=alert(1)>{HOSTILE}"
    details = dict.fromkeys(("query", "output", "answer", "code", "reason"), attack)
    score = score_of(attack, right=False, expectation=Expectation("value", attack), **details)
    write_report(Evaluation((score,)), tmp_path / "r.html", title=attack)
    page = (tmp_path / "r.html").read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert page.count("&lt;script&gt;") == 9
    assert page.count("<details") == page.count("</details>") == 3


def test_the_report_shows_what_is_wrong_first(chain: CodeChain) -> None:
    page = render_report(evaluate(chain, [*doubles(1), {"query": "Double 9 ?", "expected": 17}]))
    wrong, right = page.index("Wrong: 1"), page.index("Right: 1")
    assert wrong < page.index("Double 9 ?") < page.index("print(9 * 2)") < right < page.index("Double 0 ?")
    assert "http" not in page.replace("http-equiv", "")


# -- LangSmith -----------------------------------------------------------------------------------------------------------


def test_a_target_of_langsmith_gives_json_that_the_evaluator_scores(chain: CodeChain) -> None:
    outputs = json.loads(json.dumps(as_target(chain)({"question": "Double 21 ?"})))
    assert (outputs["output"], outputs["verdict"]["status"]) == ("42", "unverified")
    for reference, score in ((42, 1), ("42.0", 1), (41, 0)):
        assert correct({"question": "Double 21 ?"}, outputs, {"answer": reference}) == {
            "key": "correct",
            "score": score,
        }
    assert correct({"question": "?"}, {}, {"answer": 42})["score"] == 0


def test_langsmith_itself_calls_the_evaluator(chain: CodeChain, monkeypatch: pytest.MonkeyPatch) -> None:
    from langsmith.evaluation import run_evaluator
    from langsmith.schemas import Example, Run

    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    evaluator: Any = correct
    inputs = {"question": "Double 4 ?"}
    now, identity = datetime.now(UTC), uuid.uuid4()
    run = Run(
        id=identity,
        name="target",
        run_type="chain",
        start_time=now,
        trace_id=identity,
        inputs=inputs,
        outputs=as_target(chain)(inputs),
    )
    for answer, score in (("8", 1), ("9", 0)):
        example = Example(id=uuid.uuid4(), dataset_id=uuid.uuid4(), inputs=inputs, outputs={"answer": answer})
        result: Any = run_evaluator(evaluator).evaluate_run(run, example)
        assert (result.key, result.score) == ("correct", score)


def test_cases_may_be_the_path_of_a_file(chain: CodeChain, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"query": "Double 4", "expected": 8}\n')
    assert evaluate(chain, path).accuracy.value == 1


@pytest.mark.parametrize("cases", ["cases.jsonl", b"cases", 3, None, {"query": "Double 4", "expected": 8}])
def test_what_is_no_collection_of_cases_is_refused(chain: CodeChain, cases: Any) -> None:
    with pytest.raises(InputError, match="Cases are a list of mappings"):
        evaluate(chain, cases)
