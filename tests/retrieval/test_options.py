"""Optional arguments of functions that a question may mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.retrieval.options import named_options

DESCRIBED = """from mill import grind
grind(corn: str, *, fine: bool = False, wheel: Literal['stone', 'steel'] = 'stone', speed: int = 3) -> float
    Grind corn into flour.
    Args:
        corn: What is ground.
        fine: Twice through the sieve, as bakers
            want it.
        speed: Turns of the wheel per second.

from mill import sift
sift(flour: Flour, kind: Kind, by: str = "hand") -> float

from mill import Kind
Kind.WHOLE_GRAIN = 'w'; Kind.WHITE = 'b'
"""
NAMED = {
    "its name": (
        "Is it fine?",
        ["fine: bool (default False), of grind: Twice through the sieve, as bakers want it."],
    ),
    "its documentation": (
        "For a baker.",
        ["fine: bool (default False), of grind: Twice through the sieve, as bakers want it."],
    ),
    "a literal": ("With steel?", ["wheel: 'stone' | 'steel' (default 'stone'), of grind"]),
    "a member of an enumeration that is required": (
        "Of whole grain.",
        ["kind: Kind.WHOLE_GRAIN | Kind.WHITE, of sift"],
    ),
    "a word that is said elsewhere, too": ("Grind corn into flour.", []),
    "nothing": ("How much is it?", []),
    "another language": ("Wie viel ist es?", []),
}


@pytest.mark.parametrize(("query", "said"), NAMED.values(), ids=NAMED)
def test_an_option_is_named_by(query: str, said: list[str]) -> None:
    assert named_options(query, DESCRIBED) == said


@given(st.text(), st.text())
def test_nothing_makes_it_raise(query: str, references: str) -> None:
    assert isinstance(named_options(query, f"f({references})\n{references}"), list)
