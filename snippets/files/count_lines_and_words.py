"""Count lines, words and characters of a text file, like the wc command.

How long is my essay in words and characters if it is saved as a .txt?
How do I find out how many rows a text document has?
My teacher wants at most 500 words; how can I check the file I wrote?
Which is the longest row in my poem file, and how big is the poem?
Wc equivalent in python for text file?
"""

from pathlib import Path

path = Path("poem.txt")
path.write_text("Roses are red,\nviolets are blue,\n\nsugar is sweet.\n")

text = path.read_text()
print("Lines:", len(text.splitlines()))
print("Words:", len(text.split()))
print("Characters:", len(text))
print("Longest line:", max(text.splitlines(), key=len))
