# Which grade does a lot of Boskoop get, and how many kilograms do we pay for?
from orchard_billing import Lot, appraise

lot = Lot("Boskoop", gross_kg=3412.0, bins=9, brix=12.4, bruised_pct=3.1)
found = appraise(lot)
print(found.grade.value, found.payable_kg)
