"""Rounding that a question states in plain words, and nothing else."""

from __future__ import annotations

from decimal import Decimal

import pytest

from code_chains.verification.values.rounding import rounding_problem

STATED = [
    ("What is the mean, rounded to two decimals?", 2),
    ("Round the mean to 3 decimal places.", 3),
    ("Give the ratio rounded to 1 decimal place.", 1),
    ("What is the total to the nearest integer?", 0),
    ("Was ist der Mittelwert, auf zwei Nachkommastellen gerundet?", 2),
    ("Runde den Mittelwert auf 2 Stellen nach dem Komma.", 2),
    ("Wie hoch ist die Summe, auf die nächste ganze Zahl gerundet?", 0),
    ("¿Cuál es la media, redondeada a dos decimales?", 2),
    ("Redondea la suma al entero más cercano.", 0),
    ("Quelle est la moyenne, arrondie à deux décimales ?", 2),
    ("Arrondis la moyenne à trois chiffres après la virgule.", 3),
    ("Quelle est la somme, arrondie à l'entier le plus proche ?", 0),
]


@pytest.mark.parametrize(("query", "places"), STATED)
def test_more_decimals_than_stated_are_a_problem(query: str, places: int) -> None:
    assert f"at most {places} decimals" in rounding_problem(query, 2.71828)
    assert rounding_problem(query, round(2.71828, places)) == ""


@pytest.mark.parametrize(
    "query",
    [
        "What is the mean?",
        "What are the decimals of 1/7?",
        "Round each price to two decimals, then give the mean.",
        "Give at least two decimals; do not round to two decimals.",
        "Round to two decimals and also to three decimals.",
        "The prices have two decimals. What is the mean?",
        "Round 2.345 to two decimals. By how much does it differ in percent?",
        "Gib mindestens zwei Nachkommastellen an.",
        "Runde jeden Preis auf zwei Nachkommastellen.",
        "Redondea cada precio a dos decimales.",
        "Arrondis chaque prix à deux décimales.",
        "A round table has two decimal numbers on it",
    ],
)
def test_in_doubt_nothing_is_a_problem(query: str) -> None:
    assert rounding_problem(query, 2.71828) == ""


@pytest.mark.parametrize("value", [[2.71828], "2.71828", True, None, 2, 2.7, Decimal("2.70"), 1e300, 1e16])
def test_other_values_are_no_problem(value: object) -> None:
    assert rounding_problem(STATED[0][0], value) == ""
