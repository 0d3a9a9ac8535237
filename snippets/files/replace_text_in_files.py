"""Search and replace a word in all text files of a folder and tell which ones changed.

Our company got a new name; how do I change it in all letters of a directory?
How do I swap British "colour" for "color" in every .txt document at once?
How can I do find and replace over many documents and see which were affected?
My street was renamed; how can I fix it in hundreds of text notes?
Bulk find and replace across text files python?
"""

from pathlib import Path

folder = Path("letters")
folder.mkdir(exist_ok=True)
for name, text in {
    "one.txt": "Dear colour, colour!",
    "two.txt": "No change.",
    "three.txt": "colours",
}.items():
    (folder / name).write_text(text)

for path in sorted(folder.glob("*.txt")):
    text = path.read_text()
    count = text.count("colour")
    if count:
        path.write_text(text.replace("colour", "color"))
        print(f"{path.name}: {count} replaced, now {path.read_text()!r}")
