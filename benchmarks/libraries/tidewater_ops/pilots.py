"""Pilots and tugs: who is needed, and what it costs."""

from dataclasses import dataclass
from enum import Enum

from tidewater_ops._rounding import begun, to_step
from tidewater_ops.berths import Vessel


class PilotGrade(Enum):
    """Grade of a pilot, from the lowest to the highest; the value is the letter on the badge."""

    RIVER = "R"
    HARBOUR = "H"
    MASTER = "M"


@dataclass(frozen=True)
class PilotBill:
    """What a pilot costs.

    Attributes:
        grade: Grade of the pilot.
        basic_eur: Dues without surcharges, in EUR.
        surcharge_eur: Surcharges for night and short notice, in EUR.
        total_eur: Amount to be paid, in full EUR.
    """

    grade: PilotGrade
    basic_eur: float
    surcharge_eur: float
    total_eur: int


_FACTORS = {PilotGrade.RIVER: 1.0, PilotGrade.HARBOUR: 1.3, PilotGrade.MASTER: 1.75}


def _grade_for(vessel: Vessel, night: bool) -> PilotGrade:
    grades = list(PilotGrade)
    if vessel.draught_m < 5.5 and vessel.loa_m < 110:
        rank = 0
    elif vessel.draught_m < 9.0 and vessel.loa_m < 190:
        rank = 1
    else:
        rank = 2
    return grades[min(2, rank + night)]


def _notice_rate(notice_hours: float) -> float:
    if notice_hours < 4:
        return 0.40
    return 0.15 if notice_hours < 8 else 0.0


def pilot_dues(
    vessel: Vessel,
    miles: float,
    *,
    night: bool = False,
    notice_hours: float = 12.0,
    grade: PilotGrade | None = None,
) -> PilotBill:
    """Determine which pilot a vessel needs, and what the pilot costs.

    A RIVER pilot suffices for a draught below 5.5 m and a length below 110 m, a HARBOUR pilot below
    9 m and 190 m; otherwise, it is a MASTER. At night the next higher grade is needed.

    The basic dues are 84 EUR plus 0.19 EUR per harbour unit and nautical mile, times 1.0 (RIVER),
    1.3 (HARBOUR) or 1.75 (MASTER). Miles are rounded up to half miles, and at least 3 are charged.
    Night costs 22 % of the basic dues; a notice of less than 8 hours 15 %, of less than 4 hours
    40 %. Both parts are rounded to cents and the total is rounded half up to full EUR.

    Args:
        vessel: The vessel.
        miles: Distance, in nautical miles.
        night: Whether any part of the passage is at night.
        notice_hours: How long before the passage the pilot was ordered, in hours.
        grade: Grade that is ordered, whatever the vessel needs.

    Returns:
        The grade and the dues.
    """
    chosen = grade or _grade_for(vessel, night)
    charged = max(3.0, begun(miles * 2) / 2)
    basic = to_step((84 + 0.19 * vessel.units * charged) * _FACTORS[chosen])
    surcharge = to_step(basic * ((0.22 if night else 0.0) + _notice_rate(notice_hours)))
    return PilotBill(chosen, basic, surcharge, int(to_step(basic + surcharge, "1")))


def tugs_needed(vessel: Vessel, *, wind_kn: float = 12.0, thruster: bool = False, laden: bool = True) -> int:
    """Determine how many tugs a vessel needs.

    A vessel below 90 m needs none, below 140 m one, below 200 m two, and three from there on. From
    22 knots of wind it needs one more, and from 33 knots two more; a vessel in ballast (not laden)
    needs one more from 18 knots. A bow thruster saves one tug below 28 knots, if one is needed.

    Args:
        vessel: The vessel.
        wind_kn: Wind, in knots.
        thruster: Whether the vessel has a bow thruster that works.
        laden: Whether the vessel carries cargo.

    Returns:
        The number of tugs.
    """
    tugs = sum(vessel.loa_m >= limit for limit in (90, 140, 200))
    tugs += sum(wind_kn >= limit for limit in (22, 33))
    tugs += not laden and wind_kn >= 18
    return max(0, tugs - 1) if thruster and wind_kn < 28 else tugs


def tug_hire(tugs: int, minutes: int, *, standby_min: int = 0, holiday: bool = False) -> float:
    """Determine what tugs cost.

    A tug costs 268 EUR per begun half hour, at least two of them, and 3.10 EUR per minute of
    standby. From the third tug on, each costs 12 % less, standby included. Holidays cost 30 % more,
    but not for standby.

    Args:
        tugs: Number of tugs.
        minutes: Time of work of each tug, in minutes.
        standby_min: Time that each tug has to wait, in minutes.
        holiday: Whether it is a Sunday or holiday.

    Returns:
        The cost in EUR, rounded to cents.

    Example:
        >>> tug_hire(1, 75)
        804.0
    """
    work = 268.0 * max(2, begun(minutes / 30)) * (1.3 if holiday else 1.0)
    return to_step((work + 3.10 * standby_min) * (min(tugs, 2) + 0.88 * max(0, tugs - 2)))
