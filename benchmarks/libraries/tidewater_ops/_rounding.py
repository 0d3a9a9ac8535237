"""Rounding that is not disturbed by binary fractions."""

import math
from decimal import ROUND_HALF_UP, Decimal


def to_step(amount: float, step: str = "0.01") -> float:
    """Round an amount half up to a multiple of a step.

    Args:
        amount: The amount.
        step: The step, as a decimal string such as "0.05".

    Returns:
        The rounded amount.
    """
    unit = Decimal(step)
    return float((Decimal(str(round(amount, 8))) / unit).quantize(Decimal(1), ROUND_HALF_UP) * unit)


def begun(amount: float) -> int:
    """Count begun units, where a fraction counts in full.

    Args:
        amount: The number of units.

    Returns:
        The number, rounded up.
    """
    return math.ceil(round(amount, 8))
