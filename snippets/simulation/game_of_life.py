"""Run Conway's Game of Life, a cellular automaton, for a few generations and draw it as text.

How do I program cells that live or die depending on their neighbours?
How do I make a blinker flip back and forth on a grid with # and dots?
What happens to a pattern of living cells after several rounds by Conway's rules?
For a biology club demo, how can simple rules create moving patterns on squares?
Conway cellular automaton neighbours Counter set?
"""

from collections import Counter


def next_generation(alive):
    neighbours = Counter(
        (row + dr, column + dc)
        for row, column in alive
        for dr in (-1, 0, 1)
        for dc in (-1, 0, 1)
        if (dr, dc) != (0, 0)
    )
    return {cell for cell, count in neighbours.items() if count == 3 or (count == 2 and cell in alive)}


cells = {(1, 0), (1, 1), (1, 2)}
for generation in range(3):
    print(f"Generation {generation}:")
    for row in range(3):
        print("".join("#" if (row, column) in cells else "." for column in range(3)))
    cells = next_generation(cells)
