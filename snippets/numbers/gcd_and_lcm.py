"""Find the greatest common divisor and the least common multiple of several numbers.

Bus A comes every 12 minutes, bus B every 18; when do they next leave together?
How do I find the biggest number that divides 12, 18 and 30 evenly?
I have 12 roses and 18 tulips; what is the most identical bouquets I can make?
What is the smallest number that is a multiple of several given integers?
Math.gcd math.lcm coprime check python?
"""

import math

numbers = [12, 18, 30]

print("Greatest common divisor:", math.gcd(*numbers))
print("Least common multiple:", math.lcm(*numbers))
print("8 and 15 share no divisor but 1:", math.gcd(8, 15) == 1)
