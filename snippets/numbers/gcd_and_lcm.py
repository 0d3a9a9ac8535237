"""Find the greatest common divisor and the least common multiple of several numbers."""

import math

numbers = [12, 18, 30]

print("Greatest common divisor:", math.gcd(*numbers))
print("Least common multiple:", math.lcm(*numbers))
print("8 and 15 share no divisor but 1:", math.gcd(8, 15) == 1)
