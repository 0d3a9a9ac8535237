"""Run Conway's Game of Life, a cellular automaton, for a few generations and draw it as text."""

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
