"""Statistics of evaluations, exact where samples are small."""

from __future__ import annotations

import math
from collections.abc import Sequence

_Z_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


def wilson(right: int, total: int) -> tuple[float, float]:
    """Return the Wilson interval, in which the share of a larger sample lies with a confidence of 95 %.

    Example:
        >>> [round(bound, 3) for bound in wilson(8, 10)]
        [0.49, 0.943]
    """
    if not total:
        return 0.0, 1.0
    share, square = right / total, _Z_95**2
    center = share + square / (2 * total)
    margin = _Z_95 * math.sqrt(share * (1 - share) / total + square / (4 * total**2))
    scale = 1 + square / total
    # Rounding may put a bound beyond a share of 0 or 1 by the last bit.
    return max(0.0, min(share, (center - margin) / scale)), min(1.0, max(share, (center + margin) / scale))


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p-value of McNemar's test.

    It is the probability of a difference at least as large if both were equally good: the cases that only one got
    right are then tosses of a fair coin.

    Example:
        >>> mcnemar(1, 5)
        0.21875
    """
    tosses = only_first + only_second
    tail = sum(math.comb(tosses, heads) for heads in range(min(only_first, only_second) + 1))
    return min(1.0, float(2 * tail / 2**tosses))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest of the values that at least a share of them do not exceed; 0 if there are none.

    Example:
        >>> percentile([3.0, 1.0, 2.0], 0.5)
        2.0
    """
    if not values:
        return 0.0
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
