"""Show the last lines of a large file without keeping all of it in memory, like tail.

How do I see the final 3 rows of a huge log file?
How to get just the end of a file that is too big to load?
What were the most recent entries my weather station wrote to its growing text file?
How can I peek at the bottom of a several gigabyte export?
Python tail of file deque maxlen?
"""

from collections import deque

with open("numbers.log", "w") as file:
    file.writelines(f"entry {number}\n" for number in range(1, 1001))

with open("numbers.log") as file:
    last = deque(file, maxlen=3)

print("Last three lines:")
print("".join(last).rstrip())
