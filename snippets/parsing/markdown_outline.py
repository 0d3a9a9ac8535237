"""Make a table of contents from the headings of a Markdown document."""

import re

document = """# Cookbook
Some words.
## Soups
### Tomato soup
## Cakes
"""

headings = re.findall(r"^(#+)\s+(.+?)\s*$", document, re.MULTILINE)
for marks, title in headings:
    anchor = title.lower().replace(" ", "-")
    print(f"{'  ' * (len(marks) - 1)}- [{title}](#{anchor})")
print("Number of headings:", len(headings))
