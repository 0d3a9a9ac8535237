"""Cold storage: what growers pay for it, and which lots leave first."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from orchard_billing._rounding import to_step
from orchard_billing.grading import Lot


class Chamber(Enum):
    """Kind of storage; the value is the letter on the door."""

    AIRED = "A"
    CHILLED = "C"
    LOW_OXYGEN = "U"


@dataclass(frozen=True)
class Release:
    """Which lots leave the storage.

    Attributes:
        leaving: Varieties of the lots that leave, in their order.
        waiting: Varieties of the lots that stay, in the order in which they would leave.
        total_kg: Net weight that leaves, in kilograms.
    """

    leaving: list[str]
    waiting: list[str]
    total_kg: float


_EUR_PER_TONNE_DAY = {Chamber.AIRED: 0.55, Chamber.CHILLED: 0.92, Chamber.LOW_OXYGEN: 1.48}


def hold_charge(lot: Lot, days: int, *, chamber: Chamber = Chamber.CHILLED, free_days: int = 4) -> float:
    """Determine what a grower pays for the storage of a lot.

    Each begun tonne of net weight costs per day 0.55 EUR AIRED, 0.92 EUR CHILLED and 1.48 EUR
    LOW_OXYGEN. The first days are free, except in LOW_OXYGEN, where each day counts. Days after
    the 21st (of all days, free ones included) cost 30 % less. Organic lots are kept apart, which
    costs a flat 18 EUR, also where all days are free.

    Args:
        lot: The lot that is stored.
        days: Days of storage.
        chamber: Kind of storage.
        free_days: Days at the beginning that cost nothing.

    Returns:
        The charge in EUR, rounded to cents.
    """
    free = 0 if chamber is Chamber.LOW_OXYGEN else free_days
    full_days = max(0, min(days, 21) - free)
    cheap_days = max(0, days - max(21, free))
    per_day = math.ceil(lot.net_kg / 1000) * _EUR_PER_TONNE_DAY[chamber]
    return to_step(per_day * (full_days + 0.7 * cheap_days) + (18.0 if lot.organic else 0.0))


def release_order(
    lots: Sequence[Lot], *, limit_kg: float | None = None, organic_first: bool = False
) -> Release:
    """Decide which lots leave the storage, the most hasty first.

    The haste of a lot is three times its bruised share in percent less its degrees Brix; of two
    equal lots the lighter one (net) leaves first. With a limit, lots leave in this order; one
    that would exceed the limit waits, and the next one that fits is taken.

    Args:
        lots: The lots in storage.
        limit_kg: Net weight that the lorry takes, in kilograms, or None for no limit.
        organic_first: Let all organic lots leave before the others.

    Returns:
        The varieties that leave and those that wait, and the weight that leaves.
    """

    def rank(lot: Lot) -> tuple[bool, float, float]:
        return organic_first and not lot.organic, lot.brix - 3 * lot.bruised_pct, lot.net_kg

    leaving: list[str] = []
    waiting: list[str] = []
    total = 0.0
    for lot in sorted(lots, key=rank):
        if limit_kg is None or total + lot.net_kg <= limit_kg:
            leaving.append(lot.variety)
            total += lot.net_kg
        else:
            waiting.append(lot.variety)
    return Release(leaving, waiting, total)
