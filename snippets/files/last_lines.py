"""Show the last lines of a large file without keeping all of it in memory, like tail."""

from collections import deque

with open("numbers.log", "w") as file:
    file.writelines(f"entry {number}\n" for number in range(1, 1001))

with open("numbers.log") as file:
    last = deque(file, maxlen=3)

print("Last three lines:")
print("".join(last).rstrip())
