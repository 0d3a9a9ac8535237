from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.outcomes import Outcome, group, ungrounded

SAME = [
    ("Sum: 15", "15"),
    ("The sum is 15.", "15.0"),
    ("1,628.89", "1628.89"),
    ("Mean: 2.67", "2.6666666666"),
    ("It was Sunday.", "Sunday"),
    ("north: 10\nsouth: 36", "north 10\nsouth 36"),
    ("[1, 2, 3]", "1 2 3"),
    ("Result = 3e2", "300"),
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
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_said_otherwise_agrees(one: str, other: str) -> None:
    assert Outcome.of(one).agrees(Outcome.of(other))


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_something_else_does_not(one: str, other: str) -> None:
    assert not Outcome.of(one).agrees(Outcome.of(other))


def test_order_does_not_matter_where_it_is_asked() -> None:
    assert Outcome.of("[1, 2, 3]").agrees(Outcome.of("[3, 2, 1]"), ordered=False)


def test_labels_tell_lines_apart_even_where_the_question_names_them() -> None:
    assert len(group(["Alice: 3\nBob: 4", "Bob: 3\nAlice: 4"], "How many have Alice and Bob?")) == 2


def test_words_of_the_question_do_not_matter() -> None:
    assert group(["total amount 5", "5 in total", "6"], "What is the total amount?") == [[0, 1], [2]]


def test_the_largest_group_comes_first() -> None:
    assert group(["1", "2", "two: 2", "3"]) == [[1, 2], [0], [3]]


@given(st.text(), st.text())
def test_agreeing_is_reflexive_and_symmetric(one: str, other: str) -> None:
    mine, theirs = Outcome.of(one), Outcome.of(other)
    assert mine.agrees(mine)
    assert mine.agrees(theirs) == theirs.agrees(mine)


@given(st.lists(st.text(), max_size=6))
def test_every_output_is_in_one_group(outputs: list[str]) -> None:
    assert sorted(position for one in group(outputs) for position in one) == list(range(len(outputs)))


GROUNDED = [
    ("It is 2.67.", "2.6666"),
    ("It is 25%.", "0.25"),
    ("1. The sum is 15.\n2. That is all.", "15"),
    ("Es sind 1.628,89 Euro.", "1628.89"),
]


@pytest.mark.parametrize(("answer", "output"), GROUNDED)
def test_a_number_of_the_output_is_grounded(answer: str, output: str) -> None:
    assert ungrounded(answer, output) == []


@pytest.mark.parametrize(("answer", "output"), [("It is 15.", "-15"), ("It is 1500.", "15"), ("It is 3.", "2.67")])
def test_another_number_is_not(answer: str, output: str) -> None:
    assert ungrounded(answer, output)


def test_a_number_from_nowhere_is_not() -> None:
    assert ungrounded("It is 16, from 1 to 5.", "15", "sum from 1 to 5?") == ["16"]
