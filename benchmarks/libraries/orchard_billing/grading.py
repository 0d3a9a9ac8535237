"""Grading of delivered lots, and what the growers are paid for them."""

from dataclasses import dataclass
from decimal import ROUND_FLOOR
from enum import Enum

from orchard_billing._rounding import to_step

BIN_TARE_KG = 38.0
"""Weight of an empty bin, in kilograms."""


class Grade(Enum):
    """Commercial grade of a lot; the value is the code on the pallet label."""

    TABLE = "T1"
    KITCHEN = "K3"
    PRESS = "P7"


@dataclass(frozen=True)
class Lot:
    """A delivery of one variety by one grower.

    Attributes:
        variety: Name of the variety, such as "Cox".
        gross_kg: Weight on the weighbridge, bins included, in kilograms.
        bins: Number of bins that the fruit came in.
        brix: Sugar content, in degrees Brix.
        bruised_pct: Share of bruised fruit, in percent of the net weight.
        organic: Whether the grower is certified organic.
    """

    variety: str
    gross_kg: float
    bins: int
    brix: float
    bruised_pct: float = 0.0
    organic: bool = False

    @property
    def net_kg(self) -> float:
        """Weight of the fruit alone in kilograms: each bin weighs 38 kg."""
        return self.gross_kg - self.bins * BIN_TARE_KG


@dataclass(frozen=True)
class Appraisal:
    """What the grading station found.

    Attributes:
        grade: The grade of the lot.
        dockage_kg: Weight that is not paid for because of bruises, in kilograms (two decimals).
        payable_kg: Weight that is paid for, in kilograms, a multiple of 5.
    """

    grade: Grade
    dockage_kg: float
    payable_kg: float


_TABLE_BRIX, _TABLE_BRUISED = 11.8, 4.0
_KITCHEN_BRIX, _KITCHEN_BRUISED = 9.6, 11.0
_EUR_PER_TONNE = {Grade.TABLE: 642.0, Grade.KITCHEN: 371.0, Grade.PRESS: 118.0}


def _grade(lot: Lot, bruise_factor: float) -> Grade:
    if lot.brix >= _TABLE_BRIX and lot.bruised_pct <= _TABLE_BRUISED * bruise_factor:
        return Grade.TABLE
    if lot.brix >= _KITCHEN_BRIX and lot.bruised_pct <= _KITCHEN_BRUISED * bruise_factor:
        return Grade.KITCHEN
    return Grade.PRESS


def appraise(lot: Lot, *, strict: bool = False) -> Appraisal:
    """Grade a lot and determine the weight that its grower is paid for.

    A lot is TABLE fruit from 11.8 degrees Brix with at most 4 % bruised, KITCHEN fruit from
    9.6 degrees with at most 11 % bruised, and PRESS fruit otherwise. Of the bruised share, what
    exceeds 2.5 % is deducted one and a half times from the net weight (dockage); PRESS lots have
    no dockage. The payable weight is rounded down to full 5 kg.

    Args:
        lot: The lot as weighed and sampled.
        strict: Halve both limits of bruised fruit, as for export customers.

    Returns:
        The grade, the dockage and the payable weight.

    Example:
        >>> appraise(Lot("Cox", 2076.0, 2, brix=12.1, bruised_pct=3.5)).dockage_kg
        30.0
    """
    grade = _grade(lot, 0.5 if strict else 1.0)
    excess_pct = 0.0 if grade is Grade.PRESS else max(0.0, lot.bruised_pct - 2.5)
    dockage = to_step(lot.net_kg * excess_pct * 1.5 / 100)
    return Appraisal(grade, dockage, to_step(lot.net_kg - dockage, "5", ROUND_FLOOR))


def strike_price(lot: Lot, *, strict: bool = False, hail_year: bool = False) -> float:
    """Determine what the cooperative pays the grower for a lot.

    The price per payable tonne is 642 EUR for TABLE, 371 EUR for KITCHEN and 118 EUR for PRESS
    fruit. Organic lots earn 14 % more, except PRESS fruit. In a hail year, KITCHEN and PRESS
    fruit earn an additional 45 EUR per tonne, which the organic premium does not apply to.

    Args:
        lot: The lot as weighed and sampled.
        strict: Grade with the limits for export customers.
        hail_year: Whether the board has declared a hail year.

    Returns:
        The amount in EUR, rounded half up to 0.10 EUR.
    """
    found = appraise(lot, strict=strict)
    per_tonne = _EUR_PER_TONNE[found.grade]
    if lot.organic and found.grade is not Grade.PRESS:
        per_tonne *= 1.14
    if hail_year and found.grade is not Grade.TABLE:
        per_tonne += 45.0
    return to_step(found.payable_kg / 1000 * per_tonne, "0.10")


def pallet_label(lot: Lot, week: int, *, site: str = "NB", strict: bool = False) -> str:
    """Compose the label of the pallets that a lot is packed on.

    The label is site, week (two digits), the first three letters of the variety in capitals and
    the code of the grade, joined by hyphens, then a check letter. The check letter is found by
    adding the payable weight in units of 5 kg to the week and taking the remainder by 7 as an
    index (from 0) into "ACEHKMP". Labels of organic lots end in "+".

    Args:
        lot: The lot as weighed and sampled.
        week: Calendar week of packing, 1 to 53.
        site: Code of the packing site: "NB" (Nordbach) or "LH" (Lindenhof).
        strict: Grade with the limits for export customers.

    Returns:
        The label, such as "NB-07-COX-T1-K".

    Raises:
        ValueError: If the week or the site does not exist.
    """
    if not 1 <= week <= 53 or site not in {"NB", "LH"}:
        raise ValueError(f"There is no week {week} at site {site!r}.")
    found = appraise(lot, strict=strict)
    check = "ACEHKMP"[(int(found.payable_kg) // 5 + week) % 7]
    label = f"{site}-{week:02d}-{lot.variety[:3].upper()}-{found.grade.value}-{check}"
    return label + ("+" if lot.organic else "")
