"""Rename many files at once, giving them numbers with leading zeros.

My camera names pictures oddly; how do I call them holiday_001.jpg, holiday_002.jpg and so on?
How do I give a whole set of files sequential numbers in their names?
How can I batch change the names of 200 scanned pages to page_001, page_002?
How do I number lecture recordings so that 10 does not come before 2?
Batch rename jpg files zero padded counter?
"""

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
