"""Read the text of an email: sender, recipients, subject, date and body.

I saved a message as .eml; how do I see who sent it and when?
How do I decode a strange subject such as =?utf-8?q?Caf=C3=A9?= into readable letters?
How can I list everyone a mail was addressed to from its raw source?
Our office archives support mails as raw text; how do I get the body's first line?
Python email parser policy default headers?
"""

from email import message_from_string, policy
from email.utils import getaddresses

raw = """From: Ann Lee <ann@example.com>
To: bob@example.com, Cem <cem@example.org>
Subject: =?utf-8?q?Caf=C3=A9_at_noon?=
Date: Wed, 01 May 2024 10:30:00 +0200

Shall we meet at the corner?
Ann
"""

message = message_from_string(raw, policy=policy.default)
print("From:", message["From"].addresses[0].addr_spec)
print("To:", [address for _, address in getaddresses([message["To"]])])
print("Subject:", message["Subject"])
print("Sent:", message["Date"].datetime.date())
print("First line:", message.get_content().splitlines()[0])
