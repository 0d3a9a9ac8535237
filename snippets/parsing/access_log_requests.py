"""Read a web server access log and find the busiest addresses and the share of failed requests.

Which IP visits my website most often according to the Apache log?
How do I see what percentage of page visits ended with 404 or 500?
Who is hammering my blog's server, and how much data was sent out?
How do I parse nginx lines with method, path and status code?
Access.log top ip count error rate regex?
"""

import re
from collections import Counter

log = """10.0.0.1 - - [01/May/2024:10:00:00 +0000] "GET /index.html HTTP/1.1" 200 512
10.0.0.2 - - [01/May/2024:10:00:01 +0000] "GET /missing HTTP/1.1" 404 128
10.0.0.1 - - [01/May/2024:10:00:02 +0000] "POST /login HTTP/1.1" 200 64
10.0.0.1 - - [01/May/2024:10:00:03 +0000] "GET /index.html HTTP/1.1" 500 32
"""

requests = re.findall(r'^(\S+) .*?"(\S+) (\S+) [^"]*" (\d{3}) (\d+)$', log, re.MULTILINE)
addresses = Counter(address for address, *_ in requests)
failed = [path for _, _, path, status, _ in requests if int(status) >= 400]

print("Busiest address:", addresses.most_common(1)[0])
print("Failed requests:", failed, f"or {len(failed) / len(requests):.0%}")
print("Bytes sent:", sum(int(size) for *_, size in requests))
