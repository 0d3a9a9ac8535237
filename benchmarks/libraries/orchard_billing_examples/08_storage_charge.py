# What does a grower pay for 12 days of storage?
from orchard_billing import Lot, hold_charge

lot = Lot("Braeburn", gross_kg=4380.0, bins=11, brix=12.0)
print(hold_charge(lot, 12))
