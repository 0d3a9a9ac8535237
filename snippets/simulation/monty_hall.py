"""Simulate the Monty Hall game show with three doors to see if it is better to switch or to stay.

In the TV show with a car and two goats, should I change my door?
How do I prove by computer that swapping doors wins two thirds of the time?
The host opens an empty box; is it smarter to keep my first pick?
Why is it not fifty-fifty after one wrong door is revealed?
Three doors goat car switch or stay simulation?
"""

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
