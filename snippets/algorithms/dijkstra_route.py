"""Find the cheapest route between cities in a weighted graph with Dijkstra's algorithm.

Driving from town A to D with different road lengths, which way has the fewest kilometres?
How do I compute the lowest-cost connection between two nodes when edges have different costs?
Which sequence of stops is cheapest if every train leg has its own ticket price?
How would a GPS navigation pick the shortest total distance through a road network?
Weighted graph shortest path with heapq priority queue?
"""

import heapq

roads = {"A": {"B": 4, "C": 1}, "B": {"D": 1}, "C": {"B": 2, "D": 7}, "D": {}}


def cheapest_route(roads, start, goal):
    queue = [(0, start, [start])]
    visited = set()
    while queue:
        distance, city, route = heapq.heappop(queue)
        if city == goal:
            return distance, route
        if city in visited:
            continue
        visited.add(city)
        for neighbour, length in roads[city].items():
            heapq.heappush(queue, (distance + length, neighbour, [*route, neighbour]))
    return None


distance, route = cheapest_route(roads, "A", "D")
print(f"Shortest distance {distance} by the route {' -> '.join(route)}")
