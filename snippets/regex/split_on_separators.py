"""Split a string on several separators at once: commas, semicolons, slashes and spaces."""

import re

text = "apples, pears;plums / figs   dates"

parts = re.split(r"\s*[,;/]\s*|\s+", text)
print("Parts:", parts)
