# Which pilot does the Anneke need for 7 miles, and what does it cost?
from tidewater_ops.berths import Vessel
from tidewater_ops.pilots import pilot_dues

bill = pilot_dues(Vessel("Anneke", 88.0, 13.2, 4.9), 7)
print(bill.grade.name, bill.total_eur)
