"""Sort a list of records by several keys, such as by score descending and then by name."""

from operator import itemgetter

players = [
    {"name": "Cem", "score": 95},
    {"name": "Bob", "score": 80},
    {"name": "Ann", "score": 80},
]

ranked = sorted(players, key=lambda player: (-player["score"], player["name"]))
print("By score, then name:", [player["name"] for player in ranked])
print("By name:", [player["name"] for player in sorted(players, key=itemgetter("name"))])
