from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.verification.comparison import Outcome, group
from code_chains.verification.grounding import omits_result, places_of_numbers, unsupported_numbers

SAME = [
    ("Sum: 15", "15"),
    ("The sum is 15.", "15.0"),
    ("1,628.89", "1628.89"),
    ("Mean: 2.67", "2.6666666666"),
    ("It was Sunday.", "Sunday"),
    ("north: 10\nsouth: 36", "north 10\nsouth 36"),
    ("[1, 2, 3]", "1 2 3"),
    ("Result = 3e2", "300"),
    ("Result: 492\n492", "492"),
    ("It is Sunday\nSunday", "Sunday"),
]
OTHER = [
    ("15", "14"),
    ("Sunday", "Monday"),
    ("south 36", "north 36"),
    ("[1, 2, 3]", "[3, 2, 1]"),
    ("3", "2.67"),
    ("15", "nothing"),
    ("1 1 2", "1 2"),
    ("-5", "5"),
    ("142913828922", "142913828923"),
    ("1" * 320, "2" * 320),
    ("100000000000000000001", "100000000000000000002"),
    ("Alice is the winner", "Bob is the winner"),
    ("17 is prime", "19 is prime"),
    ("connected", "not connected"),
    ("Alice 3 Bob 5", "Bob 3 Alice 5"),
    ("min: 3, max: 9", "max: 3, min: 9"),
    ("Profit: 5", "Loss: 5"),
    ("192.168.0.1", "192.168.0.2"),
    ("0x1F", "0x2F"),
    ("[]", "[[]]"),
    ("🙂", "🙁"),
    ("A: 1\nB: 2", "A: 2\nB: 1"),
    ("Infinity", "-Infinity"),
    ("\u22125", "5"),
    ("91 isn't prime", "91 is prime"),
    ("7 is prime", "7 is prime? False"),
    ("Alice", "Alice Bob"),
    ("Yes", "Yes, but only for positive n"),
    ("1.5 million", "1.5"),
    ("a*b", "a/b"),
    ("1/2", "1 2"),
    ("0.004", "0.00"),
    ("Team 7: 15 points", "Team 9: 15 points"),
    ("Team 7 is first with 15", "Team 9 is first with 15"),
    ("Q1: 5\nQ2: 6\n2023: 7", "Q1: 5\nQ2: 6\n2024: 7"),
    ("Row 3 = 10", "10"),
    ("2023: 10, 2024: 11", "2024: 10, 2023: 11"),
    ("Room 1: 15", "Room -1: 15"),
    ("3, 5\n5", "3, 5"),
    ("5\n5", "5"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_said_otherwise_agrees(one: str, other: str) -> None:
    assert Outcome.from_text(one).is_equivalent(Outcome.from_text(other))


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_something_else_does_not(one: str, other: str) -> None:
    assert not Outcome.from_text(one).is_equivalent(Outcome.from_text(other))


def test_order_does_not_matter_where_it_is_asked() -> None:
    assert Outcome.from_text("[1, 2, 3]").is_equivalent(Outcome.from_text("[3, 2, 1]"), ordered=False)


def test_labels_tell_lines_apart_even_where_the_question_names_them() -> None:
    assert len(group(["Alice: 3\nBob: 4", "Bob: 3\nAlice: 4"], "How many have Alice and Bob?")) == 2


def test_numbers_of_the_question_may_stand_in_a_label_but_not_others() -> None:
    query = "What is the sum of the numbers from 1 to 5?"
    assert len(group(["The sum from 1 to 5 is 15", "15", "Sum: 15"], query)) == 1
    assert len(group(["The sum from 1 to 6 is 15", "15"], query)) == 2


def test_a_bare_number_brings_no_two_labels_together() -> None:
    groups = group(["15", "Team 7: 15", "Team 9: 15"], "Which of team 7 and team 9 has 15 points?")
    assert not any({1, 2} <= {*one} for one in groups)


def test_words_of_the_question_do_not_matter() -> None:
    assert group(["total amount 5", "5 in total", "6"], "What is the total amount?") == [[0, 1], [2]]


def test_the_largest_group_comes_first() -> None:
    assert group(["1", "2", "two: 2", "3"]) == [[1, 2], [0], [3]]


@given(st.text(), st.text())
def test_agreeing_is_reflexive_and_symmetric(one: str, other: str) -> None:
    mine, theirs = Outcome.from_text(one), Outcome.from_text(other)
    assert mine.is_equivalent(mine)
    assert mine.is_equivalent(theirs) == theirs.is_equivalent(mine)


@given(st.lists(st.text(), max_size=6))
def test_every_output_is_in_one_group(outputs: list[str]) -> None:
    assert sorted(position for one in group(outputs) for position in one) == list(range(len(outputs)))


GROUNDED = [
    ("It is 2.67.", "2.6666"),
    ("It is 25%.", "0.25"),
    ("1. The sum is 15.\n2. That is all.", "15"),
    ("Es sind 1.628,89 Euro.", "1628.89"),
    ("Il y en a 1 234 567.", "1234567"),
    ("Il y en a 1\u00a0234,5 ou 1\u202f234,5.", "1234.5"),
    ("Es sind 1'234'567 oder 1’234’567.", "1234567"),
    ("It is 1_234_567.", "1234567"),
    ("कुल 12,34,567 है।", "1234567"),
    ("总额是123.5万元。", "1235000"),
    ("売上は3億円です。", "300000000"),
    ("합계는 5만입니다.", "50000"),
    ("It is 1.2 million.", "1234567"),
    ("Son 1,2 millones.", "1234567"),
    ("Es sind 1,2 Millionen.", "1234567"),
    ("It is about 3.", "2.6666"),
    ("Es sind fast 3.", "2.6666"),
    ("It is 1,235.", "1234.56"),
    ("It is roughly 1,200.", "1234"),
    ("Oran %37,5.", "0.375"),
    ("النسبة ٣٧٫٥٪.", "0.375"),
    ("Das sind 37,5 Prozent.", "0.375"),
    ("Это 37,5 процента.", "0.375"),
    ("37.5パーセントです。", "0.375"),
    ("占百分之37.5。", "0.375"),
    ("It fell by 5.2.", "-5.2"),
    ("It fell by 5.2%.", "-0.052"),
    ("A loss of 1.2 million.", "-1234567"),
    ("It starts at 2:30 PM.", "14:30"),
    ("It starts at 12:30 am.", "00:30"),
    ("It is 1.23 × 10^20.", "123456789012345678901"),
    ("It is 1.23·10²⁰.", "123456789012345678901"),
    ("It is 1/2.", "0.5"),
    ("These are 3 names.", "['Ann', 'Bob', 'Eve']"),
    ("These are 3 names.", "Ann\nBob\nEve"),
    ("It is Python 3.11.", "3.11.7"),
]


@pytest.mark.parametrize(("answer", "output"), GROUNDED)
def test_a_number_of_the_output_is_grounded(answer: str, output: str) -> None:
    assert unsupported_numbers(answer, output) == []


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ("It is 15.", "-15"),
        ("It is 1500.", "15"),
        ("It is 3.", "2.67"),
        ("It is 16.", "15"),
        ("It is 3.", "2.4"),
        ("It is about 3.", "2.4"),
        ("It is 1.", "15"),
        ("合計は16です。", "15"),
        ("योग १६ है।", "15"),
        ("It is 1.3 million.", "1234567"),
        ("Das sind 38,5 Prozent.", "0.375"),
        ("It starts at 3:30 PM.", "14:30"),
        ("It is 1/3.", "0.5"),
        ("It is roughly 1,300.", "1234"),
    ],
)
def test_another_number_is_not(answer: str, output: str) -> None:
    assert unsupported_numbers(answer, output)


def test_a_number_from_nowhere_is_not() -> None:
    assert unsupported_numbers("It is 16, from 1 to 5.", "15", "sum from 1 to 5?") == ["16"]


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ("There are fifteen.", "15"),
        ("Hay quince.", "15"),
        ("Il y en a dix-sept.", "17"),
        ("Es sind zwölf.", "12"),
        ("Sono sedici.", "16"),
        ("São vinte.", "20"),
        ("合計は十五です。", "15"),
        ("一共三个。", "3"),
        ("It is 15km away.", "15"),
        ("It weighs 3kg.", "3"),
        ("She came 3rd.", "3"),
        ("C'est le 3ème.", "3"),
        ("Es el 3º.", "3"),
        ("It is 1.2k.", "1200"),
        ("It is 37.5%.", "0.375"),
    ],
)
def test_a_number_is_told_in_words_or_beside_its_unit(answer: str, output: str) -> None:
    assert not omits_result(answer, output)


@pytest.mark.parametrize("answer", ["What is the sum?", "It is sixteen.", "合計は十六です。", "It is 16km."])
def test_another_number_does_not_tell_it(answer: str) -> None:
    assert omits_result(answer, "15")


@given(st.text(), st.text())
def test_any_answer_and_output_are_compared(answer: str, output: str) -> None:
    assert isinstance(unsupported_numbers(answer, output), list)
    assert isinstance(omits_result(answer, output), bool)


def test_numbers_too_large_for_a_float_are_compared() -> None:
    assert unsupported_numbers(f"It is 1e99999 and {'1' * 500}.", "15")


@pytest.mark.timeout(20)
def test_many_numbers_are_compared_in_little_time() -> None:
    numbers = " ".join(map(str, range(1000, 21000, 2)))
    assert unsupported_numbers(numbers.replace(" ", "; "), numbers) == []


SLOW = ["\n", " \n", "1/", "0/", "1 * ", "+1", "1²", "1:", "一1", "x is 1 ", "1.5 ", "10^1 ", "1 000 "]


@pytest.mark.slow
@pytest.mark.parametrize("unit", SLOW)
@pytest.mark.parametrize("end", ["", "\n1!"])
def test_a_long_answer_takes_no_more_than_linear_time(unit: str, end: str) -> None:
    text = unit * (100_000 // len(unit)) + end
    began = time.process_time()
    unsupported_numbers(text, "15")
    omits_result(text, "15")
    assert time.process_time() - began < 3


def test_an_invented_number_is_found_among_many() -> None:
    numbers = " ".join(map(str, range(1000, 9000)))
    assert unsupported_numbers(f"{numbers} 77777", numbers) == ["77777"]


@pytest.mark.parametrize(
    ("answer", "output", "places"),
    [
        ("It is 15, half of it (50 %).", "150", {"15": None, "50": None}),
        ("-15 in 24 rows", "2024-03-15 rows 24", {"-15": None, "24": 1}),
        ("Es sind 1.234,50 € und 3", "total 1234.5\n3", {"1.234,50": 1, "3": 2}),
        ("1,234,567.89", "a\n1234567.891", {"1,234,567.89": 2}),
        ("4 500 km", "4500", {"4500": 1}),
        ("nothing", "", {}),
    ],
)
def test_numbers_of_an_answer_are_found_in_the_lines_of_an_output(
    answer: str, output: str, places: dict[str, int | None]
) -> None:
    assert places_of_numbers(answer, output, 9) == places
