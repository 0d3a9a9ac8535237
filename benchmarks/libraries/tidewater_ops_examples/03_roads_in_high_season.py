# A coaster waits 20 hours on the roads in the high season: how many windows are billed, and how much is it?
from tidewater_ops.berths import BerthClass, Vessel, moor_tariff

coaster = Vessel("Brigg", 76.0, 11.4, 4.2)
bill = moor_tariff(coaster, 20, BerthClass.ROADS, season="high")
print(bill.windows)
print(bill.total_eur)
