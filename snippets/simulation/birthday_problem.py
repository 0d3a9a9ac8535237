"""Find the probability that two people in a group share a birthday, exactly and by simulation.

In a class of 23 children, how likely is it that two celebrate on the same day?
How many party guests are needed to be 99 percent sure of a shared birth date?
What are the odds that two players of a football team were born on the same day?
How do I check the surprising odds of matching calendar days by random trials?
Birthday paradox probability python simulation?
"""

import random


def exact_probability(people):
    all_different = 1.0
    for taken in range(people):
        all_different *= (365 - taken) / 365
    return 1 - all_different


def simulated_probability(people, trials=20_000, seed=1):
    rng = random.Random(seed)
    shared = sum(len({rng.randrange(365) for _ in range(people)}) < people for _ in range(trials))
    return shared / trials


print(f"Exact for 23 people: {exact_probability(23):.3f}")
print(f"Simulated for 23 people: {simulated_probability(23):.2f}")
print("People needed for 99%:", next(n for n in range(1, 366) if exact_probability(n) >= 0.99))
