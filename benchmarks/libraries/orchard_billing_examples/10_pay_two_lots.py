# What do we pay for two lots of the same grower together?
from orchard_billing import Lot, strike_price

lots = [Lot("Cox", 1980.0, 5, 12.3, 2.0), Lot("Idared", 2450.0, 7, 10.1, 6.0)]
print(round(sum(strike_price(lot) for lot in lots), 2))
