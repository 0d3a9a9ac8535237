"""Compute the edit distance (Levenshtein) between two words.

It is the smallest number of letters to insert, delete or replace that turns one word into the other.

How many typing changes does it take to get from kitten to sitting?
How do I measure how different two words are by inserted, deleted or substituted letters?
Are "Meier" and "Meyer" just one letter apart, so maybe the same person?
How many mutations separate two short gene sequences?
Levenshtein distance dynamic programming python?
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
