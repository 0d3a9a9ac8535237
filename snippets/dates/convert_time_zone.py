"""Convert a time from one time zone to another, such as a meeting in New York to Tokyo time.

Fixed offsets from UTC; with daylight saving use zoneinfo.ZoneInfo("America/New_York") in their place.
"""

from datetime import UTC, datetime, timedelta, timezone

new_york = timezone(timedelta(hours=-5), "New York")
tokyo = timezone(timedelta(hours=9), "Tokyo")

meeting = datetime(2024, 1, 15, 18, 30, tzinfo=new_york)
for zone in [new_york, UTC, tokyo]:
    print(f"{meeting.astimezone(zone):%Y-%m-%d %H:%M} in {zone}")
