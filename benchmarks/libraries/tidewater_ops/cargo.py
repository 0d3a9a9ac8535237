"""Stowage of cargo, and the time that loading may take."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from tidewater_ops._rounding import begun, to_step


class Hazard(Enum):
    """Hazard of a cargo; the value is the code on its papers."""

    NONE = "N0"
    COLD = "K2"
    REACTIVE = "R4"
    VOLATILE = "V7"


@dataclass(frozen=True)
class Parcel:
    """A parcel of cargo that is stowed together.

    Attributes:
        mark: Mark of the parcel.
        tonnes: Weight, in tonnes.
        stow_factor: Volume that a tonne needs, in cubic metres per tonne.
        hazard: Hazard of the cargo.
        stackable: Whether other cargo may lie on it.
    """

    mark: str
    tonnes: float
    stow_factor: float = 1.35
    hazard: Hazard = Hazard.NONE
    stackable: bool = True

    @property
    def volume_m3(self) -> float:
        """Volume in cubic metres (two decimals); what is not stackable takes a quarter more."""
        return to_step(self.tonnes * self.stow_factor * (1.0 if self.stackable else 1.25))


@dataclass(frozen=True)
class Hold:
    """A hold of a vessel.

    Attributes:
        name: Name of the hold.
        capacity_m3: Volume of the empty hold, in cubic metres.
        limit_t: Weight that it carries, in tonnes.
        vented: Whether it is ventilated.
    """

    name: str
    capacity_m3: float
    limit_t: float
    vented: bool = False


@dataclass
class StowPlan:
    """Which parcel goes where.

    Attributes:
        placed: Marks of the parcels in each hold, by name of the hold, in the order of stowing.
        left_over: Marks of the parcels that stay ashore, in the order in which they were tried.
        tonnes: Weight in each hold, in tonnes.
        spare_m3: Usable volume that is left in each hold, in cubic metres (two decimals).
    """

    placed: dict[str, list[str]] = field(default_factory=dict)
    left_over: list[str] = field(default_factory=list)
    tonnes: dict[str, float] = field(default_factory=dict)
    spare_m3: dict[str, float] = field(default_factory=dict)

    def hold_of(self, mark: str) -> str | None:
        """Find the hold of a parcel.

        Args:
            mark: Mark of the parcel.

        Returns:
            Name of the hold, or None where the parcel stays ashore.
        """
        return next((name for name, marks in self.placed.items() if mark in marks), None)


@dataclass(frozen=True)
class Settlement:
    """Who pays whom for the time of loading.

    Attributes:
        hours_over: Time beyond the laytime that is charged, in hours.
        hours_saved: Time saved that is paid for, in hours.
        demurrage_eur: What the charterer pays to the owner, in EUR.
        despatch_eur: What the owner pays to the charterer, in EUR.
    """

    hours_over: float
    hours_saved: float
    demurrage_eur: float
    despatch_eur: float

    @property
    def balance_eur(self) -> float:
        """Demurrage less despatch, in EUR: positive where the charterer pays."""
        return to_step(self.demurrage_eur - self.despatch_eur)


_GAPS_M = {
    frozenset({Hazard.COLD}): 0,
    frozenset({Hazard.REACTIVE}): 3,
    frozenset({Hazard.VOLATILE}): 5,
    frozenset({Hazard.COLD, Hazard.REACTIVE}): 7,
    frozenset({Hazard.COLD, Hazard.VOLATILE}): 4,
    frozenset({Hazard.REACTIVE, Hazard.VOLATILE}): 19,
}


def segregation_gap(first: Hazard, second: Hazard, *, on_deck: bool = False) -> int:
    """Look up the distance that must be kept between two cargoes.

    Below deck, the distance is 3 m between two REACTIVE cargoes, 5 m between two VOLATILE ones,
    4 m between COLD and VOLATILE, 7 m between COLD and REACTIVE, and 19 m between REACTIVE and
    VOLATILE; other pairs need none. On deck, half of it is enough, rounded up to full metres.

    Args:
        first: Hazard of one cargo.
        second: Hazard of the other cargo.
        on_deck: Whether both are stowed on deck.

    Returns:
        The distance in metres.

    Example:
        >>> segregation_gap(Hazard.VOLATILE, Hazard.COLD)
        4
    """
    gap = _GAPS_M.get(frozenset({first, second}), 0)
    return begun(gap / 2) if on_deck else gap


def _accepts(hold: Hold, parcel: Parcel, inside: Sequence[Parcel], plan: StowPlan) -> bool:
    if parcel.volume_m3 > plan.spare_m3[hold.name] or plan.tonnes[hold.name] + parcel.tonnes > hold.limit_t:
        return False
    if parcel.hazard is Hazard.VOLATILE and not hold.vented:
        return False
    return all(segregation_gap(parcel.hazard, other.hazard) <= 5 for other in inside)


def plan_stow(
    parcels: Sequence[Parcel], holds: Sequence[Hold], *, broken_pct: float = 9.0, as_listed: bool = False
) -> StowPlan:
    """Distribute parcels over the holds of a vessel.

    The parcels are taken by weight, the heaviest first, and each goes into the first of the holds
    (in the order given) that has the volume and the weight left for it. Of the volume of a hold,
    a share is lost as broken stowage. VOLATILE cargo only goes into vented holds, and two cargoes
    that must be kept more than 5 m apart below deck do not share a hold.

    Args:
        parcels: The parcels.
        holds: The holds.
        broken_pct: Share of each hold that is lost, in percent.
        as_listed: Take the parcels in the order given instead of by weight.

    Returns:
        The plan.
    """
    plan = StowPlan()
    inside: dict[str, list[Parcel]] = {}
    for hold in holds:
        plan.placed[hold.name], inside[hold.name], plan.tonnes[hold.name] = [], [], 0.0
        plan.spare_m3[hold.name] = to_step(hold.capacity_m3 * (1 - broken_pct / 100))
    for parcel in parcels if as_listed else sorted(parcels, key=lambda parcel: -parcel.tonnes):
        hold = next((hold for hold in holds if _accepts(hold, parcel, inside[hold.name], plan)), None)
        if hold is None:
            plan.left_over.append(parcel.mark)
            continue
        plan.placed[hold.name].append(parcel.mark)
        inside[hold.name].append(parcel)
        plan.tonnes[hold.name] = round(plan.tonnes[hold.name] + parcel.tonnes, 6)
        plan.spare_m3[hold.name] = to_step(plan.spare_m3[hold.name] - parcel.volume_m3)
    return plan


def allowed_hours(
    tonnes: float,
    tonnes_per_day: float,
    *,
    notice_hours: float = 6.0,
    rest_days: int = 0,
    rain_hours: float = 0.0,
) -> float:
    """Determine the laytime, which is the time that loading or discharging may take.

    It is the time at the agreed rate, rounded up to quarters of an hour, plus the notice, plus
    17 hours for each Sunday or holiday, plus 60 % of the hours of rain.

    Args:
        tonnes: Weight of the cargo, in tonnes.
        tonnes_per_day: Agreed rate, in tonnes per day of 24 hours.
        notice_hours: Time after the notice of readiness that does not count, in hours.
        rest_days: Number of Sundays and holidays.
        rain_hours: Time in which rain stopped the work, in hours.

    Returns:
        The laytime in hours, rounded to two decimals.
    """
    work = begun(tonnes / tonnes_per_day * 24 * 4) / 4
    return to_step(work + notice_hours + 17 * rest_days + 0.6 * rain_hours)


def settle_laytime(
    allowed: float, used: float, eur_per_day: float, *, despatch: bool = False, once_late: bool = True
) -> Settlement:
    """Determine who pays whom when loading took longer or shorter than the laytime.

    An excess of up to 1.5 hours is forgiven; a longer one counts from its first minute, rounded up
    to half hours. The first 36 hours cost the daily rate in proportion, and further ones 1.4 times
    as much, unless the contract excludes that. Time saved is paid for with 45 % of the daily rate
    in proportion, for 60 hours at most, but only where the contract provides for despatch.

    Args:
        allowed: Laytime, in hours.
        used: Time used, in hours.
        eur_per_day: Daily rate of demurrage, in EUR per 24 hours.
        despatch: Whether the contract provides for despatch.
        once_late: Whether the higher rate applies after 36 hours.

    Returns:
        The hours that count, and the amounts, rounded to cents.
    """
    excess = round(used - allowed, 6)
    if excess > 1.5:
        over = begun(excess * 2) / 2
        weighted = min(over, 36.0) + max(0.0, over - 36.0) * (1.4 if once_late else 1.0)
        return Settlement(over, 0.0, to_step(weighted * eur_per_day / 24), 0.0)
    saved = min(60.0, max(0.0, -excess)) if despatch else 0.0
    return Settlement(0.0, saved, 0.0, to_step(saved * 0.45 * eur_per_day / 24))
