# What do we charge a shop that pays 640 euros 25 days late?
from orchard_billing.bills import late_charge

amount = 640.0
charge = late_charge(amount, 25)
print(charge)
