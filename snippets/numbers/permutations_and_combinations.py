"""Count permutations and combinations and list them: how many ways to choose or to arrange things.

How many different lottery tickets are possible when 6 out of 49 are drawn?
In how many orders can 3 people stand in line for a photo?
How do I list every possible pair from a group of players for a tournament?
Eight runners compete; how many possible podiums of gold, silver and bronze are there?
Itertools combinations vs permutations, n choose k count?
"""

import math
from itertools import combinations, permutations

colors = ["red", "green", "blue"]

print("Ways to arrange three colors:", len(list(permutations(colors))))
print("Pairs where order does not matter:", list(combinations(colors, 2)))
print("Lottery, 6 of 49 numbers:", math.comb(49, 6))
print("Gold, silver and bronze for 8 runners:", math.perm(8, 3))
