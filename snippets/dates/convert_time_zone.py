"""Convert a time from one time zone to another, such as a meeting in New York to Tokyo time.

Fixed offsets from UTC; with daylight saving use zoneinfo.ZoneInfo("America/New_York") in their place.

Our call is at 6:30 pm in New York; what time is that in Tokyo?
How do I shift a datetime from one region's clock to another's in Python?
A football match kicks off at 20:00 London time; when should I watch in Sydney?
My flight lands at local time; how do I see what hour it is back home?
Datetime astimezone utc offset example?
"""

from datetime import UTC, datetime, timedelta, timezone

new_york = timezone(timedelta(hours=-5), "New York")
tokyo = timezone(timedelta(hours=9), "Tokyo")

meeting = datetime(2024, 1, 15, 18, 30, tzinfo=new_york)
for zone in [new_york, UTC, tokyo]:
    print(f"{meeting.astimezone(zone):%Y-%m-%d %H:%M} in {zone}")
