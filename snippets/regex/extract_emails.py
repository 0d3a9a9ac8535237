"""Extract all email addresses from a text with a regular expression."""

import re

text = "Write to ann@example.com or bob.lee+shop@mail.example.org, not to @nobody or ann@example.com again."

addresses = re.findall(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", text)
print("Email addresses:", list(dict.fromkeys(addresses)))
