"""Find which bookings or appointments overlap in time.

Two periods overlap if each starts before the other ends.

Anna reserved the meeting room 9 to 10:30 and Ben 10 to 11; do they clash?
How do I detect double-booked time slots in a calendar?
Two guests want the same holiday flat; do their stays collide and for how long?
Which of my dentist, gym and school events are at conflicting times?
Check if time intervals intersect, overlap minutes python?
"""

from datetime import datetime
from itertools import combinations

bookings = [
    ("Anna", datetime(2024, 5, 1, 9, 0), datetime(2024, 5, 1, 10, 30)),
    ("Ben", datetime(2024, 5, 1, 10, 0), datetime(2024, 5, 1, 11, 0)),
    ("Cleo", datetime(2024, 5, 1, 11, 0), datetime(2024, 5, 1, 12, 0)),
]

for (first, start1, end1), (second, start2, end2) in combinations(bookings, 2):
    if start1 < end2 and start2 < end1:
        shared = min(end1, end2) - max(start1, start2)
        print(f"{first} and {second} overlap for {int(shared.total_seconds() // 60)} minutes")
