"""List all files in a folder and its subfolders by extension, with their total size.

How many .py and .csv files are in my project including nested directories, and how big are they?
How do I group everything in a directory tree by file type?
Which kinds of documents are on my USB stick and how many bytes per kind?
How can I get an overview of all jpg, pdf and docx files in my archive?
Rglob files grouped by suffix with size per type?
"""

from collections import defaultdict
from pathlib import Path

root = Path("project")
contents = {"readme.md": "Hello", "src/main.py": "print(1)", "src/util.py": "x = 1", "data/a.csv": "1,2,3"}
for name, text in contents.items():
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)

by_extension = defaultdict(list)
for path in sorted(root.rglob("*")):
    if path.is_file():
        by_extension[path.suffix].append(path)

for extension, paths in sorted(by_extension.items()):
    size = sum(path.stat().st_size for path in paths)
    print(f"{extension}: {[path.name for path in paths]}, {size} bytes")
