"""Mask credit card numbers in a text so that only the last four digits can be read (redaction)."""

import re

text = "Paid with 4111 1111 1111 1234 and 5500-0000-0000-5678 on day 12."

masked = re.sub(r"\b(?:\d{4}[ -]?){3}(\d{4})\b", r"**** **** **** \1", text)
print("Masked:", masked)
