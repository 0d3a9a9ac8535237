"""Choose items with the greatest value that fit a weight limit (0/1 knapsack problem)."""


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
