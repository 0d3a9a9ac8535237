"""An output has the tags that its question states."""

from __future__ import annotations

import pytest

from code_chains.verification.sanity.formats import broken_format

MEAN = "What is the mean fare?\nFormat: @mean_fare[value], where value is a number with two decimals"
KEPT = {
    "a tag": (MEAN, "@mean_fare[34.65]"),
    "a tag in a sentence": (MEAN, "The answer is @mean_fare[34.65]."),
    "a choice": ("Is it normal? Answer @normal[yes] or @normal[no].", "@normal[yes]"),
    "two tags": ("Give @low[value] and @high[value].", "@low[1]\n@high[2]"),
    "an empty list": ("Which ones? @names[list of names]", "@names[]"),
    "two words": ("Give @name[value].", "@name[Ann Lee]"),
    "few decimals": (MEAN, "@mean_fare[0.000123]"),
    "none": ("What is the mean?", "3"),
}
BROKEN = {
    "another tag": (MEAN, "@mean[34.65]", "@mean_fare[…]"),
    "no tag": (MEAN, "34.65", "@mean_fare[…]"),
    "the placeholder": (MEAN, "@mean_fare[value]", "@mean_fare[…]"),
    "the placeholder before the value": (MEAN, "@mean_fare[value] 34.65", "@mean_fare[…]"),
    "the value in the place of the name": (MEAN, "@34.65[34.65]", "@mean_fare[…]"),
    "blanks around the value": (MEAN, "@mean_fare[ 34.65 ]", "only the value within @mean_fare[…]"),
    "a value that was not filled in": (MEAN, "@mean_fare[{mean}]", "only the value within @mean_fare[…]"),
    "no value": (MEAN, "@mean_fare[nan]", "a value for @mean_fare[…]"),
    "all decimals": (MEAN, "@mean_fare[34.654321098765]", "round @mean_fare[…]"),
    "one of two tags": ("Give @low[value] and @high[value].", "@low[1]", "@high[…]"),
}


@pytest.mark.parametrize(("query", "output"), KEPT.values(), ids=KEPT)
def test_an_output_with_the_stated_tags_raises_no_doubt(query: str, output: str) -> None:
    assert broken_format(query, output) == ""


@pytest.mark.parametrize(("query", "output", "said"), BROKEN.values(), ids=BROKEN)
def test_an_output_without_a_stated_tag_is_a_doubt(query: str, output: str, said: str) -> None:
    assert said in broken_format(query, output)
