"""Mask credit card numbers in a text so that only the last four digits can be read (redaction).

How do I hide all but the last 4 digits of a payment card in an email?
How do I replace sensitive digits with asterisks in customer chats?
Support tickets contain Visa numbers; how do I anonymize them before storing?
How can I show a card on a receipt as **** **** **** 1234?
Redact credit card regex re.sub last four?
"""

import re

text = "Paid with 4111 1111 1111 1234 and 5500-0000-0000-5678 on day 12."

masked = re.sub(r"\b(?:\d{4}[ -]?){3}(\d{4})\b", r"**** **** **** \1", text)
print("Masked:", masked)
