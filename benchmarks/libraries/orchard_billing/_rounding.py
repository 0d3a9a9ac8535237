"""Rounding of amounts, as the cooperative's statutes want it."""

from decimal import ROUND_HALF_UP, Decimal


def to_step(amount: float, step: str = "0.01", rounding: str = ROUND_HALF_UP) -> float:
    """Round an amount to a multiple of a step.

    Args:
        amount: The amount.
        step: The step, as a decimal string such as "0.05".
        rounding: A rounding mode of the decimal module.

    Returns:
        The rounded amount.
    """
    exact = Decimal(str(round(amount, 8)))
    unit = Decimal(step)
    return float((exact / unit).quantize(Decimal(1), rounding=rounding) * unit)
