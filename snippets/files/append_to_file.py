"""Write a text file, append lines to its end and read it line by line with line numbers."""

with open("diary.txt", "w", encoding="utf-8") as file:
    file.write("Monday: rain\n")

with open("diary.txt", "a", encoding="utf-8") as file:
    for entry in ["Tuesday: sun", "Wednesday: snow"]:
        file.write(entry + "\n")

with open("diary.txt", encoding="utf-8") as file:
    for number, line in enumerate(file, start=1):
        print(f"Line {number}: {line.rstrip()}")
