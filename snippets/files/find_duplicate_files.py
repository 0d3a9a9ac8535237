"""Find files with the same content by comparing their SHA-256 hashes.

My photo folder has copies of the same picture under different names; how do I spot them?
How do I detect identical documents in a directory even if the file names differ?
Can checksums tell me which downloads I saved twice?
How do I check if two backups of a song contain exactly the same bytes?
Duplicate file finder by sha256 hash python?
"""

import hashlib
from collections import defaultdict
from pathlib import Path

folder = Path("documents")
folder.mkdir(exist_ok=True)
for name, text in {"a.txt": "hello", "b.txt": "world", "copy.txt": "hello"}.items():
    (folder / name).write_text(text)

by_hash = defaultdict(list)
for path in sorted(folder.iterdir()):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    by_hash[digest].append(path.name)

print("Identical files:", [names for names in by_hash.values() if len(names) > 1])
