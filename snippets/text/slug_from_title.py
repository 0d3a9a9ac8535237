"""Turn a title into a slug for a web address, without accents, spaces or punctuation."""

import re
import unicodedata


def slug(title):
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


print("Slug:", slug("  Crème Brûlée: 10 Easy Steps!  "))
