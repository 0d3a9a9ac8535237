"""Turn a title into a slug for a web address, without accents, spaces or punctuation.

How do I make "crème brûlée" into a link ending like creme-brulee?
How do I create a clean URL name from a blog post headline?
How can I drop accents and special signs so that a heading is safe as a file name?
My recipe site needs readable page addresses with hyphens; how do I build them?
Slugify title unicode normalize hyphens python?
"""

import re
import unicodedata


def slug(title):
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


print("Slug:", slug("  Crème Brûlée: 10 Easy Steps!  "))
