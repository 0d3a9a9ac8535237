# What does a shop have to pay for two varieties that we deliver?
from orchard_billing import Customer, Line, Tier, draw_up

shop = Customer("Obstladen Merz", Tier.SHOP)
lines = [Line("Cox", 220, 1.65, crates=18), Line("Jonagold", 310, 1.28, crates=25)]
bill = draw_up(shop, lines)
print(bill.payable_eur)
