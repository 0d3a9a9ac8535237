# Split 1,250 euros into four instalments.
from orchard_billing import split_bill

instalments = split_bill(1250.0, 4)
for number, amount in enumerate(instalments, start=1):
    print(number, amount)
