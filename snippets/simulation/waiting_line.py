"""Simulate a queue at a counter: when customers arrive, how long they wait and how busy the clerk is.

Customers come at minutes 0, 2, 3 and each takes a while; how long do they stand in line?
How do I model one cashier serving people one after another?
How busy is the doctor's receptionist, and what is the average wait of patients?
How can I see if a single ticket counter is enough for arriving visitors?
Single server queue simulation wait times utilization?
"""

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
