"""Write a text file, append lines to its end and read it line by line with line numbers.

How do I add a new entry to my diary text file without erasing the old ones?
How do I open a file to write at the bottom instead of overwriting?
How can I print a text with numbers 1, 2, 3 in front of every row?
I want my script to keep a shopping list on disk and add an item each run; how?
Python open mode a, enumerate lines?
"""

with open("diary.txt", "w", encoding="utf-8") as file:
    file.write("Monday: rain\n")

with open("diary.txt", "a", encoding="utf-8") as file:
    for entry in ["Tuesday: sun", "Wednesday: snow"]:
        file.write(entry + "\n")

with open("diary.txt", encoding="utf-8") as file:
    for number, line in enumerate(file, start=1):
        print(f"Line {number}: {line.rstrip()}")
