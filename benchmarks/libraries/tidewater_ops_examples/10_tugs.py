# How many tugs does a vessel of 165 m need in 24 knots of wind?
from tidewater_ops.berths import Vessel
from tidewater_ops.pilots import tugs_needed

vessel = Vessel("Orla", 165.0, 24.0, 8.4)
print(tugs_needed(vessel, wind_kn=24))
