"""Read key=value pairs, with or without quotes, from a line of text into a dictionary.

How do I turn 'user=ann role="site admin"' into a dictionary?
How do I parse options like width=10 color="dark blue" where values may contain spaces?
My router prints status lines such as name=value; how do I look up one value?
How can I read label=content settings from one line of a logfmt message?
Regex parse key=value quoted string to dict?
"""

import re

line = 'user=ann role="site admin" logins=42 active=yes'

pairs = {key: quoted or plain for key, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', line)}
print("Pairs:", pairs)
print("Role:", pairs["role"])
