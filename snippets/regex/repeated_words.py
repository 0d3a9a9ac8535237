"""Find words that are accidentally doubled, like "the the", and remove the repetition.

How do I catch typos like "is is" or "it it" in my essay?
How do I delete a word typed twice in a row?
My dictation software stutters words; how do I clean the transcript?
How can I proofread a thesis for the same term occurring back to back?
Regex backreference duplicate consecutive words?
"""

import re

text = "This is is a test of the the the checker, and it it works."

DOUBLED = re.compile(r"\b(\w+)(?:\s+\1\b)+", re.IGNORECASE)
print("Doubled words:", DOUBLED.findall(text))
print("Corrected:", DOUBLED.sub(r"\1", text))
