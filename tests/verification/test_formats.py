from __future__ import annotations

import pytest

from code_chains.analysis.autofix import LABELLED
from code_chains.verification.sanity.formats import broken_format

MEAN = "What is the mean fare?\nFormat: @mean_fare[value], where value is a number with two decimals"
KEPT = {
    "a tag": (MEAN, "@mean_fare[34.65]"),
    "a tag in a sentence": (MEAN, "The answer is @mean_fare[34.65]."),
    "a choice": ("Is it normal? Answer @normal[yes] or @normal[no].", "@normal[yes]"),
    "two tags": ("Give @low[value] and @high[value].", "@low[1]\n@high[2]"),
    "JSON": ("Print the totals as JSON.", '{"a": 1}'),
    "a date": ("Give the date in the format YYYY-MM-DD.", "2024-03-01"),
    "a time": ("Print the time as HH:MM.", "It is 07:30."),
    "a format of the data": ("Dates are stored as DD/MM/YYYY. How many rows are there?", "12"),
    "the format of the data": ("The dates use the format DD.MM.YYYY. How many are there?", "12"),
    "what columns are": ("Columns: day in format DD.MM.YYYY, total. How many rows?", "12"),
    "a file": ("How many keys does the file hold, which was saved as JSON?", "3"),
    "none": ("What is the mean?", "3"),
}
BROKEN = {
    "another tag": (MEAN, "@mean[34.65]", "@mean_fare[…]"),
    "no tag": (MEAN, "34.65", "@mean_fare[…]"),
    "the placeholder": (MEAN, "@mean_fare[value]", "@mean_fare[…]"),
    "one of two tags": ("Give @low[value] and @high[value].", "@low[1]", "@high[…]"),
    "no JSON": ("Print the totals as JSON.", "{'a': 1}", "JSON"),
    "the format as an order": ("What is the next day? Use the format YYYY-MM-DD.", "1.1.2024", "YYYY-MM-DD"),
    "the format before a colon": ("What is the next day?\nFormat: YYYY-MM-DD", "1.1.2024", "YYYY-MM-DD"),
    "the format as a request": ("Please use format HH:MM. When does it end?", "7 am", "HH:MM"),
    "another date": ("Give the date in the format YYYY-MM-DD.", "March 1, 2024", "YYYY-MM-DD"),
}

ALONE = [
    "How much? Print only the number.",
    "How many? Give just the answer.",
    "Answer with only the final number.",
    "Reply with the name and nothing else.",
    "Wie viele? Gib nur die Zahl aus.",
    "¿Cuánto? Muestra solo el número.",
    "Combien ? Affiche uniquement le résultat.",
]
NOT_ALONE = [
    "How much is it?",
    "Show only the numbers greater than 5",
    "Print only the rows with a name.",
    "What is the only name that repeats?",
]


@pytest.mark.parametrize("query", ALONE)
def test_a_label_is_a_doubt_where_the_answer_alone_is_asked_for(query: str) -> None:
    code = "print(f'Total: {x}')"
    assert broken_format(query, "Total: 5", code) == LABELLED
    assert broken_format(query, "5", code) == ""
    assert broken_format(query, "Star Wars: A New Hope", "print(titles[0])") == ""


@pytest.mark.parametrize(
    "output",
    [
        "<ArrowStringArray>\n['Belfast']\nLength: 1, dtype: str",
        "0    Belfast\nName: town, dtype: str",
        "0   2024\ndtype: datetime64[ns]",
    ],
)
def test_the_type_of_an_array_is_a_doubt_where_the_answer_alone_is_asked_for(output: str) -> None:
    assert "on a line of its own" in broken_format(ALONE[0], output)
    assert broken_format("Which town is it?", output) == ""


@pytest.mark.parametrize("query", NOT_ALONE)
def test_a_label_is_none_elsewhere(query: str) -> None:
    assert broken_format(query, "Total: 5", "print(f'Total: {x}')") == ""


@pytest.mark.parametrize(("query", "output"), KEPT.values(), ids=KEPT)
def test_an_output_in_the_stated_format_raises_no_doubt(query: str, output: str) -> None:
    assert broken_format(query, output) == ""


@pytest.mark.parametrize(("query", "output", "said"), BROKEN.values(), ids=BROKEN)
def test_another_format_is_a_doubt(query: str, output: str, said: str) -> None:
    assert said in broken_format(query, output)
