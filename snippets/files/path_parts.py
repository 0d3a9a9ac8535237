"""Take a file path apart into folder, file name, stem and extension, and build another one."""

from pathlib import PurePosixPath

path = PurePosixPath("/home/ann/reports/2024/summary.final.pdf")

print("Folder:", path.parent)
print("File name:", path.name)
print("Without extension:", path.stem)
print("Extension:", path.suffix)
print("As a text file:", path.with_suffix(".txt"))
print("Relative to the reports:", path.relative_to("/home/ann/reports"))
