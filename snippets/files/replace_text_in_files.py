"""Search and replace a word in all text files of a folder and tell which ones changed."""

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
