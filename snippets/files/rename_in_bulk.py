"""Rename many files at once, giving them numbers with leading zeros."""

from pathlib import Path

folder = Path("photos")
folder.mkdir(exist_ok=True)
for name in ["beach.jpg", "castle.jpg", "notes.txt", "dinner.jpg"]:
    (folder / name).write_text(name)

for number, path in enumerate(sorted(folder.glob("*.jpg")), start=1):
    new = path.with_name(f"holiday_{number:03}{path.suffix}")
    path.rename(new)
    print(f"{path.name} -> {new.name}")
print("Files now:", sorted(path.name for path in folder.iterdir()))
