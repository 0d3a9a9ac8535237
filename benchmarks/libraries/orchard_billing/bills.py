"""Bills to customers: drawing them up, charging for delay, splitting them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from enum import Enum

from orchard_billing._rounding import to_step


class Tier(Enum):
    """Kind of customer, which determines rebates and the handling of delays."""

    STALL = "stall"
    SHOP = "shop"
    CHAIN = "chain"


@dataclass(frozen=True)
class Customer:
    """A customer of the cooperative.

    Attributes:
        name: Name on the bill.
        tier: Kind of customer.
        prepaid_eur: Advance that was already paid, in EUR.
    """

    name: str
    tier: Tier
    prepaid_eur: float = 0.0


@dataclass(frozen=True)
class Line:
    """A line of a bill.

    Attributes:
        variety: Name of the variety.
        kg: Weight sold, in kilograms.
        eur_per_kg: Price, in EUR per kilogram.
        crates: Number of returnable crates that go with it.
    """

    variety: str
    kg: float
    eur_per_kg: float
    crates: int = 0


@dataclass(frozen=True)
class Bill:
    """A bill, with each of its parts in EUR.

    Attributes:
        goods_eur: Value of the goods.
        rebate_eur: Rebate of the customer's tier, a positive amount.
        haulage_eur: Cost of delivery.
        deposit_eur: Deposit on the crates.
        discount_eur: Discount for early payment, a positive amount.
        payable_eur: What remains to be paid, after any advance.
    """

    goods_eur: float
    rebate_eur: float
    haulage_eur: float
    deposit_eur: float
    discount_eur: float
    payable_eur: float


def _rebate_rate(tier: Tier, goods_eur: float) -> float:
    if tier is Tier.CHAIN:
        return 0.0525 if goods_eur >= 5000 else 0.04
    if tier is Tier.SHOP and goods_eur >= 800:
        return 0.025
    return 0.0


def _discount_rate(paid_within_days: int | None) -> float:
    if paid_within_days is None or paid_within_days > 15:
        return 0.0
    return 0.018 if paid_within_days <= 8 else 0.009


def draw_up(
    customer: Customer, lines: Sequence[Line], *, collect: bool = False, paid_within_days: int | None = None
) -> Bill:
    """Draw up the bill for a sale.

    The rebate is 2.5 % of the goods for a SHOP from 800 EUR, and for a CHAIN 4 %, or 5.25 % from
    5,000 EUR; a STALL has none. Haulage is 0.034 EUR per kilogram, at least 24 EUR. The deposit is
    3.80 EUR per crate. Early payment earns a discount on goods less rebate, not on haulage or
    deposit: 1.8 % within 8 days, 0.9 % within 15 days. Each part is rounded to cents. An advance
    is deducted at the end, and the rest is rounded half up to 0.05 EUR; it is never negative.

    Args:
        customer: Who buys.
        lines: What is sold.
        collect: The customer collects the goods, so that there is no haulage.
        paid_within_days: Days until the payment, or None where it is not known to be early.

    Returns:
        The bill with its parts.
    """
    goods = to_step(sum(line.kg * line.eur_per_kg for line in lines))
    rebate = to_step(goods * _rebate_rate(customer.tier, goods))
    haulage = 0.0 if collect else to_step(max(24.0, 0.034 * sum(line.kg for line in lines)))
    deposit = to_step(3.80 * sum(line.crates for line in lines))
    discount = to_step((goods - rebate) * _discount_rate(paid_within_days))
    rest = goods - rebate + haulage + deposit - discount - customer.prepaid_eur
    return Bill(goods, rebate, haulage, deposit, discount, to_step(max(0.0, rest), "0.05"))


def late_charge(amount_eur: float, days_late: int, *, tier: Tier = Tier.SHOP, grace_days: int = 6) -> float:
    """Determine what a customer is charged for a late payment.

    Days beyond the grace cost 0.045 % of the amount each, and each begun period of 30 days beyond
    the grace costs a reminder of 12.50 EUR. A STALL is never charged more than 40 EUR in all; a
    CHAIN has no grace, whatever is passed.

    Args:
        amount_eur: The amount that is due, in EUR.
        days_late: Days since the amount was due.
        tier: Kind of customer.
        grace_days: Days of delay that cost nothing.

    Returns:
        The charge in EUR, rounded to cents.

    Example:
        >>> late_charge(1000.0, 10)
        14.3
    """
    charged = max(0, days_late - (0 if tier is Tier.CHAIN else grace_days))
    charge = amount_eur * 0.00045 * charged + 12.50 * math.ceil(charged / 30)
    return to_step(min(charge, 40.0) if tier is Tier.STALL else charge)


def split_bill(amount_eur: float, parts: int, *, front_loaded: bool = False) -> list[float]:
    """Split an amount into instalments.

    All instalments but the first are rounded down to 0.50 EUR; the first bears the rest. With
    front loading, the others share 55 % of the amount instead of their equal part of it.

    Args:
        amount_eur: The amount to split, in EUR.
        parts: Number of instalments, at least 2.
        front_loaded: Make the first instalment larger.

    Returns:
        The instalments in EUR, in the order in which they are due.

    Raises:
        ValueError: If there are fewer than two parts.

    Example:
        >>> split_bill(100.0, 3)
        [34.0, 33.0, 33.0]
    """
    if parts < 2:
        raise ValueError("An amount is split into two parts at least.")
    share = amount_eur * 0.55 / (parts - 1) if front_loaded else amount_eur / parts
    other = to_step(share, "0.50", ROUND_FLOOR)
    return [to_step(amount_eur - other * (parts - 1))] + [other] * (parts - 1)
