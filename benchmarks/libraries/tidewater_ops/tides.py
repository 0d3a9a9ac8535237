"""Heights of the tide, and the windows in which there is enough water."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidewater_ops._rounding import to_step


@dataclass(frozen=True)
class Turn:
    """A high or low water.

    Attributes:
        minute: When it is, in minutes after midnight (07:30 is 450; may exceed 1440).
        height_m: Height of the water, in metres above harbour zero.
    """

    minute: int
    height_m: float


@dataclass(frozen=True)
class Window:
    """A span of time, in minutes after midnight.

    Attributes:
        start: First minute.
        end: Last minute.
    """

    start: int
    end: int

    @property
    def minutes(self) -> int:
        """Length of the window, in minutes."""
        return self.end - self.start

    @property
    def clock(self) -> str:
        """The window as text, such as "07:05-09:40"."""
        return "-".join(f"{minute // 60 % 24:02d}:{minute % 60:02d}" for minute in (self.start, self.end))


_RISING = (0, 1, 4, 8, 10, 11, 12)
_FALLING = (0, 1, 3, 5, 8, 11, 12)
_SURGE_ON_EBB = 0.6
_DATUMS = {"HZ": 0.0, "LAT": 1.37, "CHART": 0.92, "RAIL": -6.85}


def _exact_height(turns: Sequence[Turn], minute: float, surge_m: float) -> float:
    for first, second in pairwise(turns):
        if first.minute <= minute <= second.minute:
            rising = second.height_m > first.height_m
            sixths = 6 * (minute - first.minute) / (second.minute - first.minute)
            step = min(int(sixths), 5)
            marks = _RISING if rising else _FALLING
            twelfths = marks[step] + (marks[step + 1] - marks[step]) * (sixths - step)
            surge = surge_m if rising else surge_m * _SURGE_ON_EBB
            return round(first.height_m + (second.height_m - first.height_m) * twelfths / 12 + surge, 8)
    raise ValueError(f"Minute {minute} is not between the turns of the tide.")


def height_at(turns: Sequence[Turn], minute: float, *, surge_m: float = 0.0) -> float:
    """Determine the height of the water at some time between turns of the tide.

    Our estuary does not follow the common rule of twelfths. The time between two turns is divided
    into six equal parts, in which the water rises by 1, 3, 4, 2, 1 and 1 twelfths of the range, and
    falls by 1, 2, 2, 3, 3 and 1 twelfths; within a part the change is even. A storm surge counts in
    full while the water rises and with 60 % while it falls (at a turn, the earlier part counts).

    Args:
        turns: High and low waters by turns, in the order of time.
        minute: The time, in minutes after midnight.
        surge_m: Storm surge, in metres.

    Returns:
        The height in metres above harbour zero, rounded to centimetres.

    Raises:
        ValueError: If the time is not between the turns.

    Example:
        >>> height_at([Turn(0, 1.0), Turn(360, 4.0)], 120)
        2.0
    """
    return to_step(_exact_height(turns, minute, surge_m))


def open_windows(
    turns: Sequence[Turn], need_m: float, *, surge_m: float = 0.0, lead_min: int = 15, daylight: bool = False
) -> list[Window]:
    """Find the windows in which the water is high enough to come in.

    A window begins a lead after the first full minute in which the water reaches the height, and
    ends twice the lead before the last one. With daylight, it is cut to 06:30 to 19:45 after that.
    Windows of less than 40 minutes are dropped.

    Args:
        turns: High and low waters by turns, in the order of time.
        need_m: Height that is needed, in metres above harbour zero.
        surge_m: Storm surge, in metres, which counts as for the heights of the tide.
        lead_min: The lead, in minutes.
        daylight: Whether the vessel may only come in by day.

    Returns:
        The windows, in the order of time.
    """
    minutes = range(turns[0].minute, turns[-1].minute + 1)
    high = [minute for minute in minutes if _exact_height(turns, minute, surge_m) >= round(need_m, 8)]
    spans: list[list[int]] = []
    for minute in high:
        if spans and spans[-1][1] == minute - 1:
            spans[-1][1] = minute
        else:
            spans.append([minute, minute])
    windows = [Window(start + lead_min, end - 2 * lead_min) for start, end in spans]
    if daylight:
        windows = [Window(max(window.start, 390), min(window.end, 1185)) for window in windows]
    return [window for window in windows if window.minutes >= 40]


def to_datum(height_m: float, target: str = "LAT", *, source: str = "HZ") -> float:
    """Convert a height from one datum into another.

    A height above harbour zero ("HZ") is 1.37 m greater above the lowest astronomical tide
    ("LAT"), 0.92 m greater above the zero of the charts ("CHART"), and 6.85 m less above the crane
    rail of the quay ("RAIL").

    Args:
        height_m: The height above the source datum, in metres.
        target: The datum that is asked for.
        source: The datum of the height.

    Returns:
        The height above the target datum in metres, rounded to centimetres.

    Raises:
        ValueError: If a datum does not exist.
    """
    if target not in _DATUMS or source not in _DATUMS:
        raise ValueError(f"The datums are {', '.join(_DATUMS)}.")
    return to_step(height_m - _DATUMS[source] + _DATUMS[target])
