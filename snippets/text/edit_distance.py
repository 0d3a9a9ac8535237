"""Compute the edit distance (Levenshtein) between two words.

It is the smallest number of letters to insert, delete or replace that turns one word into the other.
"""


def edit_distance(first, second):
    previous = list(range(len(second) + 1))
    for row, letter in enumerate(first, start=1):
        current = [row]
        for column, other in enumerate(second, start=1):
            replaced = previous[column - 1] + (letter != other)
            current.append(min(previous[column] + 1, current[-1] + 1, replaced))
        previous = current
    return previous[-1]


for first, second in [("kitten", "sitting"), ("flaw", "lawn"), ("same", "same")]:
    print(f"Edit distance of {first} and {second}: {edit_distance(first, second)}")
