"""Find the largest files below a folder and show their sizes in readable units.

My disk is full; which things in my downloads take up the most space?
How do I show file sizes as kB and MB, biggest first?
What are the heaviest videos hiding somewhere in my subdirectories?
How do I sort everything under a directory by how much room it takes?
List biggest files recursively human readable size?
"""

from pathlib import Path

folder = Path("downloads")
(folder / "music").mkdir(parents=True, exist_ok=True)
for name, size in {"song.mp3": 3_500, "music/album.zip": 2_500_000, "note.txt": 12}.items():
    (folder / name).write_bytes(b"x" * size)


def readable(size):
    if size < 1000:
        return f"{size} bytes"
    if size < 1_000_000:
        return f"{size / 1000:.1f} kB"
    return f"{size / 1_000_000:.1f} MB"


files = [path for path in folder.rglob("*") if path.is_file()]
for path in sorted(files, key=lambda path: path.stat().st_size, reverse=True):
    print(f"{path.relative_to(folder).as_posix()}: {readable(path.stat().st_size)}")
