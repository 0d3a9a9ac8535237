"""Extract all email addresses from a text with a regular expression.

How do I collect every mail address mentioned in a long letter?
How do I find things like bob.lee+shop@mail.example.org in a document?
The parents' newsletter contains contact addresses; how do I list them without repeats?
How can I harvest the contact addresses from pasted conference notes?
Regex findall email pattern unique python?
"""

import re

text = "Write to ann@example.com or bob.lee+shop@mail.example.org, not to @nobody or ann@example.com again."

addresses = re.findall(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", text)
print("Email addresses:", list(dict.fromkeys(addresses)))
