# What is the net weight of a delivery of 14 bins?
from orchard_billing import Lot

lot = Lot("Elstar", gross_kg=5120.0, bins=14, brix=11.2)
print(lot.net_kg)
