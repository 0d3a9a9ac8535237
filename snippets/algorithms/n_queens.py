"""Place eight queens on a chessboard so that none attacks another, with backtracking.

How can I put 8 chess queens on a board so they never share a row, column or diagonal?
How many different arrangements are there for the eight queens puzzle?
How do I solve a placement puzzle by trying options and going back when stuck?
Can six rival guards stand on a 6 by 6 grid with none in line with another?
8 queens problem solver recursive generator?
"""


def solutions(size, columns=()):
    row = len(columns)
    if row == size:
        yield columns
        return
    for column in range(size):
        if all(column != c and abs(column - c) != row - r for r, c in enumerate(columns)):
            yield from solutions(size, (*columns, column))


first = next(solutions(8))
for column in first:
    print(" ".join("Q" if c == column else "." for c in range(8)))
print("Number of solutions for 8 queens:", sum(1 for _ in solutions(8)))
