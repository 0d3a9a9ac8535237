# What does the Anneke pay for 30 hours at the quay?
from tidewater_ops.berths import Vessel, moor_tariff

anneke = Vessel("Anneke", loa_m=88.0, beam_m=13.2, draught_m=4.9)
bill = moor_tariff(anneke, 30)
print(bill.total_eur)
