"""Find files with the same content by comparing their SHA-256 hashes."""

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
