# How many harbour units does the Skylark have?
from tidewater_ops.berths import Vessel

skylark = Vessel("Skylark", 124.0, 18.5, 6.8, shore_power=True)
print(skylark.units)
