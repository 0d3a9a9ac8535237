"""Choose items with the greatest value that fit a weight limit (0/1 knapsack problem).

My backpack holds only 4 kg; which of my valuables should I take to be worth the most?
How do I pick things under a limited capacity so that the total worth is maximal?
Carry-on baggage allows 7 kg: which gadgets are best to bring, each taken once or not at all?
We have 40 hours for projects with different payoffs and durations; which ones should we select?
Best selection of items under weight constraint, dynamic programming?
"""


def pack(items, capacity):
    best = [(0, [])] * (capacity + 1)
    for name, weight, value in items:
        for room in range(capacity, weight - 1, -1):
            before, chosen = best[room - weight]
            if before + value > best[room][0]:
                best[room] = (before + value, [*chosen, name])
    return best[capacity]


items = [("laptop", 3, 2000), ("camera", 1, 1500), ("guitar", 4, 3000), ("book", 1, 500)]
value, chosen = pack(items, capacity=4)
print(f"Best value {value} with {chosen}")
