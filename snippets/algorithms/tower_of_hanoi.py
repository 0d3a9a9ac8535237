"""Solve the tower of Hanoi puzzle with recursion and list the moves.

My kid has a toy with three pegs and stacked rings; what are the steps to shift them?
How do I move a pile of rings to another peg without putting a big one on a small one?
How many turns does it take to move 10 disks between three rods?
What is a classic recursion example with source, spare and target pegs?
Hanoi disks solver recursive list of steps?
"""


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
