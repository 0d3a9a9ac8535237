"""Place eight queens on a chessboard so that none attacks another, with backtracking."""


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
