# When is there at least 3 m of water above harbour zero today?
from tidewater_ops.tides import Turn, open_windows

turns = [Turn(130, 0.6), Turn(505, 4.4), Turn(890, 0.9), Turn(1260, 4.2)]
for window in open_windows(turns, 3.0):
    print(window.clock)
