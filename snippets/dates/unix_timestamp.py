"""Convert a Unix timestamp (seconds since 1970) to a date and time in UTC, and back.

What calendar day and hour is 1700000000 in epoch time?
How do I get the number of seconds since 1970 from a datetime?
My database stores created_at as a big integer; how do I make it readable?
A photo's metadata holds epoch seconds; when was the picture taken?
Epoch seconds to datetime utc python fromtimestamp?
"""

from datetime import UTC, datetime

timestamp = 1_700_000_000

moment = datetime.fromtimestamp(timestamp, tz=UTC)
print("Date and time:", moment.isoformat())
print("Back to a timestamp:", int(moment.timestamp()))
