"""Vessels, berths, and what mooring costs."""

import re
from dataclasses import dataclass
from enum import Enum

from tidewater_ops._rounding import begun, to_step


class BerthClass(Enum):
    """Kind of berth; the value is the letter that berth tags begin with."""

    QUAY = "Q"
    BASIN = "B"
    ROADS = "R"
    PONTOON = "P"


@dataclass(frozen=True)
class Vessel:
    """A vessel that calls at the harbour.

    Attributes:
        name: Name of the vessel.
        loa_m: Length over all, in metres.
        beam_m: Greatest width, in metres.
        draught_m: Depth of the keel below the water line, in metres.
        shore_power: Whether the vessel can switch off its engines and take power from the quay.
    """

    name: str
    loa_m: float
    beam_m: float
    draught_m: float
    shore_power: bool = False

    @property
    def units(self) -> int:
        """Harbour units, the measure of most tariffs.

        A unit is 25 square metres of length times beam, begun units counting in full. A vessel
        of more than 180 m has a tenth more, and the sum is again rounded up.
        """
        units = begun(self.loa_m * self.beam_m / 25)
        return begun(units * 1.1) if self.loa_m > 180 else units


@dataclass(frozen=True)
class Berth:
    """A place where vessels moor.

    Attributes:
        code: Class letter and number, such as "Q07".
        berth_class: Kind of berth.
        length_m: Usable length, in metres.
        depth_m: Depth of water at harbour zero, in metres.
        soft: Whether the bottom is soft mud.
    """

    code: str
    berth_class: BerthClass
    length_m: float
    depth_m: float
    soft: bool = False


@dataclass(frozen=True)
class BerthBill:
    """What a stay at a berth costs.

    Attributes:
        windows: Number of billing windows.
        base_eur: Tariff before season and rebates, in EUR.
        season_eur: Change because of the season, in EUR (negative in the low season).
        rebate_eur: Sum of all rebates, a positive amount in EUR.
        total_eur: Amount to be paid, in EUR, a multiple of 0.05.
    """

    windows: int
    base_eur: float
    season_eur: float
    rebate_eur: float
    total_eur: float


@dataclass(frozen=True)
class Clearance:
    """Whether a vessel fits a berth.

    Attributes:
        spare_m: Length of the berth that the vessel leaves free, in metres (two decimals).
        under_keel_m: Water below the keel, in metres (two decimals).
        verdict: "OK", "L" (berth too short), "D" (too shallow) or "LD" (both).
    """

    spare_m: float
    under_keel_m: float
    verdict: str

    @property
    def ok(self) -> bool:
        """Whether the vessel may moor."""
        return self.verdict == "OK"


_EUR_PER_UNIT_WINDOW = {
    BerthClass.QUAY: 1.35,
    BerthClass.BASIN: 1.12,
    BerthClass.ROADS: 0.46,
    BerthClass.PONTOON: 1.84,
}
_SEASONS = {"high": 0.18, "shoulder": 0.0, "low": -0.075}


def _caller_rate(earlier_calls: int) -> float:
    if earlier_calls >= 29:
        return 0.11
    return 0.06 if earlier_calls >= 11 else 0.0


def moor_tariff(
    vessel: Vessel,
    hours: float,
    berth_class: BerthClass = BerthClass.QUAY,
    *,
    season: str = "shoulder",
    earlier_calls: int = 0,
    rafted: bool = False,
) -> BerthBill:
    """Determine what a stay at a berth costs.

    The base is harbour units times billing windows times 1.35 EUR (QUAY), 1.12 EUR (BASIN),
    0.46 EUR (ROADS) or 1.84 EUR (PONTOON). A window has 8 hours, begun windows count in full, and
    at least two are billed; on the ROADS a window has 12 hours and there is no minimum but one.
    The season adds 18 % of the base ("high"), nothing ("shoulder") or takes 7.5 % ("low").

    The rebates are all taken from the base with its season: 35 % for rafted vessels; 6 % from the
    12th and 11 % from the 30th call of a vessel in a year; and 4.20 EUR per window for vessels with
    shore power, at a QUAY only. Each of the parts is rounded to cents, the total to 0.05 EUR.

    Args:
        vessel: The vessel.
        hours: Length of the stay, in hours.
        berth_class: Kind of berth.
        season: "high", "shoulder" or "low".
        earlier_calls: Calls of the vessel this year before the present one.
        rafted: Whether the vessel lies alongside another one.

    Returns:
        The bill with its parts.

    Raises:
        ValueError: If the season does not exist.
    """
    if season not in _SEASONS:
        raise ValueError(f"There is no season {season!r}.")
    at_roads = berth_class is BerthClass.ROADS
    windows = max(1, begun(hours / 12)) if at_roads else max(2, begun(hours / 8))
    base = to_step(vessel.units * windows * _EUR_PER_UNIT_WINDOW[berth_class])
    change = to_step(base * _SEASONS[season])
    share = (0.35 if rafted else 0.0) + _caller_rate(earlier_calls)
    green = 4.20 * windows if vessel.shore_power and berth_class is BerthClass.QUAY else 0.0
    rebate = to_step((base + change) * share + green)
    return BerthBill(windows, base, change, rebate, to_step(base + change - rebate, "0.05"))


def read_tag(tag: str, *, years_since_dredging: float = 0.0) -> Berth:
    """Read a berth tag, as it is painted on the bollards.

    A tag is the code of the berth (class letter and two digits), the length in metres and the
    depth in decimetres, separated by slashes; an "s" at the end stands for a soft bottom, as in
    "B03/140/072s". A berth silts up by 6 cm per year since it was dredged, one with a soft bottom
    by 11 cm; the depth is rounded to centimetres.

    Args:
        tag: The tag.
        years_since_dredging: Years since the depth on the tag was true.

    Returns:
        The berth, with its present depth.

    Raises:
        ValueError: If the tag cannot be read.

    Example:
        >>> read_tag("B03/140/072s").depth_m
        7.2
    """
    match = re.fullmatch(r"([QBRP])(\d\d)/(\d+)/(\d+)(s?)", tag.strip())
    if match is None:
        raise ValueError(f"{tag!r} is no berth tag.")
    letter, number, length, depth, mark = match.groups()
    silt_m = years_since_dredging * (0.11 if mark else 0.06)
    depth_m = to_step(int(depth) / 10 - silt_m)
    return Berth(letter + number, BerthClass(letter), float(length), depth_m, bool(mark))


def fits(vessel: Vessel, berth: Berth, *, tide_m: float = 0.0, calm: bool = False) -> Clearance:
    """Determine whether a vessel may moor at a berth.

    The berth must be longer than the vessel by 12 % of the vessel's length, and by 8 m at least;
    at a PONTOON 5 % and 2 m suffice. In calm weather half of that is enough. Under the keel there
    must be 0.90 m of water, or 0.40 m where the bottom is soft; on the ROADS there must be 15 % of
    the draught if that is more. What just reaches a limit is enough.

    Args:
        vessel: The vessel.
        berth: The berth.
        tide_m: Lowest height of the tide during the stay, in metres above harbour zero.
        calm: Whether calm weather is forecast for the whole stay.

    Returns:
        The spare length, the water under the keel, and the verdict.
    """
    pontoon = berth.berth_class is BerthClass.PONTOON
    gap = max(0.05 * vessel.loa_m, 2.0) if pontoon else max(0.12 * vessel.loa_m, 8.0)
    keel = 0.40 if berth.soft else 0.90
    if berth.berth_class is BerthClass.ROADS:
        keel = max(keel, 0.15 * vessel.draught_m)
    spare = to_step(berth.length_m - vessel.loa_m)
    under = to_step(berth.depth_m + tide_m - vessel.draught_m)
    short = spare < round(gap * (0.5 if calm else 1.0), 6)
    verdict = ("L" if short else "") + ("D" if under < round(keel, 6) else "")
    return Clearance(spare, under, verdict or "OK")
