# How much rebate does a chain get on a sale, and what is left after its advance?
from orchard_billing import Customer, Line, Tier, draw_up

chain = Customer("Frischmarkt", Tier.CHAIN, prepaid_eur=500.0)
bill = draw_up(chain, [Line("Gala", 1900, 1.12)])
print(bill.rebate_eur)
print(bill.payable_eur)
