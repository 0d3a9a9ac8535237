"""Simulate the Monty Hall game show with three doors to see if it is better to switch or to stay."""

import random


def play(rng, switch):
    prize, choice = rng.randrange(3), rng.randrange(3)
    opened = rng.choice([door for door in range(3) if door not in (prize, choice)])
    if switch:
        choice = next(door for door in range(3) if door not in (choice, opened))
    return choice == prize


rng = random.Random(3)
games = 20_000
for name, switch in [("stay", False), ("switch", True)]:
    wins = sum(play(rng, switch) for _ in range(games))
    print(f"Those who {name} win {wins / games:.0%} of the games")
