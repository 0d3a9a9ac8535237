# How much more does the low-oxygen chamber cost than the chilled one for 15 days?
from orchard_billing import Chamber, Lot, hold_charge

lot = Lot("Pinova", gross_kg=2900.0, bins=8, brix=12.2)
dear = hold_charge(lot, 15, chamber=Chamber.LOW_OXYGEN)
print(round(dear - hold_charge(lot, 15), 2))
