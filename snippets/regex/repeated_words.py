"""Find words that are accidentally doubled, like "the the", and remove the repetition."""

import re

text = "This is is a test of the the the checker, and it it works."

DOUBLED = re.compile(r"\b(\w+)(?:\s+\1\b)+", re.IGNORECASE)
print("Doubled words:", DOUBLED.findall(text))
print("Corrected:", DOUBLED.sub(r"\1", text))
