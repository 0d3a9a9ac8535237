"""Make a table of contents from the headings of a Markdown document.

How do I build a clickable list of chapters from my README's # titles?
How do I collect all section titles of an .md file with indentation?
My cookbook notes use ## for chapters; how can I make an index at the top?
How do I generate anchors from section titles for a wiki page?
Markdown toc generator from headings regex?
"""

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
