"""Count lines, words and characters of a text file, like the wc command."""

from pathlib import Path

path = Path("poem.txt")
path.write_text("Roses are red,\nviolets are blue,\n\nsugar is sweet.\n")

text = path.read_text()
print("Lines:", len(text.splitlines()))
print("Words:", len(text.split()))
print("Characters:", len(text))
print("Longest line:", max(text.splitlines(), key=len))
