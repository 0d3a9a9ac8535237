"""Billing of the orchard cooperative: grading of lots, bills to customers, cold storage."""

from orchard_billing.bills import Bill, Customer, Line, Tier, draw_up, late_charge, split_bill
from orchard_billing.grading import Appraisal, Grade, Lot, appraise, pallet_label, strike_price
from orchard_billing.storage import Chamber, Release, hold_charge, release_order

__all__ = [
    "Appraisal",
    "Bill",
    "Chamber",
    "Customer",
    "Grade",
    "Line",
    "Lot",
    "Release",
    "Tier",
    "appraise",
    "draw_up",
    "hold_charge",
    "late_charge",
    "pallet_label",
    "release_order",
    "split_bill",
    "strike_price",
]
