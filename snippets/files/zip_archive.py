"""Create a zip archive of several files, list what is inside and extract one of them.

How do I pack my monthly reports into one compressed file to send by email?
How do I look at what is inside a .zip without unpacking everything?
How can I take just one document out of a compressed bundle?
How much smaller do my text files get when I zip them for a backup?
Python zipfile create namelist extract single?
"""

import zipfile
from pathlib import Path

for name in ["january", "february"]:
    Path(f"{name}.txt").write_text(f"Report of {name}. " * 100)

with zipfile.ZipFile("reports.zip", "w", compression=zipfile.ZIP_DEFLATED) as archive:
    for name in ["january.txt", "february.txt"]:
        archive.write(name)

with zipfile.ZipFile("reports.zip") as archive:
    print("In the archive:", archive.namelist())
    for member in archive.infolist():
        print(
            f"{member.filename}: {member.file_size} bytes, packed smaller: {member.compress_size < member.file_size}"
        )
    archive.extract("january.txt", path="unpacked")
print("Extracted:", Path("unpacked/january.txt").read_text()[:18])
