# How high is the water at 09:00 if low water is at 06:10 with 0.8 m and high water at 12:25 with 4.1 m?
from tidewater_ops.tides import Turn, height_at

turns = [Turn(370, 0.8), Turn(745, 4.1)]
print(height_at(turns, 9 * 60))
