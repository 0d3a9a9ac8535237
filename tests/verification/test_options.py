"""Optional arguments that a question names, and a program does not set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.inputs import FencedText
from code_chains.state import Execution
from code_chains.verification.sanity import sanity_verdict
from code_chains.verification.sanity.options import named_options, signatures, unset_options

REFERENCES = """Functions that are installed:
```text
from orchard import Lot
Lot(variety: str, gross_kg: float, bins: int = 1, organic: bool = False)
    A delivery.

from orchard import price
price(lot: Lot, *, hail_year: bool = False, paid_within_days: int | None = None, collect: bool = False) -> float

from orchard import charge
charge(amount: float, days: int = 0, *, tier: Tier = Tier.SHOP, room: Room | None = Room.CHILLED_ROOM) -> float

from orchard import Tier
Tier.STALL = 'stall'; Tier.SHOP = 'shop'; Tier.CHAIN = 'chain'

from orchard import Room
Room.CHILLED_ROOM = 1; Room.LOW_OXYGEN = 2
```"""
UNSET = {
    "a flag": ("The lot is organic.", "Lot('Cox', 3.0, 2)", ["`organic=` to `Lot`"]),
    "a name of two words": ("It was a hail year.", "price(lot)", ["`hail_year=` to `price`"]),
    "words with endings": ("The shop collects it itself.", "price(lot)", ["`collect=` to `price`"]),
    "a call with an attribute": (
        "It is organic.",
        "import orchard\norchard.Lot('Cox', 3.0)",
        ["`organic=` to `Lot`"],
    ),
    "a member of an enumeration": (
        "A market stall pays late.",
        "charge(3.0)",
        ["`tier=Tier.STALL` to `charge`"],
    ),
    "a member of two words": ("Of low-oxygen fruit?", "charge(3.0)", ["`room=Room.LOW_OXYGEN` to `charge`"]),
}
SET = {
    "by name": ("The lot is organic.", "Lot('Cox', 3.0, 2, organic=True)"),
    "by position": ("The lot is organic.", "Lot('Cox', 3.0, 2, True)"),
    "in one of two calls": ("One is organic.", "Lot('Cox', 3.0, 2)\nLot('Gala', 3.0, organic=True)"),
    "perhaps": ("The lot is organic.", "Lot(**fields)"),
    "perhaps by position": ("The lot is organic.", "Lot(*fields)"),
    "as a member": ("A chain pays late.", "charge(3.0, tier=Tier.CHAIN)"),
    "as the value of a member": ("A chain pays late.", "charge(3.0, tier=Tier('chain'))"),
    "not, as the member is the default": ("A shop of the chilled room pays late.", "charge(3.0)"),
    "not, as nothing takes the member": ("A market stall pays late.", "price(lot)"),
    "not, as the question does not name it": ("What does Cox earn?", "price(Lot('Cox', 3.0))"),
    "not, as the function is the program's own": (
        "The lot is organic.",
        "def Lot(variety, organic=False): ...\nLot('Cox')",
    ),
}


@pytest.mark.parametrize(("query", "code", "options"), UNSET.values(), ids=UNSET)
def test_an_option_that_the_question_names_must_be_set(query: str, code: str, options: list[str]) -> None:
    assert unset_options(query, code, REFERENCES) == options


@pytest.mark.parametrize(("query", "code"), SET.values(), ids=SET)
def test_an_option_may_be_set_in_any_way(query: str, code: str) -> None:
    assert unset_options(query, code, REFERENCES) == []


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


@given(st.text(), st.text(), st.text())
def test_nothing_makes_it_raise(query: str, code: str, references: str) -> None:
    assert isinstance(unset_options(query, code, references), list)
    assert isinstance(named_options(query, f"f({references})\n{references}"), list)
    assert isinstance(signatures(f"f({references})"), dict)


def test_a_short_number_must_reach_the_functions_of_a_package() -> None:
    state = {"query": "A debt of 12 euros, 7 days?", "execution": Execution("ok", stdout="9")}
    installed = {**state, "context": FencedText(REFERENCES)}
    verdict = sanity_verdict(installed, "print(charge(12))")
    assert verdict is not None
    assert "`7`" in verdict.reason
    assert sanity_verdict(installed, "print(charge(12, 7))") is None
    assert sanity_verdict(installed, "print(12 * 0.75)") is None


def test_an_unset_option_is_a_doubt_that_says_which() -> None:
    state = {
        "query": "What is the price of an organic lot of 300 kg?",
        "execution": Execution("ok", stdout="12.0"),
        "context": FencedText(REFERENCES),
    }
    verdict = sanity_verdict(state, "print(price(Lot('Cox', 300)))")
    assert verdict is not None
    assert (verdict.by, "Pass `organic=` to `Lot`." in verdict.reason) == ("checks", True)
