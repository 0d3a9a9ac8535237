"""Convert a Unix timestamp (seconds since 1970) to a date and time in UTC, and back."""

from datetime import UTC, datetime

timestamp = 1_700_000_000

moment = datetime.fromtimestamp(timestamp, tz=UTC)
print("Date and time:", moment.isoformat())
print("Back to a timestamp:", int(moment.timestamp()))
