"""Count permutations and combinations and list them: how many ways to choose or to arrange things."""

import math
from itertools import combinations, permutations

colors = ["red", "green", "blue"]

print("Ways to arrange three colors:", len(list(permutations(colors))))
print("Pairs where order does not matter:", list(combinations(colors, 2)))
print("Lottery, 6 of 49 numbers:", math.comb(49, 6))
print("Gold, silver and bronze for 8 runners:", math.perm(8, 3))
