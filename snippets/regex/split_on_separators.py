"""Split a string on several separators at once: commas, semicolons, slashes and spaces.

How do I break "apples, pears;plums / figs" into separate fruit?
How do I divide a string at commas, slashes or blanks all in one go?
Users type ingredients separated by anything; how do I get a clean list?
How can I cut a line of tags where people used different delimiters?
Re.split multiple delimiters regex example?
"""

import re

text = "apples, pears;plums / figs   dates"

parts = re.split(r"\s*[,;/]\s*|\s+", text)
print("Parts:", parts)
