"""Read key=value pairs, with or without quotes, from a line of text into a dictionary."""

import re

line = 'user=ann role="site admin" logins=42 active=yes'

pairs = {key: quoted or plain for key, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', line)}
print("Pairs:", pairs)
print("Role:", pairs["role"])
