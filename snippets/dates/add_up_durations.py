"""Add up durations given as hours:minutes:seconds, such as times of laps or songs.

My three laps took 45:30, 1:15:45 and 58:45; how long is that altogether?
How do I sum playing times of tracks written as hh:mm:ss?
What is the mean length of my phone calls noted in hours, minutes and seconds?
I logged working time per task like 01:20:00; how much is it over the week?
Sum of hh:mm:ss strings with timedelta?
"""

from datetime import timedelta


def parse_duration(text):
    hours, minutes, seconds = map(int, text.split(":"))
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)


def show(duration):
    minutes, seconds = divmod(int(duration.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}"


laps = ["00:45:30", "01:15:45", "00:58:45"]
total = sum(map(parse_duration, laps), timedelta())
print("Total time:", show(total))
print("Average time:", show(total / len(laps)))
