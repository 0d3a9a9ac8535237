"""Tidy up a folder by moving files into subfolders according to their type.

My downloads are a mess; how can I automatically put pictures and PDFs in separate directories?
How do I move .jpg to images and .pdf to documents with a script?
Can Python clean up my desktop by placing each file where its kind belongs?
How do I organize scanned bills, photos and everything else into their own places?
Organize files by extension shutil move subdirectories?
"""

import shutil
from pathlib import Path

KINDS = {".jpg": "images", ".png": "images", ".pdf": "documents", ".txt": "documents"}

folder = Path("inbox")
folder.mkdir(exist_ok=True)
for name in ["cat.jpg", "logo.png", "bill.pdf", "todo.txt", "data.bin"]:
    (folder / name).touch()

for path in sorted(folder.iterdir()):
    if path.is_file():
        target = folder / KINDS.get(path.suffix, "other")
        target.mkdir(exist_ok=True)
        shutil.move(path, target / path.name)

for path in sorted(folder.rglob("*.*")):
    print("Moved to", path.relative_to(folder).as_posix())
