"""Solve the tower of Hanoi puzzle with recursion and list the moves."""


def moves(disks, source="A", target="C", spare="B"):
    if disks == 0:
        return []
    return [
        *moves(disks - 1, source, spare, target),
        (source, target),
        *moves(disks - 1, spare, target, source),
    ]


print("Moves for 3 disks:", " ".join(f"{source}->{target}" for source, target in moves(3)))
print("Number of moves for 10 disks:", len(moves(10)))
