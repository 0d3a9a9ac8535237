"""Take a file path apart into folder, file name, stem and extension, and build another one.

How do I get just "summary.pdf" out of a long location like /home/ann/reports/summary.pdf?
How do I change the ending of a filename from .pdf to .txt?
What is the name of a file without its directory and without the suffix?
Given where a photo is stored, how do I get the containing directory name?
Pathlib parent name stem suffix with_suffix?
"""

from pathlib import PurePosixPath

path = PurePosixPath("/home/ann/reports/2024/summary.final.pdf")

print("Folder:", path.parent)
print("File name:", path.name)
print("Without extension:", path.stem)
print("Extension:", path.suffix)
print("As a text file:", path.with_suffix(".txt"))
print("Relative to the reports:", path.relative_to("/home/ann/reports"))
