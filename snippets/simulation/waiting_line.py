"""Simulate a queue at a counter: when customers arrive, how long they wait and how busy the clerk is."""

arrivals = [0, 2, 3, 10, 11]
service_times = [4, 3, 2, 3, 1]

free_at = 0
waits = []
for arrival, service in zip(arrivals, service_times, strict=True):
    start = max(arrival, free_at)
    waits.append(start - arrival)
    free_at = start + service

print("Waiting times:", waits)
print("Average wait:", sum(waits) / len(waits))
print(f"The clerk is busy {sum(service_times) / free_at:.0%} of the time until {free_at}")
