"""Sort a list of records by several keys, such as by score descending and then by name.

How do I make a leaderboard with highest points first and ties broken alphabetically?
How to order a list of dictionaries descending by one field and ascending by another?
Race results: fastest first, and runners with equal time listed by surname; how is that done?
How can my class list be arranged by grade from best to worst, then A to Z?
Sorted with lambda tuple key and tie breaker?
"""

from operator import itemgetter

players = [
    {"name": "Cem", "score": 95},
    {"name": "Bob", "score": 80},
    {"name": "Ann", "score": 80},
]

ranked = sorted(players, key=lambda player: (-player["score"], player["name"]))
print("By score, then name:", [player["name"] for player in ranked])
print("By name:", [player["name"] for player in sorted(players, key=itemgetter("name"))])
