# How much do we pay the grower for a lot of organic Topaz?
from orchard_billing.grading import Lot, strike_price

lot = Lot("Topaz", gross_kg=2210.0, bins=6, brix=12.9, bruised_pct=1.5, organic=True)
print(strike_price(lot))
